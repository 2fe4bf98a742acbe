"""Rows that live in the metadata are read without a query, and are those that a query would show."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import pytest

import forklake
from forklake.engine import select
from forklake.engine.local import Engine
from forklake.store import files

COLUMNS = """flag BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INTEGER, i8 BIGINT, u1 UTINYINT, u2 USMALLINT,
    u4 UINTEGER, u8 UBIGINT, f4 FLOAT, f8 DOUBLE, s VARCHAR, b BLOB, id BIGINT NOT NULL"""
LOWEST = {"i1": -128, "i2": -(2**15), "i4": -(2**31), "i8": -(2**63), "u1": 0, "u2": 0, "u4": 0, "u8": 0}
HIGHEST = {"i1": 127, "i2": 2**15 - 1, "i4": 2**31 - 1, "i8": 2**63 - 1, "u1": 255, "u2": 65535} | {
    "u4": 2**32 - 1,
    "u8": 2**64 - 1,
}
ROWS = [
    {"id": 0},
    {"id": 1, "flag": False, "f4": -0.0, "f8": -0.0, "s": "", "b": b"", **LOWEST},
    {"id": 2, "flag": True, "f4": math.inf, "f8": -math.inf, "s": "a\0b😀", "b": b"\0\xff", **HIGHEST},
    {"id": 3, "f4": math.nan, "f8": math.nan, "s": "NULL"},
]

Scan = Callable[[forklake.Table], forklake.Scan]


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    """Rows of several commits, some changed and some deleted, and a column that came later."""
    table = catalog.create_table("t", COLUMNS)
    table.append(ROWS)
    table.append([{"id": at} for at in range(4, 8)])
    table.delete("id = 5")
    table.update({"s": "'changed'"}, "id = 6")
    table.add_column("late", "INTEGER", default=7)
    table.rename_column("s", "text of it")
    table.append([{"id": 8, "late": None}])
    return table


@pytest.mark.parametrize(
    "scan",
    [
        lambda table: table.scan(),
        lambda table: table.scan(row_ids=True),
        lambda table: table.scan(columns=["late", "f8", "id"]),
        lambda table: table.scan(limit=0),
        lambda table: table.scan(limit=100),
    ],
    ids=["all", "row ids", "columns", "none", "limit"],
)
def test_rows_are_those_that_a_query_shows(
    table: forklake.Table, scan: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "connection", None)
        found, batches = scan(table).to_arrow(), list(scan(table).to_batches())
    with monkeypatch.context() as patched:
        patched.setattr(select, "_at_hand", lambda plan, selection: None)
        expected = scan(table).to_arrow()
    assert found.schema.equals(expected.schema, check_metadata=True)
    # NaN is not equal to itself, nor is 0.0 another than -0.0.
    assert repr(found.to_pylist()) == repr(expected.to_pylist())
    assert repr([row for batch in batches for row in batch.to_pylist()]) == repr(expected.to_pylist())
    found.validate(full=True)


def test_an_empty_table_has_its_columns(catalog: forklake.Catalog) -> None:
    found = catalog.create_table("e", COLUMNS).scan(row_ids=True).to_arrow()
    assert found.num_rows == 0
    assert found.schema == catalog.table("e").scan(row_ids=True).schema


def test_a_transaction_reads_what_it_wrote(catalog: forklake.Catalog, table: forklake.Table) -> None:
    with catalog.transaction() as tx:
        tx.table("t").append([{"id": 9}])
        tx.table("t").delete("id = 0")
        found = tx.table("t").scan(columns=["id"]).to_arrow().column("id").to_pylist()
    assert sorted(found) == [1, 2, 3, 4, 6, 7, 8, 9]
    assert sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist()) == sorted(found)


def test_deletes_of_many_writes_are_looked_up_by_a_span_of_files(
    table: forklake.Table, catalog: forklake.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = catalog.create_table("other", "id INT")
    other.append([{"id": 1}, {"id": 2}])
    table.append([{"id": 9}, {"id": 10}])
    other.delete("id = 1")
    table.delete("id = 10")
    expected = table.scan(columns=["id"], row_ids=True).to_arrow()
    monkeypatch.setattr(files, "FEW_NAMED", 1)
    assert table.scan(columns=["id"], row_ids=True).to_arrow().equals(expected)
    parts = table.scan().plan().rows
    again = pickle.loads(pickle.dumps(parts))  # noqa: S301 - our own
    assert [(place.file, place.live_rows) for place in parts] == [
        (place.file, place.live_rows) for place in again
    ]
    assert table.scan().count() == sum(place.live_rows for place in parts) == len(expected) == 9


def test_deletes_of_a_file_between_small_writes_count_once(
    catalog: forklake.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FEW_NAMED", 1)
    table = catalog.create_table("t", "id INT")
    table.set_option("data_inlining_row_limit", 2)
    for some in (range(2), range(2, 9), range(9, 10)):
        table.append([{"id": at} for at in some])
    table.delete("id = 1 OR id = 4")
    plan = table.scan().plan()
    assert [place.live_rows for place in (*plan.files, *plan.rows)] == [6, 1, 1]
    assert sorted(row["id"] for row in table.scan().to_pylist()) == [0, 2, 3, 5, 6, 7, 8, 9]
    assert table.scan("id < 5").count() == 3
