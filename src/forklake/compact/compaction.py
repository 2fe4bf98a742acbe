"""The verbs of compaction: plan, run, commit. What others touch meanwhile is planned again, and only that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from forklake.commit.draft import Draft
from forklake.compact.inputs import inputs_of, rewrite_target
from forklake.compact.plan import ALL, Choice, Input, Rewrite, Target, plan_deletes, plan_merges
from forklake.compact.run import Rewritten, run
from forklake.compact.stage import stage
from forklake.context.lake_context import LakeContext
from forklake.context.scope import Scope
from forklake.display import Shown
from forklake.errors import InvalidArgument, TableNotFound
from forklake.model.ids import TableId
from forklake.model.progress import OnProgress, Steps

ROUNDS = 5
"""How often files that others got in between are tried again; they stay as they are then, until next time."""

Planner = Callable[[Target, Iterable[Input]], tuple[Rewrite, ...]]
Runner = Callable[[Sequence[Rewrite], list[str]], Iterable[Rewritten]]
"""Runs rewrites, here or elsewhere; paths of new files are collected as they are written."""


@dataclass(frozen=True, slots=True)
class CompactedTable:
    """The result of a compaction for one table; with `dry_run`, an estimate."""

    table: str
    files_in: int
    """Files that were rewritten; inlined rows count as one for each write."""
    files_out: int
    bytes_in: int
    bytes_out: int
    rows: int
    """Rows that were rewritten, unchanged."""
    rows_dropped: int
    """Deleted rows that were dropped."""
    given_up: int = 0
    """Files that other commits kept changing meanwhile, and that were left as they are."""


@dataclass(frozen=True, slots=True)
class CompactResult(Shown):
    """The result of a compaction by table; unchanged tables are not listed."""

    tables: tuple[CompactedTable, ...] = ()

    @property
    def files_in(self) -> int:
        """The number of files that were rewritten, over all tables."""
        return sum(table.files_in for table in self.tables)

    @property
    def files_out(self) -> int:
        """The number of new files."""
        return sum(table.files_out for table in self.tables)

    @property
    def bytes_in(self) -> int:
        """The size of the files that were rewritten."""
        return sum(table.bytes_in for table in self.tables)

    @property
    def bytes_out(self) -> int:
        """The size of the new files."""
        return sum(table.bytes_out for table in self.tables)

    @property
    def rows(self) -> int:
        """The number of rows that were rewritten."""
        return sum(table.rows for table in self.tables)


def merge_planner(min_files: object, choice: Choice = ALL) -> Planner:
    """Plans to merge small files, checked."""
    if not isinstance(min_files, int) or isinstance(min_files, bool) or min_files < 2:
        raise InvalidArgument(f"min_files is a whole number of at least 2, not {min_files!r}")
    return lambda target, inputs: plan_merges(target, inputs, least=min_files, choice=choice)


def delete_planner(threshold: object) -> Planner:
    """Plans to rewrite files with many deletes, checked."""
    if not isinstance(threshold, int | float) or isinstance(threshold, bool) or not 0 <= threshold <= 1:
        raise InvalidArgument(
            f"the threshold is the share of rows that are deleted, from 0 to 1, not {threshold!r}"
        )
    return lambda target, inputs: plan_deletes(target, inputs, threshold)


def planned(draft: Draft, table: TableId, context: LakeContext, planner: Planner) -> tuple[Rewrite, ...]:
    """The rewrites of one table."""
    found = draft.table(table)
    target = rewrite_target(draft, found, context.options)
    return planner(target, inputs_of(draft.source(found), target))


def compact_all(
    scope: Scope,
    planner: Planner,
    *,
    dry_run: bool = False,
    progress: OnProgress | None = None,
    runner: Runner | None = None,
) -> CompactResult:
    """Compact every table, each in a commit of its own unless a transaction collects them."""
    tables: list[CompactedTable] = []
    for number in scope.read().tables_with_files():
        try:
            found = compact_one(scope, number, planner, dry_run=dry_run, progress=progress, runner=runner)
            tables += found.tables
        except TableNotFound:
            # Somebody has dropped it since the tables were listed.
            continue
    return CompactResult(tuple(tables))


def compact_one(
    scope: Scope,
    table: TableId,
    planner: Planner,
    *,
    dry_run: bool = False,
    progress: OnProgress | None = None,
    runner: Runner | None = None,
) -> CompactResult:
    """Compact one table; the local engine runs what is planned, unless there is somebody else to do it."""
    if dry_run:
        draft = scope.read()
        rewrites = planned(draft, table, scope.context, planner)
        return CompactResult(_estimated(_name(draft, table), rewrites))
    name, done, late = rewrite_one(scope, table, planner, progress=progress, runner=runner)
    return CompactResult(_told(name, done, late))


def rewrite_one(
    scope: Scope,
    table: TableId,
    planner: Planner,
    *,
    progress: OnProgress | None = None,
    runner: Runner | None = None,
) -> tuple[str, list[Rewritten], list[Rewritten]]:
    """Compact one table: its name, the rewrites that were committed, and those that came too late."""
    done: list[Rewritten] = []
    late: list[Rewritten] = []
    name = ""
    for _ in range(ROUNDS):
        work = _Work(scope.context, table, planner, progress, runner)
        kept, _ = scope.apply(work.change, written=work.written, present=True)
        done += kept
        late, name = work.late, work.name
        if work.is_whole and not late:
            break
    return name, done, late


def commit_rewrites(scope: Scope, done: Sequence[Rewritten]) -> CompactResult:
    """Commit rewrites that were run elsewhere, as far as nobody has touched their files since.

    One that stands already counts as done: who does not know whether a commit went through tries again.
    """
    by_table: dict[TableId, list[Rewritten]] = {}
    for one in done:
        by_table.setdefault(one.rewrite.target.table.id, []).append(one)
    tables: list[CompactedTable] = []
    for number, found in by_table.items():

        def change(
            draft: Draft, number: TableId = number, found: Sequence[Rewritten] = tuple(found)
        ) -> tuple[str, list[Rewritten], list[Rewritten]]:
            table = draft.table(number)
            reader = draft.source(table).reader
            known = {file.path for file in reader.files()} if number >= 0 else set[str]()
            standing = [one for one in found if one.files and known.issuperset(one.paths)]
            fresh = [one for one in found if one not in standing]
            kept, late = stage(draft, table, fresh, elsewhere=True)
            return _name(draft, number), [*standing, *kept], late

        (name, kept, late), _ = scope.apply(change, present=True)
        # Files of those that are late are left to the collection of orphans: it alone knows who needs them.
        tables += _told(name, kept, late)
    return CompactResult(tuple(tables))


@dataclass(slots=True)
class _Work:
    """One round on one table. The commit may be tried several times; what was rewritten once is kept."""

    context: LakeContext
    table: TableId
    planner: Planner
    progress: OnProgress | None
    runner: Runner | None
    """What runs rewrites elsewhere; None to run them here."""
    written: list[str] = field(default_factory=list[str])
    late: list[Rewritten] = field(default_factory=list[Rewritten])
    name: str = ""
    is_whole: bool = False
    """Whether all that was planned was run."""
    _done: list[Rewritten] | None = None

    def change(self, draft: Draft) -> list[Rewritten]:
        """Rewrite files the first time; then let those count that nobody has touched since."""
        self.name = _name(draft, self.table)
        if self._done is None:
            self._done = []
            self._run(planned(draft, self.table, self.context, self.planner))
        elsewhere = self.runner is not None
        self._done, late = stage(draft, draft.table(self.table), self._done, elsewhere=elsewhere)
        # The commit that they were meant for was refused, so nothing refers to their files.
        self._discard(late)
        self.late += late
        return self._done

    def _run(self, rewrites: Sequence[Rewrite]) -> None:
        done = self._done if self._done is not None else []
        total = sum(len(rewrite.inputs) for rewrite in rewrites)
        steps = Steps(self.progress, f"compact {self.name}", "files", total)
        runner = _locally(self.context) if self.runner is None else self.runner
        for one in runner(rewrites, self.written):
            done.append(one)
            steps.add(len(one.rewrite.inputs))
        self.is_whole = True

    def _discard(self, late: Sequence[Rewritten]) -> None:
        gone = {path for one in late for path in one.paths}
        self.context.discard(gone)
        self.written[:] = [path for path in self.written if path not in gone]


def _locally(context: LakeContext) -> Runner:
    def runner(rewrites: Sequence[Rewrite], written: list[str]) -> Iterable[Rewritten]:
        return (run(rewrite, context.engine, written) for rewrite in rewrites)

    return runner


def _name(draft: Draft, table: TableId) -> str:
    return str(draft.name_of(draft.table(table)))


def _told(name: str, done: Sequence[Rewritten], late: Sequence[Rewritten]) -> tuple[CompactedTable, ...]:
    if not (done or late):
        return ()
    inputs = [one for rewritten in done for one in rewritten.rewrite.inputs]
    files = [file for rewritten in done for file in rewritten.files]
    return (
        CompactedTable(
            name,
            len(inputs),
            len(files),
            sum(one.file.file_size_bytes for one in inputs),
            sum(file.file_size_bytes for file in files),
            sum(file.record_count for file in files),
            sum(one.deleted_rows for one in inputs),
            sum(len(rewritten.rewrite.inputs) for rewritten in late),
        ),
    )


def _estimated(name: str, rewrites: Sequence[Rewrite]) -> tuple[CompactedTable, ...]:
    if not rewrites:
        return ()
    inputs = [one for rewrite in rewrites for one in rewrite.inputs]
    return (
        CompactedTable(
            name,
            len(inputs),
            sum(bool(rewrite.live_rows) for rewrite in rewrites),
            sum(one.file.file_size_bytes for one in inputs),
            sum(one.live_bytes for one in inputs),
            sum(one.live_rows for one in inputs),
            sum(one.deleted_rows for one in inputs),
        ),
    )
