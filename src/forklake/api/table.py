"""The handle on one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from forklake.api.indexes import IndexVerbs
from forklake.api.notebook import shown, table_html
from forklake.api.rows import RowVerbs
from forklake.api.table_statistics import TableFile, TableStats, files_of, history_of, stats_of
from forklake.commit.draft import Draft
from forklake.commit.restore import restore_table
from forklake.commit.sort_order import sort_by
from forklake.commit.write_target import check_tag, options_of, set_option, without_options
from forklake.compact.compaction import CompactResult, compact_one, delete_planner, merge_planner
from forklake.compact.flush import flush
from forklake.context.scope import Scope, look
from forklake.display import Listing
from forklake.engine.select import count_rows
from forklake.engine.sql_text import shown_as
from forklake.errors import ForklakeError, InvalidSchemaChange
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.entities import Table as Definition
from forklake.model.ids import TableId
from forklake.model.names import QualifiedName, check_name, quoted
from forklake.model.options import Options
from forklake.model.progress import OnProgress
from forklake.model.snapshots import CommitInfo, Snapshot
from forklake.model.sql.ddl import ColumnSpec, DefaultSource, default_text
from forklake.model.sql.predicate import parse_predicate
from forklake.model.table import columns
from forklake.model.table.columns import ColumnPath, Columns
from forklake.model.table.partition_and_sort import (
    check_list,
    partition_fields,
    show_sort_key,
    show_transform,
)
from forklake.model.time_travel import AsOf, parse_as_of
from forklake.model.types.arrow import TypeSource, to_arrow, type_of
from forklake.scan.scan_plan import plan_scan


def partitioning_of(draft: Draft, table: Definition) -> tuple[str, ...]:
    """How new files of a table are partitioned, as people write it."""
    found = draft.partitioning(table)
    names = {column.id: column.name for column in table.columns}
    parts = () if found is None else found.fields
    return tuple(show_transform(part, names[part.column_id]) for part in parts)


def sort_order_of(draft: Draft, table: Definition) -> tuple[str, ...]:
    """How rows of new files of a table are sorted, as people write it."""
    order = draft.sort_order(table)
    return () if order is None else tuple(show_sort_key(key) for key in order.keys)


class Table(IndexVerbs, RowVerbs):
    """A table of a catalog. The handle follows the table by its id, also when it is renamed.

    Each change is a snapshot of its own, unless the handle came from a transaction.
    """

    def __init__(self, scope: Scope, table_id: TableId) -> None:
        """Use `Catalog.table` or `Transaction.table`."""
        self._scope = scope
        self._id = table_id

    @property
    def id(self) -> TableId:
        """The id of the table, unique in the lake; negative until a new table is committed."""
        return self._id

    @property
    def uuid(self) -> str:
        """The UUID of the table."""
        return self._definition().uuid

    @property
    def name(self) -> str:
        """The name, without the schema."""
        return self._definition().name

    @property
    def schema_name(self) -> str:
        """The name of the schema that the table is in."""
        return look(self._scope, self._qualified_name).schema

    @property
    def full_name(self) -> str:
        """The name with the schema, as `Catalog.table` takes it: `sales.orders`."""
        return str(look(self._scope, self._qualified_name))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns in order, with the fields nested in them."""
        return self._definition().columns

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the table; see `schema_name` for the name of its SQL schema."""
        return pa.schema(
            [
                pa.field(column.name, to_arrow(shown_as(column.data_type)), column.nullable)
                for column in self.columns
            ]
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The same as `schema`."""
        return self.schema

    def __repr__(self) -> str:
        """The name, as SQL would write it, the catalog, and the snapshot that is shown."""
        try:
            draft = self._scope.read()
            name, at = str(self._qualified_name(draft)), f" at snapshot {draft.head.snapshot_id}"
        except ForklakeError:
            # It was dropped, or its transaction or lake is closed.
            name, at = f"with id {self._id}", ""
        return f"<Table {name} of catalog {self._scope.name!r}{at}>"

    def _repr_html_(self) -> str:
        """For notebooks: its columns, and what the metadata know of its rows."""

        def draw() -> str:
            draft = self._scope.read()
            table = draft.table(self._id)
            layout = partitioning_of(draft, table), sort_order_of(draft, table)
            return table_html(draft, table, self._scope.name, *layout)

        return shown(self, draw)

    # ---- Changes of structure ---

    def add_column(
        self,
        name: ColumnPath,
        type: TypeSource,
        *,
        default: DefaultSource = None,
        nullable: bool = True,
        **info: Unpack[CommitInfo],
    ) -> None:
        """Add a column, or a field of a struct (`"address.zip"`). Existing rows get the default too."""
        leaf = columns.split_path(name)[-1]
        spec = ColumnSpec(leaf, type, nullable, default)

        def change(draft: Draft) -> None:
            table = draft.table(self._id)
            draft.set_columns(table, columns.add(table.columns, name, spec, draft.last_column_id(table)))

        self._scope.with_commit_info(**info).apply(change)

    def drop_column(self, name: ColumnPath, **info: Unpack[CommitInfo]) -> None:
        """Drop a column or a field of a struct. Past snapshots still show it."""
        self._change(lambda known: columns.drop(known, name), info)

    def rename_column(self, name: ColumnPath, new_name: str, **info: Unpack[CommitInfo]) -> None:
        """Rename a column or a field of a struct."""
        self._change(lambda known: columns.rename(known, name, new_name), info)

    def alter_type(self, name: ColumnPath, type: TypeSource, **info: Unpack[CommitInfo]) -> None:
        """Widen the type of a column or field, such as `integer` to `bigint`.

        A struct may get other fields: those that are gone are dropped, new ones are NULL in rows that exist.
        """
        wanted = type_of(type)

        def change(draft: Draft) -> None:
            table = draft.table(self._id)
            changed = columns.reshape(table.columns, name, wanted, draft.last_column_id(table))
            draft.set_columns(table, changed)

        self._scope.with_commit_info(**info).apply(change)

    def set_default(self, name: ColumnPath, expression: DefaultSource, **info: Unpack[CommitInfo]) -> None:
        """Set the default of later inserts: a literal, or an expression such as `now()`."""
        default = default_text(expression)
        self._change(lambda known: columns.set_default(known, name, default), info)

    def drop_default(self, name: ColumnPath, **info: Unpack[CommitInfo]) -> None:
        """Remove the default: later inserts put NULL into a column that they do not name."""
        self._change(lambda known: columns.set_default(known, name, None), info)

    def set_nullable(self, name: ColumnPath, flag: bool, **info: Unpack[CommitInfo]) -> None:
        """Allow NULL in a column, or refuse it; refused if a row has NULL there."""

        def change(draft: Draft) -> None:
            table = draft.table(self._id)
            column = columns.find(table.columns, name)
            changed = columns.set_nullable(table.columns, name, flag)
            if not flag and column.nullable and (nulls := self._count_nulls(draft, table, column.name)):
                raise InvalidSchemaChange(
                    f'"{column.name}" is NULL in {nulls} rows: give them a value before you refuse NULL'
                )
            draft.set_columns(table, changed)

        self._scope.with_commit_info(**info).apply(change)

    def reorder(self, names: Sequence[str], **info: Unpack[CommitInfo]) -> None:
        """Put the named columns first, in this order."""
        self._change(lambda known: columns.reorder(known, names), info)

    def rename(self, new_name: str | tuple[str, str] | QualifiedName, **info: Unpack[CommitInfo]) -> None:
        """Rename the table. A name without a schema keeps its schema; `schema.name` moves it there."""

        def change(draft: Draft) -> None:
            table = draft.table(self._id)
            target = QualifiedName.parse(new_name, "table", schema=self._qualified_name(draft).schema)
            draft.rename_table(table, target)

        self._scope.with_commit_info(**info).apply(change)

    def drop(self, **info: Unpack[CommitInfo]) -> None:
        """Drop the table. Past snapshots still show it."""
        self._scope.with_commit_info(**info).apply(lambda draft: draft.drop_table(draft.table(self._id)))

    def restore(self, at: AsOf, **info: Unpack[CommitInfo]) -> None:
        """Restore the table to a snapshot or timestamp, as a new commit; history stays.

        Restores rows with their ids, columns, name, tags, partitioning and sort order. No file is written.
        """
        parse_as_of(at)
        self._scope.with_commit_info(**info).apply(
            lambda draft: restore_table(draft, self._scope.at(at).read(), self._id)
        )

    # ---- How rows are written ---

    @property
    def partitioning(self) -> tuple[str, ...]:
        """How new files are partitioned, such as `("day(ts)", "bucket(16, id)")`."""
        return look(self._scope, lambda draft: partitioning_of(draft, draft.table(self._id)), every=True)

    def set_partitioning(self, fields: Sequence[str], **info: Unpack[CommitInfo]) -> None:
        """Set the partitioning of new files; existing files stay as they are.

        `region`, `year(ts)`, `month(ts)`, `day(ts)`, `hour(ts)`, `bucket(16, id)`; an empty list removes it.
        """
        check_list(fields, "partition fields")

        def change(draft: Draft) -> None:
            table = draft.table(self._id)
            draft.set_partitioning(table, partition_fields(fields, table.columns))

        self._scope.with_commit_info(**info).apply(change)

    @property
    def sort_order(self) -> tuple[str, ...]:
        """How rows of new files are sorted, such as `("ts DESC NULLS LAST",)`."""
        return look(self._scope, lambda draft: sort_order_of(draft, draft.table(self._id)), every=True)

    def set_sort_order(self, keys: Sequence[str], **info: Unpack[CommitInfo]) -> None:
        """Set the sort order of new files: `ts`, `lower(name) DESC NULLS FIRST`; an empty list removes it."""
        check_list(keys, "sort keys")
        self._scope.with_commit_info(**info).apply(lambda draft: sort_by(draft, draft.table(self._id), keys))

    def set_option(self, name: str, value: object, **info: Unpack[CommitInfo]) -> None:
        """Set an option of this table, such as `target_file_size`; None takes that of its schema or lake."""
        self._scope.with_commit_info(**info).apply(
            lambda draft: set_option(draft, draft.table(self._id), name, value)
        )

    def options(self) -> Options:
        """The options that apply to this table."""
        options = self._scope.context.options
        return look(self._scope, lambda draft: options_of(draft, draft.table(self._id), options), every=True)

    # ---- Maintenance ---

    def flush_inlined(self, *, progress: OnProgress | None = None, **info: Unpack[CommitInfo]) -> int:
        """Write inlined rows to Parquet files. Returns the number of rows."""
        scope = self._scope.with_commit_info(**info)
        return flush(scope, lambda draft: [draft.table(self._id)], progress)

    def compact(
        self,
        *,
        min_files: int = 2,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CompactResult:
        """Merge small files and write inlined rows to files; see `Catalog.compact`."""
        planner = merge_planner(min_files)
        return compact_one(
            self._scope.with_commit_info(**info), self._id, planner, dry_run=dry_run, progress=progress
        )

    def rewrite_deletes(
        self,
        threshold: float = 0.95,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CompactResult:
        """Rewrite files of which at least this share of rows is deleted."""
        planner = delete_planner(threshold)
        return compact_one(
            self._scope.with_commit_info(**info), self._id, planner, dry_run=dry_run, progress=progress
        )

    # ---- What is known of it ---

    def files(self) -> list[TableFile]:
        """List the data files of the table, and its inlined rows."""
        return look(self._scope, lambda draft: Listing(files_of(draft, draft.table(self._id))), every=True)

    def stats(self) -> TableStats:
        """Statistics: row, file and byte counts, and the bounds of columns."""
        return look(self._scope, lambda draft: stats_of(draft, draft.table(self._id)), every=True)

    def history(self) -> list[Snapshot]:
        """List the snapshots that changed the table or its rows, oldest first."""
        return look(self._scope, lambda draft: Listing(history_of(draft, draft.table(self._id))), every=True)

    # ---- Comments and tags ---

    def comment(
        self, text: str | None, *, column: ColumnPath | None = None, **info: Unpack[CommitInfo]
    ) -> None:
        """Comment on the table or a column; None removes the comment."""
        self.set_tag("comment", text, column=column, **info)

    def set_tag(
        self, key: str, value: str | None, *, column: ColumnPath | None = None, **info: Unpack[CommitInfo]
    ) -> None:
        """Tag the table or a column; None removes the tag."""
        check_name(key, "tag")
        check_tag(key)

        def change(draft: Draft) -> None:
            table = draft.table(self._id)
            target = None if column is None else columns.find(table.columns, column).id
            draft.set_tag(table, target, key, value)

        self._scope.with_commit_info(**info).apply(change)

    def tags(self, *, column: ColumnPath | None = None) -> dict[str, str]:
        """The tags of the table or of a column; its comment is the tag `comment`."""

        def found(draft: Draft) -> dict[str, str]:
            table = draft.table(self._id)
            if column is None:
                return without_options(draft.tags(table.id))
            return draft.column_tags(table.id).get(columns.find(table.columns, column).id, {})

        return look(self._scope, found, every=True)

    # ---- Details ---

    def _count_nulls(self, draft: Draft, table: Definition, column: str) -> int:
        condition = parse_predicate(f"{quoted(column)} IS NULL", table.columns)
        return count_rows(
            self._scope.context.engine, plan_scan(draft.source(table), condition, self._scope.context.storage)
        )

    def _definition(self) -> Definition:
        return look(self._scope, lambda draft: draft.table(self._id))

    def _qualified_name(self, draft: Draft) -> QualifiedName:
        return draft.name_of(draft.table(self._id))

    def _change(self, reshape: Callable[[Columns], Columns], info: CommitInfo) -> None:
        def change(draft: Draft) -> None:
            table = draft.table(self._id)
            draft.set_columns(table, reshape(table.columns))

        self._scope.with_commit_info(**info).apply(change)
