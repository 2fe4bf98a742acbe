"""What a transaction did, seen from the entities before and after it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from forklake.model.changes import SORTED, Change, Verb, tag_detail
from forklake.model.entities import Macro, Schema, Table, Tag, View
from forklake.model.index import Index
from forklake.model.table.layout import Partitioning, SortOrder
from forklake.store.entity_rows import Entity

Pair = tuple[Entity | None, Entity | None]
SchemaName = Callable[[int], str | None]

_VERBS: dict[type, tuple[Verb, Verb, Verb]] = {
    Schema: (Verb.CREATE_SCHEMA, Verb.RENAME_SCHEMA, Verb.DROP_SCHEMA),
    Table: (Verb.CREATE_TABLE, Verb.RENAME_TABLE, Verb.DROP_TABLE),
    View: (Verb.CREATE_VIEW, Verb.RENAME_VIEW, Verb.DROP_VIEW),
    Macro: (Verb.CREATE_MACRO, Verb.RENAME_MACRO, Verb.DROP_MACRO),
}

_WHOLE = frozenset(verb for create, _, drop in _VERBS.values() for verb in (create, drop))
_TAGS = {
    "schema": Verb.TAG_SCHEMA,
    "table": Verb.TAG_TABLE,
    "view": Verb.TAG_VIEW,
    "macro": Verb.TAG_MACRO,
}


def changes_of(pairs: Iterable[Pair], schema_name: SchemaName) -> list[Change]:
    """The net changes, in a fixed order: what was undone within the transaction does not show."""
    found = [change for pair in pairs for change in _changes(pair, schema_name)]
    # A comment on what the same commit creates or drops is part of that.
    whole = {change.object_id for change in found if change.verb in _WHOLE}
    kept = [change for change in found if change.verb in _WHOLE or change.object_id not in whole]
    altered = {(change.verb, change.object_id) for change in kept if change.detail != SORTED}
    kept = [one for one in kept if one.detail != SORTED or (one.verb, one.object_id) not in altered]
    return list(dict.fromkeys(kept))


def _changes(pair: Pair, schema_name: SchemaName) -> Iterator[Change]:
    before, after = pair
    entity = after if after is not None else before
    match entity:
        case None | Index():
            # Told with the name of its table.
            pass
        case Tag():
            detail = tag_detail(entity.column_id, entity.key)
            verb = _TAGS[entity.kind] if entity.column_id is None else Verb.TAG_COLUMN
            yield Change(verb, entity.object_id, name=entity.label, detail=detail)
        case Partitioning():
            yield Change(Verb.ALTER_TABLE, entity.table_id)
        case SortOrder():
            yield Change(Verb.ALTER_TABLE, entity.table_id, detail=SORTED)
        case Schema():
            yield from (Change(verb, entity.id, name=entity.name) for verb in _verbs(before, after))
        case _:
            schema = schema_name(entity.schema_id)
            detail = entity.kind if isinstance(entity, Macro) else None
            for verb in _verbs(before, after):
                yield Change(verb, entity.id, entity.schema_id, schema, entity.name, detail)


def _verbs(before: Entity | None, after: Entity | None) -> Iterator[Verb]:
    """What happened to an object of which this is before and after."""
    match before, after:
        case (None, Schema() | Table() | View() | Macro()):
            yield _VERBS[type(after)][0]
        case (Schema() | Table() | View() | Macro(), None):
            yield _VERBS[type(before)][2]
        case (Schema() | Table() | View() | Macro(), Schema() | Table() | View() | Macro()):
            if _place(before) != _place(after):
                yield _VERBS[type(after)][1]
            yield from _reshaped(before, after)
        case _:
            pass


def _reshaped(before: Entity, after: Entity) -> Iterator[Verb]:
    match before, after:
        case Table(), Table() if before.columns != after.columns:
            yield Verb.ALTER_TABLE
            could_be_null = {column.id for column in before.walk() if column.nullable}
            if any(column.id in could_be_null and not column.nullable for column in after.walk()):
                yield Verb.REQUIRE_COLUMN
        case View(), View() if replace(before, name=after.name, schema_id=after.schema_id) != after:
            yield Verb.ALTER_VIEW
        case _:
            pass


def _place(entity: Schema | Table | View | Macro) -> tuple[int | None, str]:
    return (None if isinstance(entity, Schema) else entity.schema_id), entity.name
