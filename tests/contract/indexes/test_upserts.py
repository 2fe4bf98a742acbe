"""Upserts by keys that an index has: rows are read by position, and become what they would without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.api.upsert import join_of
from forklake.engine.rows_by_position import with_rows_found
from forklake.scan.scan_plan import ScanPlan, plan_scan

NAMES = ("plain", "indexed")
SCHEMA = "k BIGINT, s VARCHAR, n INTEGER, at TIMESTAMP, u UUID"


def rows(first: int, count: int) -> pa.Table:
    at = range(first, first + count)
    return pa.table(
        {
            "k": [None if i % 17 == 5 else i * 7 % 101 for i in at],
            "s": [f"s{i}" for i in at],
            "n": pa.array([i % 10 for i in at], pa.int32()),
            "at": pa.array([i * 1_000_001 for i in at], pa.timestamp("us")),
            "u": pa.array([bytes([i]) * 16 for i in at], pa.uuid()),
        }
    )


@pytest.fixture
def twins(catalog: forklake.Catalog) -> list[forklake.Table]:
    """The same rows twice, in files of several row groups, some of them deleted or written anew."""
    made: list[forklake.Table] = []
    for name in NAMES:
        table = catalog.create_table(name, SCHEMA)
        table.set_option("data_inlining_row_limit", 3)
        table.set_option("parquet_row_group_size", 8)
        if name == "indexed":
            table.create_index("by_k", kind="hash", columns=["k"])
        table.append(rows(0, 40))
        table.append(rows(40, 30))
        table.update({"n": "n + 100"}, "n < 3")
        table.delete("s LIKE '%7'")
        table.append(rows(70, 2))
        made.append(table)
    return made


def state(table: forklake.Table) -> list[str]:
    return sorted(map(str, table.scan(row_ids=True).to_pylist()))


def planned(table: forklake.Table, source: pa.Table, *read: str) -> ScanPlan:
    """The plan of an upsert of two columns by `k`."""
    draft = table._scope.read()
    definition = draft.table(table.id)
    join = join_of(source, "k", definition.columns)
    engine = table._scope.context.engine
    plan = plan_scan(draft.source(definition), None, engine.storage, join.key_values)
    columns = tuple(column for column in definition.columns if column.name in read)
    return with_rows_found(engine, plan, columns)


def test_upserts_do_what_they_do_without_an_index(twins: list[forklake.Table]) -> None:
    source = pa.table({"k": [1, 8, 8 + 7, 50, 1000, None], "n": pa.array([1, 2, 3, 4, 5, 6], pa.int32())})
    other = source.append_column("more", pa.array([1, 2, 3, 4, 5, 6]))
    for data, asked in (
        (source, {}),
        (source, {"when_matched": {"n": "target.n + source.n", "s": "target.s || '!'"}}),
        (other, {"when_matched": {"n": "source.more", "s": "target.u"}, "when_not_matched": "ignore"}),
        (source, {"when_matched": [("target.n > 3", {"n": "0"}), ("source.n = 1", "delete")]}),
        (rows(10, 9).filter(pa.array([at != 5 for at in range(9)])), {}),
        (source.slice(0, 3), {"when_matched": "delete", "when_not_matched": "ignore"}),
        (source, {"when_matched": "ignore"}),
        (source, {"when_not_matched_by_source": {"n": "-1"}}),
    ):
        told: list[Any] = [table.merge(data, on="k", **asked) for table in twins]
        assert told[0] == told[1], asked
        assert state(twins[0]) == state(twins[1]), asked
    told = [table.delete("k IN (2, 9, 16, 23, 30, 37, 44) AND n < 9") for table in twins]
    assert told[0] == told[1] > 0
    assert state(twins[0]) == state(twins[1])
    for table in twins:
        with pytest.raises(forklake.InvalidData, match="several rows of the source"):
            table.merge(pa.concat_tables([source, source]), on="k", when_not_matched="ignore")


def test_rows_are_read_by_position_where_files_have_the_columns_as_they_are(
    catalog: forklake.Catalog, twins: list[forklake.Table]
) -> None:
    table = twins[1]
    source = pa.table({"k": [1, 8, 15, 50, 1000]})
    plan = planned(table, source, "k", "s")
    # Of a row that was deleted the index knows too.
    assert {file.file.id for file in plan.files} == plan.held.keys() == plan.found.keys()
    assert sum(len(found) for found in plan.held.values()) >= table.scan("k IN (1, 8, 15, 50)").count()
    for each in twins:
        each.add_column("later", "INTEGER", default="1")
        each.add_column("inside", "STRUCT(x INTEGER)")
        each.alter_type("n", "BIGINT")
    assert planned(table, source, "k", "later").held == {}
    assert planned(table, source, "k", "inside").held == {}
    assert planned(table, source, "n").held == {}
    assert planned(table, source, "k").held != {}
    new = pa.table({"k": [1, 8, 15, 50], "s": ["a", "b", "c", "d"]})
    told = [each.merge(new, on="k") for each in twins]
    assert told[0] == told[1]
    assert state(twins[0]) == state(twins[1])


def test_a_file_that_was_overwritten_is_named(twins: list[forklake.Table]) -> None:
    table = twins[1]
    storage = table._scope.context.storage
    file = planned(table, pa.table({"k": [1]}), "k").files[0].file
    path = Path(storage.address(file.path))
    data = path.read_bytes()
    end = (file.footer_size or 0) + 8
    path.write_bytes(b"x" * (len(data) - end) + data[-end:])
    with pytest.raises(forklake.StorageError, match=path.name):
        table.merge(pa.table({"k": [1], "n": pa.array([1], pa.int32())}), on="k")
