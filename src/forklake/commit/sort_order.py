"""Sort orders of tables: what they need of a catalog, and whether rows can be sorted by them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from forklake.commit.draft import Draft
from forklake.data.parquet.row_order import check_macro, check_order
from forklake.model.alike import fold
from forklake.model.entities import Macro, Table
from forklake.model.names import quoted
from forklake.model.sql.macro_sql import create_macro
from forklake.model.table.layout import SortKey
from forklake.model.table.partition_and_sort import sort_keys

_CALL = re.compile(r"""'(?:[^']|'')*'|("(?:[^"]|"")+"|[A-Za-z_]\w*)\s*\(""")
"""A name before a parenthesis, but for those that stand in a text."""


def sort_by(draft: Draft, table: Table, texts: Sequence[str]) -> None:
    """Stage another sort order, if rows of the table can be sorted by it."""
    keys = sort_keys(texts, table.columns)
    check_order(table.columns, keys, macros_for(draft, table, keys))
    draft.set_sort_order(table, keys)


def macros_for(draft: Draft, table: Table, keys: Sequence[SortKey]) -> tuple[str, ...]:
    """The macros of the catalog that a sort order calls, as statements; those that others need come first."""
    called = [name for key in keys if key.is_expression for name in _calls(key.name)]
    return tuple(_made(called, _macros(draft, table), set())) if called else ()


def _macros(draft: Draft, table: Table) -> dict[str, Macro]:
    """The macros that need no schema in a table's sort order: those beside it, and then those of main."""
    found: dict[str, Macro] = {}
    names = {schema.id: schema.name for schema in draft.schemas()}
    for macro in draft.macros():
        if macro.kind == "table":
            # One that returns rows is none that a row has a value of.
            continue
        beside = macro.schema_id == table.schema_id
        if beside or (names[macro.schema_id] == "main" and fold(macro.name) not in found):
            found[fold(macro.name)] = macro
    return found


def _made(called: Sequence[str], known: dict[str, Macro], seen: set[str]) -> Iterator[str]:
    for name in called:
        macro = known.get(fold(name))
        if macro is None or fold(name) in seen:
            continue
        seen.add(fold(name))
        bodies = [overload.sql for overload in macro.implementations if overload.kind != "table"]
        if len(bodies) < len(macro.implementations):
            continue
        for body in bodies:
            check_macro(body, f'macro "{macro.name}"')
            yield from _made(list(_calls(body)), known, seen)
        yield create_macro(quoted(macro.name), macro, bodies, temporary=True)


def _calls(sql: str) -> Iterator[str]:
    for match in _CALL.finditer(sql):
        name = match[1]
        if name is not None:
            yield name[1:-1].replace('""', '"') if name.startswith('"') else name
