"""Where imported files are, what they are called, and files that are none."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import FileMissing, InvalidArgument, InvalidData, InvalidUrl, StorageError

ODD = ("a*b", "a?b", "a[b]", "a b", "a=b", "a%20b", "%", "ä€", "'\"", "{x,y}", "#frag", "~", "a\\b", "$x;")


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def test_names_of_files_and_folders_mean_nothing_but_themselves(catalog, put, rows) -> None:
    table = catalog.create_table("t", "n BIGINT")
    paths = [put(f"{name}/{name}.parquet", numbers(at)) for at, name in enumerate(ODD)]
    # What patterns would match as well.
    put("axb.parquet", numbers(-1))
    put("ab/ab.parquet", numbers(-1))
    assert table.add_files(paths, mapping="by_name") == len(ODD)
    assert rows(table) == sorted([{"n": at} for at in range(len(ODD))], key=str)
    assert table.delete("n = 2") == 1
    assert table.update({"n": "n + 100"}, "n = 0") == 1
    assert {row["n"] for row in rows(table)} == {100, 1, *range(3, len(ODD))}


def test_files_below_the_data_path_are_stored_relative_to_it(catalog, tmp_path, put, rows) -> None:
    table = catalog.create_table("t", "n BIGINT")
    inside = tmp_path / "files" / "landing" / "in.parquet"
    inside.parent.mkdir(parents=True)
    pq.write_table(numbers(1), inside)
    outside = put("out.parquet", numbers(2))
    dotted = tmp_path / "incoming" / ".." / "files" / "landing" / ".." / "landing" / "in.parquet"
    assert table.add_files([inside, str(outside), dotted], mapping="by_name") == 2
    assert sorted(file.path for file in table.files()) == [str(outside), "landing/in.parquet"]
    assert rows(table) == [{"n": 1}, {"n": 2}]


def test_relative_paths_start_at_the_working_folder(catalog, put, rows, monkeypatch) -> None:
    put("here.parquet", numbers(3))
    monkeypatch.chdir(put("x.parquet", numbers(0)).parent)
    table = catalog.create_table("t", "n BIGINT")
    table.add_files("here.parquet", mapping="by_name")
    monkeypatch.chdir("/")
    assert rows(table) == [{"n": 3}]


def test_a_folder_stands_for_the_files_in_it(catalog, put, incoming, rows, refused) -> None:
    table = catalog.create_table("t", "n BIGINT")
    for at, name in enumerate(("b.parquet", "deep/er/a.parquet", "_day=1/c.parquet")):
        put(name, numbers(at))
    for name in ("_x.parquet", ".y.parquet", "_temporary/z.parquet", "_delta_log/1.checkpoint.parquet"):
        put(name, pa.table({"other": ["x"]}))
    (incoming / "_SUCCESS").touch()
    (incoming / "notes.txt").write_text("not Parquet")
    assert table.add_files(incoming, mapping="by_name") == 3
    assert rows(table) == [{"n": 0}, {"n": 1}, {"n": 2}]
    (incoming / "empty").mkdir()
    for nothing in (incoming / "empty", [incoming / "b.parquet", incoming / "empty"]):
        assert str(incoming / "empty") in refused(table, nothing, FileMissing, mapping="by_name")


def test_what_is_no_path_is_refused(catalog, refused) -> None:
    table = catalog.create_table("t", "n BIGINT")
    for paths in (None, 7, [], [None], {"a": "b"}, b"x"):
        refused(table, paths, InvalidArgument, mapping="by_name")
    for path in ("http://host/a.parquet", "nul\0.parquet", "lone\udc80.parquet"):
        refused(table, path, StorageError, mapping="by_name")


def test_a_file_is_imported_once(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "n BIGINT")
    path = put("a.parquet", numbers(1))
    assert table.add_files([path, path, str(path)], mapping="by_name") == 1
    message = refused(table, [put("b.parquet", numbers(2)), path], mapping="by_name")
    assert str(path) in message and "already" in message
    # Another table may have it, and this one again when it has let it go.
    other = catalog.create_table("other", "n BIGINT")
    assert other.add_files(path, mapping="by_name") == 1
    assert table.delete() == 1
    assert table.add_files(path, mapping="by_name") == 1
    assert rows(table) == rows(other) == [{"n": 1}]


def test_a_file_is_imported_once_within_a_transaction(catalog, put, rows) -> None:
    catalog.create_table("t", "n BIGINT")
    first, second = put("a.parquet", numbers(1)), put("b.parquet", numbers(2))
    with catalog.transaction() as tx:
        table = tx.table("t")
        table.add_files(first, mapping="by_name")
        with pytest.raises(InvalidData, match="already"):
            table.add_files([second, first], mapping="by_name")
        # The refusal took the second file back as well.
        assert rows(table) == [{"n": 1}]
        table.add_files(second, mapping="by_name")
        assert rows(table) == [{"n": 1}, {"n": 2}]
    assert rows(catalog.table("t")) == [{"n": 1}, {"n": 2}]


def test_a_file_without_rows_adds_nothing(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "n BIGINT NOT NULL")
    before = catalog.snapshot
    empty = put("empty.parquet", numbers())
    assert table.add_files(empty, mapping="by_name") == 0
    assert catalog.snapshot == before and table.files() == []
    # It still has to fit.
    wrong = put("wrong.parquet", pa.table({"n": pa.array([], pa.string())}))
    assert '"n"' in refused(table, wrong, mapping="by_name")
    assert table.add_files([empty, put("full.parquet", numbers(1))], mapping="by_name") == 1
    assert rows(table) == [{"n": 1}] and len(table.files()) == 1


def test_what_is_no_parquet_is_refused_by_name(catalog, put, incoming, refused) -> None:
    table = catalog.create_table("t", "n BIGINT")
    whole = put("whole.parquet", numbers(*range(1000))).read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    contents = {
        "nothing": b"",
        "text": b"id,name\n1,x\n",
        "head": whole[:200],
        "tail": whole[100:],
        "cut": whole[:-1],
        "garbage in the footer": whole[: -8 - footer] + b"\xff" * footer + whole[-8:],
    }
    for name, content in contents.items():
        path = incoming / f"{name}.parquet"
        path.write_bytes(content)
        before = catalog.snapshot
        with pytest.raises((InvalidData, StorageError)) as caught:
            table.add_files(path, mapping="by_name")
        assert str(path) in str(caught.value), name
        assert catalog.snapshot == before
    missing = incoming / "missing.parquet"
    assert str(missing) in refused(table, missing, FileMissing, mapping="by_name")
    if os.geteuid():
        secret = put("secret.parquet", numbers(1))
        secret.chmod(0)
        assert str(secret) in refused(table, secret, StorageError, mapping="by_name")


def test_a_file_that_changes_after_the_import_is_not_read_wrongly(catalog, put, reopen) -> None:
    table = catalog.create_table("t", "n BIGINT")
    path = put("a.parquet", numbers(1, 2, 3))
    table.add_files(path, mapping="by_name")
    put("a.parquet", numbers(*range(100)))
    with pytest.raises(StorageError, match="overwritten") as caught:
        table.scan().to_arrow()
    assert str(path) in str(caught.value)
    path.unlink()
    with pytest.raises(FileMissing) as caught:
        reopen().catalog("main_catalog").table("t").scan("n = 2").count()
    assert str(path) in str(caught.value)


def test_patterns_stand_for_the_files_that_they_match(catalog, put, incoming, rows, monkeypatch) -> None:
    names = ("a1", "a2", "b1", "deep/a3", "deep/er/a4", "_tmp/a5", ".dot/a6", "deep/_a7", "a[1]")
    for at, name in enumerate(names):
        put(f"{name}.parquet", numbers(at))
    found = {
        "*.parquet": {0, 1, 2, 8},
        "a?.parquet": {0, 1},
        "[!a]*.parquet": {2},
        "**/a*.parquet": {0, 1, 3, 4, 8},
        "*/*.parquet": {3},
        "deep/**/*.parquet": {3, 4},
        "a[1].parquet": {8},
    }
    monkeypatch.chdir(incoming)
    for at, (pattern, expected) in enumerate(found.items()):
        for path in (str(incoming / pattern), pattern, [pattern, f"../incoming/{pattern}"]):
            table = catalog.create_table(f"t{at}", "n BIGINT")
            assert table.add_files(path, mapping="by_name") == len(expected), pattern
            assert {row["n"] for row in rows(table)} == expected
            table.drop()
    table = catalog.create_table("t", "n BIGINT")
    for pattern in ("z*.parquet", "nowhere/*.parquet", "_tmp*"):
        with pytest.raises(FileMissing, match="no file matches"):
            table.add_files(incoming / pattern, mapping="by_name")


@pytest.fixture
def bucket_lake(lake_url: str, s3_url: str):
    with forklake.connect(lake_url, data_path=s3_url, create=True) as lake:
        yield lake


def test_files_in_buckets_are_imported_one_by_one_and_by_folder(bucket_lake, s3_server, rows) -> None:
    catalog = bucket_lake.create_catalog("c")
    filesystem = bucket_lake._context.storage.s3.filesystem
    bucket = s3_server.new_bucket()
    data_path = bucket_lake._context.storage.data_path
    keys = ["one.parquet", "in/a*b [c]%20 ü.parquet", "in/v=5/x.parquet", "in/_temporary/y.parquet"]
    places = [f"{bucket}/{key}" for key in keys] + [data_path.removeprefix("s3://") + "landing/z.parquet"]
    for at, place in enumerate(places):
        table = numbers(at) if "v=5" in place else numbers(at).append_column("v", pa.array([at], pa.int64()))
        with filesystem.open_output_stream(place) as stream:
            pq.write_table(table, stream)
    table = catalog.create_table("t", "n BIGINT, v BIGINT")
    table.add_files(f"s3://{bucket}/one.parquet", mapping="by_name")
    assert table.add_files([f"s3://{bucket}/in/", f"{data_path}landing"], mapping="by_name") == 3
    assert rows(table) == [{"n": n, "v": {2: 5}.get(n, n)} for n in (0, 1, 2, 4)]
    assert "landing/z.parquet" in {file.path for file in table.files()}
    assert table.delete("v = 5") == 1
    assert table.update({"v": "v + 10"}, "n = 1") == 1
    assert rows(table) == [{"n": 0, "v": 0}, {"n": 1, "v": 11}, {"n": 4, "v": 4}]
    found = {"**/x*.parquet": 1, "in/*.parquet": 1, "in/v=[0-9]/*": 1, "*.parquet": 1, "**/*.parquet": 3}
    for at, (pattern, count) in enumerate(found.items()):
        matched = catalog.create_table(f"t{at}", "n BIGINT, v BIGINT")
        assert matched.add_files(f"s3://{bucket}/{pattern}", mapping="by_name") == count, pattern
    with pytest.raises(FileMissing, match="no file matches"):
        table.add_files(f"s3://{bucket}/none/*.parquet", mapping="by_name")
    for path in (f"s3://{bucket}/gone.parquet", f"s3://{bucket}/none/", "s3://no-such-bucket/x.parquet"):
        with pytest.raises(StorageError) as caught:
            table.add_files(path, mapping="by_name")
        assert Path(path).name in str(caught.value)


def test_a_question_mark_in_a_bucket_is_refused(bucket_lake, s3_server) -> None:
    """DuckDB takes it for the start of options."""
    table = bucket_lake.create_catalog("c").create_table("t", "n BIGINT")
    bucket = s3_server.new_bucket()
    filesystem = bucket_lake._context.storage.s3.filesystem
    with filesystem.open_output_stream(f"{bucket}/a?b.parquet") as stream:
        pq.write_table(numbers(1), stream)
    with pytest.raises(InvalidData, match="without"):
        table.add_files(f"s3://{bucket}/a?b.parquet", mapping="by_name")


def test_a_file_is_imported_once_whatever_links_lead_to_it(catalog, put, rows, refused, tmp_path) -> None:
    table = catalog.create_table("t", "n BIGINT")
    path = put("a.parquet", numbers(1))
    (tmp_path / "folder").symlink_to(path.parent)
    linked, twice, hard = (path.parent / name for name in ("link.parquet", "twice.parquet", "hard.parquet"))
    linked.symlink_to(path)
    twice.symlink_to(linked)
    hard.hardlink_to(path)
    names = (linked, twice, hard, tmp_path / "folder" / "a.parquet", f"{path.parent}//./a.parquet")
    assert table.add_files(path, mapping="by_name") == 1
    for name in names:
        assert "already" in refused(table, name, mapping="by_name")
    other = catalog.create_table("other", "n BIGINT")
    assert "the same file" in refused(other, [linked, hard], mapping="by_name")
    # A link is as good as the file, and files that are alike are two.
    assert other.add_files([linked, put("b.parquet", numbers(1))], mapping="by_name") == 2
    assert "already" in refused(other, path, mapping="by_name")
    assert rows(other) == [{"n": 1}, {"n": 1}]
    # A file of the table itself is one, too.
    table.append(numbers(*range(1000)))
    own = next(file.path for file in table.files() if not file.path.startswith("/"))
    (tmp_path / "own.parquet").symlink_to(tmp_path / "files" / own)
    assert "already" in refused(table, tmp_path / "own.parquet")


def test_two_who_import_one_file_under_two_names_collide(catalog, put) -> None:
    catalog.create_table("t", "n BIGINT")
    path = put("a.parquet", numbers(1))
    linked = path.with_name("link.parquet")
    linked.symlink_to(path)
    with pytest.raises(forklake.errors.CommitConflict), catalog.transaction() as tx:
        tx.table("t").add_files(linked, mapping="by_name")
        catalog.table("t").add_files(path, mapping="by_name")
    assert catalog.table("t").count() == 1


def test_the_folder_of_a_user_is_found(catalog, put, rows, refused, monkeypatch) -> None:
    path = put("a.parquet", numbers(1))
    put("b.parquet", numbers(2))
    monkeypatch.setenv("HOME", str(path.parent))
    table = catalog.create_table("t", "n BIGINT")
    assert table.add_files("~/a.parquet", mapping="by_name") == 1
    assert "already" in refused(table, path, mapping="by_name")
    assert table.add_files("~/b*.parquet", mapping="by_name") == 1
    assert "no folder of a user" in refused(
        table, "~nobody_is_called_so/a.parquet", InvalidUrl, mapping="by_name"
    )
