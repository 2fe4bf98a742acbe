"""Rows as people hand them over: tables made from data, values that are cast, files that are read."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import (
    FileMissing,
    ForklakeError,
    InvalidArgument,
    InvalidData,
    InvalidSchemaChange,
    TableExists,
    UnknownType,
)
from tests.contract.rows.shown import MANY

ROWS = [{"id": at, "note": f"n{at}", "price": at / 2} for at in range(3)]
ARROW = pa.Table.from_pylist(ROWS)


def given() -> dict[str, Any]:
    return {
        "table": ARROW,
        "batch": ARROW.to_batches()[0],
        "reader": ARROW.to_reader(),
        "polars": pl.from_arrow(ARROW),
        "pandas": ARROW.to_pandas(),
        "indexed": ARROW.to_pandas().set_index("id"),
        "relation": duckdb.connect().from_arrow(ARROW),
        "dicts": ROWS,
        "generator": (row for row in ROWS),
        "lists": {name: [row[name] for row in ROWS] for name in ("id", "note", "price")},
        "batches": ARROW.to_batches(max_chunksize=1),
    }


# ---- Tables made from data ---


@pytest.mark.parametrize("name", list(given()))
def test_a_table_is_made_from_anything_that_append_takes(catalog: forklake.Catalog, name: str) -> None:
    before = catalog.snapshot
    table = catalog.create_table("t", given()[name], append=True)
    assert catalog.snapshot == before + 1
    assert sorted(table.scan(columns=["id", "note", "price"]).to_pylist(), key=lambda row: row["id"]) == ROWS
    assert {column.name: column.type for column in table.columns} == {
        "id": "int64", "note": "varchar", "price": "float64",
    }  # fmt: skip
    empty = catalog.create_table("empty", given()[name])
    assert empty.count() == 0
    assert {column.name for column in empty.columns} == {"id", "note", "price"}
    with catalog.transaction() as tx:
        inside = tx.create_table("inside", given()[name], append=True)
        assert inside.count() == 3
        inside.append(ROWS)
    assert catalog.table("inside").count() == 6


def test_many_rows_make_a_table_with_files_in_one_commit(catalog: forklake.Catalog) -> None:
    many = pa.table({"id": range(10 * MANY), "region": ["eu", "us"] * (5 * MANY)})
    before = catalog.snapshot
    table = catalog.create_table(
        "t", many.to_reader(), partition_by=["region"], sorted_by=["id"], append=True
    )
    assert (catalog.snapshot, table.count(), len(table.files())) == (before + 1, 10 * MANY, 2)
    with pytest.raises(TableExists):
        catalog.create_table("t", many, append=True)
    # As in SQL, a table that is there stays as it is.
    catalog.create_table("t", many, append=True, if_not_exists=True)
    assert table.count() == 10 * MANY


def test_columns_are_those_of_all_dicts(catalog: forklake.Catalog) -> None:
    rows = [
        {"a": 1},
        {"b": date(2024, 1, 1), "c": Decimal("1.50"), "d": UUID(int=1), "e": [1], "f": {"x": "y"}},
        {"g": datetime(2024, 1, 1, tzinfo=UTC), "h": b"x", "i": True},
    ]
    table = catalog.create_table("t", rows, append=True)
    assert [column.type for column in table.columns] == [
        "int64", "date", "decimal(3,2)", "uuid", "list", "struct", "timestamptz", "blob", "boolean",
    ]  # fmt: skip
    assert table.scan().to_pylist() == [{name: row.get(name) for name in "abcdefghi"} for row in rows]


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        ([], ForklakeError, "column"),
        (iter([]), InvalidData, "no rows"),
        ([{"a": None}], UnknownType, '"a"'),
        ([{"a": 1}, {"a": "x"}], InvalidData, '"a".*no single type'),
        ([{"a": 1}, 7], InvalidData, "row 1"),
        ({"a": [1], "b": [1, 2]}, Exception, "length"),
        ("id INTEGER", InvalidArgument, "only columns"),
        ({"id": "INTEGER"}, InvalidArgument, "only columns"),
        (7, InvalidSchemaChange, "not as int"),
    ],
)
def test_what_makes_no_table_is_refused(catalog: forklake.Catalog, data: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        catalog.create_table("t", data, append=True)
    assert catalog.tables() == []


# ---- Casts ---

CASTS: list[tuple[str, Any, Any]] = [
    ("DATE", " 2024-02-29", date(2024, 2, 29)),
    ("DATE", "2024-02-29 00:00:00", date(2024, 2, 29)),
    ("TIMESTAMP", "2024-02-29T01:02:03.5", datetime(2024, 2, 29, 1, 2, 3, 500_000)),
    ("TIMESTAMP", datetime(2024, 2, 29, 1, tzinfo=UTC), datetime(2024, 2, 29, 1)),
    ("TIMESTAMPTZ", "2024-02-29 01:00:00+02:00", datetime(2024, 2, 28, 23, tzinfo=UTC)),
    ("TIMESTAMPTZ", "2024-02-29 01:00:00", datetime(2024, 2, 29, 1, tzinfo=UTC)),
    ("TIMESTAMPTZ", "2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
    ("TIMESTAMPTZ", datetime(2024, 2, 29, 1), datetime(2024, 2, 29, 1, tzinfo=UTC)),
    ("TIME", "23:59:59.25", time(23, 59, 59, 250_000)),
    ("INTEGER", "-7", -7),
    ("INTEGER", 7.0, 7),
    ("TINYINT", 127, 127),
    ("UBIGINT", "18446744073709551615", 2**64 - 1),
    ("HUGEINT", "170141183460469231731687303715884105", Decimal("170141183460469231731687303715884105")),
    ("DOUBLE", "1e3", 1000.0),
    ("DOUBLE", "-inf", -math.inf),
    ("DOUBLE", Decimal("0.1"), 0.1),
    ("FLOAT", 0.1, 0.10000000149011612),
    ("DECIMAL(6, 2)", 0.1, Decimal("0.10")),
    ("DECIMAL(38, 20)", 0.1, Decimal("0.1").quantize(Decimal(1).scaleb(-20))),
    ("DECIMAL(6, 2)", "12.5", Decimal("12.50")),
    ("DECIMAL(6, 2)", 5, Decimal("5.00")),
    ("BOOLEAN", "true", True),
    ("BOOLEAN", 0, False),
    ("INTEGER", True, 1),
    ("VARCHAR", 7, "7"),
    ("VARCHAR", date(2024, 1, 1), "2024-01-01"),
    ("UUID", str(UUID(int=3)), UUID(int=3)),
    ("DATE[]", ["2024-01-01", None], [date(2024, 1, 1), None]),
    ("STRUCT(a DATE, b INTEGER)", {"a": "2024-01-01", "b": "5"}, {"a": date(2024, 1, 1), "b": 5}),
]


def casting(table: forklake.Table, values: list[Any]) -> list[Any]:
    """Every way in which rows with these values can be cast into a table `id, v`."""
    rows = [{"id": at, "v": value} for at, value in enumerate(values)]
    arrow = pa.Table.from_pylist(rows)
    return [
        lambda: table.append(rows, cast=True),
        lambda: table.append(arrow, cast=True),
        lambda: table.append(arrow.to_reader(max_chunksize=2), cast=True),
        lambda: table.append({"id": range(len(values)), "v": values}, cast=True),
        lambda: table.overwrite(arrow, cast=True),
        lambda: table.merge(arrow, on="id", cast=True),
        lambda: table.merge(rows, on="id", cast=True),
    ]


@pytest.mark.parametrize(("type", "value", "read"), CASTS)
def test_values_are_cast_where_they_fit(catalog: forklake.Catalog, type: str, value: Any, read: Any) -> None:
    table = catalog.create_table("t", f"id BIGINT, v {type}")
    for write in casting(table, [value, None, value]):
        write()
        found = table.scan("v IS NOT NULL").to_arrow().column("v").to_pylist()
        assert found == [read] * len(found) != []
    assert table.scan("v IS NULL").count() == 1


MISFITS: list[tuple[str, list[Any], str]] = [
    ("DATE", ["2024-01-01", "2024-01-02", "2024-13-01", "x"], "row 2: .*2024-13-01"),
    ("DATE", ["2024-01-01", "2024-01-01 10:00:00"], "row 1: .*10:00"),
    ("TIMESTAMP", ["2024-01-01 00:00:00", "2024-01-01 00:00:00Z"], "row 1: .*Z"),
    ("INTEGER", ["1", "2", "3.5", "4"], "row 2: .*3.5"),
    ("INTEGER", ["0x10"], "row 0: .*0x10"),
    ("INTEGER", [""], "row 0"),
    ("TINYINT", [1, 2, 3, 300, 400], "row 3: .*300"),
    ("UINTEGER", [1, -1], "row 1: .*-1"),
    ("INTEGER", [1.0, 1.5], "row 1: .*1.5"),
    ("DECIMAL(6, 2)", [0.25, 0.125], "row 1: .*0.125"),
    ("DECIMAL(6, 2)", ["1", "12345.5"], "row 1: .*12345.5"),
    ("DECIMAL(6, 2)", [1.0, math.nan], "row 1: .*nan"),
    ("DOUBLE", ["1.5", "1e400"], "row 1: .*1e400"),
    ("FLOAT", [0.1, 1e300], r"row 1: .*1e\+300"),
    ("BOOLEAN", [1, 2], "row 1: .*2"),
    ("TIME", ["10:00:00", "25:00:00"], "row 1: .*25"),
    ("UUID", [str(UUID(int=3)), "3"], "row 1: .*3"),
    ("DATE[]", [["2024-01-01"], ["2024-01-01", "x"]], r"row 1: column \"v\[\]\".*'x'"),
    ("STRUCT(a DATE)", [{"a": "2024-01-01"}, {"a": "nope"}], r"row 1: column \"v.a\".*nope"),
    ("DATE", [1, 2], "row 0: .*int64"),
]


@pytest.mark.parametrize(("type", "values", "said"), MISFITS)
def test_the_first_value_that_does_not_fit_is_named(
    catalog: forklake.Catalog, type: str, values: list[Any], said: str
) -> None:
    table = catalog.create_table("t", f"id BIGINT, v {type}")
    before = catalog.snapshot
    for write in casting(table, values):
        with pytest.raises(InvalidData, match=said) as refusal:
            write()
        assert '"v' in str(refusal.value)
    assert (catalog.snapshot, table.count()) == (before, 0)


def test_rows_are_counted_over_batches(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "v INTEGER")
    texts = [str(at) for at in range(10_000)]
    texts[7_777] = "no"
    with pytest.raises(InvalidData, match=r"row 7777: .*'no'"):
        table.append(pa.table({"v": texts}).to_reader(max_chunksize=1000), cast=True)


def test_values_of_several_kinds_are_cast_one_by_one(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "v DECIMAL(6, 2)")
    table.append([{"v": "1.5"}, {"v": 2}, {"v": Decimal("2.5")}, {"v": None}, {"v": 0.25}], cast=True)
    assert table.scan().to_arrow().column("v").to_pylist() == [
        Decimal("1.50"), Decimal("2.00"), Decimal("2.50"), None, Decimal("0.25"),
    ]  # fmt: skip


def test_without_a_cast_rows_stay_strict(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "v DATE")
    for data in ([{"v": "2024-01-01"}], pa.table({"v": ["2024-01-01"]})):
        for write in (table.append, table.overwrite, lambda rows: table.merge(rows, on="v")):
            with pytest.raises(InvalidData):
                write(data)


# ---- Files ---


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "in it's"
    folder.mkdir()
    text = "id,note,price\n0,n0,0.0\n1,n1,0.5\n2,n2,1.0\n"
    (folder / "rows.csv").write_text(text)
    (folder / "rows.tsv").write_text(text.replace(",", "\t"))
    (folder / "rows.csv.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "rows.json").write_text(json.dumps(ROWS))
    (folder / "rows.ndjson").write_text("\n".join(map(json.dumps, ROWS)))
    pq.write_table(ARROW, folder / "rows.parquet")
    for at, row in enumerate(ROWS):
        pq.write_table(pa.Table.from_pylist([row]), folder / f"part-{at}.parquet")
    return folder


@pytest.mark.parametrize(
    "name",
    ["rows.csv", "rows.tsv", "rows.csv.gz", "rows.json", "rows.ndjson", "rows.parquet", "part-*.parquet"],
)
def test_files_are_rows(lake: forklake.Lake, catalog: forklake.Catalog, files: Path, name: str) -> None:
    rows = lake.read(files / name)
    assert (rows.count(), rows.schema.names) == (3, ["id", "note", "price"])
    assert rows.to_pylist() == ROWS
    table = catalog.create_table("t", lake.read(files / name), append=True)
    table.append(rows)
    table.append(lake.read([files / "rows.parquet", str(files / "part-1.parquet")]))
    assert table.count() == 10
    with catalog.transaction() as tx:
        tx.table("t").overwrite(rows)
        tx.table("t").merge(rows, on="id")
    assert table.scan().to_pylist() == ROWS


def test_options_are_those_of_the_reader(lake: forklake.Lake, catalog: forklake.Catalog, files: Path) -> None:
    path = files / "odd.data"
    path.write_text("7;'x';01.02.2024\n")
    rows = lake.read(
        path,
        format="csv",
        header=False,
        delim=";",
        quote="'",
        dateformat="%d.%m.%Y",
        names=["id", "note", "day"],
    )
    assert rows.to_pylist() == [{"id": 7, "note": "x", "day": date(2024, 2, 1)}]
    typed = lake.read(files / "rows.csv", columns={"id": "VARCHAR", "note": "VARCHAR", "price": "VARCHAR"})
    table = catalog.create_table("t", "id INTEGER, note VARCHAR, price DECIMAL(4, 1)")
    with pytest.raises(InvalidData):
        table.append(typed)
    assert table.append(typed, cast=True) == 3
    assert table.scan("id = 1", columns=["price"]).to_pylist() == [{"price": Decimal("0.5")}]


def test_files_that_cannot_be_read_are_refused_with_their_names(
    lake: forklake.Lake, catalog: forklake.Catalog, files: Path
) -> None:
    table = catalog.create_table("t", "id INTEGER")
    (files / "bad.parquet").write_text("no parquet")
    (files / "bad.csv").write_text("id\n1\n2\n" + "3\n" * 30_000 + "x\n")
    for path, error, said in (
        (files / "none.csv", FileMissing, "none.csv"),
        (files / "none-*.parquet", FileMissing, "none-"),
        (files / "bad.parquet", InvalidData, "bad.parquet"),
        (files / "bad.csv", InvalidData, "bad.csv"),
    ):
        with pytest.raises(error, match=said):
            table.append(lake.read(path), cast=True)
    for path, options in (
        (files / "odd.data", {}),
        ([], {}),
        (7, {}),
        ("https://example.org/x.csv", {}),
        ("s3://bucket/x.csv", {}),
        (files / "rows.csv", {"format": "xlsx"}),
        (files / "rows.csv", {"header) FROM x --": 1}),
        (files / "rows.csv", {"header": object()}),
        ([files / "rows.csv", files / "rows.parquet"], {}),
    ):
        with pytest.raises(InvalidArgument):
            lake.read(path, **options)  # type: ignore[arg-type]
    with pytest.raises(ForklakeError):
        lake.read(files / "rows.csv", nope=1).to_arrow()
    assert table.count() == 0


def test_a_large_file_streams_by(lake: forklake.Lake, catalog: forklake.Catalog, tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    duckdb.sql(
        f"COPY (SELECT range AS id, repeat('x', 200) AS text FROM range(400_000)) TO '{path}' (HEADER)"
    )
    held: list[int] = []

    def watched(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            held.append(pa.total_allocated_bytes())
            yield batch

    rows = lake.read(path)
    reader = pa.RecordBatchReader.from_batches(rows.schema, watched(rows.to_batches()))
    table = catalog.create_table("large", reader, append=True)
    assert table.count() == 400_000
    assert len(held) > 2
    assert max(held) < path.stat().st_size
