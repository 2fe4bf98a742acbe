"""Partition keys and sort orders as people write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forklake.errors import InvalidArgument
from forklake.model.names import quoted
from forklake.model.sql.predicate import parse_sort_expression
from forklake.model.table.columns import Columns, find
from forklake.model.table.layout import Direction, Nulls, PartitionField, SortKey
from forklake.model.table.transforms import parse_transform, transform_of

_SORT = re.compile(
    r"""(?P<column>.+?)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\Z""",
    re.IGNORECASE | re.DOTALL,
)


_PLAIN = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_QUOTED = re.compile(r'"(?:[^"]|"")+"\Z')
_LITERAL = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")


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
        raise InvalidArgument("a column or an expression is given twice in the sort order")
    return keys


def _sort_key(text: object, columns: Columns) -> SortKey:
    match = _SORT.match(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise InvalidArgument(f"a sort key is a string such as 'ts DESC NULLS LAST', not {text!r}")
    direction = "DESC" if (match["direction"] or "").upper() == "DESC" else "ASC"
    nulls = "NULLS_FIRST" if (match["nulls"] or "").upper() == "FIRST" else "NULLS_LAST"
    sorted_by = _inside(match["column"])
    name = column_name(sorted_by)
    if name is None and any(column.name == sorted_by for column in columns):
        # As it was taken before there were expressions: a name that needs quotes in SQL.
        name = sorted_by
    if name is not None:
        return SortKey(find(columns, [name]).name, direction, nulls)
    return SortKey(parse_sort_expression(sorted_by, columns)[0], direction, nulls, True)


def stored_sort_key(expression: str, direction: Direction, nulls: Nulls) -> SortKey:
    """A sort key as it is stored."""
    name = column_name(expression)
    if name is None:
        return SortKey(expression, direction, nulls, True)
    return SortKey(name, direction, nulls)


def column_name(text: str) -> str | None:
    """The name, if a text is that of one column and nothing else."""
    if _QUOTED.match(text):
        return text[1:-1].replace('""', '"')
    return text if _PLAIN.match(text) else None


def _inside(text: str) -> str:
    """Without parentheses around all of it."""
    while text.startswith("(") and text.endswith(")"):
        inner = text[1:-1].strip()
        if not inner or not _is_balanced(inner):
            break
        text = inner
    return text


def _is_balanced(text: str) -> bool:
    """Whether no parenthesis is closed that was not opened; of texts and names in quotes nothing counts."""
    depth = 0
    for character in _LITERAL.sub("", text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return not depth


def show_sort_key(key: SortKey) -> str:
    """A sort key as people write it."""
    return f"{written_sort_key(key)} {key.direction} {key.nulls.replace('_', ' ')}"


def written_sort_key(key: SortKey) -> str:
    """What a sort key is sorted by, as it is stored and shown."""
    return key.name if key.is_expression else _written(key.name)


def _written(column: str) -> str:
    """Quoted where it could be read as something else."""
    return column if _PLAIN.match(column) else quoted(column)
