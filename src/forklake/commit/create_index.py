"""New indexes, as users ask for them: their columns by name, and what their kind makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from forklake.commit.draft import Draft
from forklake.errors import InvalidArgument, InvalidIndex
from forklake.index.registry import kind_of
from forklake.model.entities import Column, Table
from forklake.model.index import Index, IndexInfo, IndexSpec, Maintenance, Parameter
from forklake.model.names import check_name
from forklake.model.table.columns import ColumnPath, find


def create_index(
    draft: Draft,
    table: Table,
    name: str,
    kind: str,
    columns: Sequence[ColumnPath],
    include: Sequence[ColumnPath] = (),
    maintain: Maintenance | None = None,
    params: Mapping[str, object] | None = None,
) -> Index:
    """Stage an index that its kind has checked. No file is read: its segments are built later."""
    if maintain not in (None, "commit", "later"):
        raise InvalidArgument(f'an index is maintained at "commit" or "later", not {maintain!r}')
    offered = kind_of(check_name(kind, "kind of index"))
    keys, others = _columns(table, columns, "columns"), _columns(table, include, "include")
    if not keys:
        raise InvalidIndex("an index is of at least one column: name it in columns")
    twice = {column.id for column in keys} & {column.id for column in others}
    if twice:
        named = next(column.name for column in others if column.id in twice)
        raise InvalidIndex(f'column "{named}" is among the columns of the index: it need not be included')
    checked = offered.check(IndexSpec(kind, keys, others, _parameters(params or {})))
    return draft.create_index(
        table,
        name,
        kind,
        tuple(column.id for column in keys),
        tuple(column.id for column in others),
        maintain or offered.maintain,
        checked,
    )


def _columns(table: Table, names: Sequence[ColumnPath], what: str) -> tuple[Column, ...]:
    if not isinstance(names, list | tuple):
        raise InvalidArgument(f"{what} of an index are given as a list, not as {type(names).__name__}")
    found: list[Column] = []
    for name in names:
        column = find(table.columns, name)
        if all(column is not top for top in table.columns):
            raise InvalidIndex(f'"{column.name}" is inside a column: an index is of columns as a whole')
        if column in found:
            raise InvalidIndex(f'column "{column.name}" is named twice')
        found.append(column)
    return tuple(found)


def _parameters(given: Mapping[str, object]) -> dict[str, Parameter]:
    checked: dict[str, Parameter] = {}
    for name, value in given.items():
        if not (value is None or isinstance(value, bool | int | float | str)) or _is_endless(value):
            raise InvalidArgument(
                f"parameters of an index are numbers, text, true or false: {name} is {type(value).__name__}"
            )
        checked[name] = value
    return checked


def _is_endless(value: Parameter) -> bool:
    """Whether JSON has no way to write a number."""
    return isinstance(value, float) and not isfinite(value)


def index_info(draft: Draft, table: Table, index: Index) -> IndexInfo:
    """An index as a listing shows it, with the present names of its columns."""
    names = {column.id: column.name for column in table.columns}
    place = draft.name_of(table)
    return IndexInfo(
        place.schema,
        place.name,
        index.name,
        index.kind,
        tuple(names[column] for column in index.keys if column in names),
        tuple(names[column] for column in index.include if column in names),
        index.maintain,
        dict(index.params),
        index.id,
    )
