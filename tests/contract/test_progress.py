"""Long verbs say how far they are: by one value, honestly, and not for every row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.distributed import write_part
from forklake.model.progress import ROWS_AT_ONCE, Progress, Steps

ROWS = 50_000


@pytest.fixture
def told() -> list[Progress]:
    """What was reported."""
    return []


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    return catalog.create_table("t", "id BIGINT, n BIGINT")


def numbers(rows: int = ROWS) -> pa.Table:
    return pa.table({"id": range(rows), "n": [0] * rows})


def check(told: list[Progress], what: str, unit: str, done: int, total: int | None) -> None:
    """Reports of one piece of work begin at nothing, rise, and end with all."""
    reports = [report for report in told if report.what == what]
    assert reports, told
    assert {(report.unit, report.total) for report in reports} == {(unit, total)}
    counted = [report.done for report in reports]
    assert (counted[0], counted[-1]) == (0, done)
    assert counted == sorted(set(counted))


def stream(batches: int, rows: int) -> pa.RecordBatchReader:
    schema = pa.schema({"id": pa.int64(), "n": pa.int64()})

    def produced() -> Iterator[pa.RecordBatch]:
        for _ in range(batches):
            yield pa.record_batch([pa.array(range(rows)), pa.array([0] * rows)], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, produced())


def test_rows_that_come_are_counted(table: forklake.Table, told: list[Progress]) -> None:
    table.append(numbers(), progress=told.append)
    check(told, "append to main.t", "rows", ROWS, ROWS)
    told.clear()
    table.append(stream(25, 2_000), progress=told.append)
    check(told, "append to main.t", "rows", 50_000, None)
    assert len(told) == 1 + 50_000 // ROWS_AT_ONCE
    told.clear()
    table.overwrite([{"id": 1, "n": 1}], "id < 20000", progress=told.append)
    check(told, "overwrite main.t", "rows", 1, 1)
    check(told, "delete from main.t", "rows", 20_000 + 25 * 2_000, None)


def test_no_batch_of_one_row_is_reported_by_itself(table: forklake.Table, told: list[Progress]) -> None:
    table.append(stream(3_000, 1), progress=told.append)
    assert told == [Progress("append to main.t", done, None, "rows") for done in (0, 3_000)]


def test_rows_that_change_are_counted(table: forklake.Table, told: list[Progress]) -> None:
    table.append(numbers())
    table.update({"n": "n + 1"}, "id < 30000", progress=told.append)
    check(told, "update main.t", "rows", 30_000, None)
    told.clear()
    source = pa.table({"id": range(ROWS - 10, ROWS + 20), "n": [7] * 30})
    table.merge(source, on="id", progress=told.append)
    check(told, "update main.t", "rows", 10, None)
    check(told, "insert into main.t", "rows", 20, None)
    told.clear()
    table.merge(source, on="id", when_matched="delete", when_not_matched="ignore", progress=told.append)
    check(told, "delete from main.t", "rows", 30, None)
    told.clear()
    table.delete("id < 100", progress=told.append)
    check(told, "delete from main.t", "rows", 100, None)


def test_first_rows_flushes_and_files_are_counted(
    catalog: forklake.Catalog, tmp_path: Path, told: list[Progress]
) -> None:
    table = catalog.create_table("t", numbers(), append=True, progress=told.append)
    check(told, "append to main.t", "rows", ROWS, ROWS)
    told.clear()
    table.append([{"id": 1}])
    catalog.create_table("u", "id INT").append([{"id": 1}])
    catalog.flush_inlined(progress=told.append)
    check(told, "flush inlined rows", "tables", 2, 2)
    told.clear()
    for number in range(3):
        pq.write_table(numbers(5), tmp_path / f"{number}.parquet")
    table.add_files(str(tmp_path / "*.parquet"), mapping="by_name", progress=told.append)
    check(told, "look into files for main.t", "files", 3, 3)


def test_forks_copies_and_drops_are_counted(
    lake: forklake.Lake, catalog: forklake.Catalog, told: list[Progress]
) -> None:
    lake.fork_many(catalog, ["a", "b", "c"], progress=told.append)
    check(told, "fork main_catalog", "catalogs", 3, 3)
    told.clear()
    catalog.fork("copy", mode="copy", progress=told.append)
    check(told, "fork main_catalog", "catalogs", 1, 1)
    tables = max(report.done for report in told)
    check(told, "copy metadata of main_catalog", "metadata tables", tables, tables)
    told.clear()
    lake.catalog("a").materialize(progress=told.append)
    check(told, "copy metadata of a", "metadata tables", tables, tables)
    told.clear()
    lake.drop_catalogs(["a", "b"], progress=told.append)
    check(told, "drop catalogs", "catalogs", 2, 2)
    told.clear()
    lake.set_ttl("c", timedelta(microseconds=1))
    lake.drop_expired(progress=told.append)
    check(told, "drop expired catalogs", "catalogs", 1, None)


def test_merges_and_going_back_are_counted(
    lake: forklake.Lake, catalog: forklake.Catalog, told: list[Progress]
) -> None:
    for name in "tuv":
        catalog.create_table(name, numbers(2_000), append=True)
    fork = catalog.fork("fork")
    for name in "tu":
        fork.table(name).update({"n": "1"}, "id < 10")
    fork.merge_into(catalog, dry_run=True, progress=told.append)
    check(told, "compare rows", "tables", 2, 2)
    told.clear()
    catalog.table("v").append([{"id": 1}])
    lake.replay(fork, onto=catalog, progress=told.append)
    assert {report.what for report in told} == {"compare rows"}
    told.clear()
    merged = lake.merge(fork, into=catalog, progress=told.append)
    check(told, "compare rows", "tables", 2, 2)
    told.clear()
    catalog.compact("t")
    catalog.undo(merged.snapshot, progress=told.append)
    undone = f"undo the rows of snapshot {merged.snapshot}"
    check(told, undone, "tables", 1, 1)
    told.clear()
    catalog.restore(merged.snapshot, progress=told.append)
    objects = max(report.done for report in told)
    check(told, "restore", "objects", objects, objects)


def test_manifests_and_reservations_are_counted(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, told: list[Progress]
) -> None:
    ds = catalog.begin_distributed()
    parts = [write_part(ds, "t", numbers(10), part=str(number)) for number in range(3)]
    catalog.commit_distributed(ds, parts, progress=told.append)
    check(told, "read manifests", "manifests", 3, 3)
    told.clear()
    catalog.begin_distributed(ttl=timedelta(microseconds=1))
    lake.expire_reservations(progress=told.append)
    check(told, "expire reservations", "reservations", 1, 1)


def test_transactions_report_too(catalog: forklake.Catalog, told: list[Progress]) -> None:
    with catalog.transaction() as tx:
        tx.create_table("t", "id BIGINT, n BIGINT").append(numbers(), progress=told.append)
        check(told, "append to main.t", "rows", ROWS, ROWS)
        told.clear()
        tx.table("t").update({"n": "2"}, progress=told.append)
        check(told, "update main.t", "rows", ROWS, None)


class Enough(Exception):
    """Somebody has pressed a button."""


def test_what_the_function_raises_ends_the_work_and_leaves_nothing(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    def stop(report: Progress) -> None:
        if report.done:
            raise Enough

    before = catalog.snapshot
    for verb in (
        lambda: table.append(numbers(), progress=stop),
        lambda: table.append(stream(25, 2_000), progress=stop),
        lambda: catalog.create_table("u", numbers(), append=True, progress=stop),
    ):
        with pytest.raises(Enough):
            verb()
    assert (catalog.snapshot, table.count()) == (before, 0)
    assert list(Path(lake.data_path).rglob("*.parquet")) == []


def test_what_is_no_function_is_refused(catalog: forklake.Catalog, table: forklake.Table) -> None:
    before = catalog.snapshot
    wrong: Any = True
    with pytest.raises(forklake.InvalidArgument, match="progress is a function"):
        table.append(numbers(), progress=wrong)
    assert catalog.snapshot == before


def test_nothing_to_do_is_not_reported(told: list[Progress]) -> None:
    assert list(Steps(told.append, "x", "files", 0).over([])) == []
    assert told == []
