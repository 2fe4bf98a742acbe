"""CREATE INDEX and DROP INDEX."""

from __future__ import annotations

from typing import cast

from forklake.commit import create_index as new
from forklake.commit.draft import Draft
from forklake.errors import AmbiguousName, IndexNotFound, InvalidSql, SchemaNotFound, TableNotFound
from forklake.model.alike import alike, fold
from forklake.model.index import Index, Maintenance
from forklake.model.names import QualifiedName
from forklake.sql import statements as st
from forklake.sql.statement import Running

_DEFAULT = "btree"
"""The kind of an index of which none is said, as in PostgreSQL."""


def create_index(statement: st.CreateIndex, running: Running) -> None:
    """Create one. WITH has parameters of its kind, and `maintain`."""
    if statement.unique:
        raise InvalidSql(
            "CREATE UNIQUE INDEX is not supported: nothing keeps two rows from having the same key; "
            "leave UNIQUE out, and insert by MERGE INTO … USING (id)"
        )
    name = running.target(statement.table)
    params = dict(statement.options)
    maintain = cast("Maintenance | None", params.pop("maintain", None))

    def change(draft: Draft) -> None:
        table = draft.table_named(name)
        if statement.if_not_exists and draft.find_index(table, statement.name) is not None:
            return
        new.create_index(
            draft,
            table,
            statement.name,
            statement.kind or _DEFAULT,
            statement.columns,
            statement.include,
            maintain,
            params,
        )

    running.scope.apply(change)


def drop_index(statement: st.DropObject, running: Running) -> None:
    """Drop the index of a table, or the only one of its name that a table of the schema has."""
    target = running.target(statement.name)
    on = None if statement.table is None else running.target(statement.table)

    def change(draft: Draft) -> None:
        try:
            found = (
                _named(draft, target) if on is None else draft.index_named(draft.table_named(on), target.name)
            )
        except (IndexNotFound, TableNotFound, SchemaNotFound):
            if statement.if_exists:
                return
            raise
        draft.drop_index(found)

    running.scope.apply(change)


def _named(draft: Draft, name: QualifiedName) -> Index:
    schema = draft.schema_named(name.schema).name
    tables = {table.id: table.name for table in draft.tables() if table.schema == schema}
    found = [index for index in alike(name.name, draft.all_indexes()) if index.table_id in tables]
    exact = [index for index in found if index.name == name.name]
    if not found:
        raise IndexNotFound(f'no table of schema "{schema}" has an index "{name.name}": see SHOW INDEXES')
    if len(exact or found) > 1:
        shown = sorted((tables[index.table_id] for index in exact or found), key=fold)
        raise AmbiguousName(
            f'{" and ".join(shown)} each have an index "{name.name}": DROP INDEX {name.name} ON {shown[0]}'
        )
    return (exact or found)[0]
