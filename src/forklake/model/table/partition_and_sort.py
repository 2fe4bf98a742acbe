"""Partition keys and sort orders as people write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forklake.errors import InvalidArgument
from forklake.model.names import quoted
from forklake.model.table.columns import Columns, find
from forklake.model.table.layout import PartitionField, SortKey
from forklake.model.table.transforms import parse_transform, transform_of

_SORT = re.compile(
    r"""(?P<column>"(?:[^"]|"")+"|.+?)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\Z""",
    re.IGNORECASE,
)


_PLAIN = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


def check_list(items: object, what: str) -> None:
    """Refuse a single text, which would be read letter by letter."""
    if not isinstance(items, list | tuple):
        raise InvalidArgument(f"the {what} are given as a list, not as {type(items).__name__}")


def partition_fields(texts: Sequence[str], columns: Columns) -> tuple[PartitionField, ...]:
    """Read a partition key."""
    fields = tuple(parse_transform(text, columns) for text in texts)
    if len(set(fields)) < len(fields):
        raise InvalidArgument("a partition field is given twice")
    return fields


def show_transform(field: PartitionField, column: str) -> str:
    """A partition field as people write it."""
    name, buckets = transform_of(field)
    column = _written(column)
    if name == "identity":
        return column
    return f"bucket({buckets}, {column})" if name == "bucket" else f"{name}({column})"


def sort_keys(texts: Sequence[str], columns: Columns) -> tuple[SortKey, ...]:
    """Read a sort order."""
    keys = tuple(_sort_key(text, columns) for text in texts)
    if len({key.name for key in keys}) < len(keys):
        raise InvalidArgument("a column is given twice in the sort order")
    return keys


def _sort_key(text: object, columns: Columns) -> SortKey:
    match = _SORT.match(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise InvalidArgument(f"a sort key is text such as 'ts DESC NULLS LAST', not {text!r}")
    name = match["column"]
    column = find(columns, [name[1:-1].replace('""', '"')] if name.startswith('"') else [name])
    if column.children:
        raise InvalidArgument(f'"{column.name}" is nested: rows are sorted by plain columns')
    direction = "DESC" if (match["direction"] or "").upper() == "DESC" else "ASC"
    nulls = "NULLS_FIRST" if (match["nulls"] or "").upper() == "FIRST" else "NULLS_LAST"
    return SortKey(column.name, direction, nulls)


def show_sort_key(key: SortKey) -> str:
    """A sort key as people write it."""
    return f"{_written(key.name)} {key.direction} {key.nulls.replace('_', ' ')}"


def _written(column: str) -> str:
    """Quoted where it could be read as something else."""
    return column if _PLAIN.match(column) else quoted(column)
