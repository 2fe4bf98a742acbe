"""A file that another process has open is busy, and a lake that was closed refuses everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import forklake
from forklake.errors import StoreBusy, StoreError
from tests.contract.bad_stores.refusals import nothing_written, only_duckdb, path_of, refused

# ---- Busy -----------------------------------------------------------------------------------------------

HOLD = {
    "by_another_lake": "lake = forklake.connect(sys.argv[1])",
    "by_a_writer": "import duckdb; connection = duckdb.connect(sys.argv[2])",
    "by_a_reader": "import duckdb; connection = duckdb.connect(sys.argv[2], read_only=True)",
}


@pytest.mark.parametrize("hold", HOLD.values(), ids=HOLD.keys())
@only_duckdb
def test_a_duckdb_file_that_is_open_in_another_process_is_busy(
    closed_lake: str, tmp_path: Path, program: Callable[..., Any], hold: str
) -> None:
    holder = program(f"{hold}\nsay('open')\ninput()", closed_lake, str(path_of(closed_lake)))
    assert holder.hear() == "open"
    for create in (False, True):
        with nothing_written(tmp_path), refused(StoreBusy, says="another process"):
            forklake.connect(closed_lake, create=create)
    holder.go_on()
    assert holder.wait() == 0
    with forklake.connect(closed_lake) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]


@only_duckdb
def test_a_duckdb_file_that_is_open_otherwise_in_this_process_is_not_called_closed(closed_lake: str) -> None:
    with duckdb.connect(str(path_of(closed_lake)), read_only=True), refused(StoreError, hides="closed"):
        forklake.connect(closed_lake)
    with forklake.connect(closed_lake) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]


# ---- Closed ---------------------------------------------------------------------------------------------


def test_a_closed_lake_refuses_everything_and_can_be_closed_again(
    lake: forklake.Lake, lake_url: str, catalog: forklake.Catalog
) -> None:
    table = catalog.create_table("t", "id BIGINT")
    transaction = catalog.transaction()
    transaction.create_schema("too_late")
    lake.close()
    for use in (
        lake.catalogs,
        lake.snapshots,
        lambda: lake.catalog("main_catalog"),
        lambda: lake.create_catalog("b"),
        lambda: lake.rename_catalog("main_catalog", "b"),
        lambda: lake.drop_catalog("main_catalog"),
        lambda: catalog.snapshot,
        catalog.schemas,
        lambda: catalog.create_schema("s"),
        catalog.transaction,
        transaction.commit,
        lambda: table.add_column("b", "BIGINT"),
    ):
        with refused(StoreError, says="closed"):
            use()
    lake.close()
    with forklake.connect(lake_url) as again:
        assert [snapshot.id for snapshot in again.snapshots()] == [0, 1, 2]
