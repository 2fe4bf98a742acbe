"""What a commit did, as `snapshots` of DuckLake shows it: names and ids by what was done to them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forklake.engine.canonical_sql import written_name

_QUOTED = r'"(?:[^"]|"")*"'
_ENTRY = re.compile(rf"(\w+):({_QUOTED}(?:\.{_QUOTED})*|-?\d+)")
_NAME = re.compile(_QUOTED)

_KEYS = {
    "created_schema": "schemas_created",
    "dropped_schema": "schemas_dropped",
    "created_table": "tables_created",
    "created_view": "views_created",
    "created_scalar_macro": "scalar_macros_created",
    "created_table_macro": "table_macros_created",
    "dropped_table": "tables_dropped",
    "altered_table": "tables_altered",
    "inserted_into_table": "tables_inserted_into",
    "deleted_from_table": "tables_deleted_from",
    "dropped_view": "views_dropped",
    "dropped_scalar_macro": "scalar_macros_dropped",
    "dropped_table_macro": "table_macros_dropped",
    "altered_view": "views_altered",
    "inlined_insert": "inlined_insert",
    "inlined_delete": "inlined_delete",
    "inline_flush": "flushed_inlined",
    "merge_adjacent": "merge_adjacent",
    "rewrite_delete": "rewrite_delete",
    "altered_schema": "schemas_altered",
    "altered_macro": "macros_altered",
    "restored_table": "tables_restored",
}
"""DuckLake's keys in its order, then those of what only forklake knows; others keep the name they have."""


def changes_made(notation: str) -> dict[str, list[str]]:
    """The entries of DuckLake's notation by what they are."""
    found: dict[str, list[str]] = {}
    for word, what in _entries(notation):
        if word == "created_catalog":
            # Every catalog begins so, and the list is of one.
            continue
        listed = found.setdefault(_KEYS.get(word, word), [])
        if what not in listed:
            listed.append(what)
    order = {key: place for place, key in enumerate(_KEYS.values())}
    return {key: found[key] for key in sorted(found, key=lambda key: order.get(key, len(order)))}


def _entries(notation: str) -> Iterator[tuple[str, str]]:
    for word, what in _ENTRY.findall(notation):
        names = [name[1:-1].replace('""', '"') for name in _NAME.findall(what)]
        match names:
            case []:
                yield word, what
            case [name]:
                yield word, name
            case _:
                yield word, ".".join(map(written_name, names))
