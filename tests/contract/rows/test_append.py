"""Appending: rows come as anything, few stay in the database and many become files, all see them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import ColumnNotFound, InvalidArgument, InvalidData, TableNotFound
from tests.contract.rows.shown import MANY, content, ids, many, numbered

ROWS = [{"id": 1, "v": "a"}, {"id": 2, "v": None}]
ARROW = pa.table({"id": pa.array([1, 2], pa.int64()), "v": pa.array(["a", None], pa.string())})


def generated() -> Iterator[dict[str, object]]:
    yield from ROWS


INPUTS: dict[str, Callable[[], object]] = {
    "an Arrow table": lambda: ARROW,
    "a batch": lambda: ARROW.to_batches()[0],
    "batches": lambda: [batch for row in range(2) for batch in ARROW.slice(row, 1).to_batches()],
    "a reader": lambda: ARROW.to_reader(max_chunksize=1),
    "a list of dicts": lambda: ROWS,
    "a generator of dicts": generated,
    "a dict of lists": lambda: {"v": ["a", None], "id": [1, 2]},
    "a pandas frame": lambda: pd.DataFrame(
        {"id": [1, 2], "v": pd.Series(["a", None], dtype="string[pyarrow]")}
    ),
    "a polars frame": lambda: pl.DataFrame(ROWS),
    "a DuckDB relation": lambda: duckdb.sql("SELECT 1 AS id, 'a' AS v UNION ALL SELECT 2, NULL ORDER BY id"),
}


def test_rows_may_come_as_anything_that_holds_rows(catalog: forklake.Catalog) -> None:
    for name, make in INPUTS.items():
        table = catalog.create_table(("main", name), "id BIGINT, v VARCHAR")
        assert table.append(make()) == 2, name
        assert content(table) == [(0, 1, "a"), (1, 2, None)], name


def test_a_scan_is_rows_for_another_table(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append(many())
    other = catalog.create_table("other", "v VARCHAR, id BIGINT")
    assert other.append(table.scan("id < 3")) == 3
    assert content(other) == [(0, "x", 0), (1, "x", 1), (2, "x", 2)]


@pytest.mark.parametrize(
    "nothing", [[], ARROW.slice(0, 0), pd.DataFrame({"id": []}), pl.DataFrame(), iter(())]
)
def test_no_rows_are_no_change(catalog: forklake.Catalog, table: forklake.Table, nothing: object) -> None:
    before = catalog.snapshot
    assert table.append(nothing) == 0
    assert (catalog.snapshot, table.count(), table.files()) == (before, 0, [])


def test_few_rows_stay_in_the_database_and_many_become_a_file(
    table: forklake.Table, raw, stored: Callable[[], list[str]]
) -> None:
    table.append(numbered(*range(100)))
    assert stored() == []
    formats = "SELECT file_format, record_count, row_id_start FROM ducklake_data_file ORDER BY data_file_id"
    assert raw(formats) == [("inlined", 100, 0)]
    table.append(numbered(*range(100, 201)))
    assert raw(formats) == [("inlined", 100, 0), ("parquet", 101, 100)]
    assert [(file.path, file.record_count) for file in table.files()] == [(stored()[0], 101), (None, 100)]
    assert content(table) == [(at, at, "x") for at in range(201)]


def test_a_stream_is_not_told_by_its_batches_but_by_its_rows(table: forklake.Table) -> None:
    table.append(numbered(*range(90)).to_reader(max_chunksize=1))
    table.append(numbered(*range(90, 90 + MANY)).to_reader(max_chunksize=7))
    assert [(file.path is None, file.record_count) for file in table.files()] == [(False, MANY), (True, 90)]
    assert content(table) == [(at, at, "x") for at in range(90 + MANY)]


@pytest.mark.parametrize("rows", [numbered(1), many()], ids=["inlined", "file"])
def test_rows_are_visible_to_another_handle_at_once(table: forklake.Table, reopen, rows: pa.Table) -> None:
    other = reopen().catalog("main_catalog").table("t")
    assert other.count() == 0
    table.append(rows)
    assert other.count() == rows.num_rows
    assert ids(other) == rows.column("id").to_pylist()


def test_a_file_holds_field_ids_and_values_as_they_are(
    catalog: forklake.Catalog, lake: forklake.Lake, stored: Callable[[], list[str]]
) -> None:
    table = catalog.create_table("t", "id BIGINT NOT NULL, s STRUCT(a INT, b VARCHAR[])")
    table.append([{"id": at, "s": {"a": at, "b": ["q", None]}} for at in range(MANY)])
    file = pq.read_table(f"{lake.data_path}{stored()[0]}")
    assert file.num_rows == MANY
    assert file.slice(3, 1).to_pylist() == [{"id": 3, "s": {"a": 3, "b": ["q", None]}}]
    inner = file.schema.field("s").type
    found = [file.schema.field("id"), file.schema.field("s"), inner.field("a"), inner.field("b")]
    assert [field.metadata[b"PARQUET:field_id"] for field in found] == [b"1", b"2", b"3", b"4"]


def test_columns_that_are_not_given_get_their_defaults(catalog: forklake.Catalog) -> None:
    table = catalog.create_table(
        "t", "id BIGINT, n INT DEFAULT 7, at TIMESTAMPTZ DEFAULT now(), u UUID DEFAULT uuid()"
    )
    before = datetime.now(UTC)
    for start, count in ((0, 2), (2, MANY)):
        table.append({"ID": range(start, start + count)})
    found = table.scan().to_arrow()
    assert found.column("n").to_pylist() == [7] * (MANY + 2)
    assert len(set(found.column("u").to_pylist())) == MANY + 2
    timestamps = found.column("at").to_pylist()
    assert before.replace(microsecond=0) <= min(timestamps) <= max(timestamps) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([{"id": "one"}], InvalidData),
        ([{"id": 2**63}], InvalidData),
        ([{"id": None}], InvalidData),
        ([{"v": "a"}], InvalidData),
        ([{"id": 1, "w": 1}], ColumnNotFound),
        (pa.table({"id": [1], "w": [1]}), ColumnNotFound),
        ("text", InvalidData),
        (7, InvalidData),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_leave_nothing(
    catalog: forklake.Catalog, rows: object, error: type[Exception]
) -> None:
    table = catalog.create_table("t", "id BIGINT NOT NULL, v VARCHAR")
    before = catalog.snapshot
    with pytest.raises((error, InvalidData)):
        table.append(rows)
    assert (catalog.snapshot, table.count()) == (before, 0)


def test_a_row_that_does_not_fit_takes_the_files_before_it_along(
    catalog: forklake.Catalog, table: forklake.Table, stored: Callable[[], list[str]]
) -> None:
    table.set_option("target_file_size", 1)
    table.set_option("parquet_row_group_size", 10)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 300, 50):
            yield from numbered(*range(start, start + 50)).to_batches()
        raise InvalidArgument("the source broke")

    before = catalog.snapshot
    with pytest.raises(InvalidArgument, match="the source broke"):
        table.append(pa.RecordBatchReader.from_batches(ARROW.schema, batches()))
    assert (catalog.snapshot, table.count(), stored()) == (before, 0, [])
    with catalog.transaction() as tx:
        with pytest.raises(InvalidArgument, match="the source broke"):
            tx.table("t").append(pa.RecordBatchReader.from_batches(ARROW.schema, batches()))
        tx.table("t").append(numbered(1))
    assert ids(table) == [1]
    assert stored() == []


def test_a_stream_that_failed_is_not_read_on_when_others_have_committed_meanwhile(
    catalog: forklake.Catalog, table: forklake.Table, reopen
) -> None:
    other = reopen().catalog("main_catalog").table("t")

    def rows() -> Iterator[dict[str, object]]:
        yield {"id": 1}
        other.append(numbered(100))
        yield {"id": "no number"}

    def batches() -> Iterator[pa.RecordBatch]:
        yield from numbered(1).to_batches()
        other.append(numbered(101))
        yield pa.record_batch({"id": ["no number"]})
        yield from numbered(2).to_batches()

    for source in (rows(), batches()):
        with pytest.raises(InvalidData, match="id"):
            table.append(source)
    assert ids(table) == [100, 101]


def test_large_writes_are_cut_into_files_of_the_size_that_was_asked_for(
    table: forklake.Table, stored: Callable[[], list[str]]
) -> None:
    table.set_option("target_file_size", 100)
    table.set_option("parquet_row_group_size", 1000)
    assert table.append(numbered(*range(5000))) == 5000
    assert len(stored()) == len(table.files()) == 5
    assert [file.row_id_start for file in table.files()] == [0, 1000, 2000, 3000, 4000]
    assert content(table) == [(at, at, "x") for at in range(5000)]


def test_a_dropped_table_takes_no_rows(catalog: forklake.Catalog, table: forklake.Table, stored) -> None:
    table.drop()
    for rows in (numbered(1), many()):
        with pytest.raises(TableNotFound):
            table.append(rows)
    assert stored() == []


def test_the_past_takes_no_rows(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append(numbered(1))
    past = catalog.table("t", at=catalog.snapshot)
    for change in (
        lambda: past.append(numbered(2)),
        lambda: past.delete(),
        lambda: past.update({"v": "'z'"}),
        lambda: past.overwrite(numbered(3)),
    ):
        with pytest.raises(InvalidArgument, match="the past cannot change"):
            change()
    assert content(table) == [(0, 1, "x")]
