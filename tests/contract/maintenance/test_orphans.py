"""Orphans: what nothing names and nobody may still commit is removed, and nothing else."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import forklake
from forklake.distributed import write_part

NOW = timedelta(0)


@pytest.fixture
def table(lake: forklake.Lake) -> forklake.Table:
    """A table whose rows are in files."""
    table = lake.create_catalog("shop").create_table("t", "id INT")
    table.set_option("data_inlining_row_limit", 0)
    table.append([{"id": 1}])
    return table


def files(tmp_path: Path) -> set[Path]:
    return {path for path in tmp_path.rglob("*") if path.is_file() and "lake.db" not in path.name}


def orphaned(table: forklake.Table, tmp_path: Path) -> Path:
    """A file that a writer left behind."""
    before = files(tmp_path)
    table.append([{"id": 2}])
    (made,) = files(tmp_path) - before
    orphan = made.with_name("0" * 8 + made.name[8:])
    orphan.write_bytes(made.read_bytes())
    return orphan


def test_files_that_nothing_names_are_removed(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    orphan = orphaned(table, tmp_path)
    strange = tmp_path / "files" / "notes.txt"
    strange.write_text("mine")
    kept = files(tmp_path) - {orphan}
    assert lake.remove_orphans(older_than=timedelta(hours=1)).files == 0
    os.utime(orphan, (0, 0))
    assert lake.remove_orphans(dry_run=True).files == 1
    assert orphan.exists()
    found = lake.remove_orphans()
    assert (found.files, found.bytes > 0) == (1, True)
    assert lake.remove_orphans(older_than=NOW).unknown == (str(strange),)
    assert files(tmp_path) == kept
    assert table.count() == 2
    assert lake.remove_orphans(older_than=NOW, unknown=True).files == 1
    assert files(tmp_path) == kept - {strange}


def test_what_a_distributed_snapshot_may_commit_stays(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    shop = lake.catalog("shop")
    ds = shop.begin_distributed(["t"])
    part = write_part(ds, "t", pa.table({"id": pa.array(range(500), pa.int32())}))
    before = files(tmp_path)
    assert lake.remove_orphans(older_than=NOW).files == 0
    assert files(tmp_path) == before
    shop.commit_distributed(ds, [part])
    lake.remove_orphans(older_than=NOW)
    assert table.count() == 501


def test_a_fork_with_a_data_path_of_its_own_is_looked_at_too(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    fork = lake.fork("shop", "fork", data_path=tmp_path / "other")
    orphan = orphaned(fork.table("t"), tmp_path / "other")
    imported = tmp_path / "files" / "given.parquet"
    imported.write_bytes(orphan.read_bytes())
    table.add_files(imported, mapping="field_id")
    assert lake.remove_orphans(older_than=NOW).files == 1
    assert not orphan.exists() and imported.exists()
    assert fork.table("t").count() == 2
    # Its files go with it, and its data path is known until then.
    lake.drop_catalog(fork)
    lake.expire(older_than=NOW)
    lake.collect_garbage(older_than=NOW)
    assert not list((tmp_path / "other").rglob("*.parquet"))


def test_files_that_are_scheduled_for_deletion_are_left_to_the_collection(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    table.overwrite([{"id": 5}])
    lake.expire(older_than=NOW)
    assert lake.collect_garbage(older_than=timedelta(days=1)).scheduled == 1
    before = files(tmp_path)
    assert lake.remove_orphans(older_than=NOW).files == 0
    assert files(tmp_path) == before


def test_orphans_in_the_data_path_of_a_forgotten_fork_are_found(lake: forklake.Lake, tmp_path: Path) -> None:
    lake.create_catalog("shop").create_table("t", "id INT").set_option("data_inlining_row_limit", 0)
    fork = lake.fork("shop", "fork", data_path=str(tmp_path / "own"))
    fork.table("t").append([{"id": 1}])
    (written,) = (tmp_path / "own").rglob("*.parquet")
    orphan = written.with_name(f"{uuid4().hex}-0.parquet")
    orphan.write_bytes(written.read_bytes())
    lake.drop_catalog("fork")
    for _ in range(2):
        lake.expire(older_than=timedelta(0))
        lake.collect_garbage(older_than=timedelta(0))
    assert orphan.exists()
    assert lake.remove_orphans(older_than=timedelta(0)).files == 1
    assert not list((tmp_path / "own").rglob("*.parquet"))
