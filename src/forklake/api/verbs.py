"""The verbs that a catalog and a transaction share; each takes effect where its scope says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar, Unpack, cast

from forklake.api.handle import Handle
from forklake.api.rows import FirstRows
from forklake.api.table import Table
from forklake.api.undo import undo_commit
from forklake.commit.draft import Draft, Tagged
from forklake.commit.flush_inlined import write_inlined
from forklake.commit.restore import dropped_table, restore_all, restore_table
from forklake.commit.write_target import check_tag, output_for, without_options
from forklake.compact.compaction import (
    CompactResult,
    Planner,
    Progress,
    commit_rewrites,
    compact_all,
    compact_one,
    filling,
    merging,
    planned,
)
from forklake.compact.plan import Rewrite
from forklake.compact.run import Rewritten
from forklake.context.lake_context import Workbench
from forklake.context.scope import Ids, Scope
from forklake.data.input.batches import Rows
from forklake.data.input.inferred_columns import derived
from forklake.engine.check_sql import check_expression, check_query
from forklake.errors import InvalidArgument, InvalidName
from forklake.model.entities import (
    MacroImpl,
    MacroInfo,
    MacroParameter,
    Schema,
    TableInfo,
    ViewInfo,
)
from forklake.model.ids import TableId
from forklake.model.names import QualifiedName, check_name, check_text
from forklake.model.snapshots import CommitInfo
from forklake.model.sql.ddl import ColumnSource, columns_of
from forklake.model.table.columns import build
from forklake.model.table.partition_and_sort import partition_fields, sort_keys
from forklake.store.read_catalogs import Moment, moment_of

T = TypeVar("T")

Name = str | tuple[str, str] | QualifiedName
"""`orders`, `sales.orders`, `'"odd.schema"."t"'`, or a (schema, name) pair. The schema defaults to `main`."""
ObjectKind = Literal["schema", "table", "view", "macro"]


class CatalogVerbs(Handle):
    """Reading and changing what a catalog holds."""

    name: str

    def read(self) -> Draft:
        """The catalog as it is to be seen now."""
        raise NotImplementedError

    def __contains__(self, name: object) -> bool:
        """Whether there is a table or a view of this name: `"sales.orders" in catalog`."""
        if not isinstance(name, str | tuple | QualifiedName):
            return False
        try:
            target = QualifiedName.parse(name)
        except InvalidName:
            return False
        draft = self.read()
        return draft.find_table(target) is not None or draft.find_view(target) is not None

    def __iter__(self) -> Iterator[str]:
        """The full names of the tables and views, in order."""
        draft = self.read()
        names = [QualifiedName(table.schema, table.name) for table in draft.tables()]
        return iter([str(name) for name in sorted([*names, *map(draft.name_of, draft.views())])])

    @property
    def workbench(self) -> Workbench:
        """What verbs work with: the storage, the engine and the settings of the lake."""
        raise NotImplementedError

    def at(self, moment: Moment) -> Scope:
        """The catalog as it was at a snapshot or a time, for reading."""
        raise NotImplementedError

    def with_commit_info(self, **info: Unpack[CommitInfo]) -> CatalogVerbs:
        """The same, with an author, a message and extra info for its commits."""
        raise NotImplementedError

    def apply(
        self, change: Callable[[Draft], T], *, written: list[str] | None = None, present: bool = False
    ) -> tuple[T, Ids]:
        """Change the catalog; returns what the change returned, and the ids that new objects got."""
        raise NotImplementedError

    # ---- Schemas ---

    def schemas(self) -> list[Schema]:
        """Every schema."""
        return self.read().schemas()

    def create_schema(self, name: str, *, if_not_exists: bool = False, **info: Unpack[CommitInfo]) -> None:
        """Create a schema."""

        def change(draft: Draft) -> None:
            if not (if_not_exists and any(schema.name == name for schema in draft.schemas())):
                draft.create_schema(name)

        self.with_commit_info(**info).apply(change)

    def rename_schema(self, name: str, new_name: str, **info: Unpack[CommitInfo]) -> None:
        """Give a schema another name."""
        self.with_commit_info(**info).apply(
            lambda draft: draft.rename_schema(draft.schema_named(name), new_name)
        )

    def drop_schema(
        self, name: str, *, cascade: bool = False, if_exists: bool = False, **info: Unpack[CommitInfo]
    ) -> None:
        """Drop a schema that is empty, or with `cascade` everything in it."""

        def change(draft: Draft) -> None:
            if not (if_exists and all(schema.name != name for schema in draft.schemas())):
                draft.drop_schema(draft.schema_named(name), cascade=cascade)

        self.with_commit_info(**info).apply(change)

    # ---- Tables ---

    def tables(self, *, schema: str | None = None) -> list[TableInfo]:
        """Every table, or those of one schema."""
        draft = self.read()
        if schema is None:
            return draft.tables()
        name = draft.schema_named(schema).name
        return [table for table in draft.tables() if table.schema == name]

    def table(self, name: Name) -> Table:
        """The handle on a table."""
        return Table(self, self.read().table_named(QualifiedName.parse(name)).id)

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
        **info: Unpack[CommitInfo],
    ) -> Table:
        """Create a table from an Arrow schema, or from DDL such as `"id BIGINT NOT NULL, note VARCHAR"`.

        Rows, as `Table.append` takes them, will do as well: the table gets their columns, and with `append`
        the rows themselves, in the same commit.
        """
        target = QualifiedName.parse(name)
        source, data = derived(columns, rows=append)
        specs = columns_of(source)
        built = build(specs)
        first = FirstRows(self.workbench, data) if append else None
        fields = partition_fields(_listed(partition_by, "partition fields"), built)
        keys = sort_keys(_listed(sorted_by, "sort keys"), built)
        if comment is not None:
            check_text(comment, "comment")

        def change(draft: Draft) -> TableId:
            existing = draft.find_table(target) if if_not_exists else None
            if existing is not None:
                return existing.id
            table = draft.create_table(target, built)
            draft.set_partitioning(table, fields)
            draft.set_sort_order(table, keys)
            if comment is not None:
                draft.set_tag(table, None, "comment", comment)
            for column, spec in zip(built, specs, strict=True):
                if spec.comment is not None:
                    draft.set_tag(table, column.id, "comment", spec.comment)
            if first is not None:
                first.stage(draft, table)
            return table.id

        told = self.with_commit_info(**info)
        if first is None:
            created, ids = told.apply(change)
        else:
            created, ids = told.apply(change, written=first.written, present=not first.lasts)
        return Table(self, TableId(ids(created)))

    def flush_inlined(self, table: Name | None = None, **info: Unpack[CommitInfo]) -> int:
        """Move rows that live in the metadata database into Parquet files, of one table or of all.

        Nobody sees a difference: the rows keep their ids and the snapshots that inserted them. Returns how
        many there were.
        """
        workbench = self.workbench

        def change(draft: Draft) -> int:
            if table is None:
                tables = [draft.table(number) for number in draft.inlined_tables()]
            else:
                tables = [draft.table_named(QualifiedName.parse(table))]
            # All are written before any is staged, so that a failure leaves a transaction as it was.
            written = [
                write_inlined(
                    draft,
                    found,
                    output_for(draft, found, workbench.storage, workbench.options, draft.written),
                )
                for found in tables
            ]
            flushes = [flush for flush in written if flush is not None]
            for flush in flushes:
                flush.stage(draft)
            return sum(flush.count for flush in flushes)

        return self.with_commit_info(**info).apply(change)[0]

    def compact(
        self,
        table: Name | None = None,
        *,
        min_files: int = 2,
        dry_run: bool = False,
        progress: Progress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CompactResult:
        """Merge small files, and move inlined rows into files, of one table or of all.

        Files are merged within partitions, in the sort order of the table, where there are at least
        `min_files`. No row changes: ids, the change feed and older snapshots stay what they were. Every table
        is a commit of its own. Others may write meanwhile; what they touch is planned again.
        """
        planner = merging(min_files)
        return self._compact(table, planner, info, dry_run=dry_run, progress=progress)

    def rewrite_deletes(
        self,
        table: Name | None = None,
        threshold: float = 0.95,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CompactResult:
        """Rewrite files that have lost at least such a share of their rows, of one table or of all."""
        table, threshold = table_first(table, threshold)
        planner = filling(threshold)
        return self._compact(table, planner, info, dry_run=dry_run, progress=progress)

    def plan_compaction(self, table: Name, *, min_files: int = 2) -> tuple[Rewrite, ...]:
        """What `compact` would do to a table, as values that can be run anywhere."""
        draft = self.read()
        found = draft.table_named(QualifiedName.parse(table))
        return planned(draft, found.id, self.workbench, merging(min_files))

    def plan_rewrite_deletes(self, table: Name, threshold: float = 0.95) -> tuple[Rewrite, ...]:
        """What `rewrite_deletes` would do to a table, as values that can be run anywhere."""
        draft = self.read()
        found = draft.table_named(QualifiedName.parse(table))
        return planned(draft, found.id, self.workbench, filling(threshold))

    def commit_rewrites(self, done: Sequence[Rewritten], **info: Unpack[CommitInfo]) -> CompactResult:
        """Let files that were rewritten elsewhere take the place of the old ones.

        Where somebody has touched an old file since, the new ones come too late and count as given up. It is
        safe to try again after a failure: what stands is not committed twice.
        """
        return commit_rewrites(self.with_commit_info(**info), done)

    def _compact(
        self,
        table: Name | None,
        planner: Planner,
        info: CommitInfo,
        *,
        dry_run: bool,
        progress: Progress | None,
    ) -> CompactResult:
        scope = self.with_commit_info(**info)
        if table is None:
            return compact_all(scope, planner, dry_run=dry_run, progress=progress)
        number = self.read().table_named(QualifiedName.parse(table)).id
        return compact_one(scope, number, planner, dry_run=dry_run, progress=progress)

    def drop_table(self, name: Name, *, if_exists: bool = False, **info: Unpack[CommitInfo]) -> None:
        """Drop a table. Older snapshots still show it."""
        target = QualifiedName.parse(name)

        def change(draft: Draft) -> None:
            if not (if_exists and draft.find_table(target) is None):
                draft.drop_table(draft.table_named(target))

        self.with_commit_info(**info).apply(change)

    # ---- Going back ---

    def restore(self, at: Moment, **info: Unpack[CommitInfo]) -> None:
        """Make everything what it was at a snapshot or a time, as one more commit; history stays.

        What was dropped since is back, and what was created since is gone. No file is written: files of the
        past count again. Rows have the ids that they had.
        """
        moment_of(at)
        self.with_commit_info(**info).apply(lambda draft: restore_all(draft, self.at(at).read()))

    def restore_table(
        self, name: Name, at: Moment, *, as_name: Name | None = None, **info: Unpack[CommitInfo]
    ) -> Table:
        """Make a table what it was at a snapshot or a time, when it had this name; it may be gone now.

        One that was dropped is back, under the name that it had or as `as_name`.
        """
        target = QualifiedName.parse(name)
        other = None if as_name is None else QualifiedName.parse(as_name)
        moment_of(at)

        def change(draft: Draft) -> TableId:
            then = self.at(at).read()
            table = then.table_named(target).id
            restore_table(draft, then, table, other)
            return table

        return Table(self, self.with_commit_info(**info).apply(change)[0])

    def undrop_table(self, name: Name, *, as_name: Name | None = None, **info: Unpack[CommitInfo]) -> Table:
        """Bring back the table of a name that was dropped last, as it was then."""
        target = QualifiedName.parse(name)
        other = None if as_name is None else QualifiedName.parse(as_name)

        def change(draft: Draft) -> TableId:
            table, last = dropped_table(draft, target)
            restore_table(draft, self.at(last).read(), table, other)
            return table

        return Table(self, self.with_commit_info(**info).apply(change)[0])

    def undo(self, snapshot: int, **info: Unpack[CommitInfo]) -> None:
        """Take back what one earlier commit did, as one more commit; history stays.

        What it added is gone, what it deleted is back, what it changed is what it was. If something that came
        later is in the way, `CommitConflict` says what. A merge is undone as a whole.
        """
        self.with_commit_info(**info).apply(self._undoing(snapshot))

    def _undoing(self, snapshot: int) -> Callable[[Draft], None]:
        def at(moment: int) -> Draft:
            return self.at(moment).read()

        return lambda draft: undo_commit(draft, snapshot, at, self.workbench)

    # ---- Views ---

    def views(self) -> list[ViewInfo]:
        """Every view."""
        draft = self.read()
        names = {schema.id: schema.name for schema in draft.schemas()}
        found = [ViewInfo(names[v.schema_id], v.name, v.id, v.sql, v.column_aliases) for v in draft.views()]
        return sorted(found, key=lambda view: (view.schema, view.name))

    def create_view(
        self,
        name: Name,
        sql: str,
        *,
        columns: Sequence[str] = (),
        or_replace: bool = False,
        **info: Unpack[CommitInfo],
    ) -> None:
        """Store a query of DuckDB's SQL under a name; `columns` renames what it returns.

        It must be one query that can be parsed. What it reads is not looked at: that may come later.
        """
        target = QualifiedName.parse(name, "view")
        aliases = tuple(check_name(column, "column") for column in _listed(columns, "columns of a view"))
        check_query(check_text(sql, "view's SQL"), f'the SQL of view "{target}"')
        self.with_commit_info(**info).apply(
            lambda draft: draft.create_view(target, sql, aliases=aliases, or_replace=or_replace)
        )

    def rename_view(self, name: Name, new_name: Name, **info: Unpack[CommitInfo]) -> None:
        """Give a view another name. A bare name keeps its schema."""

        def change(draft: Draft) -> None:
            view = draft.view_named(QualifiedName.parse(name, "view"))
            draft.rename_view(view, QualifiedName.parse(new_name, "view", schema=draft.name_of(view).schema))

        self.with_commit_info(**info).apply(change)

    def drop_view(self, name: Name, *, if_exists: bool = False, **info: Unpack[CommitInfo]) -> None:
        """Drop a view."""
        target = QualifiedName.parse(name, "view")

        def change(draft: Draft) -> None:
            if not (if_exists and draft.find_view(target) is None):
                draft.drop_view(draft.view_named(target))

        self.with_commit_info(**info).apply(change)

    # ---- Macros ---

    def macros(self) -> list[MacroInfo]:
        """Every macro with its overloads."""
        draft = self.read()
        names = {schema.id: schema.name for schema in draft.schemas()}
        found = [MacroInfo(names[m.schema_id], m.name, m.id, m.implementations) for m in draft.macros()]
        return sorted(found, key=lambda macro: (macro.schema, macro.name))

    def create_macro(
        self,
        name: Name,
        parameters: Sequence[str | MacroParameter] = (),
        sql: str | None = None,
        *,
        table: bool = False,
        overloads: Sequence[MacroImpl] = (),
        or_replace: bool = False,
        **info: Unpack[CommitInfo],
    ) -> None:
        """Store an expression, or with `table` a query, with parameters; or several as `overloads`.

        DuckDB's SQL must be one expression or query that can be parsed; other dialects are kept as they are.
        """
        target = QualifiedName.parse(name, "macro")
        given = [] if sql is None else [_implementation(sql, parameters, table=table)]
        impls = (*given, *_listed(overloads, "overloads of a macro"))
        if not impls:
            raise InvalidArgument(f'macro "{target}" needs SQL, or overloads')
        for impl in impls:
            _check_implementation(impl, f'the SQL of macro "{target}"')
        self.with_commit_info(**info).apply(
            lambda draft: draft.create_macro(target, impls, or_replace=or_replace)
        )

    def rename_macro(self, name: Name, new_name: Name, **info: Unpack[CommitInfo]) -> None:
        """Give a macro another name. A bare name keeps its schema."""

        def change(draft: Draft) -> None:
            macro = draft.macro_named(QualifiedName.parse(name, "macro"))
            draft.rename_macro(
                macro, QualifiedName.parse(new_name, "macro", schema=draft.name_of(macro).schema)
            )

        self.with_commit_info(**info).apply(change)

    def drop_macro(self, name: Name, *, if_exists: bool = False, **info: Unpack[CommitInfo]) -> None:
        """Drop a macro."""
        target = QualifiedName.parse(name, "macro")

        def change(draft: Draft) -> None:
            if not (if_exists and draft.find_macro(target) is None):
                draft.drop_macro(draft.macro_named(target))

        self.with_commit_info(**info).apply(change)

    # ---- Comments and tags ---

    def tags(self, kind: ObjectKind, name: Name) -> dict[str, str]:
        """The tags of a schema, table, view or macro; its comment is the tag `comment`."""
        draft = self.read()
        return without_options(draft.tags(_object(draft, kind, name).id))

    def set_tag(
        self, kind: ObjectKind, name: Name, key: str, value: str | None, **info: Unpack[CommitInfo]
    ) -> None:
        """Tag a schema, table, view or macro; None removes the tag."""
        check_name(key, "tag")
        check_tag(key)
        self.with_commit_info(**info).apply(
            lambda draft: draft.set_tag(_object(draft, kind, name), None, key, value)
        )

    def comment(self, kind: ObjectKind, name: Name, text: str | None, **info: Unpack[CommitInfo]) -> None:
        """Comment a schema, table, view or macro; None removes the comment."""
        self.set_tag(kind, name, "comment", text, **info)


def table_first(table: Name | float | None, threshold: Name | float) -> tuple[Name | None, float]:
    """Both orders: once, `rewrite_deletes` took the threshold before the table."""
    if not isinstance(table, int | float):
        # What is no share at all is refused by the planner.
        return table, cast("float", threshold)
    return (None if isinstance(threshold, int | float) else threshold), table


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
        case _:
            raise InvalidArgument(f"a {kind} has no tags: schemas, tables, views and macros do")


def _implementation(sql: str, parameters: Sequence[str | MacroParameter], *, table: bool) -> MacroImpl:
    listed = _listed(parameters, "parameters of a macro")
    given = tuple(MacroParameter(item) if isinstance(item, str) else item for item in listed)
    return MacroImpl(sql, given, "table" if table else "scalar")


def _listed(items: Sequence[T], what: str) -> Sequence[T]:
    if not isinstance(items, list | tuple):
        raise InvalidArgument(f"the {what} are given as a list, not as {type(items).__name__}")
    return items


def _check_implementation(impl: object, what: str) -> None:
    if not isinstance(impl, MacroImpl):
        raise InvalidArgument(f"an overload of a macro is a MacroImpl, not {type(impl).__name__}")
    for text in (impl.sql, impl.dialect, impl.kind):
        check_text(text, "macro's SQL")
    for parameter in cast("Sequence[object]", impl.parameters):
        if not isinstance(parameter, MacroParameter):
            raise InvalidArgument(f"a parameter is text or a MacroParameter, not {type(parameter).__name__}")
        check_text(parameter.type, "type of a parameter")
        if parameter.default is not None:
            check_text(parameter.default, "default of a parameter")
    names = [check_name(parameter.name, "parameter").lower() for parameter in impl.parameters]
    if len(set(names)) < len(names):
        raise InvalidArgument(f"a macro has two parameters of one name: {', '.join(names)}")
    if impl.dialect == "duckdb" and impl.kind == "table":
        check_query(impl.sql, what)
    elif impl.dialect == "duckdb":
        check_expression(impl.sql, what)
