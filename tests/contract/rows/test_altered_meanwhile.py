"""Rows on their way into a table that somebody else alters: no value is lost, and none is guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.errors import CommitConflict, ForklakeError
from tests.contract.rows.shown import MANY

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("s", pa.struct([("a", pa.int32())]))])
Alter = Callable[[forklake.Table], object]


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    """A handle that remembers the table as it is before others alter it."""
    table = catalog.create_table("t", "id BIGINT, n INT, s STRUCT(a INT), d INT DEFAULT 1")
    table.append([{"id": -1}])
    return table


@pytest.fixture
def other(table: forklake.Table, reopen) -> forklake.Table:
    return reopen().catalog("main_catalog").table("t")


@pytest.fixture(params=[2, MANY], ids=["inlined", "in files"])
def rows(request: pytest.FixtureRequest) -> pa.Table:
    count = range(request.param)
    return pa.table([list(count), list(count), [{"a": at} for at in count]], schema=SCHEMA)


def streamed(rows: pa.Table, meanwhile: Callable[[], object]) -> pa.RecordBatchReader:
    """A stream in the middle of which something happens."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()
        meanwhile()

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def replace_n(table: forklake.Table) -> None:
    table.drop_column("n")
    table.add_column("n", "VARCHAR", default="'q'")


def replace_field(table: forklake.Table) -> None:
    table.add_column("s.b", "INT")
    table.drop_column("s.a")
    table.add_column("s.a", "VARCHAR")


LOSING: dict[str, Alter] = {
    "drop": lambda t: t.drop_column("n"),
    "drop and add": replace_n,
    "drop a field": lambda t: (t.add_column("s.b", "INT"), t.drop_column("s.a")),
    "drop and add a field": replace_field,
}


@pytest.mark.parametrize("alter", LOSING.values(), ids=LOSING)
def test_values_of_a_column_that_is_dropped_meanwhile_are_refused(
    table: forklake.Table, other: forklake.Table, rows: pa.Table, stored, alter: Alter
) -> None:
    alter(other)
    files = stored()
    with pytest.raises(ForklakeError) as refused:
        table.append(rows)
    with pytest.raises(type(refused.value)) as afterwards:
        other.append(rows)
    assert str(refused.value) == str(afterwards.value)
    assert stored() == files
    assert other.count() == 1


@pytest.mark.parametrize("alter", LOSING.values(), ids=LOSING)
def test_a_stream_with_values_of_a_column_that_is_dropped_meanwhile_is_refused(
    table: forklake.Table, other: forklake.Table, rows: pa.Table, stored, alter: Alter
) -> None:
    files = stored()
    with pytest.raises(
        CommitConflict, match=r"somebody changed the table .*: column \"[na]\" is gone; .* again"
    ):
        table.overwrite(streamed(rows, lambda: alter(other)), "id >= 0")
    assert stored() == files
    assert other.count() == 1


def add_x(table: forklake.Table) -> None:
    table.add_column("x", "INT", default="5")
    table.set_default("x", "7")


def add_x_without_default(table: forklake.Table) -> None:
    table.add_column("x", "INT", default="5")
    table.drop_default("x")


DEFAULTS: dict[str, tuple[Alter, str, Any]] = {
    "another default": (add_x, "x", 7),
    "none any more": (add_x_without_default, "x", None),
    "an expression": (
        lambda t: (t.add_column("x", "INT", default="5"), t.set_default("x", "3 + 4")),
        "x",
        7,
    ),
    "of an old column": (lambda t: t.set_default("d", "2"), "d", 2),
}


@pytest.mark.parametrize(("alter", "name", "value"), DEFAULTS.values(), ids=DEFAULTS)
def test_rows_get_the_defaults_of_the_table_that_they_come_into(
    table: forklake.Table, other: forklake.Table, rows: pa.Table, stored, alter: Alter, name, value
) -> None:
    alter(other)
    assert table.append(rows) == rows.num_rows
    found = table.scan("id >= 0", [name]).to_arrow().column(name).to_pylist()
    assert found == [value] * rows.num_rows
    where = f"{name} IS NULL" if value is None else f"{name} = {value}"
    assert table.scan(f"id >= 0 AND {where}").count() == rows.num_rows
    # What was written for the old table is gone.
    assert sorted(file.path for file in table.files() if file.path is not None) == stored()


@pytest.mark.parametrize("alter", [alter for alter, _, _ in DEFAULTS.values()], ids=DEFAULTS)
def test_a_stream_that_would_have_got_other_defaults_is_refused(
    table: forklake.Table, other: forklake.Table, rows: pa.Table, stored, alter: Alter
) -> None:
    files = stored()
    with pytest.raises(CommitConflict, match=r"column \"[xd]\" has another default"):
        table.append(streamed(rows, lambda: alter(other)))
    assert stored() == files
    assert other.count() == 1


HARMLESS: dict[str, tuple[Alter, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "add": (lambda t: t.add_column("x", "INT"), lambda r: {**r, "x": None}),
    "add with a default": (lambda t: t.add_column("x", "INT", default="5"), lambda r: {**r, "x": 5}),
    "add a field": (
        lambda t: t.add_column("s.b", "INT"),
        lambda r: {**r, "s": {**r["s"], "b": None}},
    ),
    "widen": (lambda t: t.alter_type("n", "BIGINT"), lambda r: r),
    "reorder": (lambda t: t.reorder(["n"]), lambda r: r),
    "rename": (
        lambda t: t.rename_column("n", "number"),
        lambda r: {"number" if k == "n" else k: v for k, v in r.items()},
    ),
    "append": (lambda t: t.append([{"id": -2}]), lambda r: r),
}


@pytest.mark.parametrize(("alter", "expected"), HARMLESS.values(), ids=HARMLESS)
@pytest.mark.parametrize("as_stream", [False, True], ids=["at hand", "stream"])
def test_what_loses_nothing_is_no_reason_to_refuse_rows(
    table: forklake.Table, other: forklake.Table, rows: pa.Table, as_stream: bool, alter: Alter, expected
) -> None:
    if as_stream:
        given: Any = streamed(rows, lambda: alter(other))
    else:
        alter(other)
        given = rows
    assert table.append(given) == rows.num_rows
    found = sorted(table.scan("id >= 0").to_pylist(), key=lambda row: row["id"])
    assert found == [expected({**row, "d": 1}) for row in rows.to_pylist()]


@pytest.mark.parametrize("alter", [LOSING["drop"], replace_n], ids=["drop", "drop and add"])
def test_a_merge_brings_no_values_of_a_column_that_is_dropped_meanwhile(
    table: forklake.Table, other: forklake.Table, rows: pa.Table, alter: Alter
) -> None:
    with pytest.raises(CommitConflict, match='column "n" is gone or another'):
        table.merge(streamed(rows, lambda: alter(other)), "id")
    assert other.count() == 1


def test_a_merge_of_rows_at_hand_is_made_for_the_table_as_it_is(
    table: forklake.Table, other: forklake.Table, rows: pa.Table
) -> None:
    replace_n(other)
    with pytest.raises(ForklakeError) as refused:
        table.merge(rows, "id")
    with pytest.raises(type(refused.value)) as afterwards:
        other.merge(rows, "id")
    assert str(refused.value) == str(afterwards.value)
    add_x(other)
    assert table.merge(rows.drop_columns(["n"]), "id").inserted == rows.num_rows
    assert table.scan("id >= 0 AND x = 7").count() == rows.num_rows
