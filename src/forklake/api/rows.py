"""The verbs that read and change the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, Unpack

from forklake.api.arrived_rows import Arrived, counted_rows, row_steps, take_in
from forklake.api.assignments import Assignments, new_values
from forklake.api.change_feed import ChangeFeed, check_names
from forklake.api.merge_clauses import (
    Clauses,
    MergeClauses,
    has_clauses,
    merge_by_clauses,
    reads_source,
)
from forklake.api.result_formats import ResultFormats
from forklake.api.scan import Scan, scan_of
from forklake.api.staged_rows import replace_rows, take_rows
from forklake.api.upsert import (
    RowsMerged,
    check_extra,
    join_of,
    key_range,
    matched_values,
    unmatched_values,
)
from forklake.commit.draft import Draft
from forklake.commit.import_files import check_mapping, find_files, inspect, stage
from forklake.commit.write_target import writer_for
from forklake.context.scope import Scope, look
from forklake.data.conform import misfit_of
from forklake.data.input.arrow_streams import Rows
from forklake.data.input.batches import rows_of
from forklake.data.input.rows import Given
from forklake.data.parquet.foreign_files import By, Inspection
from forklake.engine.condition import condition_of
from forklake.engine.dml import find_rows, updated_rows
from forklake.engine.locate_row import RowPlace, locate_row
from forklake.engine.rows_by_position import with_rows_found
from forklake.engine.upsert import (
    Join,
    bounds_of,
    columns_read,
    matched_places,
    matched_rows,
    unmatched_rows,
)
from forklake.errors import CommitConflict, InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.entities import Table
from forklake.model.ids import TableId
from forklake.model.names import quoted
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import CommitInfo
from forklake.model.sql.predicate import Predicate, parse_expression
from forklake.model.table.columns import Columns
from forklake.model.time_travel import AsOf
from forklake.scan.scan_plan import ScanPlan, plan_scan

T = TypeVar("T")


class RowVerbs(ResultFormats):
    """Reading and changing rows; each verb takes effect where its scope says."""

    _scope: Scope
    _id: TableId

    # ---- Reading ---

    def scan(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        at: AsOf | None = None,
        limit: int | None = None,
        row_ids: bool = False,
    ) -> Scan:
        """Describe a read of rows that match a SQL condition; `row_ids` adds the column `row_id`."""
        scope = self._scope if at is None else self._scope.at(at)
        return look(scope, lambda draft: self._scan(draft, scope, where, columns, limit, row_ids=row_ids))

    def head(self, n: int = 5) -> pa.Table:
        """Read the first `n` rows found, in no particular order."""
        return self._read(lambda scan: scan.to_arrow(), limit=n)

    def to_arrow(self) -> pa.Table:
        """Read all rows as an Arrow table; `scan` reads some rows or columns."""
        return self._read(lambda scan: scan.to_arrow())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read all rows in batches, with bounded memory."""
        return self._read(lambda scan: scan.to_batches())

    def to_reader(self) -> pa.RecordBatchReader:
        """All rows as an Arrow `RecordBatchReader`."""
        # Of one scan, so that schema and rows are of one snapshot.
        return self._read(lambda scan: scan.to_reader())

    def count(self) -> int:
        """The number of rows."""
        return self._read(lambda scan: scan.count())

    # ---- Writing ---

    def append(
        self,
        data: Rows,
        *,
        cast: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> int:
        """Insert rows. Returns the number of rows.

        Columns are matched by name; missing ones get their defaults. `cast` converts strings to dates and
        numbers, doubles to decimals and the like, if every value fits.
        """
        return self._write(data, "append to", lambda draft, table: None, info, cast=cast, progress=progress)

    def overwrite(
        self,
        data: Rows,
        where: str | None = None,
        *,
        cast: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> int:
        """Delete the matching rows, or all, and insert others. Returns the number of inserted rows."""

        def clear(draft: Draft, table: Table) -> None:
            self._delete(draft, table, where, progress)

        return self._write(data, "overwrite", clear, info, cast=cast, progress=progress)

    def delete(
        self,
        where: str | None = None,
        *,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> int:
        """Delete the rows that match a condition, or all. Returns the number of rows."""
        return self._scope.with_commit_info(**info).apply(
            lambda draft: self._delete(draft, draft.table(self._id), where, progress)
        )[0]

    def update(
        self,
        assignments: Assignments,
        where: str | None = None,
        *,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> int:
        """Update columns, or fields of structs, of the matching rows. Returns the number of rows.

        A string is a SQL expression over the old row; any other Python value is a literal.
        """

        def change(draft: Draft) -> int:
            table = draft.table(self._id)
            checked = check_assignments(assignments, table.columns)
            engine = self._scope.context.engine
            condition = condition_of(engine, where, table.columns)
            plan = plan_scan(draft.source(table), condition, engine.storage)
            places, batches = updated_rows(engine, plan, checked)
            counted = counted_rows(batches, progress, "update", draft, table)
            return replace_rows(self._scope.context, draft, table, counted, places.found)

        return self._scope.with_commit_info(**info).apply(change)[0]

    def merge(
        self,
        source: Rows,
        on: str | Sequence[str],
        *,
        when_matched: Clauses = "update",
        when_not_matched: Clauses = "insert",
        when_not_matched_by_source: Clauses = "ignore",
        cast: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> RowsMerged:
        """Upsert: join the rows of a source with the table on key columns.

        `when_matched` is `update`, `delete`, `ignore` or `{column: expression}` over `source.…` and
        `target.…`; `when_not_matched` is `insert`, `ignore` or `{column: expression}` over `source.…`;
        `when_not_matched_by_source`, for rows of the table that no row of the source meets, is `delete`,
        `ignore` or `{column: expression}` over `target.…`.

        Each may also be `(condition, action)`, or a list of actions and such pairs. A row takes the first
        whose condition holds, and is left alone if none does.
        """
        kept: list[tuple[Join, Columns]] = []
        given = Given(source)

        def change(draft: Draft) -> RowsMerged:
            table = draft.table(self._id)
            if kept and not given.lasts:
                _check_source(*kept[0], table.columns)
            elif not kept or kept[0][1] != table.columns:
                kept[:] = [
                    (given.read(lambda data: join_of(data, on, table.columns, cast=cast)), table.columns)
                ]
            asked = when_matched, when_not_matched, when_not_matched_by_source
            return self._merge(draft, table, kept[0][0], asked, progress)

        return self._scope.with_commit_info(**info).apply(change, present=not given.lasts)[0]

    def add_files(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        mapping: By = "field_id",
        allow_missing: bool = False,
        ignore_extra: bool = False,
        hive: bool = True,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> int:
        """Add existing Parquet files to the table without copying them. Returns their number of rows.

        `mapping` says how columns are found: `field_id`, `by_name` (also in Hive folders such as
        `region=eu/`, which come before columns in the file, unless `hive` is False), `by_position`, or a
        dict of names in the files to columns.
        Paths are files, folders or glob patterns (`in/**/*.parquet`).
        """
        check_mapping(mapping)
        context = self._scope.context
        files = find_files(context.storage, paths)

        def change(draft: Draft) -> int:
            table = draft.table(self._id)
            inspection = Inspection(
                context.storage, table.columns, mapping, allow_missing, ignore_extra, hive=hive
            )
            what = "" if progress is None else f"look into files for {draft.name_of(table)}"
            steps = Steps(progress, what, "files", len(files))
            return stage(draft, table, context.storage, inspect(inspection, files, steps))

        return self._scope.with_commit_info(**info).apply(change)[0]

    # ---- The past ---

    def changes(self, start: int, end: int | None = None, *, where: str | None = None) -> ChangeFeed:
        """The change feed: changes after snapshot `start`, up to and including `end` or the current one."""
        scope = self._scope if end is None else self._scope.at(end)
        draft = scope.read()
        first = scope.at(start).read().head.snapshot_id
        source = draft.source(draft.table(self._id))
        check_names(source)
        if first > source.reader.at:
            raise InvalidArgument(f"the changes are asked for from {start} to {end}, which is before it")
        predicate = condition_of(scope.context.engine, where, source.table.columns)
        return ChangeFeed(source, scope.context, first, source.reader.at, predicate)

    def locate(self, row_id: int) -> RowPlace | None:
        """Find the file and position of a row by its id; None if there is no such row."""
        if not isinstance(row_id, int) or isinstance(row_id, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"the id of a row is a whole number, not {row_id!r}")
        engine = self._scope.context.engine
        return look(
            self._scope,
            lambda draft: locate_row(engine, draft.source(draft.table(self._id)), row_id),
            every=True,
        )

    # ---- Details ---

    def _scan(
        self,
        draft: Draft,
        scope: Scope,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        row_ids: bool = False,
    ) -> Scan:
        return scan_of(
            draft,
            draft.table(self._id),
            scope.context,
            catalog=scope.name,
            where=where,
            columns=columns,
            limit=limit,
            row_ids=row_ids,
        )

    def _read(self, read: Callable[[Scan], T], *, limit: int | None = None) -> T:
        """Plan a scan of all rows and read it, at one snapshot."""
        return look(self._scope, lambda draft: read(self._scan(draft, self._scope, limit=limit)))

    def _merge(
        self,
        draft: Draft,
        table: Table,
        join: Join,
        asked: tuple[Clauses, Clauses, Clauses],
        progress: OnProgress | None,
    ) -> RowsMerged:
        engine = self._scope.context.engine
        check_extra(join, table.columns, may_be_read=reads_source(*asked[:2]))
        when_matched, when_not_matched, by_source = asked
        if has_clauses(*asked) or by_source != "ignore":
            clauses = MergeClauses.read(join, table.columns, *asked)
            # Rows that meet none of the source may be anywhere.
            where = self._key_range(join) if by_source == "ignore" else None
            plan = self._plan_merge(draft, table, join, where, table.columns)
            return merge_by_clauses(self._scope.context, draft, table, plan, join, clauses, progress)
        new_values = matched_values(when_matched, join, table.columns)
        inserted_values = unmatched_values(when_not_matched, join, table.columns)
        read = tuple(join.keys)
        if new_values is not None:
            read = columns_read(table.columns, join, new_values)
        plan = self._plan_merge(draft, table, join, self._key_range(join), read)
        arrived = Arrived()
        if inserted_values is not None:
            chosen = tuple(column for column in table.columns if column.name in inserted_values)
            fresh = unmatched_rows(engine, plan, join, inserted_values, chosen)
            counted = counted_rows(fresh, progress, "insert into", draft, table)
            arrived = take_rows(self._scope.context, draft, table, counted)
        updated = deleted = 0
        if new_values is not None:
            places, batches = matched_rows(engine, plan, join, new_values)
            counted = counted_rows(batches, progress, "update", draft, table)
            updated = replace_rows(
                self._scope.context, draft, table, counted, lambda: places.found(twice="refused")
            )
        elif when_matched == "delete":
            places, batches = matched_places(engine, plan, join)
            for _ in counted_rows(batches, progress, "delete from", draft, table):
                pass
            deleted = draft.staged(table).delete(places.found(twice="allowed"))
        arrived.stage(draft, table)
        draft.staged(table).looked |= bool(arrived.count)
        return RowsMerged(updated, deleted, arrived.count)

    def _plan_merge(
        self, draft: Draft, table: Table, join: Join, where: Predicate | None, read: Columns
    ) -> ScanPlan:
        """The files and rows that may meet a row of the source; all if nothing is known of its keys."""
        storage = None if where is None else self._scope.context.storage
        plan = plan_scan(draft.source(table), where, storage, join.key_values)
        return with_rows_found(self._scope.context.engine, plan, read)

    def _key_range(self, join: Join) -> Predicate | None:
        """What rows of the table meet that meet one of the source."""
        found = bounds_of(self._scope.context.engine, join, join.keys[0])
        return None if found is None else key_range(join.keys[0], *found)

    def _write(
        self,
        data: Rows,
        what: str,
        before: Callable[[Draft, Table], None],
        info: CommitInfo,
        *,
        cast: bool,
        progress: OnProgress | None,
    ) -> int:
        """Take rows in once, then stage them as often as the change is tried."""
        arrived: list[Arrived] = []
        written: list[str] = []
        given = Given(data)
        context = self._scope.context

        def change(draft: Draft) -> int:
            table = draft.table(self._id)

            def taken(data: Rows) -> Arrived:
                writer = writer_for(draft, table, context.storage, context.options, written)
                reader = rows_of(data, table.columns, evaluate=context.engine.evaluate, cast=cast)
                counted = counted_rows(reader, progress, what, draft, table, given.count)
                return take_in(counted, reader.schema, writer)

            misfit = misfit_of(arrived[0].columns, table.columns) if arrived and arrived[0].count else None
            if misfit is not None:
                if not given.lasts:
                    raise _changed_meanwhile(misfit)
                context.discard(written)
                written.clear()
                arrived.clear()
            if not arrived:
                arrived.append(given.read(taken))
            arrived[0].check(table)
            before(draft, table)
            arrived[0].stage(draft, table)
            return arrived[0].count

        return self._scope.with_commit_info(**info).apply(change, written=written, present=not given.lasts)[0]

    def _delete(self, draft: Draft, table: Table, where: str | None, progress: OnProgress | None) -> int:
        staged = draft.staged(table)
        if where is None:
            plan = plan_scan(draft.source(table))
            places = (*plan.files, *plan.rows)
            for place in places:
                staged.retire(place)
            return sum(place.live_rows for place in places)
        engine = self._scope.context.engine
        condition = condition_of(engine, where, table.columns)
        plan = plan_scan(draft.source(table), condition, engine.storage)
        if condition is not None:
            read = tuple(column for column in table.columns if column.name in condition.columns)
            plan = with_rows_found(engine, plan, read)
        steps = row_steps(progress, "delete from", draft, table)
        found = find_rows(engine, plan, steps.add)
        steps.end()
        return staged.delete(found)


def _changed_meanwhile(how: str) -> CommitConflict:
    return CommitConflict(
        f"somebody changed the table while its new rows were read: {how}; "
        "a stream is read only once, so hand the rows over again"
    )


def _check_source(join: Join, before: Columns, now: Columns) -> None:
    """A source that is gone was read for columns that must still be there, as they were."""
    present = {column.id: column for column in now}
    for column in before:
        kept = present.get(column.id)
        if column.name in join.names and (
            kept is None or (kept.name, kept.data_type) != (column.name, column.data_type)
        ):
            raise _changed_meanwhile(f'column "{column.name}" is gone or another')


def check_assignments(assignments: Mapping[Any, Any], columns: Columns) -> dict[str, str]:
    """What an update was asked to do, by the names of columns; or refuse it."""
    if not isinstance(assignments, Mapping) or not assignments:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("an update names columns and their new values: {'price': 'price * 1.1'}")
    return new_values(
        assignments,
        columns,
        lambda text: parse_expression(text, columns),
        lambda column: quoted(column.name),
    )
