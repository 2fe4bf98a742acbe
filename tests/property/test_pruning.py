"""DuckDB decides which rows satisfy a predicate; a file may be skipped only if it has none of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number
from uuid import UUID

import duckdb
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from forklake.model.entities import Column
from forklake.model.sql.ddl import ColumnSpec
from forklake.model.sql.predicate import is_one_range, parse_predicate, ranges
from forklake.model.table.columns import build
from forklake.model.table.files import ColumnStats, FileFacts
from forklake.model.types.data_types import DataType, Scalar, Struct, can_widen, parse, to_sql
from forklake.model.types.sort_keys import HIGHEST, LOWEST, Value, bounds, key_of
from forklake.scan.prune import skip_reason

LONG = "p" * 31
TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "b",
    "é",
    "ü%",
    "a_c",
    "日本",
    "\U0001f986",
    "A",
    "~",
    "a\0b",
    LONG,
    LONG + "p",
]
TEXTS += [LONG + "pa", LONG + "pb", LONG + "pb" * 9, LONG + "é", "it's", 'q"r', "a\\b", "-- x", "%", "7"]
DAYS = [
    date(1, 1, 2),
    date(1582, 10, 4),
    date(1969, 12, 31),
    date(1970, 1, 1),
    date(2024, 2, 29),
    date(9999, 12, 30),
]


def _float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def integers(name: str) -> st.SearchStrategy[int]:
    bits = int(name.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    near = (low, low + 1, -10, -7, -1, 0, 1, 5, 7, 70, 99, 100, 2**53, 2**53 + 1, high - 1, high)
    return st.sampled_from([n for n in near if low <= n <= high]) | st.integers(low, high)


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)) | st.sampled_from(
    [
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, 10),
        datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
    ]
)
FLOATS = st.sampled_from(
    [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 0.5, -0.5, 1.0, 7.0, 7.5, 5e-324, 1e308, 2.0**53]
)
CLOCKS = st.times() | st.sampled_from([time(0), time(10), time(23, 59, 59, 999999)])
BYTES = st.binary(max_size=3) | st.sampled_from([b"", b"\0", b"\xff" * 33, b"\xff" * 32, b"a" * 40, b"\xab"])


def values_of(type: DataType) -> st.SearchStrategy[Value]:
    match type:
        case Scalar("boolean"):
            return st.booleans()
        case Scalar("float64"):
            return FLOATS | st.floats()
        case Scalar("float32"):
            return FLOATS.filter(lambda x: not math.isfinite(x) or abs(x) < 1e38).map(_float32) | st.floats(
                width=32
            )
        case Scalar("date"):
            return st.sampled_from(DAYS) | st.dates(date(1, 1, 2), date(9999, 12, 30))
        case Scalar("time"):
            return CLOCKS
        case Scalar("timestamp"):
            return MOMENTS
        case Scalar("timestamp_s"):
            return MOMENTS.map(lambda timestamp: timestamp.replace(microsecond=0))
        case Scalar("timestamp_ms"):
            return MOMENTS.map(
                lambda timestamp: timestamp.replace(microsecond=timestamp.microsecond // 1000 * 1000)
            )
        case Scalar("timestamptz"):
            return MOMENTS.map(lambda timestamp: timestamp.replace(tzinfo=UTC))
        case Scalar("varchar"):
            return st.sampled_from(TEXTS) | st.text(max_size=4)
        case Scalar("blob"):
            return BYTES
        case Scalar("uuid"):
            return st.uuids() | st.sampled_from([UUID(int=0), UUID(int=2**127), UUID(int=2**128 - 1)])
        case Scalar(name):
            return integers(name)
        case _:
            precision, scale = type.precision, type.scale
            unscaled = st.sampled_from([0, 1, -1, 10, 15, 750, 10**precision - 1]) | st.integers(
                -(10**precision) + 1, 10**precision - 1
            )
            # Not scaleb: it rounds to the precision of the context.
            return unscaled.map(lambda n: Number((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


SPELLED = """
    BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT FLOAT DOUBLE
    DECIMAL(4,1) DECIMAL(10,2) DECIMAL(18,3) DECIMAL(38,0) DECIMAL(38,10) DATE TIME TIMESTAMP TIMESTAMP_S
    TIMESTAMP_MS TIMESTAMPTZ VARCHAR BLOB UUID
"""
TYPES = [parse(sql) for sql in SPELLED.split()]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sql_value(value: Value | None, type: DataType) -> str:
    """A value with its type, for filling tables: nothing here is left to guess."""
    if value is None:
        return f"NULL::{to_sql(type)}"
    if isinstance(value, str):
        return "||".join(["''", *(f"chr({ord(sign)})" for sign in value)])
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    if isinstance(value, Number):
        return f"'{value:f}'::{to_sql(type)}"
    return f"'{value}'::{to_sql(type)}"


def spellings(value: Value, type: DataType) -> list[str]:
    """The ways in which somebody writes a value into a predicate."""
    match value:
        case bool():
            return [str(value), quoted(str(value)), f"{value}::BOOLEAN"]
        case int():
            ways = [str(value), quoted(str(value)), f"{value}.5", f"{value}.0", f"{value}::{to_sql(type)}"]
            return [
                *ways,
                f"'{value}'::BIGINT",
                f"{value}e0",
                f"{value}::DOUBLE",
                f"({value})",
                f"{value}::FLOAT",
            ]
        case float() if math.isfinite(value):
            plain = f"{Number(repr(value)):f}"
            ways = [repr(value), quoted(repr(value)), f"'{value!r}'::{to_sql(type)}", f"{value!r}::DOUBLE"]
            return [*ways, plain, f"{int(value)}" if abs(value) < 1e30 else "1e30", "0.1::DECIMAL(38,37)"]
        case float():
            return [quoted(str(value)), f"'{value}'::{to_sql(type)}", f"'{value}'::DOUBLE"]
        case Number():
            ways = [
                f"{value:f}",
                f"'{value:f}'",
                f"{value:f}5",
                f"'{value:f}5'",
                f"{value:f}::{to_sql(type)}",
            ]
            return [*ways, f"{value:f}e0", f"{int(value)}", f"{value:f}::DOUBLE"]
        case datetime():
            text = str(value)
            ways = [
                quoted(text),
                f"'{text}'::{to_sql(type)}",
                quoted(text[:19]),
                quoted(text.replace(" ", "T")),
            ]
            ways += [
                f"TIMESTAMP '{text[:26]}'",
                f"DATE '{text[:10]}'",
                quoted(text[:10]),
                f"TIMESTAMP_S '{text[:19]}'",
            ]
            return [
                *ways,
                quoted(text[:19] + ".123456"),
                quoted(text[:19] + "+02"),
                f"TIMESTAMPTZ '{text[:19]}-03:30'",
            ]
        case date():
            ways = [
                f"'{value}'",
                f"DATE '{value}'",
                f"TIMESTAMP '{value} 10:00:00'",
                f"TIMESTAMP_MS '{value}'",
            ]
            return [*ways, f"'{value} 10:00:00'", f"'{value}'::TIMESTAMPTZ"]
        case time():
            return [f"'{value}'", f"TIME '{value}'", f"'{value.replace(microsecond=0)}.5'"]
        case str():
            return [quoted(value), f"{quoted(value)}::VARCHAR", f"({quoted(value)})"]
        case bytes():
            text = "".join(f"\\x{byte:02X}" for byte in value)
            return [f"'{text}'::BLOB", f"'{text}'", f"'a{text}z'::BLOB", f"unhex('{value.hex()}')"]
        case UUID():
            return [f"'{value}'", f"UUID '{value}'", f"'{value}'::UUID", f"'{value.hex}'"]


@dataclass(frozen=True)
class File:
    rows: list[tuple[Value | None, ...]]
    facts: FileFacts


TARGETS = {"x": 0, "Y": 1, "s.z": 2}
OPERATORS = ["=", "!=", "<>", "<", "<=", ">", ">=", "==", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


@st.composite
def stats_of(draw: st.DrawFn, column: Column, values: Sequence[Value | None]) -> ColumnStats:
    """What a writer may know of a column: everything, or less."""
    type = column.data_type
    present = [value for value in values if value is not None]
    ordered = sorted((v for v in present if v == v), key=lambda value: key_of(value, type) or "")
    nan = any(value != value for value in present)
    has_nan = isinstance(type, Scalar) and type.name.startswith("float")
    nulls = len(values) - len(present)
    told_nan = draw(st.sampled_from([nan, None])) if has_nan else None
    if present:
        low, high = (ordered[0], ordered[-1]) if ordered else (None, None)
        keys = bounds(
            draw(st.sampled_from([low, low, low, None])),
            draw(st.sampled_from([high, high, high, None])),
            type,
            contains_nan=told_nan,
        )
    else:
        keys = (None, None)
    null_count = draw(st.sampled_from([nulls, nulls, nulls, None]))
    return ColumnStats(
        column.id, len(values), null_count, min_key=keys[0], max_key=keys[1], contains_nan=told_nan
    )


@st.composite
def lakes(draw: st.DrawFn) -> tuple[tuple[Column, ...], list[File], list[list[Value]]]:
    """A table with columns x, Y and s.z, and small files of it."""
    types = [draw(st.sampled_from(TYPES)) for _ in range(3)]
    struct_type = Struct((("z", types[2]),))
    columns = build([ColumnSpec("x", types[0]), ColumnSpec("Y", types[1]), ColumnSpec("S", struct_type)])
    leaves = [columns[0], columns[1], columns[2].children[0]]
    pools = [draw(st.lists(values_of(type), min_size=1, max_size=5)) for type in types]
    files: list[File] = []
    for _ in range(draw(st.integers(1, 4))):
        row = st.tuples(*(st.sampled_from([*pool, *pool, None]) for pool in pools))
        rows = draw(st.lists(row, min_size=1, max_size=3))
        stats = {
            leaf.id: draw(stats_of(leaf, [row[at] for row in rows]))
            for at, leaf in enumerate(leaves)
            if draw(st.integers(0, 9))
        }
        files.append(File(rows, FileFacts(len(rows), stats)))
    return columns, files, pools


@st.composite
def predicates(draw: st.DrawFn, columns: tuple[Column, ...], pools: list[list[Value]], depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        inner = predicates(columns, pools, depth - 1)
        match draw(st.sampled_from(["and", "or", "not", "and", "or"])):
            case "not":
                return f"NOT ({draw(inner)})"
            case word:
                return f"({draw(inner)}) {word} ({draw(inner)})"
    name = draw(st.sampled_from(list(TARGETS)))
    at = TARGETS[name]
    type = [columns[0], columns[1], columns[2].children[0]][at].data_type
    shown = draw(st.sampled_from([name, name.upper(), f"({name})"]))

    def literal() -> str:
        if not draw(st.integers(0, 9)):
            return "NULL"
        value = draw(st.sampled_from(pools[at]) | values_of(type))
        return draw(st.sampled_from(spellings(value, type)))

    kinds = ["compare"] * 4 + [
        "swapped",
        "in",
        "not in",
        "between",
        "not between",
        "null",
        "not null",
        "constant",
    ]
    if type == Scalar("varchar"):
        kinds += ["like"] * 4
    if type == Scalar("boolean"):
        kinds += ["bare", "is"] * 3
    match draw(st.sampled_from(kinds)):
        case "compare":
            return f"{shown} {draw(st.sampled_from(OPERATORS))} {literal()}"
        case "swapped":
            return f"{literal()} {draw(st.sampled_from(OPERATORS))} {shown}"
        case "in" | "not in" as word:
            return f"{shown} {word} ({', '.join(literal() for _ in range(draw(st.integers(1, 4))))})"
        case "between" | "not between" as word:
            return f"{shown} {word} {literal()} AND {literal()}"
        case "null":
            return f"{shown} IS NULL"
        case "not null":
            return f"{shown} IS NOT NULL"
        case "bare":
            return shown
        case "is":
            return f"{shown} IS {draw(st.sampled_from(['TRUE', 'FALSE', 'NOT TRUE', 'NOT FALSE']))}"
        case "like":
            return draw(likes(shown, pools[at]))
        case _:
            return draw(st.sampled_from(["TRUE", "FALSE", "NULL", "1 = 1"]))


@st.composite
def likes(draw: st.DrawFn, shown: str, pool: list[Value]) -> str:
    text = str(draw(st.sampled_from(pool) | st.sampled_from(TEXTS)))
    part = text[: draw(st.integers(0, len(text)))]
    form = draw(
        st.sampled_from(
            [
                "LIKE {0}%",
                "NOT LIKE {0}%",
                "LIKE {0}",
                "LIKE {0}_%",
                "LIKE {0}%%",
                "NOT LIKE {0}_",
                "LIKE %{0}",
            ]
        )
    )
    call = draw(st.sampled_from(["", "", "starts_with", "prefix", "^@"]))
    if call == "^@":
        return f"{shown} ^@ {quoted(part)}"
    if call:
        return f"{call}({shown}, {quoted(part)})"
    word, _, pattern = form.rpartition(" ")
    return f"{shown} {word} {quoted(pattern.format(part))}"


@pytest.fixture(scope="module")
def oracle():
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        yield connection


def matching_files(
    oracle: duckdb.DuckDBPyConnection, columns, files: list[File], where: str
) -> set[int] | None:
    """The files that have a row for which DuckDB finds the condition true; None if it cannot evaluate it."""
    types = [columns[0].data_type, columns[1].data_type, columns[2].children[0].data_type]
    oracle.execute(
        f'CREATE OR REPLACE TEMP TABLE t (file INTEGER, x {to_sql(types[0])}, "Y" {to_sql(types[1])}, '
        f'"S" {to_sql(columns[2].data_type)})'
    )
    for number, file in enumerate(files):
        for row in file.rows:
            x, y, z = (sql_value(value, type) for value, type in zip(row, types, strict=True))
            # A struct that is NULL is a field that is NULL.
            struct_sql = "NULL" if row[2] is None and len(file.rows) % 2 else f"{{'z': {z}}}"
            oracle.execute(f"INSERT INTO t SELECT {number}, {x}, {y}, {struct_sql}")
    try:
        return {found for (found,) in oracle.execute(f"SELECT DISTINCT file FROM t WHERE {where}").fetchall()}
    except (
        duckdb.ConversionException,
        duckdb.BinderException,
        duckdb.InvalidInputException,
        duckdb.OutOfRangeException,
    ):
        return None


def meets(facts: FileFacts, low: str, high: str, column) -> bool:
    known = facts.stats.get(column)
    if known is None:
        return True
    return (
        known.min_key is not None
        and known.max_key is not None
        and known.min_key <= high
        and known.max_key >= low
    )


calm = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=300
)


@calm
@given(st.data())
def test_a_skipped_file_has_no_row_that_satisfies_the_predicate(oracle, data):
    columns, files, pools = data.draw(lakes())
    text = data.draw(predicates(columns, pools))
    assume("\0" not in text)
    predicate = parse_predicate(text, columns)
    matching = matching_files(oracle, columns, files, predicate.sql)
    assume(matching is not None)
    assert matching == matching_files(oracle, columns, files, f"({text})")
    for number in matching:
        facts = files[number].facts
        assert skip_reason(predicate.tree, facts) is None, (text, files[number])
        for found in ranges(predicate.tree):
            assert meets(facts, found.low, found.high, found.column_id), (text, found, files[number])
        for found in ranges(predicate.tree, with_nulls=True):
            stats = facts.stats.get(found.column_id)
            has_nulls = stats is not None and stats.null_count != 0
            wanted = found.wants_null and has_nulls
            assert wanted or meets(facts, found.low, found.high, found.column_id), (
                text,
                found,
                files[number],
            )
    if is_one_range(predicate.tree):
        (found,) = ranges(predicate.tree)
        for file in files:
            if skip_reason(predicate.tree, file.facts) is not None:
                assert not meets(file.facts, found.low, found.high, found.column_id), (text, found, file)


def certain(value: Value, type: DataType) -> str:
    """A spelling that leaves no doubt about what DuckDB compares."""
    match value:
        case bytes():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'"
        case float():
            return f"'{value!r}'::DOUBLE"
        case Number():
            return f"'{value:f}'"
        case _:
            return quoted(str(value))


def is_short(value: Value) -> bool:
    """Bounds of a long text also hold its neighbours, and NUL cannot be written into SQL."""
    return (
        len(value.encode() if isinstance(value, str) else value) <= 32
        if isinstance(value, str | bytes)
        else True
    )


@pytest.mark.parametrize("type", [type for type in TYPES if type != Scalar("boolean")], ids=to_sql)
def test_a_value_outside_of_all_bounds_is_skipped_for_every_type(type):
    values = values_of(type).filter(
        lambda v: v == v and is_short(v) and not (isinstance(v, str) and "\0" in v)
    )

    @settings(max_examples=25)
    @given(st.lists(values, min_size=3, max_size=3, unique_by=lambda value: key_of(value, type)))
    def check(three):
        low, asked, high = sorted(three, key=lambda value: key_of(value, type))
        (column,) = build([ColumnSpec("x", type)])
        tree = parse_predicate(f"x = {certain(asked, type)}", (column,)).tree
        for value, skipped in ((low, True), (asked, False), (high, True)):
            keys = bounds(value, value, type, contains_nan=False)
            stats = ColumnStats(column.id, 1, 0, min_key=keys[0], max_key=keys[1], contains_nan=False)
            assert (skip_reason(tree, FileFacts(1, {column.id: stats})) is not None) == skipped

    check()


WIDENING = [(old, new) for old in TYPES for new in TYPES if old != new and can_widen(old, new)]


@pytest.mark.parametrize(("old", "new"), WIDENING, ids=lambda type: to_sql(type))
def test_keys_of_a_file_stay_right_when_its_column_is_widened(oracle, old, new):
    @settings(max_examples=20)
    @given(values_of(old), st.sampled_from([old, new]).flatmap(lambda t: st.tuples(st.just(t), values_of(t))))
    def check(stored, asked):
        kind, value = asked
        read, wanted = f"({sql_value(stored, old)})", f"({sql_value(value, kind)})"
        query = f"SELECT a < b, a = b FROM (SELECT {read}::{to_sql(new)} a, {wanted}::{to_sql(new)} b)"
        less, same = oracle.execute(query).fetchall()[0]
        assert (key_of(stored, old) < key_of(value, new)) == less
        assert (key_of(stored, old) == key_of(value, new)) == same

    check()


def test_nothing_lies_outside_of_the_unknown_bounds():
    @given(st.sampled_from(TYPES).flatmap(lambda type: st.tuples(st.just(type), values_of(type))))
    def check(pair):
        type, value = pair
        low, high = bounds(value, value, type)
        key = key_of(value, type)
        assert LOWEST <= low <= key <= high < HIGHEST
        assert key.isascii()

    check()
