"""Each data path is of one lake: no lake removes what another one has written there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import forklake
from forklake.data.storage.lake_markers import is_marker
from forklake.data.storage.storage import Storage, open_storage
from forklake.errors import DataPathOverlap
from tests.contract.maintenance.cleaned import NOW, clean, ids, rows
from tests.unit.command_line import run


@pytest.fixture
def other_url(tmp_path: Path) -> str:
    """The metadata of another lake."""
    return f"sqlite:///{tmp_path}/other.db"


@pytest.fixture
def storage(data_path: str) -> Storage:
    return open_storage(data_path)


@pytest.fixture
def lake(lake_url: str, data_path: str) -> Iterator[forklake.Lake]:
    """A lake on a disk or in a bucket, with a table whose rows are in files."""
    with forklake.connect(lake_url, data_path=data_path, create=True) as lake:
        filled(lake)
        yield lake


def filled(lake: forklake.Lake) -> None:
    table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    table.append(rows(0, 5))


def inside(data_path: str, folder: str) -> str:
    """A folder below a data path, with the options of its bucket."""
    path, question, options = data_path.partition("?")
    return f"{path}/{folder}{question}{options}"


def markers(storage: Storage) -> list[str]:
    return sorted(file.path for file in storage.files() if is_marker(file.path))


def unmark(storage: Storage) -> None:
    """As a lake is that was made before there were markers."""
    storage.delete(markers(storage))


def orphan(storage: Storage, path: str = f"shop/main/t/{'0' * 32}-0.parquet") -> str:
    with storage.open_output(path) as stream:
        stream.write(b"anything")
    return path


def test_a_lake_does_not_move_where_another_has_its_files(
    lake: forklake.Lake, data_path: str, other_url: str, tmp_path: Path
) -> None:
    apart = data_path.replace("/lake?", "/apart?") if "://" in data_path else tmp_path / "apart"
    forklake.connect(other_url, data_path=apart, create=True).close()
    for place in (data_path, inside(data_path, "below/it")):
        with pytest.raises(DataPathOverlap, match=r"has its files in .*/_lakes/.*\.json"):
            forklake.connect(other_url, data_path=place, moved=True)
    with forklake.connect(other_url, data_path=apart) as other:
        filled(other)


def test_lakes_that_share_a_data_path_remove_no_orphans_there(
    lake: forklake.Lake, lake_url: str, data_path: str, storage: Storage, other_url: str
) -> None:
    unmark(storage)
    with forklake.connect(other_url, data_path=data_path, create=True) as other:
        # What was there before this lake may be of another one.
        found = other.remove_orphans(older_than=NOW)
        assert (found.files, len(found.unknown)) == (0, 1)
        filled(other)
        written = {file.path for file in storage.files()}
        # The first one marks the data path now, and finds the other one there.
        for cleaned in (lake, other):
            cleaned.catalog("shop").table("t").overwrite(rows(5, 10))
            cleaned.expire(older_than=NOW)
            removed = cleaned.remove_orphans(older_than=NOW, unknown=True)
            assert [file.failed for file in removed.kept] == [True]
            assert "has its files there too" in removed.kept[0].why
            assert ids(cleaned.catalog("shop")) == [*range(5, 10)]
        assert not cleaned.checkpoint().succeeded
        assert written < {file.path for file in storage.files()}
        # What the metadata name is known to be one's own.
        assert [each.collect_garbage(older_than=NOW).removed for each in (lake, other)] == [1, 1]
        assert ids(lake.catalog("shop")) == ids(other.catalog("shop")) == [*range(5, 10)]
    # Who knows that the other one is gone takes its place; what was there before stays unless asked for.
    lake.close()
    with forklake.connect(lake_url, data_path=data_path, moved="force") as lake:
        assert len(markers(storage)) == 2 and len({name.partition(".")[0] for name in markers(storage)}) == 1
        assert (found := lake.remove_orphans(older_than=NOW)).files == 0
        assert len(found.unknown) == 1 and not found.kept
        orphan(storage)
        # Buckets tell seconds, and on any doubt a file stays.
        removed = lake.remove_orphans(older_than=NOW).files
        assert removed == 1 or not storage.is_local
        assert lake.remove_orphans(older_than=NOW, unknown=True).files == 2 - removed
        assert ids(lake.catalog("shop")) == [*range(5, 10)]


def test_a_lake_below_the_data_path_of_another_one_is_left_alone(
    lake: forklake.Lake, data_path: str, storage: Storage, other_url: str
) -> None:
    kept = markers(storage)
    unmark(storage)
    with forklake.connect(other_url, data_path=inside(data_path, "below/it"), create=True) as other:
        filled(other)
        before = {file.path for file in storage.files()}
        (mine, *_) = [orphan(storage), orphan(storage, f"below/main/t/{'0' * 32}-0.parquet")]
        assert mine not in before and kept
        found = lake.remove_orphans(older_than=NOW, unknown=True)
        assert found.files == 2
        assert [(file.path.endswith("below/it/"), file.failed) for file in found.kept] == [(True, False)]
        assert before <= {file.path for file in storage.files()}
        clean(other)
        assert ids(other.catalog("shop")) == ids(lake.catalog("shop")) == [*range(5)]


def test_a_copy_of_the_metadata_that_took_over_is_the_only_one_to_clean(
    lake: forklake.Lake, lake_url: str, data_path: str, storage: Storage, tmp_path: Path
) -> None:
    scheme = lake_url.partition(":")[0]
    if scheme == "postgresql":
        pytest.skip("a copy of a database takes long: that of a file goes the same way")
    lake.catalog("shop").table("t").overwrite(rows(5, 10))
    lake.close()
    shutil.copyfile(tmp_path / "lake.db", tmp_path / "copy.db")
    copy_url = f"{scheme}:///{tmp_path}/copy.db"
    with forklake.connect(copy_url, data_path=data_path) as copy, pytest.raises(forklake.ReadOnlyStore):
        copy.remove_orphans(older_than=NOW)
    with forklake.connect(copy_url, data_path=data_path, moved="force") as copy:
        copy.catalog("shop").table("t").append(rows(20, 22))
    before = {file.path for file in storage.files()}
    with forklake.connect(lake_url, data_path=data_path) as original:
        original.expire(older_than=NOW)
        assert all(file.failed for file in original.collect_garbage(older_than=NOW).kept)
        assert original.remove_orphans(older_than=NOW, unknown=True).files == 0
        assert {file.path for file in storage.files()} == before
    with forklake.connect(copy_url, data_path=data_path) as copy:
        clean(copy)
        assert copy.remove_orphans(older_than=NOW).kept == ()
        assert ids(copy.catalog("shop")) == [*range(5, 10), 20, 21]


def test_a_lake_from_before_is_marked_when_it_is_cleaned(lake: forklake.Lake, storage: Storage) -> None:
    unmark(storage)
    before = orphan(storage)
    found = lake.remove_orphans(older_than=NOW, dry_run=True)
    assert (found.files, len(found.unknown), markers(storage)) == (0, 1, [])
    assert lake.remove_orphans(older_than=NOW).unknown == (storage.address(before),)
    assert len(markers(storage)) == 1
    if not storage.is_local:
        # Buckets tell seconds, and on any doubt a file stays.
        return
    after = orphan(storage, f"shop/main/t/{'1' * 32}-0.parquet")
    assert lake.remove_orphans(older_than=NOW).files == 1
    left = {file.path for file in storage.files()}
    assert after not in left and before in left
    assert lake.remove_orphans(older_than=NOW, unknown=True).files == 1


def test_a_marker_that_was_not_written_to_its_end_is_written_anew(
    lake: forklake.Lake, storage: Storage
) -> None:
    (marker,) = markers(storage)
    storage.delete([marker])
    orphan(storage, marker)
    assert not lake.remove_orphans(older_than=NOW, unknown=True).kept
    assert markers(storage) == [marker, marker.replace(".1.json", ".2.json")]
    told = json.loads(storage.read_bytes(markers(storage)[1]))
    assert told["url"] == lake.url and told["lake"] in marker


def test_the_data_path_of_a_fork_is_marked_until_nothing_of_it_is_left(
    lake: forklake.Lake, tmp_path: Path, other_url: str
) -> None:
    own = open_storage(f"{tmp_path}/own")
    fork = lake.fork("shop", "fork", data_path=tmp_path / "own")
    fork.table("t").append(rows(10, 12))
    assert len(markers(own)) == 1
    with pytest.raises(forklake.CatalogExists):
        lake.fork("shop", "fork", data_path=tmp_path / "never")
    assert not (tmp_path / "never").exists()
    lake.drop_catalog("fork")
    for _ in range(2):
        clean(lake)
    assert [*own.files()] == []
    forklake.connect(other_url, data_path=tmp_path / "own", create=True).close()


def test_files_that_move_take_the_marker_along(
    lake: forklake.Lake, lake_url: str, tmp_path: Path, other_url: str, data_path: str
) -> None:
    if "://" in data_path:
        pytest.skip("a folder is moved")
    lake.close()
    shutil.copytree(tmp_path / "files", tmp_path / "there")
    with forklake.connect(lake_url, data_path=tmp_path / "there", moved=True) as lake:
        assert len(markers(open_storage(f"{tmp_path}/there"))) == 1
        # Where it was, another one may be now.
        forklake.connect(other_url, data_path=tmp_path / "files", create=True).close()
        orphan(open_storage(f"{tmp_path}/there"))
        assert lake.remove_orphans(older_than=NOW).files == 1


def test_the_exit_code_says_that_another_lake_is_in_the_data_path(
    lake: forklake.Lake, lake_url: str, data_path: str, storage: Storage, other_url: str
) -> None:
    if "://" in data_path:
        pytest.skip("the command line needs the keys of a bucket otherwise")
    unmark(storage)
    forklake.connect(other_url, data_path=data_path, create=True).close()
    lake.close()
    ended = run("--lake", lake_url, "orphans", "--older-than", "0s")
    assert ended.exit_code == 1 and "has its files there too" in ended.stderr
