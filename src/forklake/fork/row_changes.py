"""What one catalog did to the rows of tables, as it is to be done in another: files to add, rows to delete.

Files that only one side touched are compared by their states alone, and so are different rows of one file.
Rows that the other side may have changed or moved are looked for one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from forklake.commit.conflicts import DML, RESTORES, RETIRES
from forklake.commit.draft import Draft
from forklake.data.parquet.positions import common, united
from forklake.engine.compare import Candidates, Examined, Known, Outcome, examine, ids_among, ids_at
from forklake.engine.local import Engine
from forklake.errors import CommitConflict
from forklake.fork.catalog_state import Side
from forklake.fork.net_rows import Added, Resolved, RowChanges
from forklake.fork.touched_rows import (
    LostPositions,
    Touched,
    are_told,
    lost_rows,
    no_positions,
    told,
    touched_rows,
    untold,
)
from forklake.fork.version_vectors import NOTHING, Divergence, Event, Events, VersionVector
from forklake.lazy.arrow import pa, pc
from forklake.lazy.properties import lazy_property
from forklake.model.changes import UNLESS_THERE, Change, Verb
from forklake.model.entities import Table
from forklake.model.ids import FOREVER, CatalogId, DataFileId, SnapshotId, TableId
from forklake.model.progress import OnProgress, Steps
from forklake.scan.change_plan import Place, place_of
from forklake.scan.scan_plan import Positions, Source, plan_scan
from forklake.store.backend import Database
from forklake.store.changed_objects import (
    added_files,
    catalogs_with_files,
    changed_files,
    origins_of_files,
)
from forklake.store.file_states import FileState, file_states
from forklake.store.files import FileReader

Prefer = Literal["source", "target"]
PositionsByFile = dict[DataFileId, Positions]
Bases = Iterator[tuple[Candidates, PositionsByFile]]
"""Files, with the places of some of their rows."""


class RowComparison:
    """Compares the rows of two catalogs, or of one with its own past."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        ours: Side,
        theirs: Side,
        done: Events,
        since: SnapshotId,
        met: Callable[[], Events] | None = None,
        prefer: Prefer | None = None,
        relation: Divergence | None = None,
    ) -> None:
        """Read nothing yet. `met` tells what the other side did that we have not seen; None for nothing."""
        self._database = database
        self._engine = engine
        self._ours = ours
        self._theirs = theirs
        self._done = done
        self._since = since
        self._met = met
        self._prefer = prefer
        self._relation = relation
        self._lost = LostPositions(engine.storage)

    def changes(self, progress: OnProgress | None = None) -> Iterator[RowChanges]:
        """All tables whose rows are to be changed."""
        tables = [table for table in sorted(self._written) if self._ours.table(table) is not None]
        if not tables:
            return
        named = {file for table in tables for file in self._named.get(table, set())}
        here, there = self._states(tables, named)
        strange = self._strange(file for file in here.keys() | named if file not in there)
        known = {file for file in named if file in there or file in strange}
        touched = {} if self._met is None else touched_rows(self._database, self._lost, self._taking, known)
        for table in Steps(progress, "compare rows", "tables", len(tables)).over(tables):
            files = _Files(
                {n: state for n, state in here.items() if state.table == table and n not in strange},
                there,
                known & self._named.get(table, set()),
                touched,
            )
            found = self._table(TableId(table), files, here)
            if not found.is_empty or found.conflicts:
                yield found

    @lazy_property
    def _written(self) -> set[int]:
        return {event.change.object_id for event in self._done.events if event.change.verb in DML}

    @lazy_property
    def _named(self) -> dict[int, set[DataFileId]]:
        """The files that rows were taken from, by table."""
        found: dict[int, set[DataFileId]] = {}
        for event in self._taking.events:
            if event.change.files:
                found.setdefault(event.change.object_id, set()).update(map(DataFileId, event.change.files))
        for table in self._written:
            if self._theirs.table(table) is None:
                # It may have dropped the table, and have left files there that it inherited.
                found.setdefault(table, set()).update(map(DataFileId, self._files_there(TableId(table))))
        return found

    @lazy_property
    def _taking(self) -> Events:
        """What was done, with the files of tables that were dropped, and are back: they ended unnamed.

        The other side has them, or had them until it dropped the table itself.
        """
        drops = [event for event in self._done.events if event.change.verb is Verb.DROP_TABLE]
        if not drops or self._done.is_everything:
            return self._done
        more: list[Event] = []
        for event in drops:
            table = TableId(event.change.object_id)
            if self._ours.table(table) is not None:
                before = SnapshotId(event.snapshot - 1)
                ended = changed_files(self._database, event.catalog, [table], before, event.snapshot)
                files = self._files_there(table).union(ended)
                known = frozenset(file_states(self._database, event.catalog, FOREVER, files))
                more.append(replace(event, change=Change(Verb.DELETE, table, files=known)))
        return replace(self._done, events=(*self._done.events, *more))

    def _files_there(self, table: TableId) -> frozenset[int]:
        head = self._theirs.head
        reader = FileReader(self._database, head.catalog_id, table, head.snapshot_id)
        return frozenset(f.id for f in (*reader.files(), *(file for file, _ in reader.inlined_files())))

    def _states(
        self, tables: Sequence[int], named: Iterable[DataFileId]
    ) -> tuple[dict[DataFileId, FileState], dict[DataFileId, FileState]]:
        """The files that may have come or changed, here and there."""
        ours, theirs = self._ours.head, self._theirs.head
        added = added_files(self._database, ours.catalog_id, tables, self._since, ours.snapshot_id)
        files = {*named, *added}
        here = file_states(self._database, ours.catalog_id, ours.snapshot_id, files)
        return here, file_states(self._database, theirs.catalog_id, theirs.snapshot_id, files)

    def _strange(self, files: Iterable[DataFileId]) -> set[DataFileId]:
        """Files that the other side never had although it has seen the commits that made them.

        Their rows were elsewhere before they came to it.
        """
        unknown = sorted(files)
        if self._done.is_everything or not unknown:
            return set()
        recorded = {(event.snapshot, event.change.object_id) for event in self._done.events}
        return {
            file
            for file, table, began in origins_of_files(self._database, unknown)
            if (began, table) not in recorded
        }

    def _table(self, table: TableId, files: _Files, here: dict[DataFileId, FileState]) -> RowChanges:
        added = {n: state for n, state in files.here.items() if state.is_live and n not in files.there}
        retired, deleted, doubtful = self._by_position(files, here)
        is_back = self._theirs.table(table) is None
        restored = {} if doubtful or is_back else self._restored(added, retired)
        dropped: PositionsByFile = {}
        examined = self._examine(table, doubtful, files, here) if doubtful else None
        resolved: Resolved | None = None
        if examined is not None:
            decided = () if self._prefer is None else (Outcome.CONFLICT,)
            lost = examined.theirs(Outcome.OURS, *decided)
            self._delete({f: p for f, p in lost.items() if f not in retired}, files.there, deleted)
            dropped = examined.ours(Outcome.AGREED, Outcome.THEIRS, *decided)
            resolved = self._resolved(examined)
        inserts = [
            event.change
            for event in self._done.events
            if event.change.verb is Verb.INSERT and event.change.object_id == table
        ]
        coming = (Added(added[n], dropped.get(n, no_positions())) for n in sorted(added))
        return RowChanges(
            table,
            tuple(a for a in coming if a.live_rows or (resolved and a.state.file.id in resolved.files)),
            tuple(retired.values()),
            tuple(deleted[file] for file in sorted(deleted)),
            any(change.detail == UNLESS_THERE for change in inserts),
            frozenset(path for change in inserts for path in change.paths),
            examined,
            resolved,
            restored,
            is_back,
        )

    def _by_position(
        self, files: _Files, here: dict[DataFileId, FileState]
    ) -> tuple[dict[DataFileId, FileState], dict[DataFileId, tuple[FileState, Positions]], PositionsByFile]:
        """Files that go, files that lose rows, and rows that the other side may have changed or moved."""
        retired: dict[DataFileId, FileState] = {}
        deleted: dict[DataFileId, tuple[FileState, Positions]] = {}
        doubtful: PositionsByFile = {}
        for file in sorted(files.named):
            old, new, touched = files.there.get(file), here.get(file), files.touched.get(file)
            if new is None and touched is None:
                # Only the other side has ever had it.
                continue
            lost = no_positions() if old is None or touched is None else self._lost.of(old)
            both = no_positions() if touched is None else common(touched.positions, lost)
            if old is None or not old.is_live:
                both = no_positions() if touched is None else touched.positions
            elif new is not None and new.is_live:
                fresh, elsewhere = told(self._lost.more(new, old), touched)
                if len(fresh):
                    deleted[file] = (old, fresh)
                both = united([both, elsewhere])
            else:
                elsewhere = no_positions() if touched is None else untold(old, lost, touched)
                if touched is not None and (len(elsewhere) or len(common(touched.retired, lost))):
                    # Rows that went with the file here were taken from it one by one there, or no commit
                    # took them.
                    both = united([touched.positions, elsewhere])
                else:
                    retired[file] = old
            if len(both):
                doubtful[file] = both
        return retired, deleted, doubtful

    def _restored(
        self, added: dict[DataFileId, FileState], retired: dict[DataFileId, FileState]
    ) -> dict[DataFileId, DataFileId]:
        """Files that went and came back as they were, under another id: a restore or an undo does that.

        They are exchanged all the same. Who has seen what was taken back, and hears from the other side that
        it was, would else find the old file there, and nothing to tell it from.
        """
        found: dict[DataFileId, DataFileId] = {}
        if added and retired:
            gone = {key: file for file, key in self._identities(self._theirs, retired).items()}
            for number, key in self._identities(self._ours, added).items():
                file = gone.get(key)
                if file is not None and self._lost.of(added[number]).equals(self._lost.of(retired[file])):
                    found[file] = number
                    del gone[key]
        return found

    def _identities(
        self, side: Side, states: dict[DataFileId, FileState]
    ) -> dict[DataFileId, tuple[str, int | None]]:
        """What tells files apart whatever their ids: where they are, or the rows themselves; and row ids."""
        some = next(iter(states.values()))
        reader = FileReader(self._database, side.head.catalog_id, some.table, side.head.snapshot_id)
        contents = reader.contents([state.file for state in states.values() if state.file.inlined])
        return {
            number: (contents.get(number, state.file.path), state.file.row_id_start)
            for number, state in states.items()
        }

    def _resolved(self, examined: Examined) -> Resolved | None:
        if self._prefer is None or not examined.count(Outcome.CONFLICT):
            return None
        rows = examined.conflicting("ours" if self._prefer == "source" else "theirs")
        ours, theirs = examined.ours(Outcome.CONFLICT), examined.theirs(Outcome.CONFLICT)
        return Resolved(rows, frozenset((*ours, *theirs)), examined.ids(Outcome.CONFLICT))

    def _delete(
        self,
        lost: PositionsByFile,
        there: dict[DataFileId, FileState],
        deleted: dict[DataFileId, tuple[FileState, Positions]],
    ) -> None:
        """Add rows of the other side's files to those that are deleted."""
        head = self._theirs.head
        unknown = [file for file in lost if file not in there]
        states = there | file_states(self._database, head.catalog_id, head.snapshot_id, unknown)
        for file, positions in lost.items():
            more = [] if file not in deleted else [deleted[file][1]]
            deleted[file] = (states[file], united([positions, *more]))

    def _examine(
        self,
        table: TableId,
        doubtful: PositionsByFile,
        files: _Files,
        here: dict[DataFileId, FileState],
    ) -> Examined | None:
        """Look for rows by their ids, in the files that can hold them."""
        ours, theirs = self._table_source(self._ours, table), self._table_source(self._theirs, table)
        if ours is None or theirs is None:
            # The target has dropped the table, which is told otherwise.
            return None
        theirs = replace(theirs, table=ours.table, has_old_names=ours.has_old_names or theirs.has_old_names)
        ours = replace(ours, has_old_names=theirs.has_old_names)
        base = list(self._bases(doubtful, files, here, ours, theirs))
        plan = plan_scan(theirs)
        targets = (*plan.files, *plan.rows)
        mine = plan_scan(ours)
        here_now = (*mine.files, *mine.rows)
        known = Known(
            self._seen(self._ours, table, targets, self._relation and self._relation.theirs.floor),
            self._seen(self._theirs, table, here_now, self._relation and self._relation.ours.floor),
            self._theirs_took_rows(table),
            *self._changed_by_both(table, doubtful),
            taken={file: touched.positions for file, touched in files.touched.items()},
        )
        sides = Candidates(ours, here_now), Candidates(theirs, targets)
        examined = examine(self._engine, ours.table.columns, base, *sides, known)
        if examined.are_of_several_bases:
            known = replace(known, superseded=self._superseded(table, doubtful))
            examined = examine(self._engine, ours.table.columns, base, *sides, known)
        if examined.are_deleted_there:
            examined = examined.changed_there_only(self._ids_changed_there(table, theirs, ours))
        if examined.are_deleted_here:
            touched = self._ids_taken_here(
                table, ours, lambda rows: self._bases(rows, files, here, ours, theirs)
            )
            examined = examined.changed_here_only(touched)
        return examined

    def _ids_taken_here(
        self, table: TableId, ours: Source, bases: Callable[[PositionsByFile], Bases]
    ) -> pa.Array:
        """The rows that commits deleted which the other side has not seen.

        A restore exchanges whole files: it has not taken what its catalog has all the same.
        """
        columns = ours.table.columns
        mine = [event for event in self._done.events if event.change.object_id == table]
        restores = {(event.catalog, event.snapshot) for event in mine if event.change.verb in RESTORES}

        def ids(rows: PositionsByFile) -> pa.Array:
            found = [ids_at(self._engine, columns, *each) for each in bases(rows) if each[1]]
            return pa.concat_arrays([no_positions(), *found])

        parts = [self._ids_deleted(table, [e for e in mine if (e.catalog, e.snapshot) not in restores], ids)]
        for catalog in sorted({catalog for catalog, _ in restores}):
            restored = [e for e in mine if e.catalog == catalog and (catalog, e.snapshot) in restores]
            gone = self._ids_deleted(table, restored, ids)
            if len(gone):
                left = self._ids_left(catalog, table, ours, gone)
                parts.append(gone.filter(pc.invert(pc.is_in(gone, value_set=left))))
        return pa.concat_arrays(parts)

    def _ids_deleted(
        self, table: TableId, events: Iterable[Event], ids: Callable[[PositionsByFile], pa.Array]
    ) -> pa.Array:
        """The rows that some commits deleted: those that they moved may have gone later, and both know of it.

        Files that came and went between two merges may be collected, and nothing tells what was deleted from
        them: then rows that were moved count too, but for those of which both have seen that they went.
        """
        about = [event for event in events if event.change.object_id == table]
        deletes = Events(tuple(event for event in about if event.change.verb is Verb.DELETE))
        found = ids(self._touched(deletes, deletes.files))
        if are_told(self._database, deletes):
            return found
        moves = Events(tuple(event for event in about if event.change.verb in RETIRES - {Verb.DELETE}))
        moved = self._touched(moves, moves.files)
        known = ids(self._superseded(table, moved))
        more = ids(moved)
        return pa.concat_arrays([found, more.filter(pc.invert(pc.is_in(more, value_set=known)))])

    def _ids_left(self, catalog: CatalogId, table: TableId, ours: Source, ids: pa.Array) -> pa.Array:
        """Those of some rows that a catalog has, as far as its commits are compared."""
        spans = () if self._relation is None else self._relation.ours.spans
        up_to = max((s.up_to for s in spans if s.catalog == catalog), default=self._ours.head.snapshot_id)
        source = replace(ours, reader=FileReader(self._database, catalog, table, up_to))
        plan = plan_scan(source)
        return ids_among(self._engine, ours.table.columns, Candidates(source, (*plan.files, *plan.rows)), ids)

    def _ids_changed_there(self, table: TableId, theirs: Source, ours: Source) -> pa.Array:
        """The rows that the other side deleted from files in commits that we have not seen."""
        met = Events(()) if self._met is None else self._met()

        def ids(rows: PositionsByFile) -> pa.Array:
            # It may have taken a row, by a merge, of a file that it never got: then we have that file, or the
            # row in another one, and whoever took it had the file.
            parts = [no_positions()]
            for side, source in ((self._theirs, theirs), (self._ours, ours)):
                head = side.head
                states = file_states(self._database, head.catalog_id, head.snapshot_id, rows)
                if states:
                    found, positions = self._base(source, states, rows)
                    parts.append(ids_at(self._engine, source.table.columns, found, positions))
                    rows = {file: places for file, places in rows.items() if file not in states}
            elsewhere = self._elsewhere(met, ours, rows)
            parts += [ids_at(self._engine, ours.table.columns, *each) for each in elsewhere]
            return pa.concat_arrays(parts)

        return self._ids_deleted(table, met.events, ids)

    def _seen(
        self, side: Side, table: TableId, places: Sequence[Place], vector: VersionVector | None
    ) -> frozenset[DataFileId]:
        """Those of some files that a side has or had, or has seen the end of in another catalog."""
        head = side.head
        files = {place.file.id for place in places}
        found = set[DataFileId](file_states(self._database, head.catalog_id, head.snapshot_id, files))
        if vector is not None and found < files:
            elsewhere = catalogs_with_files(self._database, files - found)
            found |= {file for file, catalog, begin in elsewhere if vector.seen(catalog, table) >= begin}
        return frozenset(found)

    def _bases(
        self,
        doubtful: PositionsByFile,
        files: _Files,
        here: dict[DataFileId, FileState],
        ours: Source,
        theirs: Source,
    ) -> Bases:
        """Files that rows were in before, read by whoever has them."""
        for source, states in ((ours, here), (theirs, files.there)):
            found = {file: states[file] for file in doubtful if file in states}
            yield self._base(source, found, doubtful)
            doubtful = {file: positions for file, positions in doubtful.items() if file not in found}
        yield from self._elsewhere(self._done, ours, doubtful)

    def _elsewhere(self, events: Events, source: Source, files: PositionsByFile) -> Bases:
        """Files that neither side has or had, read by those whose commits were merged."""
        for catalog in sorted({event.catalog for event in events.events}) if files else ():
            found = file_states(self._database, catalog, FOREVER, files)
            if found:
                reader = replace(source.reader, catalog=CatalogId(catalog))
                yield self._base(replace(source, reader=reader), found, files)
                files = {file: positions for file, positions in files.items() if file not in found}

    def _base(
        self, source: Source, states: dict[DataFileId, FileState], doubtful: PositionsByFile
    ) -> tuple[Candidates, PositionsByFile]:
        files = [state.file for state in states.values()]
        contents = source.reader.contents([file for file in files if file.inlined])
        if any(file.inlined and file.id not in contents for file in files):
            # Nobody reaches them any more, and whoever begins now does without them.
            raise CommitConflict("rows that this compares were collected as garbage meanwhile: run it again")
        # All rows, whatever was deleted: those that are looked for are among them.
        places = [place_of(replace(file, deletes=None), contents) for file in files]
        return Candidates(source, places), {file: doubtful[file] for file in states}

    def _table_source(self, side: Side, table: TableId) -> Source | None:
        found: Table | None = side.table(table)
        return None if found is None else Draft(side.state, side.head).source(found)

    def _changed_by_both(
        self, table: TableId, doubtful: PositionsByFile
    ) -> tuple[PositionsByFile, frozenset[int], frozenset[int]]:
        """Rows that both deleted themselves, and those that merges of ours and of theirs have decided of.

        That each of them meant to delete a row does not say that both may.
        """
        met = Events(()) if self._met is None else self._met()
        ours, theirs = (self._touched(e.only(Verb.DELETE), doubtful) for e in (self._done, met))
        twice = {file: common(ours[file], theirs[file]) for file in ours.keys() & theirs.keys()}
        mine, yours = (
            frozenset(row for e in side.events if e.change.object_id == table for row in e.change.rows)
            for side in (self._done, met)
        )
        return twice, mine, yours

    def _touched(self, events: Events, files: Collection[DataFileId]) -> PositionsByFile:
        found = touched_rows(self._database, self._lost, events, files)
        return {file: touched.positions for file, touched in found.items()}

    def _superseded(self, table: TableId, doubtful: PositionsByFile) -> PositionsByFile:
        """Rows of which both sides have seen that they were deleted or moved.

        Who moved them without having seen that has not changed what both have known since.
        """
        if self._relation is None:
            return {}
        by_theirs, by_ours = self._relation.ours.floor, self._relation.theirs.floor
        catalogs = {*by_ours.catalogs, *(catalog for catalog, _ in by_ours.tables)}
        seen = {
            catalog: min(by_ours.seen(catalog, table), by_theirs.seen(catalog, table)) for catalog in catalogs
        }
        seen = {catalog: snapshot for catalog, snapshot in seen.items() if snapshot != NOTHING}
        return lost_rows(self._database, self._lost, seen, doubtful)

    def _theirs_took_rows(self, table: TableId) -> bool:
        met = () if self._met is None else self._met().events
        return any(e.change.object_id == table and e.change.verb in RETIRES for e in met)


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of one table that may have changed."""

    here: dict[DataFileId, FileState]
    there: dict[DataFileId, FileState]
    named: set[DataFileId]
    """Files that rows were taken from here, of those whose rows the other side has or had."""
    touched: dict[DataFileId, Touched]
