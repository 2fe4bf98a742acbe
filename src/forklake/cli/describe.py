"""What `forklake describe` shows: a table with its columns, read in one go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forklake.api.catalog import Catalog
from forklake.api.scoped import Name, scope_of
from forklake.api.table import partitioning_of, sort_order_of
from forklake.api.transaction import Transaction
from forklake.cli.render import Output, cell, terminal, to_plain, write_json, write_record, write_table
from forklake.commit.create_index import index_info
from forklake.model.entities import Column
from forklake.model.index import IndexInfo
from forklake.model.names import QualifiedName
from forklake.model.types.data_types import to_sql


@dataclass(frozen=True, slots=True)
class ColumnDefault:
    """What an insert puts into a column that it does not name."""

    value: str
    kind: str


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """A column, or a field nested in one."""

    name: str
    type: str
    nullable: bool
    default: ColumnDefault | None
    comment: str | None
    tags: Mapping[str, str]
    id: int
    children: tuple[ColumnDescription, ...]


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table."""

    schema: str
    name: str
    id: int
    uuid: str
    comment: str | None
    tags: Mapping[str, str]
    partitioning: tuple[str, ...]
    """What new files are partitioned by, such as `day(ts)`."""
    sort_order: tuple[str, ...]
    indexes: tuple[IndexInfo, ...]
    columns: tuple[ColumnDescription, ...]


def describe_table(catalog: Catalog | Transaction, name: Name) -> TableDescription:
    """Everything about a table, as of one snapshot."""
    draft = scope_of(catalog).read()
    table = draft.table_named(QualifiedName.parse(name))
    tags = dict(draft.tags(table.id))
    column_tags = draft.column_tags(table.id)
    return TableDescription(
        schema=draft.name_of(table).schema,
        name=table.name,
        id=table.id,
        uuid=table.uuid,
        comment=tags.pop("comment", None),
        tags=tags,
        partitioning=partitioning_of(draft, table),
        sort_order=sort_order_of(draft, table),
        indexes=tuple(index_info(draft, table, index) for index in draft.indexes(table)),
        columns=tuple(_column(column, column_tags) for column in table.columns),
    )


def _column(column: Column, all_tags: Mapping[Any, Mapping[str, str]]) -> ColumnDescription:
    tags = dict(all_tags.get(column.id, {}))
    default = column.default
    return ColumnDescription(
        name=column.name,
        type=to_sql(column.data_type),
        nullable=column.nullable,
        default=None if default is None else ColumnDefault(default.value, default.kind),
        comment=tags.pop("comment", None),
        tags=tags,
        id=column.id,
        children=tuple(_column(child, all_tags) for child in column.children),
    )


def render_description(table: TableDescription, output: Output) -> None:
    """Print a table; in text, nested fields stand below their column, further to the right."""
    plain = to_plain(table)
    if output is Output.JSON:
        write_json(plain)
        return
    columns = plain.pop("columns")
    listed = {name: ", ".join(plain[name]) or None for name in ("partitioning", "sort_order")}
    listed["indexes"] = ", ".join(map(_index, plain["indexes"])) or None
    write_record(plain | listed | {"tags": plain["tags"] or None})
    terminal().print()
    write_table([line for column in columns for line in _lines(column, 0)])


def _index(index: dict[str, Any]) -> str:
    include = f" INCLUDE ({', '.join(index['include'])})" if index["include"] else ""
    return f"{index['name']} {index['kind']} ({', '.join(index['columns'])}){include}"


def _lines(column: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    children = column["children"]
    yield {
        "column": "  " * depth + cell(column["name"]),
        # The fields below say the rest of a nested type.
        "type": _kind(column["type"]) if children else column["type"],
        "nullable": column["nullable"],
        "default": _shown(column["default"]),
        "comment": column["comment"],
        "tags": column["tags"] or None,
        "id": column["id"],
    }
    for child in children:
        yield from _lines(child, depth + 1)


def _kind(type: str) -> str:
    return "LIST" if type.endswith("[]") else type.partition("(")[0]


def _shown(default: dict[str, str] | None) -> str | None:
    """A literal stands in quotes, an expression does not."""
    if default is None:
        return None
    if default["kind"] == "expression":
        return default["value"]
    return "'" + default["value"].replace("'", "''") + "'"
