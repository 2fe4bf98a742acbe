"""Conditions that tell NULL apart find the rows that DuckDB finds in memory, whatever footers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forklake

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("m", pa.int32()),
        ("b", pa.bool_()),
        ("v", pa.string()),
        ("s", pa.struct([("a", pa.int32())])),
    ]
)
VALUES: dict[str, tuple[str, list[Any]]] = {
    "n": ("INTEGER", [-1, 0, 1, 2]),
    "m": ("INTEGER", [-1, 0, 1, 2]),
    "b": ("BOOLEAN", [True, False]),
    "v": ("VARCHAR", ["a", "b", "zz"]),
    "s": ("STRUCT(a INTEGER)", [{"a": 1}, {"a": 2}, {"a": None}]),
}
DDL = ", ".join(["id BIGINT", *(f"{name} {type}" for name, (type, _) in VALUES.items())])
GROUP = 2
SIGNS = {
    "n": ("-1", "0", "1", "2", "5", "NULL", "m", "(n + m)"),
    "b": ("TRUE", "FALSE", "NULL", "(n > 0)"),
    "v": ("'a'", "'b'", "'zz'", "''", "NULL", "(v || 'z')"),
    "s.a": ("1", "2", "5", "NULL", "n"),
}
COMPARED = ("=", "!=", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "IS DISTINCT FROM")


@st.composite
def leaves(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(tuple(SIGNS)))
    if draw(st.integers(0, 5)) == 0:
        tests = ["IS NULL", "IS NOT NULL"]
        tests += ["IS NOT TRUE", "IS NOT FALSE", "IS TRUE", "IS FALSE"] * (name == "b")
        return f"{name} {draw(st.sampled_from(tests))}"
    sides = [name, draw(st.sampled_from(SIGNS[name]))]
    if draw(st.booleans()):
        sides.reverse()
    return f"{sides[0]} {draw(st.sampled_from(COMPARED))} {sides[1]}"


CONDITIONS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds("({}) OR ({})".format, inner, inner),
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
        st.builds("({}) IS NOT TRUE".format, inner),
    ),
    max_leaves=4,
)


@st.composite
def files(draw: st.DrawFn) -> list[pa.Table]:
    """Rows of some files; in many row groups, a column is NULL throughout."""
    made: list[pa.Table] = []
    for _ in range(draw(st.integers(1, 3))):
        columns: dict[str, list[Any]] = {name: [] for name in VALUES}
        for _ in range(draw(st.integers(1, 2))):
            for name, (_, values) in VALUES.items():
                known = st.none() if draw(st.booleans()) else st.none() | st.sampled_from(values)
                columns[name] += [draw(known) for _ in range(GROUP)]
        start = sum(map(len, made))
        columns["id"] = list(range(start, start + len(columns["n"])))
        made.append(pa.table(columns, schema=SCHEMA))
    return made


EXAMPLES = {"sqlite": 40, "duckdb": 12, "postgresql": 15}


def found(table: forklake.Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where, ["id"]).to_arrow().column("id").to_pylist())


def test_conditions_that_tell_null_apart_find_what_duckdb_finds_in_memory(
    lake: forklake.Lake, lake_url: str
) -> None:
    lake.set_option("data_inlining_row_limit", 0)
    lake.set_option("parquet_row_group_size", GROUP)
    memory = duckdb.connect()
    # Its optimizer finds no row for (b = TRUE) OR (b IS DISTINCT FROM TRUE) where b is NULL (DuckDB 1.5.5).
    memory.execute("PRAGMA disable_optimizer")

    @settings(
        max_examples=EXAMPLES[lake_url.partition(":")[0]] * settings.default.max_examples // 100,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(files(), st.lists(CONDITIONS, min_size=4, max_size=8))
    def run(parts: list[pa.Table], conditions: Sequence[str]) -> None:
        catalog = lake.create_catalog(f"c{uuid4().hex}")
        table = catalog.create_table("t", DDL)
        start = catalog.snapshot
        for part in parts:
            table.append(part)
        memory.register("given", pa.concat_tables(parts))
        memory.execute("CREATE OR REPLACE TEMP TABLE t AS FROM given")

        def right(where: str) -> list[int]:
            return [
                row[0] for row in memory.execute(f"SELECT id FROM t WHERE {where} ORDER BY id").fetchall()
            ]

        for where in conditions:
            assert found(table, where) == right(where), where
            assert table.scan(where).count() == len(right(where)), where
            changes = table.changes(start, where=where).to_arrow()
            assert sorted(changes.column("id").to_pylist()) == right(where), where
        first, last = conditions[0], conditions[-1]
        assert table.update({"id": f"CASE WHEN {last} THEN id + 100 ELSE id END"}, first) == len(right(first))
        memory.execute(f"UPDATE t SET id = CASE WHEN {last} THEN id + 100 ELSE id END WHERE {first}")
        assert found(table) == right("TRUE")
        assert table.delete(last) == len(right(last))
        assert found(table) == right(f"({last}) IS NOT TRUE")

    run()


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("n IS DISTINCT FROM 2 OR n < 0", [0, 2]),
        ("n < 0 OR NOT (n IS NOT DISTINCT FROM 2)", [0, 2]),
        ("b IS NOT TRUE OR b < TRUE", [0, 2]),
        ("s.a IS DISTINCT FROM 2 OR s.a < 0", [0, 2]),
        ("v IS DISTINCT FROM 'zz' OR v <= 'a'", [0, 2]),
    ],
)
def test_rows_of_a_file_where_a_column_is_null_throughout_are_found(
    lake: forklake.Lake, where: str, ids: list[int]
) -> None:
    lake.set_option("data_inlining_row_limit", 0)
    table = lake.create_catalog("c").create_table("t", DDL)
    table.append([{"id": 0, "n": 1, "b": False, "s": {"a": 1}, "v": "b"}])
    table.append([{"id": 1, "n": 2, "b": True, "s": {"a": 2}, "v": "zz"}])
    table.append([{"id": 2}])
    assert found(table, where) == ids
    assert table.delete(where) == 2
    assert found(table) == [1]
