"""Building the segments that indexes lack, and merging those of which there are many.

Each segment is a commit of its own: what was built stays, whatever happens to the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from forklake.commit.draft import Draft
from forklake.context.scope import Scope
from forklake.display import Shown
from forklake.engine.index_segments import Build, Merge, Train, Work
from forklake.engine.index_work import builds, joining, model_of, training
from forklake.errors import InvalidArgument, TableNotFound
from forklake.index.coverage import covered, uncovered
from forklake.model.entities import Table
from forklake.model.ids import IndexId, TableId
from forklake.model.index import Index, IndexFile, WrittenSegment
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress, Steps
from forklake.scan.whole_files import visible_files

ROUNDS = 5
"""How often work is planned again that others did meanwhile."""

Runner = Callable[[Sequence[Work], list[str]], Iterable[tuple[Work, WrittenSegment | None]]]
"""Does work, here or elsewhere; paths of new files are collected as they are written."""


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """What was built of one index; with `dry_run`, what would be, before anything is merged."""

    table: str
    index: str
    files: int
    """Data files that it covers now and did not before."""
    rows: int
    """Their rows, deleted ones included."""
    segments: int
    """New segments, those that were merged of others included."""
    merged: int
    """Segments that are merged into others now."""
    bytes: int
    """The size of the new segments; 0 with `dry_run`."""


@dataclass(frozen=True, slots=True)
class BuildResult(Shown):
    """What was built, by index; those that lacked nothing are not listed."""

    indexes: tuple[BuiltIndex, ...] = ()

    @property
    def files(self) -> int:
        """Data files that indexes cover now and did not before, over all indexes."""
        return sum(index.files for index in self.indexes)

    @property
    def segments(self) -> int:
        """New segments, over all indexes."""
        return sum(index.segments for index in self.indexes)


def build_named(
    scope: Scope,
    table: str | tuple[str, str] | QualifiedName | None,
    names: Sequence[str] | None,
    *,
    dry_run: bool = False,
    progress: OnProgress | None = None,
    runner: Runner | None = None,
) -> BuildResult:
    """Build the indexes of a table by its name, or of all; `runner` builds elsewhere."""
    wanted = checked_names(names)
    if table is None:
        return build_all(scope, wanted, dry_run=dry_run, progress=progress, runner=runner)
    draft = scope.read()
    found = draft.table_named(QualifiedName.parse(table))
    for name in wanted or ():
        draft.index_named(found, name)
    return build_table(scope, found.id, wanted, dry_run=dry_run, progress=progress, runner=runner)


def build_all(
    scope: Scope,
    names: Sequence[str] | None = None,
    *,
    own: bool = False,
    dry_run: bool = False,
    progress: OnProgress | None = None,
    runner: Runner | None = None,
) -> BuildResult:
    """Build the indexes of every table; with `own`, of data files that the catalog wrote itself."""
    found: list[BuiltIndex] = []
    for number in dict.fromkeys(index.table_id for index in scope.read().all_indexes()):
        try:
            found += build_table(
                scope, number, names, own=own, dry_run=dry_run, progress=progress, runner=runner
            ).indexes
        except TableNotFound:
            # Somebody has dropped it since the tables were listed.
            continue
    return BuildResult(tuple(found))


def build_table(
    scope: Scope,
    table: TableId,
    names: Collection[str] | None = None,
    *,
    own: bool = False,
    dry_run: bool = False,
    progress: OnProgress | None = None,
    runner: Runner | None = None,
) -> BuildResult:
    """Build the indexes of one table, or those that are named."""
    draft = scope.read()
    definition = draft.table(table)
    known = {name.casefold() for name in names or ()}
    indexes = [one for one in draft.indexes(definition) if names is None or one.name.casefold() in known]
    found = [
        _Building(scope, table, index.id, own, progress, runner or _here(scope)).run(dry_run)
        for index in indexes
    ]
    return BuildResult(tuple(one for one in found if one is not None and (one.segments or one.files)))


def checked_names(names: object) -> list[str] | None:
    """Names of indexes as users give them."""
    if names is None:
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):  # pyright: ignore
        raise InvalidArgument("names of indexes are given as a list of strings")
    return list(names)  # pyright: ignore


@dataclass(slots=True)
class _Building:
    """One index, while it is built."""

    scope: Scope
    table: TableId
    index: IndexId
    own: bool
    progress: OnProgress | None
    runner: Runner
    done: BuiltIndex | None = None
    has_no_model: bool = False

    def run(self, dry_run: bool) -> BuiltIndex | None:
        """Build until nothing is left to be done; None if somebody has dropped the index."""
        late = 0
        # Nobody knows whether a kind has models before it has trained one.
        self.has_no_model = dry_run
        while late < ROUNDS:
            draft = self.scope.read()
            table = draft.table(self.table)
            index = _find(draft, table, self.index)
            if index is None:
                return self.done
            if self.done is None:
                self.done = BuiltIndex(str(draft.name_of(table)), index.name, 0, 0, 0, 0, 0)
            work = self._planned(draft, table, index)
            if dry_run:
                for one in work:
                    self._count(one, 0)
                return self.done
            if not work:
                break
            late += not self._round(index, work)
        return self.done

    def _planned(self, draft: Draft, table: Table, index: Index) -> Sequence[Work]:
        known = [file for file in draft.index_files(table) if file.index_id == index.id]
        mine = draft.head.catalog_id
        visible = visible_files(draft.source(table))
        files = [file for file in uncovered(visible, known) if not self.own or file.source == mine]
        if not files:
            return joining(draft, table, index, known)
        train = None if self.has_no_model else training(draft, table, index, files, known)
        return builds(draft, table, index, files, known) if train is None else [train]

    def _round(self, index: Index, work: Sequence[Work]) -> bool:
        """Do what was planned; gives whether all of it was still wanted when it was done."""
        what = f"build {index.name} of {self.done.table}" if self.done is not None else index.name
        steps = Steps(self.progress, what, "rows", sum(one.rows for one in work))
        written: list[str] = []
        is_whole = True
        try:
            for one, made in self.runner(work, written):
                if made is None:
                    self.has_no_model = True
                elif self._commit(one, made):
                    self._count(one, made.file_size_bytes)
                else:
                    self.scope.context.discard([made.path])
                    is_whole = False
                written[:] = [path for path in written if made is None or path != made.path]
                steps.add(one.rows)
        except BaseException:
            self.scope.context.discard(written)
            raise
        return is_whole

    def _commit(self, work: Work, made: WrittenSegment) -> bool:
        """Let a segment count, unless others have done the same meanwhile."""

        def change(draft: Draft) -> bool:
            table = draft.table(self.table)
            index = _find(draft, table, self.index)
            known = [file for file in draft.index_files(table) if file.index_id == self.index]
            if index is None or not _is_wanted(work, index, known):
                return False
            if isinstance(work, Merge):
                draft.replace_index_files(table, [segment.id for segment in work.segments])
            draft.add_index_file(index, made)
            return True

        return self.scope.apply(change, written=[made.path], present=True)[0]

    def _count(self, work: Work, size: int) -> None:
        known = self.done
        if known is None or isinstance(work, Train):
            return
        builds = isinstance(work, Build)
        self.done = replace(
            known,
            files=known.files + (len(work.files) if builds else 0),
            rows=known.rows + (work.rows if builds else 0),
            segments=known.segments + 1,
            merged=known.merged + (0 if isinstance(work, Build) else len(work.segments)),
            bytes=known.bytes + size,
        )


def _find(draft: Draft, table: Table, index: IndexId) -> Index | None:
    return next((one for one in draft.indexes(table) if one.id == index), None)


def _is_wanted(work: Work, index: Index, known: Sequence[IndexFile]) -> bool:
    numbers = {file.id for file in known}
    match work:
        case Train():
            return model_of(index, known) is None
        case Build():
            has_model = work.model is None or work.model.id in numbers
            return has_model and covered(known).isdisjoint(work.files)
        case Merge():
            return numbers.issuperset(segment.id for segment in work.segments)


def _here(scope: Scope) -> Runner:
    def runner(work: Sequence[Work], written: list[str]) -> Iterator[tuple[Work, WrittenSegment | None]]:
        return ((one, one.run(scope.context.engine, written)) for one in work)

    return runner
