"""What a transaction did, seen from the entities before and after it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from forklake.model.changes import Change, Verb
from forklake.model.entities import Macro, Schema, Table, Tag, View
from forklake.store.rows import Entity

Pair = tuple[Entity | None, Entity | None]
SchemaName = Callable[[int], str | None]

_VERBS: dict[type, tuple[Verb, Verb, Verb]] = {
    Schema: (Verb.CREATE_SCHEMA, Verb.RENAME_SCHEMA, Verb.DROP_SCHEMA),
    Table: (Verb.CREATE_TABLE, Verb.RENAME_TABLE, Verb.DROP_TABLE),
    View: (Verb.CREATE_VIEW, Verb.RENAME_VIEW, Verb.DROP_VIEW),
    Macro: (Verb.CREATE_MACRO, Verb.RENAME_MACRO, Verb.DROP_MACRO),
}


def changes_of(pairs: Iterable[Pair], schema_name: SchemaName) -> list[Change]:
    """The net changes, in a fixed order: what was undone within the transaction does not show."""
    found = [change for pair in pairs for change in _changes(pair, schema_name)]
    # A comment on what the same commit creates or drops is part of that.
    whole = {
        change.object_id for change in found if change.verb.startswith(("create_", "drop_")) and change.verb != Verb.TAG
    }
    return [change for change in found if change.verb is not Verb.TAG or change.object_id not in whole]


def _changes(pair: Pair, schema_name: SchemaName) -> Iterator[Change]:
    before, after = pair
    entity = after if after is not None else before
    if entity is None:
        return
    if isinstance(entity, Tag):
        if before != after:
            column = "" if entity.column_id is None else entity.column_id
            yield Change(Verb.TAG, entity.object_id, detail=f"{column}:{entity.key}")
        return

    create, rename, drop = _VERBS[type(entity)]
    schema = None if isinstance(entity, Schema) else entity.schema_id
    detail = entity.implementations[0].kind if isinstance(entity, Macro) else None

    def change(verb: Verb) -> Change:
        name = None if schema is None else schema_name(schema)
        return Change(verb, entity.id, schema_id=schema, schema=name, name=entity.name, detail=detail)

    if before is None:
        yield change(create)
    elif after is None:
        yield change(drop)
    else:
        if _place(before) != _place(after):
            yield change(rename)
        if isinstance(before, Table) and isinstance(after, Table) and before.columns != after.columns:
            yield change(Verb.ALTER_TABLE)
            if _newly_required(before, after):
                yield change(Verb.REQUIRE_COLUMN)
        if isinstance(before, View) and isinstance(after, View) and _body(before) != _body(after):
            yield change(Verb.ALTER_VIEW)


def _place(entity: Entity) -> tuple[int | None, str]:
    match entity:
        case Schema():
            return None, entity.name
        case Tag():
            return entity.object_id, entity.key
        case _:
            return entity.schema_id, entity.name


def _newly_required(before: Table, after: Table) -> bool:
    could_be_null = {column.id for column in before.walk() if column.nullable}
    return any(column.id in could_be_null and not column.nullable for column in after.walk())


def _body(view: View) -> tuple[str, str, tuple[str, ...]]:
    return view.sql, view.dialect, view.column_aliases
