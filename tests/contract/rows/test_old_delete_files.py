"""Delete files of earlier versions: they name again what was deleted inline, and have other field ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from tests.contract.rows.shown import ids
from tests.invariants import check_files
from tests.old_files import make_deletes_old


@pytest.fixture
def old(lake: forklake.Lake, raw: Callable[..., Any], reopen: Any, tmp_path: Path) -> forklake.Lake:
    """A lake with rows that were deleted inline, by a file that repeats those, and inline again."""
    lake.set_option("data_inlining_row_limit", 4)
    table = lake.create_catalog("c").create_table("t", "id BIGINT")
    table.append(pa.table({"id": range(100)}))
    for where in ("id IN (1, 3)", "id BETWEEN 5 AND 9", "id IN (11, 13)"):
        table.delete(where)
    make_deletes_old(raw, tmp_path / "files")
    return reopen()


GONE = {1, 3, *range(5, 10), 11, 13}


def expect(table: forklake.Table, gone: set[int]) -> None:
    assert ids(table) == [at for at in range(100) if at not in gone]
    assert table.count() == table.scan().count() == table.stats().record_count == 100 - len(gone)


def test_what_they_delete_is_deleted_once(old: forklake.Lake, raw: Callable[..., Any]) -> None:
    ((count,),) = raw("SELECT delete_count FROM ducklake_delete_file")
    assert count == 7
    table = old.catalog("c").table("t")
    expect(table, GONE)
    assert [file.deleted_count for file in table.files()] == [9]
    history = {at: ids(table, at=at) for at in range(3, 7)}
    table.delete("id = 15")
    expect(table, GONE | {15})
    table.delete("id BETWEEN 20 AND 30")
    expect(table, GONE | {15} | set(range(20, 31)))
    # The new file names nothing twice.
    ((path,),) = raw("SELECT path FROM ducklake_delete_file WHERE end_snapshot IS NULL")
    named = pq.read_table(f"{old.data_path}{path}").column("pos").to_pylist()
    assert named == [*range(5, 10), *range(20, 31)]
    assert {at: ids(table, at=at) for at in history} == history
    assert len(table.changes(3).to_pylist()) == 9 + 12
    assert table.delete("id >= 31") == 69
    assert table.delete("id >= 0") == 100 - 9 - 12 - 69
    assert table.count() == 0 and table.files() == []


def test_forks_and_merges_take_them_over(old: forklake.Lake) -> None:
    parent = old.catalog("c")
    fork = old.fork("c", "f")
    copy = old.fork("c", "g", mode="copy")
    for catalog in (fork, copy):
        expect(catalog.table("t"), GONE)
    fork.table("t").delete("id = 15")
    fork.table("t").delete("id BETWEEN 20 AND 30")
    old.merge("f", into="c")
    gone = GONE | {15} | set(range(20, 31))
    for catalog in (fork, parent):
        expect(catalog.table("t"), gone)
    parent.table("t").delete("id = 99")
    expect(parent.table("t"), gone | {99})
    parent.table("t").rewrite_deletes()
    expect(parent.table("t"), gone | {99})
    old.merge("c", into="f")
    expect(fork.table("t"), gone | {99})


def test_a_fork_with_one_is_merged_into_its_parent(
    lake: forklake.Lake, raw: Callable[..., Any], reopen: Any, tmp_path: Path
) -> None:
    lake.set_option("data_inlining_row_limit", 4)
    table = lake.create_catalog("c").create_table("t", "id BIGINT")
    table.append(pa.table({"id": range(100)}))
    table.delete("id IN (1, 3)")
    fork = lake.fork("c", "f").table("t")
    for where in ("id = 4", "id BETWEEN 5 AND 9", "id IN (11, 13)"):
        fork.delete(where)
    make_deletes_old(raw, tmp_path / "files")
    lake = reopen()
    lake.merge("f", into="c")
    table = lake.catalog("c").table("t")
    expect(table, GONE | {4})
    table.delete("id BETWEEN 40 AND 50")
    expect(table, GONE | {4} | set(range(40, 51)))


def test_new_ones_are_found_to_be_new(lake: forklake.Lake) -> None:
    lake.set_option("data_inlining_row_limit", 4)
    table = lake.create_catalog("c").create_table("t", "id BIGINT")
    table.append(pa.table({"id": range(100)}))
    for where in ("id IN (1, 3)", "id BETWEEN 5 AND 9", "id IN (11, 13)"):
        table.delete(where)
    assert check_files(lake) == 1
    expect(table, GONE)
