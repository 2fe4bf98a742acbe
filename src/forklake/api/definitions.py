"""What a catalog holds: schemas, tables, views, comments and tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Unpack

from forklake.api.arrived_rows import FirstRows
from forklake.api.macros import MacroVerbs, check_listed
from forklake.api.scoped import Name
from forklake.api.table import Table
from forklake.commit.draft import Draft, Tagged
from forklake.commit.sort_order import sort_by
from forklake.commit.write_target import check_tag, options_of_schema, set_option, without_options
from forklake.context.scope import look
from forklake.data.input.arrow_streams import Rows
from forklake.data.input.inferred_columns import derived
from forklake.display import Listing
from forklake.engine.check_sql import check_query
from forklake.errors import InvalidArgument, InvalidName
from forklake.model.entities import Schema, TableInfo, ViewInfo
from forklake.model.ids import TableId
from forklake.model.names import QualifiedName, check_name, check_text
from forklake.model.options import Options
from forklake.model.progress import OnProgress
from forklake.model.snapshots import CommitInfo
from forklake.model.sql.ddl import ColumnSource, columns_of
from forklake.model.table.columns import build
from forklake.model.table.partition_and_sort import partition_fields

ObjectKind = Literal["schema", "table", "view", "macro", "macro table"]
"""Of two macros of the same name, `macro` is the expression and `macro table` the query."""


class DefinitionVerbs(MacroVerbs):
    """Verbs on definitions."""

    def __contains__(self, name: object) -> bool:
        """Whether there is a table or a view of this name: `"sales.orders" in catalog`."""
        if not isinstance(name, str | tuple | QualifiedName):
            return False
        try:
            target = QualifiedName.parse(name)
        except InvalidName:
            return False
        return look(self._scope, lambda draft: draft.find_relation(target) is not None, every=True)

    def __iter__(self) -> Iterator[str]:
        """The full names of the tables and views, in order."""

        def names(draft: Draft) -> list[QualifiedName]:
            tables = [QualifiedName(table.schema, table.name) for table in draft.tables()]
            return sorted([*tables, *map(draft.name_of, draft.views())])

        return iter([str(name) for name in look(self._scope, names, every=True)])

    # ---- Schemas ---

    def schemas(self) -> list[Schema]:
        """List the schemas."""
        return look(self._scope, lambda draft: draft.schemas(), every=True)

    def create_schema(self, name: str, *, if_not_exists: bool = False, **info: Unpack[CommitInfo]) -> None:
        """Create a schema."""

        def change(draft: Draft) -> None:
            if not (if_not_exists and draft.find_schema(name) is not None):
                draft.create_schema(name)

        self._scope.with_commit_info(**info).apply(change)

    def rename_schema(self, name: str, new_name: str, **info: Unpack[CommitInfo]) -> None:
        """Rename a schema."""
        self._scope.with_commit_info(**info).apply(
            lambda draft: draft.rename_schema(draft.schema_named(name), new_name)
        )

    def drop_schema(
        self, name: str, *, cascade: bool = False, if_exists: bool = False, **info: Unpack[CommitInfo]
    ) -> None:
        """Drop a schema that is empty, or with `cascade` everything in it."""

        def change(draft: Draft) -> None:
            if not (if_exists and draft.find_schema(name) is None):
                draft.drop_schema(draft.schema_named(name), cascade=cascade)

        self._scope.with_commit_info(**info).apply(change)

    # ---- Tables ---

    def tables(self, *, schema: str | None = None) -> list[TableInfo]:
        """List the tables, or those of one schema."""

        def listed(draft: Draft) -> list[TableInfo]:
            if schema is None:
                return Listing(draft.tables())
            name = draft.schema_named(schema).name
            return Listing(table for table in draft.tables() if table.schema == name)

        return look(self._scope, listed, every=True)

    def table(self, name: Name) -> Table:
        """Open a table."""
        target = QualifiedName.parse(name)
        return Table(self._scope, look(self._scope, lambda draft: draft.table_named(target).id))

    def create_table(
        self,
        name: Name,
        columns: ColumnSource | Rows,
        *,
        partition_by: Sequence[str] = (),
        sorted_by: Sequence[str] = (),
        if_not_exists: bool = False,
        comment: str | None = None,
        append: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> Table:
        """Create a table from an Arrow schema, or from DDL such as `"id BIGINT NOT NULL, note VARCHAR"`.

        `columns` may also be rows, as `Table.append` takes them: the table gets their columns, and with
        `append` the rows themselves, in the same commit.
        """
        target = QualifiedName.parse(name)
        source, data = derived(columns, rows=append)
        specs = columns_of(source)
        built = build(specs)
        first = FirstRows(self._scope.context, data, progress) if append else None
        fields = partition_fields(check_listed(partition_by, "partition fields"), built)
        keys = check_listed(sorted_by, "sort keys")
        if comment is not None:
            check_text(comment, "comment")

        def change(draft: Draft) -> TableId:
            existing = draft.find_table(target) if if_not_exists else None
            if existing is not None:
                return existing.id
            table = draft.create_table(target, built)
            draft.set_partitioning(table, fields)
            sort_by(draft, table, keys)
            if comment is not None:
                draft.set_tag(table, None, "comment", comment)
            for column, spec in zip(built, specs, strict=True):
                if spec.comment is not None:
                    draft.set_tag(table, column.id, "comment", spec.comment)
            if first is not None:
                first.stage(draft, table)
            return table.id

        scope = self._scope.with_commit_info(**info)
        if first is None:
            created, ids = scope.apply(change)
        else:
            created, ids = scope.apply(change, written=first.written, present=not first.lasts)
        return Table(self._scope, TableId(ids(created)))

    def drop_table(self, name: Name, *, if_exists: bool = False, **info: Unpack[CommitInfo]) -> None:
        """Drop a table. Past snapshots still show it."""
        target = QualifiedName.parse(name)

        def change(draft: Draft) -> None:
            if not (if_exists and draft.find_table(target) is None):
                draft.drop_table(draft.table_named(target))

        self._scope.with_commit_info(**info).apply(change)

    # ---- Views ---

    def views(self) -> list[ViewInfo]:
        """List the views."""

        def listed(draft: Draft) -> list[ViewInfo]:
            names = {schema.id: schema.name for schema in draft.schemas()}
            # A schema that was renamed may be gone since, if this state was expired: look again.
            found = [
                ViewInfo(names[view.schema_id], view.name, view.id, view.sql, view.column_aliases)
                for view in draft.views()
                if view.schema_id in names
            ]
            return sorted(found, key=lambda view: (view.schema, view.name))

        return look(self._scope, listed, every=True)

    def create_view(
        self,
        name: Name,
        sql: str,
        *,
        columns: Sequence[str] = (),
        or_replace: bool = False,
        **info: Unpack[CommitInfo],
    ) -> None:
        """Create a view: one query in DuckDB SQL; `columns` renames its columns.

        The query is parsed, not run: the tables that it reads may be created later.
        """
        target = QualifiedName.parse(name, "view")
        aliases = tuple(check_name(column, "column") for column in check_listed(columns, "columns of a view"))
        check_query(check_text(sql, "view's SQL"), f'the SQL of view "{target}"')
        self._scope.with_commit_info(**info).apply(
            lambda draft: draft.create_view(target, sql, aliases=aliases, or_replace=or_replace)
        )

    def rename_view(self, name: Name, new_name: Name, **info: Unpack[CommitInfo]) -> None:
        """Rename a view. A name without a schema keeps its schema."""

        def change(draft: Draft) -> None:
            view = draft.view_named(QualifiedName.parse(name, "view"))
            draft.rename_view(view, QualifiedName.parse(new_name, "view", schema=draft.name_of(view).schema))

        self._scope.with_commit_info(**info).apply(change)

    def drop_view(self, name: Name, *, if_exists: bool = False, **info: Unpack[CommitInfo]) -> None:
        """Drop a view."""
        target = QualifiedName.parse(name, "view")

        def change(draft: Draft) -> None:
            if not (if_exists and draft.find_view(target) is None):
                draft.drop_view(draft.view_named(target))

        self._scope.with_commit_info(**info).apply(change)

    # ---- Options of a schema ---

    def set_schema_option(self, schema: str, name: str, value: object, **info: Unpack[CommitInfo]) -> None:
        """Set an option for tables of a schema that have none of their own; None takes the lake's."""
        self._scope.with_commit_info(**info).apply(
            lambda draft: set_option(draft, draft.schema_named(schema), name, value)
        )

    def schema_options(self, schema: str) -> Options:
        """The options that apply to tables of a schema that have none of their own."""
        options = self._scope.context.options
        return look(
            self._scope,
            lambda draft: options_of_schema(draft, draft.schema_named(schema), options),
            every=True,
        )

    # ---- Comments and tags ---

    def tags(self, kind: ObjectKind, name: Name) -> dict[str, str]:
        """The tags of a schema, table, view or macro; its comment is the tag `comment`."""
        return look(
            self._scope,
            lambda draft: without_options(draft.tags(_object(draft, kind, name).id)),
            every=True,
        )

    def set_tag(
        self, kind: ObjectKind, name: Name, key: str, value: str | None, **info: Unpack[CommitInfo]
    ) -> None:
        """Tag a schema, table, view or macro; None removes the tag."""
        check_name(key, "tag")
        check_tag(key)
        self._scope.with_commit_info(**info).apply(
            lambda draft: draft.set_tag(_object(draft, kind, name), None, key, value)
        )

    def comment(self, kind: ObjectKind, name: Name, text: str | None, **info: Unpack[CommitInfo]) -> None:
        """Comment on a schema, table, view or macro; None removes the comment."""
        self.set_tag(kind, name, "comment", text, **info)


def _object(draft: Draft, kind: ObjectKind, name: Name) -> Tagged:
    match kind:
        case "schema":
            return draft.schema_named(check_name(name, "schema"))
        case "table":
            return draft.table_named(QualifiedName.parse(name))
        case "view":
            return draft.view_named(QualifiedName.parse(name, "view"))
        case "macro":
            return draft.macro_named(QualifiedName.parse(name, "macro"))
        case "macro table":
            return draft.macro_named(QualifiedName.parse(name, "macro"), "table")
        case _:
            raise InvalidArgument(f"a {kind} has no tags: schemas, tables, views and macros do")
