"""What `merge` was asked to do, read and checked before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forklake.api.assignments import Assignments, new_values
from forklake.data.input import pandas as dataframes
from forklake.data.input.arrow_streams import arrow_rows
from forklake.data.input.lossless import cast_rows, fit
from forklake.data.input.python_values import array_of
from forklake.display import Shown
from forklake.engine.upsert import SOURCE, TARGET, Join
from forklake.errors import ColumnNotFound, DuplicateColumn, InvalidArgument, InvalidData
from forklake.lazy.arrow import pa
from forklake.model.alike import instead
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.names import quoted
from forklake.model.sql.predicate import Predicate, parse_predicate, parse_qualified
from forklake.model.table.columns import Columns, find
from forklake.model.types.arrow import one_array

Matched = str | Assignments
"""`update`, `delete`, `ignore`, or new values by column: `{"n": "target.n + source.n"}`."""
NotMatched = str | Assignments
"""`insert`, `ignore`, or values by column: `{"n": "source.n"}`."""


@dataclass(frozen=True, slots=True)
class RowsMerged(Shown):
    """The row counts of an upsert."""

    updated: int = 0
    deleted: int = 0
    inserted: int = 0


def join_of(data: Any, on: str | Sequence[str], columns: Columns, *, cast: bool = False) -> Join:
    """The rows of the source, with the columns that are the table's in the table's types."""
    names = [on] if isinstance(on, str) else list(on)
    if not names:
        raise InvalidArgument("a merge needs at least one column to join on")
    keys = [find(columns, [name]) for name in names]
    rows = _fitted(data, columns, cast)
    given = {name.lower(): name for name in rows.column_names}
    if len(given) < rows.num_columns:
        raise DuplicateColumn("two columns of the source have one name; case makes no difference")
    known = {column.name: given[column.name.lower()] for column in columns if column.name.lower() in given}
    for key in keys:
        if key.name not in known:
            meant = instead(key.name, rows.column_names)
            raise ColumnNotFound(f'the source has no column "{key.name}" to join on: {meant}')
        if key.children:
            raise InvalidArgument(f'"{key.name}" is nested: join on plain columns')
    return Join(rows, keys, known)


def check_extra(join: Join, columns: Columns, *, may_be_read: bool) -> None:
    """Refuse columns of the source that nothing would read."""
    extra = set(join.rows.column_names) - set(join.names.values())
    if extra and not may_be_read:
        known = ", ".join(column.name for column in columns)
        raise InvalidData(
            f"the source has columns that the table does not have: {', '.join(sorted(extra))}; it has {known}"
        )


def key_range(key: Column, low: str, high: str) -> Predicate:
    """Files outside of the range of a source's keys need not be read; rows are told apart by the join.

    Both bounds are SQL literals.
    """
    name = quoted(key.name)
    predicate = parse_predicate(f"{name} >= {low} AND {name} <= {high}", (key,))
    return replace(predicate, sql="(true)", columns=frozenset())


def matched_values(asked: object, join: Join, columns: Columns) -> dict[str, str] | None:
    """New values of rows that match, as SQL; None if they are left alone or deleted."""
    match asked:
        case "update":
            return {c.name: f"{SOURCE}.{quoted(join.names[c.name])}" for c in columns if c.name in join.names}
        case "delete" | "ignore":
            return None
        case Mapping():
            return values_of(asked, join, columns, (SOURCE, TARGET))
        case _:
            raise InvalidArgument(f"when_matched is update, delete, ignore or new values, not {asked!r}")


def unmatched_values(asked: object, join: Join, columns: Columns) -> dict[str, str] | None:
    """Values of new rows, as SQL; None if there are to be none."""
    match asked:
        case "insert":
            return {c.name: f"{SOURCE}.{quoted(join.names[c.name])}" for c in columns if c.name in join.names}
        case "ignore":
            return None
        case Mapping():
            return values_of(asked, join, columns, (SOURCE,))
        case _:
            raise InvalidArgument(f"when_not_matched is insert, ignore or values, not {asked!r}")


def values_of(
    asked: Mapping[Any, Any], join: Join, columns: Columns, sides: tuple[str, ...]
) -> dict[str, str]:
    """Values by column, as SQL over the sides that are there."""
    if not asked:
        raise InvalidArgument("values for a merge name at least one column")
    return new_values(
        asked,
        columns,
        lambda text: qualified(text, join, columns, sides),
        (lambda column: f"{TARGET}.{quoted(column.name)}") if TARGET in sides else None,
    )


def qualified(text: str, join: Join, columns: Columns, sides: tuple[str, ...]) -> str:
    """An expression over the sides that are there."""
    known = {SOURCE: _source_columns(join, columns), TARGET: columns}
    return parse_qualified(text, {side: known[side] for side in sides})


def _source_columns(join: Join, columns: Columns) -> Columns:
    """The columns of the source; of those that the table does not have, only the names are known."""
    given = {name: column for column in columns if (name := join.names.get(column.name)) is not None}
    return tuple(
        replace(given[name], name=name) if name in given else Column(ColumnId(0), name, "varchar")
        for name in join.rows.column_names
    )


def _fitted(data: Any, columns: Columns, cast: bool) -> pa.Table:
    by_name = {column.name.lower(): column for column in columns}
    if isinstance(data, list | tuple):
        return _from_dicts(list(data), by_name, cast)
    try:
        reader = arrow_rows(data, columns)
        table = pa.table(data) if reader is None else reader.read_all()
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidData(f"no rows can be read from a {type(data).__name__}: {error}") from error
    table = table.drop_columns(list(dataframes.unnamed_index(table.schema, columns)))
    arrays = [
        _one(values, by_name[name.lower()], cast) if name.lower() in by_name else values
        for name, values in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(arrays, names=table.column_names)


def _one(values: pa.ChunkedArray, column: Column, cast: bool) -> pa.Array:
    array = one_array(values)
    return cast_rows(array, column, 0) if cast else fit(array, column)


def _from_dicts(rows: list[Any], by_name: Mapping[str, Column], cast: bool) -> pa.Table:
    if not all(isinstance(row, dict) for row in rows):
        raise InvalidData("the rows of a source are dicts, or Arrow data")
    given = [str(name) for name in rows[0]] if rows else []
    for at, row in enumerate(rows):
        # Nobody could tell whether a value that is missing is to be kept or to become NULL.
        if row.keys() != rows[0].keys():
            differing = sorted(map(str, row.keys() ^ rows[0].keys()))
            raise InvalidData(
                f"row {at} of the source has other columns than row 0 ({', '.join(differing)}): "
                "give every row the same keys, or merge them one after another"
            )
    # No rows have no names, and yet nothing is missing.
    names: Iterable[str] = given or [column.name for column in by_name.values()]
    arrays: dict[str, pa.Array] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        column = by_name.get(name.lower())
        arrays[name] = _unknown(values, name) if column is None else array_of(values, column, cast=cast)
    return pa.table(arrays)


def _unknown(values: list[Any], name: str) -> pa.Array:
    """A column that only expressions know."""
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidData(f'the values of "{name}" in the source are of no single type: {error}') from error
