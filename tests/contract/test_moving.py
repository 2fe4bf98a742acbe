"""A lake can move, and a copy of its metadata does not write where the original does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import sql

import forklake
from forklake.localpg import find_programs

CopyOf = Callable[[str], str]


@pytest.fixture
def copied(lake_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> CopyOf:
    """Copy the metadata of a lake, as people do: the file of a database, or a dump that is restored."""

    def copy(name: str) -> str:
        address = urlsplit(lake_url)
        if address.scheme != "postgresql":
            (tmp_path / name).mkdir()
            shutil.copy(tmp_path / "lake.db", tmp_path / name / "lake.db")
            return f"{address.scheme}:///{tmp_path / name / 'lake.db'}"
        schema = parse_qs(address.query)["metadata_schema"][0]
        server = request.getfixturevalue("postgres_server")
        target = urlsplit(server)._replace(path=f"/{schema}_{name}").geturl()
        with psycopg.connect(server, autocommit=True) as connection:
            database = sql.Identifier(f"{schema}_{name}")
            connection.execute(sql.SQL("CREATE DATABASE {}").format(database))

        def remove() -> None:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))

        request.addfinalizer(remove)
        dump = subprocess.run(
            [
                find_programs() / "pg_dump",
                "--schema",
                schema,
                "--inserts",
                address._replace(query="").geturl(),
            ],
            capture_output=True,
            check=True,
            text=True,
        )
        with psycopg.connect(target, autocommit=True) as connection:
            # Lines with a backslash are for psql.
            script = "".join(line for line in dump.stdout.splitlines(True) if not line.startswith("\\"))
            connection.execute(script.encode())
        return urlsplit(target)._replace(query=urlencode({"metadata_schema": schema})).geturl()

    return copy


@pytest.fixture
def filled(lake: forklake.Lake) -> forklake.Lake:
    """A lake with a table of a few files, closed."""
    table = lake.create_catalog("shop").create_table("t", "id INT")
    table.set_option("data_inlining_row_limit", 0)
    for start in (0, 100):
        table.append([{"id": n} for n in range(start, start + 100)])
    lake.close()
    return lake


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}


def test_a_copy_is_read_and_does_not_write_into_the_folder_of_the_original(
    filled: forklake.Lake, copied: CopyOf, tmp_path: Path, reopen
) -> None:
    before = files(tmp_path / "files")
    copy = reopen(copied("copy"))
    shop = copy.catalog("shop")
    assert shop.table("t").count() == shop.table("t").to_arrow().num_rows == 200
    many = pa.table({"id": pa.array(range(10_000), pa.int32())})
    for write in (
        lambda: shop.table("t").append(many),
        lambda: shop.table("t").append([{"id": 1}]),
        lambda: shop.transaction(),
        lambda: shop.begin_distributed(["t"]),
        lambda: shop.compact(),
        lambda: shop.fork("f"),
        lambda: copy.create_catalog("c"),
        lambda: copy.set_option("data_inlining_row_limit", 5),
    ):
        with pytest.raises(forklake.ReadOnlyStore, match=r"copied or moved.* moved=True"):
            write()
    assert files(tmp_path / "files") == before
    # The original goes on as if nothing had happened.
    original = reopen()
    assert original.catalog("shop").table("t").append([{"id": 1}]) == 1


def test_metadata_that_moved_write_where_the_files_are(
    filled: forklake.Lake, copied: CopyOf, tmp_path: Path, reopen
) -> None:
    url = copied("copy")
    (tmp_path / "lake.db").unlink(missing_ok=True)
    moved = reopen(url, moved=True)
    assert moved.data_path == f"{tmp_path}/files/"
    moved.catalog("shop").table("t").append([{"id": 1}])
    moved.close()
    assert reopen(url).catalog("shop").table("t").append([{"id": 2}]) == 1


def test_a_copy_whose_original_is_still_there_has_to_have_files_of_its_own(
    filled: forklake.Lake, copied: CopyOf, tmp_path: Path, reopen
) -> None:
    url = copied("copy")
    if not (tmp_path / "lake.db").exists():
        pytest.skip("whether another database of a server is the original is not known")
    with pytest.raises(forklake.InvalidArgument, match=r"the original .* is still at .*lake\.db"):
        reopen(url, moved=True)
    with pytest.raises(forklake.ReadOnlyStore):
        reopen(url).create_catalog("c")
    assert reopen(url, moved="force").create_catalog("c").name == "c"


@pytest.mark.parametrize("backend", ["sqlite", "duckdb"])
def test_the_folder_of_files_that_moved_with_the_metadata_is_found(tmp_path: Path, backend: str) -> None:
    (tmp_path / "old").mkdir()
    with forklake.connect(f"{backend}:///{tmp_path}/old/lake.db", create=True) as lake:
        table = lake.create_catalog("shop").create_table("t", "id INT")
        table.set_option("data_inlining_row_limit", 0)
        table.append([{"id": 1}])
    (tmp_path / "old").rename(tmp_path / "new")
    with forklake.connect(f"{backend}:///{tmp_path}/new/lake.db", moved=True) as lake:
        assert lake.data_path == f"{tmp_path}/new/lake.db.files/"
        assert lake.catalog("shop").table("t").to_pylist() == [{"id": 1}]


def test_a_copy_with_files_of_its_own_is_a_lake_of_its_own(
    filled: forklake.Lake, copied: CopyOf, tmp_path: Path, reopen
) -> None:
    url = copied("copy")
    shutil.copytree(tmp_path / "files", tmp_path / "other")
    with pytest.raises(forklake.DataPathMismatch, match="moved=True"):
        reopen(url, data_path=tmp_path / "other")
    copy = reopen(url, data_path=tmp_path / "other", moved=True)
    before = files(tmp_path / "files")
    copy.catalog("shop").table("t").append([{"id": n} for n in range(50)])
    copy.catalog("shop").table("t").delete("id >= 100")
    assert copy.catalog("shop").table("t").count() == 150
    assert files(tmp_path / "files") == before
    assert len(files(tmp_path / "other")) > len(before)
    assert reopen().catalog("shop").table("t").count() == 200


def test_files_can_move_and_the_metadata_stay(filled: forklake.Lake, tmp_path: Path, reopen) -> None:
    (tmp_path / "files").rename(tmp_path / "elsewhere")
    with pytest.raises(forklake.FileMissing):
        reopen().catalog("shop").table("t").to_arrow()
    lake = reopen(data_path=tmp_path / "elsewhere", moved=True)
    assert lake.catalog("shop").table("t").to_arrow().num_rows == 200
    again = reopen()
    assert again.data_path == f"{tmp_path}/elsewhere/"
    assert again.catalog("shop").table("t").append([{"id": n} for n in range(50)]) == 50
    assert not (tmp_path / "files").exists()


def test_a_place_without_the_files_is_refused_and_nothing_changes(
    filled: forklake.Lake, tmp_path: Path, reopen
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(forklake.FileMissing, match=r"2 of 2 files .* copy them there first, or .*force"):
        reopen(data_path=tmp_path / "empty", moved=True)
    shutil.copytree(tmp_path / "files", tmp_path / "half")
    next((tmp_path / "half").rglob("*.parquet")).unlink()
    with pytest.raises(forklake.FileMissing, match="1 of 2 files"):
        reopen(data_path=tmp_path / "half", moved=True)
    assert reopen().data_path == f"{tmp_path}/files/"
    forced = reopen(data_path=tmp_path / "empty", moved="force")
    assert forced.data_path == f"{tmp_path}/empty/"
    with pytest.raises(forklake.InvalidArgument):
        reopen(moved="yes")


def test_what_lies_elsewhere_stays_where_it_is_and_what_lay_inside_comes_along(
    lake: forklake.Lake, tmp_path: Path, reopen
) -> None:
    shop = lake.create_catalog("shop")
    shop.create_table("t", "id INT").append([{"id": 1}])
    rows = pa.table({"id": pa.array([5, 6], pa.int32())})
    for folder in (tmp_path / "files" / "in", tmp_path / "outside"):
        folder.mkdir(parents=True)
        pq.write_table(rows, folder / "rows.parquet")
        shop.table("t").add_files(folder / "rows.parquet", mapping="by_name")
    fork = lake.fork("shop", "apart", data_path=tmp_path / "apart")
    fork.table("t").append([{"id": n} for n in range(100)])
    lake.close()
    (tmp_path / "files").rename(tmp_path / "new")
    for taken in (tmp_path / "apart", tmp_path / "apart" / "inside"):
        with pytest.raises(forklake.DataPathOverlap):
            reopen(data_path=taken, moved="force")
    moved = reopen(data_path=tmp_path / "new", moved=True)
    assert sorted(moved.catalog("shop").table("t").to_arrow()["id"].to_pylist()) == [1, 5, 5, 6, 6]
    assert moved.catalog("apart").table("t").to_arrow().num_rows == 105
    moved.catalog("apart").table("t").append([{"id": n} for n in range(100)])
    assert moved.catalog("apart").table("t").to_arrow().num_rows == 205


def test_a_renamed_or_restored_database_is_no_copy(
    filled: forklake.Lake, lake_url: str, tmp_path: Path, reopen
) -> None:
    if lake_url.startswith("postgresql"):
        pytest.skip("a file is renamed here; the next test renames a schema")
    kind = urlsplit(lake_url).scheme
    (tmp_path / "lake.db").rename(tmp_path / "renamed.db")
    renamed = reopen(f"{kind}:///{tmp_path}/renamed.db")
    assert renamed.catalog("shop").table("t").append([{"id": 1}]) == 1
    renamed.close()
    # A backup that is put back is another file at the same place.
    shutil.copy(tmp_path / "renamed.db", tmp_path / "lake.db")
    assert reopen().catalog("shop").table("t").append([{"id": 1}]) == 1
    # The same file by another way.
    (tmp_path / "link").symlink_to(tmp_path)
    assert reopen(f"{kind}:///{tmp_path}/link/lake.db").catalog("shop").table("t").append([{"id": 1}]) == 1


def test_a_renamed_schema_is_no_copy(postgres_database: str, tmp_path: Path) -> None:
    url = f"{postgres_database}?metadata_schema="
    with forklake.connect(f"{url}one", data_path=tmp_path / "files", create=True) as lake:
        lake.create_catalog("c")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("ALTER SCHEMA one RENAME TO two")
    with forklake.connect(f"{url}two") as lake:
        lake.create_catalog("d")


def test_an_ordinary_role_knows_where_the_lake_is(postgres_database: str, tmp_path: Path) -> None:
    with forklake.connect(postgres_database, data_path=tmp_path, create=True) as lake:
        lake.create_catalog("c")
        known = lake._database.home()
    role = "r_" + urlsplit(postgres_database).path.removeprefix("/")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA ducklake TO {role}")
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA ducklake TO {role}")
        try:
            connection.execute(f"SET ROLE {role}")
            connection.execute("SELECT system_identifier FROM pg_control_system()")
            address = urlsplit(postgres_database)
            host = f"{address.hostname or ''}:{address.port}" if address.port else address.hostname or ""
            with forklake.connect(address._replace(netloc=f"{role}@{host}").geturl()) as lake:
                assert lake._database.home() == known is not None
        finally:
            connection.execute("RESET ROLE")
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")


def test_a_relative_data_path_is_stored_as_the_folder_it_means(
    lake_url: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with forklake.connect(lake_url, data_path="here/files", create=True) as lake:
        assert lake.data_path == f"{tmp_path}/here/files/"
        lake.create_catalog("c").create_table("t", "id INT").append([{"id": n} for n in range(100)])
    (tmp_path / "apart").mkdir()
    monkeypatch.chdir(tmp_path / "apart")
    with forklake.connect(lake_url) as lake:
        assert lake.catalog("c").table("t").to_arrow().num_rows == 100
    with pytest.raises(forklake.DataPathMismatch):
        forklake.connect(lake_url, data_path="here/files")


def test_a_lake_whose_files_are_gone_is_read_only_and_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with forklake.connect(f"sqlite:///{tmp_path}/one/l.db", create=True) as lake:
        table = lake.create_catalog("c").create_table("t", "id BIGINT")
        table.append({"id": range(1_000)})
    (tmp_path / "one").rename(tmp_path / "two")
    with forklake.connect(f"sqlite:///{tmp_path}/two/l.db") as lake:
        with pytest.raises(forklake.ReadOnlyStore, match="which is not there"):
            lake.catalog("c").table("t").append({"id": range(1_000)})
        with pytest.raises(forklake.FileMissing, match="moved=True"):
            lake.catalog("c").table("t").scan().to_pylist()
    assert not (tmp_path / "one").exists()
    moved = tmp_path / "two" / "l.db.files"
    with forklake.connect(f"sqlite:///{tmp_path}/two/l.db", data_path=moved, moved=True) as lake:
        lake.catalog("c").table("t").append({"id": range(1_000)})
        assert (
            lake.catalog("c").table("t").count()
            == len(lake.catalog("c").table("t").scan().to_arrow())
            == 2_000
        )
