"""DuckDB decides which rows satisfy a predicate; a file may be skipped only if it has none of them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal as Number

import duckdb
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from forklake.model.sql.ddl import ColumnSpec
from forklake.model.sql.predicate import is_one_range, parse_predicate, ranges
from forklake.model.table.columns import build
from forklake.model.table.files import ColumnStats, FileStatistics
from forklake.model.types.data_types import DataType, Scalar, can_promote, to_sql
from forklake.model.types.sort_keys import HIGHEST, LOWEST, Value, bounds, key_of
from forklake.scan.prune import skip_reason
from tests.property.pruning_files import File, lakes, predicates
from tests.property.pruning_values import TYPES, quoted, sql_value, values_of


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


def meets(facts: FileStatistics, low: str, high: str, column) -> bool:
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
            assert (skip_reason(tree, FileStatistics(1, {column.id: stats})) is not None) == skipped

    check()


WIDENING = [(old, new) for old in TYPES for new in TYPES if old != new and can_promote(old, new)]


@pytest.mark.parametrize(("old", "new"), WIDENING, ids=lambda type: to_sql(type))
def test_keys_of_a_file_stay_right_when_its_column_is_widened(oracle, old, new):
    oracle.execute("SET TimeZone = 'UTC'")

    @settings(max_examples=20)
    @given(values_of(old), st.sampled_from([old, new]).flatmap(lambda t: st.tuples(st.just(t), values_of(t))))
    def check(stored, asked):
        kind, value = asked
        read, wanted = f"({sql_value(stored, old)})", f"({sql_value(value, kind)})"
        query = f"SELECT a < b, a = b FROM (SELECT {read}::{to_sql(new)} a, {wanted}::{to_sql(new)} b)"
        less, same = oracle.execute(query).fetchall()[0]
        if new == Scalar("timestamptz") and isinstance(value, datetime) and value.tzinfo is None:
            value = value.replace(tzinfo=UTC)
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
