"""What a metadata database must be able to do. Backends hold only their differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

from forklake.errors import StoreError, StoreUnavailable, TransactionClosed
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.row_sets import RowSet
from forklake.store.statements import Dialect

Row = tuple[Any, ...]
Answer = Callable[[], list[Row]]
"""Rows that may still be on their way."""


PAUSES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56)
"""Seconds to wait before each new attempt after the database gave up: long enough for a server to restart."""


class UniqueViolation(StoreError):
    """A row with the same key is there already. Callers turn it into what it means."""


class Interrupted(StoreUnavailable):
    """The database gave up the transaction through no fault of ours; it may be tried again."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Numbers that were drawn for one commit, and where the counters stand after it."""

    snapshot_id: SnapshotId
    snapshot_time: datetime
    catalog_ids: tuple[int, ...]
    file_ids: tuple[int, ...]
    next_catalog_id: int
    next_file_id: int


@dataclass(frozen=True, slots=True)
class LockedHead:
    """Where a catalog stands that nobody else can commit to meanwhile."""

    snapshot_id: SnapshotId
    schema_version: int
    snapshot_time: datetime
    end_snapshot: SnapshotId | None
    """Not None if the catalog was dropped."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where a database is."""

    name: str
    """Its place: the path of a file, or a server, a database and a schema by their names."""
    identity: str
    """What stays when that is renamed, and is another for a copy."""


@dataclass(frozen=True, slots=True)
class Record:
    """A snapshot as it is stored, with what it did and where its catalog stands then."""

    catalog: CatalogId
    snapshot: SnapshotId
    time: datetime
    schema_version: int
    next_catalog_id: int
    next_file_id: int
    changes: str
    footprint: str
    author: str | None = None
    message: str | None = None
    extra: str | None = None


class Session(Protocol):
    """One open database transaction. Statements are given by name; their texts live in the `.sql` files."""

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run a query and return its rows."""
        ...

    def ask(self, statement: str, /, **params: object) -> Answer:
        """Run a query whose rows are wanted later, together with what follows until then."""
        ...

    def execute(self, statement: str, /, **params: object) -> None:
        """Run a statement that returns nothing."""
        ...

    def insert(self, into: RowSet, rows: Sequence[Row]) -> None:
        """Add rows to a table as one set; a taken key raises `UniqueViolation`, at the latest on commit."""
        ...

    def update(self, of: RowSet, rows: Sequence[Row]) -> None:
        """Give columns of rows that are there new values, as one set; each row has its keys first."""
        ...

    def end_rows(self, of: RowSet, rows: Sequence[Row], *, catalog: CatalogId, end: SnapshotId) -> None:
        """Set the end of a catalog's own live rows, named by their keys; refuse if one of them is missing."""
        ...

    def allocate(self, *, catalog_ids: int = 0, file_ids: int = 0) -> Allocation:
        """Draw the number of a snapshot, and numbers for what it creates."""
        ...

    def lock_head(
        self,
        catalog: CatalogId,
        *,
        only_at: SnapshotId | None = None,
        catalog_ids: int = 0,
        file_ids: int = 0,
    ) -> tuple[LockedHead, Allocation] | None:
        """Wait for the catalog's head, then draw numbers: they rise as it commits.

        None if there is no such catalog, or if it must stand at a certain snapshot and does not.
        """
        ...

    def record(self, record: Record) -> None:
        """Add a snapshot with what it did, and move the catalog's head to it."""
        ...

    def commit(self) -> None:
        """Make everything durable and end the transaction."""
        ...

    def rollback(self) -> None:
        """Undo everything and end the transaction; nothing happens if it has ended."""
        ...

    def __enter__(self) -> Self:
        """Use it as a block; the block must commit for anything to stay."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Roll back unless the block committed."""
        ...


class SchemaSession(Protocol):
    """A transaction that has the lake to itself, to change its tables. Statements are given as texts."""

    @property
    def opening(self) -> Sequence[str]:
        """The statements that it began with."""
        ...

    def query(self, text: str) -> list[Row]:
        """Run a query and return its rows."""
        ...

    def run_script(self, script: str) -> None:
        """Run statements, each of which ends with a semicolon."""
        ...

    def commit(self) -> None:
        """Make everything durable and end the transaction."""
        ...

    def __enter__(self) -> Self:
        """Use it as a block; the block must commit for anything to stay."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Roll back unless the block committed."""
        ...


class Database(Protocol):
    """A metadata database that is open."""

    @property
    def dialect(self) -> Dialect:
        """Which SQL it speaks."""
        ...

    @property
    def url(self) -> str:
        """Its URL, without a password."""
        ...

    def home(self) -> Home | None:
        """Where it is; None if that cannot be known."""
        ...

    def check_writable(self) -> None:
        """Refuse a database that is known to allow only reading, before any work is done."""
        ...

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run one query outside any transaction."""
        ...

    def transaction(self) -> Session:
        """Begin a transaction that may write. It rolls back unless it is committed."""
        ...

    def now(self) -> datetime:
        """The time on the database's clock: the only one that times are compared with."""
        ...

    def wait_for_commits(self, at: SnapshotId | datetime) -> None:
        """Wait for commits in flight that may come to stand at or before a snapshot, or a time."""
        ...

    def exists(self) -> bool:
        """Whether the database has a table `ducklake_metadata` where the lake would be."""
        ...

    def create_schema(self, settings: Mapping[str, str]) -> None:
        """Create the empty lake with its settings, all or nothing."""
        ...

    def begin_upgrade(self) -> SchemaSession:
        """Begin a transaction that may change the tables of a lake of any version; others wait."""
        ...

    def close(self) -> None:
        """Give back every connection."""
        ...


class OpenTransaction:
    """What sessions of every backend share: they end once, and leaving or losing one rolls it back."""

    _open: bool = False

    def _check_open(self) -> None:
        if not self._open:
            raise TransactionClosed("this database transaction has ended")

    def rollback(self) -> None:
        """Undo everything; a second end does nothing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Use it as a block; the block must commit for anything to stay."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Roll back unless the block committed."""
        self.rollback()

    def __del__(self) -> None:
        """Roll back a transaction that was forgotten, so that its locks go with it."""
        self.rollback()


def as_time(value: Any) -> datetime:
    """A stored time as an aware datetime in UTC, whichever form the backend returned it in."""
    timestamp = datetime.fromisoformat(value) if isinstance(value, str) else value
    return timestamp.astimezone(UTC)


def locked_head(row: Row) -> LockedHead:
    """A head as the statements that lock it return it."""
    snapshot, schema_version, timestamp, ended = row
    return LockedHead(SnapshotId(snapshot), schema_version, as_time(timestamp), ended)
