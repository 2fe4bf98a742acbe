"""With the last file of a forgotten fork its folder goes too, on a disk and in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

import forklake
from forklake.data.storage.storage import open_storage
from tests.contract.maintenance.cleaned import NOW, RunSql, clean, ids, rows


@pytest.fixture
def lake(lake_url: str, data_path: str) -> Iterator[forklake.Lake]:
    """A lake on a disk or in a bucket, with a table whose rows are in files."""
    with forklake.connect(lake_url, data_path=data_path, create=True) as lake:
        table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
        table.set_option("data_inlining_row_limit", 0)
        table.append(rows(0, 5))
        yield lake


@pytest.fixture
def raw(lake: forklake.Lake, lake_url: str, sql_on: Any) -> RunSql:
    return sql_on(lake_url)


def folders(data_path: str) -> set[str]:
    """The folders of catalogs; in a bucket, what stands for them."""
    filesystem, path = open_storage(data_path).resolve("file")
    found = filesystem.get_file_info(fs.FileSelector(path.removesuffix("/file")))
    return {info.base_name for info in found if info.type == fs.FileType.Directory}


def folder_of(catalog: forklake.Catalog, raw: RunSql) -> str:
    ((path,),) = raw(f"SELECT data_path FROM ducklake_catalog_head WHERE catalog_id = {catalog.id}")
    return path.rstrip("/")


def test_the_folder_of_a_forgotten_fork_goes_with_its_last_file(
    lake: forklake.Lake, data_path: str, raw: RunSql
) -> None:
    # One that no relative has to hear of: what was merged is remembered for those that have not seen it.
    other = lake.create_catalog("other")
    other.create_table("t", "id INT, v VARCHAR").set_option("data_inlining_row_limit", 0)
    gone, merged, kept = (
        lake.fork(parent, name) for parent, name in (("shop", "gone"), ("shop", "merged"), (other, "kept"))
    )
    for number, fork in enumerate((gone, merged, kept), 1):
        fork.table("t").append(rows(10 * number, 10 * number + 3))
    lake.merge(merged, "shop")
    names = {fork.name: folder_of(fork, raw) for fork in (gone, merged, kept)}
    assert folders(data_path) == {"shop", *names.values()}
    lake.drop_catalogs(["gone", "merged"])
    clean(lake)
    # The parent has a file in the other one.
    assert folders(data_path) == {"shop", names["merged"], names["kept"]}
    assert ids(lake.catalog("shop")) == [*range(5), 20, 21, 22]
    lake.catalog("shop").table("t").overwrite(rows(50, 55))
    clean(lake)
    assert folders(data_path) == {"shop", names["kept"]}
    # A fork that lives has its folder, whether files are in it or not.
    kept.table("t").overwrite([])
    clean(lake)
    kept.table("t").append(rows(70, 72))
    assert ids(kept) == [70, 71]
    lake.drop_catalog(kept)
    clean(lake)
    assert folders(data_path) == {"shop"}


def test_a_folder_goes_with_the_last_orphan_and_not_before(
    lake: forklake.Lake, data_path: str, raw: RunSql
) -> None:
    fork = lake.fork("shop", "fork")
    fork.table("t").append(rows(10, 13))
    folder, storage = folder_of(fork, raw), open_storage(data_path)
    orphan, note = f"{folder}/main/t/{'0' * 32}-0.parquet", f"{folder}/notes.txt"
    for path in (orphan, note):
        with storage.open_output(path) as stream:
            stream.write(b"anything")
    lake.drop_catalog(fork)
    clean(lake)
    assert folders(data_path) == {"shop", folder}
    assert lake.remove_orphans(older_than=NOW).files == 1
    assert folders(data_path) == {"shop", folder}
    assert {file.path for file in storage.files(folder)} == {note}
    storage.delete([note])
    with storage.open_output(orphan) as stream:
        stream.write(b"anything")
    assert lake.remove_orphans(older_than=NOW, dry_run=True).files == 1
    assert folders(data_path) == {"shop", folder}
    assert lake.remove_orphans(older_than=NOW).files == 1
    assert folders(data_path) == {"shop"}


def test_a_folder_that_cannot_be_removed_is_told(
    lake: forklake.Lake, data_path: str, raw: RunSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = lake.fork("shop", "fork")
    fork.table("t").append(rows(10, 13))
    folder = folder_of(fork, raw)
    place = open_storage(data_path)._placed(data_path)[0]

    def refusing(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(place), "remove_folder", refusing)
    lake.drop_catalog(fork)
    lake.expire(older_than=NOW)
    found = lake.collect_garbage(older_than=NOW)
    assert found.removed == 1
    assert [(file.path, file.failed) for file in found.kept] == [(f"{folder}/", False)]
    assert "not allowed" in found.kept[0].why


def test_a_writer_that_does_not_know_that_its_folder_is_gone_makes_it_again(tmp_path: Path) -> None:
    storage = open_storage(f"{tmp_path}/files")
    for number in range(3):
        path = f"fork.7/main/t/{number}.parquet"
        with storage.open_output(path) as stream:
            stream.write(b"anything")
        storage.delete([path])
        assert storage.remove_folders(["fork.7/", "fork.8/"]) == {}
        assert not (tmp_path / "files" / "fork.7").exists()
