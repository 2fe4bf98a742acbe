"""A widened column reads every old value exactly, and nothing else is a widening."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.model.types.arrow import to_arrow
from forklake.model.types.data_types import (
    DataType,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    can_promote,
    can_widen,
    from_ducklake_name,
    parse,
    to_ducklake_name,
    to_sql,
)
from tests.unit.data_types.drawn import NAMES, decimals

# Boundary values of each type that can widen. Python compares int, float and Decimal exactly.
BOUNDARIES: dict[str, list[object]] = {
    **{f"int{n}": [-(2 ** (n - 1)), -1, 0, 1, 2 ** (n - 1) - 1] for n in (8, 16, 32, 64)},
    **{f"uint{n}": [0, 1, 2 ** (n - 1), 2**n - 1] for n in (8, 16)},
    "float32": [-3.4028234663852886e38, 1.401298464324817e-45, 0.1, 16777217.0, float("inf")],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
    "timestamp_s": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)],
    "timestamp_ms": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999000)],
    "decimal(5,2)": [decimal.Decimal("-999.99"), decimal.Decimal("0.01"), decimal.Decimal("999.99")],
    "decimal(18,0)": [decimal.Decimal(10**18 - 1)],
    "decimal(30,10)": [decimal.Decimal("9" * 20 + "." + "9" * 10)],
}
TARGETS: list[DataType] = [
    *map(Scalar, NAMES),
    *(
        Decimal(p, s)
        for p, s in [(6, 2), (7, 3), (10, 0), (12, 2), (18, 3), (20, 0), (22, 2), (38, 5), (38, 18)]
    ),
]
WIDENINGS = [
    (from_ducklake_name(old), new)
    for old in BOUNDARIES
    for new in TARGETS
    if from_ducklake_name(old) != new and can_widen(from_ducklake_name(old), new)
]


@pytest.mark.parametrize(("old", "new"), WIDENINGS, ids=lambda type: to_ducklake_name(type))
def test_a_widened_column_reads_every_old_value_exactly(
    old: Scalar | Decimal, new: DataType, tmp_path: Path, duck: duckdb.DuckDBPyConnection
) -> None:
    values = pa.array(BOUNDARIES[to_ducklake_name(old)], to_arrow(old))
    lists = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)
    fields = [pa.field("x", values.type, metadata={"PARQUET:field_id": "1"})]
    fields.append(
        pa.field(
            "y",
            pa.list_(pa.field("element", values.type, metadata={"PARQUET:field_id": "3"})),
            metadata={"PARQUET:field_id": "2"},
        )
    )
    pq.write_table(
        pa.Table.from_arrays([values, lists.cast(fields[1].type)], schema=pa.schema(fields)),
        tmp_path / "old.parquet",
    )
    rows = duck.execute(
        f"""SELECT c, l[1], typeof(c), typeof(l) FROM read_parquet('{tmp_path}/old.parquet', schema = MAP {{
            1: {{name: 'c', type: '{to_sql(new)}', default_value: NULL}},
            2: {{name: 'l', type: '{to_sql(List(new))}', default_value: NULL}}}})"""
    ).fetchall()
    assert {parse(row[2]) for row in rows} == {new}
    assert {parse(row[3]) for row in rows} == {List(new)}
    expected = values.to_pylist()
    if old == Scalar("date"):
        expected = [dt.datetime.combine(day, dt.time()) for day in expected]
    assert [row[0] for row in rows] == expected
    assert [row[1] for row in rows] == expected


def test_the_widenings_are_these() -> None:
    into: dict[str, set[str]] = {}
    for old, new in WIDENINGS:
        into.setdefault(to_ducklake_name(old), set()).add(to_ducklake_name(new))
    integers = {"decimal(10,0)", "decimal(12,2)", "decimal(18,3)", "decimal(20,0)", "decimal(22,2)",
                "decimal(38,5)", "decimal(38,18)", "int128"}  # fmt: skip
    assert into == {
        "int8": integers | {"int16", "int32", "int64", "float64"},
        "int16": integers | {"int32", "int64", "float64"},
        "int32": integers | {"int64", "float64"},
        "int64": {"int128", "decimal(20,0)", "decimal(22,2)", "decimal(38,5)", "decimal(38,18)"},
        "uint8": {"uint16", "uint32", "float64"},
        "uint16": {"uint32", "float64"},
        "float32": {"float64"},
        "date": {"timestamp"},
        "timestamp_s": {"timestamp_ms", "timestamp"},
        "timestamp_ms": {"timestamp"},
        "decimal(5,2)": {"decimal(6,2)", "decimal(7,3)", "decimal(12,2)", "decimal(18,3)", "decimal(22,2)",
                         "decimal(38,5)", "decimal(38,18)"},
        "decimal(18,0)": {"decimal(20,0)", "decimal(22,2)", "decimal(38,5)", "decimal(38,18)"},
        "decimal(30,10)": {"decimal(38,18)"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BIGINT", "INT"), ("BIGINT", "DOUBLE"), ("INT", "FLOAT"), ("DOUBLE", "FLOAT"),
        ("INT", "DECIMAL(9,0)"), ("BIGINT", "DECIMAL(19,0)"), ("DECIMAL(10,2)", "DECIMAL(10,3)"),
        ("DECIMAL(10,2)", "DECIMAL(11,1)"), ("TIMESTAMP", "DATE"), ("TIMESTAMP", "TIMESTAMPTZ"),
        ("TIMESTAMP", "TIMESTAMP_NS"), ("DATE", "TIMESTAMPTZ"), ("INT", "VARCHAR"), ("VARCHAR", "INT"),
        ("VARCHAR", "BLOB"), ("JSON", "VARCHAR"), ("BOOLEAN", "INT"),
        # Spark reads the first as -1 and fails on the others.
        ("UINTEGER", "DOUBLE"), ("UINTEGER", "UBIGINT"), ("UTINYINT", "DECIMAL(10,0)"),
        ("UBIGINT", "DECIMAL(22,2)"), ("INT", "INT[]"), ("INT[]", "INT"),
        ("STRUCT(a INT)", "STRUCT(b INT)"), ("STRUCT(a INT)", "STRUCT(a INT, b INT)"),
        ("STRUCT(a INT, b INT)", "STRUCT(b INT, a INT)"), ("MAP(INT, BIGINT)", "MAP(INT, INT)"),
        ("BIGINT[]", "INT[]"),
    ],
)  # fmt: skip
def test_what_could_lose_a_value_or_a_reader_is_no_widening(old: str, new: str) -> None:
    assert not can_widen(parse(old), parse(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INT[]", "BIGINT[]"),
        ("STRUCT(a INT, b FLOAT)", "STRUCT(a BIGINT, b DOUBLE)"),
        ("MAP(INT, STRUCT(a INT))", "MAP(BIGINT, STRUCT(a DECIMAL(10,0)))"),
    ],
)
def test_a_nested_type_widens_part_by_part(old: str, new: str) -> None:
    assert can_widen(parse(old), parse(new))
    assert not can_widen(parse(new), parse(old))


# Few names and leaves, so that types that widen into each other come up often.
wideners = st.one_of(
    st.sampled_from([*BOUNDARIES, "int128", "float64", "uint32", "timestamp"]).map(from_ducklake_name),
    decimals,
)
related = st.one_of(
    wideners,
    wideners.map(List),
    st.builds(lambda a, b: Struct((("a", a), ("b", b))), wideners, wideners),
    st.builds(Map, wideners, wideners),
)


@given(related)
def test_every_type_widens_to_itself(type: DataType) -> None:
    assert can_widen(type, type)


@given(related, related)
def test_no_two_types_widen_into_each_other(a: DataType, b: DataType) -> None:
    assert a == b or not (can_widen(a, b) and can_widen(b, a))


@given(wideners, wideners, wideners)
def test_widening_twice_is_a_widening(a: DataType, b: DataType, c: DataType) -> None:
    if can_widen(a, b) and can_widen(b, c):
        assert can_widen(a, c)


def test_a_column_may_become_more_than_what_every_reader_takes_for_the_same() -> None:
    every = [*map(Scalar, NAMES)]
    more: dict[str, set[str]] = {}
    for old in every:
        for new in every:
            assert not can_widen(old, new) or can_promote(old, new)
            assert old == new or not (can_promote(old, new) and can_promote(new, old))
            if can_promote(old, new) and not can_widen(old, new):
                more.setdefault(old.name, set()).add(new.name)
    signed = {"int16", "int32", "int64", "int128"}
    assert more == {
        "int8": {"float32"},
        "int16": {"float32"},
        "uint8": {*signed, "uint64", "uint128", "float32"},
        "uint16": {*signed - {"int16"}, "uint64", "uint128", "float32"},
        "uint32": {"int64", "int128", "uint64", "uint128", "float64"},
        "uint64": {"int128", "uint128"},
        **{key: {"timestamptz"} for key in ("date", "timestamp_s", "timestamp_ms", "timestamp")},
    }


def test_widening_twice_is_a_widening_for_every_triple_of_the_table() -> None:
    every = [
        *map(Scalar, NAMES),
        *(Decimal(p, s) for p in (1, 5, 9, 10, 12, 20, 38) for s in (0, 2, 9) if s <= p),
    ]
    chains = [(a, b, c) for a in every for b in every if can_widen(a, b) for c in every if can_widen(b, c)]
    assert len({chain for chain in chains if len(set(chain)) == 3}) > 50
    assert [chain for chain in chains if not can_widen(chain[0], chain[2])] == []
