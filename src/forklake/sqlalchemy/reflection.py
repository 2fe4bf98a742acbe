"""What a catalog holds, as SQLAlchemy asks for it: from the metadata, as the open transaction sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import exc
from sqlalchemy.engine import reflection
from sqlalchemy.engine.default import DefaultDialect

from forklake.model.names import quoted
from forklake.sqlalchemy.types import type_named, type_of

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from forklake.api.table import Table
    from forklake.dbapi import Connection as DriverConnection
    from forklake.model.entities import Column, ViewInfo
    from forklake.sql.session import Session

MAIN = "main"


class Reflection(DefaultDialect):
    """The methods of a dialect that look at what is there."""

    @reflection.cache
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """The schemas of the catalog."""
        return [schema.name for schema in session_of(connection).work.schemas()]

    def has_schema(self, connection: Connection, schema_name: str, **kw: Any) -> bool:
        """Whether there is a schema, whatever its case."""
        return schema_name.lower() in map(str.lower, self.get_schema_names(connection, **kw))

    @reflection.cache
    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """The tables of a schema."""
        wanted = schema or MAIN
        return [table.name for table in session_of(connection).work.tables() if _same(table.schema, wanted)]

    @reflection.cache
    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """The views of a schema."""
        wanted = schema or MAIN
        return [view.name for view in session_of(connection).work.views() if _same(view.schema, wanted)]

    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Whether there is a table or a view."""
        self._ensure_has_table_connection(connection)
        return (
            _table(connection, table_name, schema) is not None
            or _view(connection, table_name, schema) is not None
        )

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """The columns of a table or a view."""
        table = _table(connection, table_name, schema)
        if table is not None:
            return [_described(table, column) for column in table.columns]
        _wanted_view(connection, table_name, schema)
        session = session_of(connection)
        result = session.run(f"FROM {quoted(schema or MAIN)}.{quoted(table_name)} LIMIT 0")
        result.close()
        return [
            {"name": name, "type": type_named(kind), "nullable": True, "default": None}
            for name, kind in zip(result.columns, result.types, strict=True)
        ]

    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        """The query of a view."""
        return _wanted_view(connection, view_name, schema).sql

    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """The comment on a table."""
        table = _table(connection, table_name, schema)
        if table is None:
            _wanted_view(connection, table_name, schema)
            return {"text": None}
        return {"text": table.tags().get("comment")}

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """None: tables have no keys."""
        self._check_there(connection, table_name, schema)
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """None."""
        return self._check_there(connection, table_name, schema)

    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """None."""
        return self._check_there(connection, table_name, schema)

    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """None."""
        return self._check_there(connection, table_name, schema)

    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """None."""
        return self._check_there(connection, table_name, schema)

    def get_temp_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """None."""
        return []

    def get_temp_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """None."""
        return []

    def get_sequence_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[Any]:
        """None."""
        return []

    def has_sequence(
        self, connection: Connection, sequence_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """There is none."""
        return False

    def has_index(
        self,
        connection: Connection,
        table_name: str,
        index_name: str,
        schema: str | None = None,
        **kw: Any,
    ) -> bool:
        """There is none."""
        return False

    def _check_there(self, connection: Connection, name: str, schema: str | None) -> list[Any]:
        """An empty list, of a table or a view that is there."""
        if _table(connection, name, schema) is None:
            _wanted_view(connection, name, schema)
        return []


def session_of(connection: Connection) -> Session:
    """The session behind a connection of SQLAlchemy."""
    driver: DriverConnection = connection.connection.dbapi_connection  # pyright: ignore[reportAssignmentType]
    return driver.session


def _same(name: str, other: str) -> bool:
    return name.lower() == other.lower()


def _table(connection: Connection, name: str, schema: str | None) -> Table | None:
    work = session_of(connection).work
    for found in work.tables():
        if _same(found.schema, schema or MAIN) and _same(found.name, name):
            return work.table((found.schema, found.name))
    return None


def _view(connection: Connection, name: str, schema: str | None) -> ViewInfo | None:
    for view in session_of(connection).work.views():
        if _same(view.schema, schema or MAIN) and _same(view.name, name):
            return view
    return None


def _wanted_view(connection: Connection, name: str, schema: str | None) -> ViewInfo:
    found = _view(connection, name, schema)
    if found is None:
        raise exc.NoSuchTableError(f"{schema}.{name}" if schema else name)
    return found


def _described(table: Table, column: Column) -> dict[str, Any]:
    default = column.default
    text = None
    if default is not None:
        text = default.value if default.kind == "expression" else "'" + default.value.replace("'", "''") + "'"
    return {
        "name": column.name,
        "type": type_of(column.data_type),
        "nullable": column.nullable,
        "default": text,
        "autoincrement": False,
        "comment": table.tags(column=(column.name,)).get("comment"),
    }
