"""What one catalog did to the rows of a table, net, as it is to be done in another: values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from forklake.engine.compare import Examined, Outcome
from forklake.fork.touched_rows import no_positions
from forklake.lazy.arrow import pa
from forklake.model.ids import DataFileId, TableId
from forklake.scan.scan_plan import Positions
from forklake.store.file_states import FileState


@dataclass(frozen=True, slots=True)
class Added:
    """A file that the other side has not got."""

    state: FileState
    """As it is here."""
    dropped: Positions = field(default_factory=no_positions, compare=False)
    """Rows of it that the other side has elsewhere, or has deleted on purpose."""

    @property
    def live_rows(self) -> int:
        """How many rows come with it."""
        return self.state.live_rows - len(self.dropped)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Rows that both changed, as they shall be.

    They are written anew, and neither side's version stays: so that it is a change like any other, which
    comes to whoever has seen only one of the versions, or has decided otherwise.
    """

    rows: pa.Table
    """The versions that count, with their row ids; rows that are to be gone are not among them."""
    files: frozenset[DataFileId]
    """The files that the versions of both sides were in."""
    ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What is to be done to one table."""

    table: TableId
    added: tuple[Added, ...] = ()
    retired: tuple[FileState, ...] = ()
    """Files that go, as they are there."""
    deleted: tuple[tuple[FileState, Positions], ...] = ()
    """Files that lose rows, as they are there, and which rows."""
    looked: bool = False
    """Whether rows were added because none with their keys were there."""
    imported: frozenset[str] = frozenset()
    """Files that existed before and became part of the table."""
    examined: Examined | None = None
    """Rows that were compared one by one, if there were any."""
    resolved: Resolved | None = None
    """What was decided of rows that both changed."""
    restored: Mapping[DataFileId, DataFileId] = field(default_factory=dict[DataFileId, DataFileId])
    """Files that come as they were under another id, by those that go: no row changes by that."""

    is_back: bool = False
    """Whether the other side has not got the table: files that go show no rows there."""

    @property
    def shown(self) -> RowChanges:
        """The same without files that come back as they were, or that nobody saw."""
        if self.is_back:
            return replace(self, retired=(), deleted=())
        if not self.restored:
            return self
        back = set(self.restored.values())
        return replace(
            self,
            added=tuple(a for a in self.added if a.state.file.id not in back),
            retired=tuple(state for state in self.retired if state.file.id not in self.restored),
            restored={},
        )

    @property
    def rows_added(self) -> int:
        """Rows in new files; those of updates are among them."""
        decided = 0 if self.resolved is None else self.resolved.rows.num_rows
        return decided + sum(added.live_rows for added in self.added)

    @property
    def rows_removed(self) -> int:
        """Rows that are no longer where they were; those of updates are among them."""
        deleted = sum(len(positions) for _, positions in self.deleted)
        return deleted + sum(state.live_rows for state in self.retired)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.added or self.retired or self.deleted or self.resolved)

    @property
    def conflicts(self) -> int:
        """How many rows both changed, if nobody has decided what becomes of them."""
        if self.examined is None or self.resolved is not None:
            return 0
        return self.examined.count(Outcome.CONFLICT)
