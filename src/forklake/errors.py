"""Every exception that forklake raises, in one tree.

ForklakeError
├── StoreError                  the metadata database
│   ├── InvalidUrl                  the URL of a lake or of its data cannot be parsed
│   ├── StoreUnavailable            nothing answers there, or access is denied
│   ├── StoreBusy                   another process holds the database
│   ├── ReadOnlyStore               the database cannot be written
│   ├── MetadataNotFound            no lake has been created there
│   ├── MetadataExists              a lake is there already
│   ├── UnsupportedVersion          a lake of another version, or another format
│   └── CorruptMetadata             the rows contradict each other
├── NamingError                 (abstract) a name that does not fit
│   ├── InvalidName                 no name at all, too long, or unprintable
│   ├── AmbiguousName               two things have it, if case makes no difference
│   ├── NotFound                    (abstract) CatalogNotFound, SchemaNotFound, TableNotFound,
│   │                               ColumnNotFound, ViewNotFound, MacroNotFound, IndexNotFound,
│   │                               SnapshotNotFound
│   └── AlreadyExists               (abstract) CatalogExists, SchemaExists, TableExists,
│                                   ViewExists, MacroExists, ColumnExists, IndexExists
├── InvalidSchemaChange         a change that would make data unreadable
│   ├── DuplicateColumn             two columns of one name
│   └── SchemaNotEmpty              a schema that still holds something
├── UnknownType                 a type that forklake, or the engine asked, does not know
├── InvalidPredicate            a condition that does not parse, or names an unknown column
├── InvalidData                 values that do not fit their table
│   └── NullNotAllowed              NULL for a column that is NOT NULL
├── InvalidArgument             an argument of a wrong type or value
│   ├── InvalidIndex                an index that its kind cannot have
│   ├── InvalidQuery                a query of a search that does not parse, or does not fit its index
│   └── InvalidSql                  a statement that does not parse, or that cannot be used here
├── StatementLimit              a statement that was ended, because it took too much or was interrupted
├── DataPathOverlap             two catalogs would write into one folder
├── DataPathMismatch            the lake keeps its files elsewhere
├── StorageError                the disk or bucket with the data files
│   ├── FileMissing                 a file that should be there is not
│   └── UnreadableIndex             an index file is torn, or of a newer format: the rows are scanned instead
├── EngineError                 DuckDB could not run what it was given
├── TransactionClosed           a transaction used after its end, or after a statement of it failed
├── NotPicklable                a handle that cannot be sent to another process
├── CommitConflict              another commit changed the same thing first
│   └── MergeConflict
├── CommittedBefore             work of this name was committed, and is not done twice
├── ReservationError            (abstract) a distributed snapshot cannot be committed
│   ├── ReservationExpired          its time ran out
│   ├── ReservationConsumed         it was committed or cancelled before
│   └── InvalidManifest             a manifest is truncated, or belongs elsewhere
└── MissingDependency           an optional package is not installed

And one warning: IndexNotBuilt, of rows that were committed without a segment of an index.
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from forklake.lazy import LazyModule

if TYPE_CHECKING:
    from forklake import display
    from forklake.model.changes import Conflict
else:
    # Few errors are shown in notebooks.
    display = LazyModule("forklake.display")


def raise_alone(error: ForklakeError) -> NoReturn:
    """Raise an error that shows nothing of the one that led to it, which may tell a password."""
    try:
        raise error from None
    finally:
        error.__context__ = None


class ForklakeError(Exception):
    """The base of all errors of forklake."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Let every error, with the values that it carries, reach another process."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # pyright: ignore


class StoreError(ForklakeError):
    """The metadata database did not do what was asked."""


class InvalidUrl(StoreError):
    """The URL of a lake or of its data cannot be parsed."""


class StoreUnavailable(StoreError):
    """The metadata database does not answer, or denies access."""


class StoreBusy(StoreError):
    """Another process holds the database."""


class ReadOnlyStore(StoreError):
    """The database can be read but not written."""


class MetadataNotFound(StoreError):
    """There is no lake at this URL."""


class MetadataExists(StoreError):
    """There is a lake at this URL already."""


class UnsupportedVersion(StoreError):
    """The metadata is of another version or format."""


class CorruptMetadata(StoreError):
    """Rows of the metadata contradict each other."""


class NamingError(ForklakeError):
    """A name does not fit."""


class InvalidName(NamingError):
    """A name is empty, too long, or has control characters."""


class AmbiguousName(NamingError):
    """Several things have this name, if case makes no difference, and none has it as it is written."""


class NotFound(NamingError):
    """Nothing visible has this name."""


class CatalogNotFound(NotFound):
    """No live catalog has this name."""


class SchemaNotFound(NotFound):
    """No schema of the catalog has this name."""


class TableNotFound(NotFound):
    """No table of the schema has this name."""


class ColumnNotFound(NotFound):
    """No column of the table has this name."""


class ViewNotFound(NotFound):
    """No view of the schema has this name."""


class MacroNotFound(NotFound):
    """No macro of the schema has this name."""


class IndexNotFound(NotFound):
    """The table has no index of this name."""


class SnapshotNotFound(NotFound):
    """No such snapshot, or it is not part of the catalog's history."""


class AlreadyExists(NamingError):
    """The name is taken."""


class CatalogExists(AlreadyExists):
    """A live catalog has this name."""


class SchemaExists(AlreadyExists):
    """The catalog has a schema of this name."""


class TableExists(AlreadyExists):
    """The schema has a table of this name."""


class ViewExists(AlreadyExists):
    """The schema has a view of this name."""


class MacroExists(AlreadyExists):
    """The schema has a macro of this name."""


class IndexExists(AlreadyExists):
    """The table has an index of this name."""


class ColumnExists(AlreadyExists):
    """The table has a column of this name."""


class InvalidSchemaChange(ForklakeError):
    """A schema change would make data unreadable or ambiguous."""


class DuplicateColumn(InvalidSchemaChange):
    """Two columns of one table would have the same name."""


class SchemaNotEmpty(InvalidSchemaChange):
    """The schema still holds tables, views or macros."""


class UnknownType(ForklakeError):
    """A type that forklake, or the engine asked, does not know."""


class InvalidPredicate(ForklakeError):
    """A condition does not parse, or names a column that does not exist."""


class InvalidData(ForklakeError):
    """Values do not fit the table they are meant for."""


class NullNotAllowed(InvalidData):
    """A column that is NOT NULL would have no value."""


class InvalidArgument(ForklakeError):
    """An argument has a wrong type or value."""


class InvalidIndex(InvalidArgument):
    """An index of an unknown kind, or one that its kind cannot have: its columns or parameters do not fit."""


class IndexNotBuilt(UserWarning):
    """A warning: rows were committed, and an index of them could not be built with them."""


class InvalidQuery(InvalidArgument):
    """A query of a search does not parse, or does not fit the index: another dimension, no text."""


class InvalidSql(InvalidArgument):
    """A SQL statement does not parse, or asks for what is not there or not allowed."""

    def __init__(
        self, message: str, line: int | None = None, column: int | None = None, token: str | None = None
    ) -> None:
        """Keep where in the text that is, counted from 1, and what stands there, if it is known."""
        super().__init__(message)
        self.line = line
        self.column = column
        self.token = token


class StatementLimit(ForklakeError):
    """A statement took more time, memory or rows than it may, or was interrupted."""


class DataPathOverlap(ForklakeError):
    """Two catalogs would write into one folder."""


class DataPathMismatch(ForklakeError):
    """The lake keeps its data files somewhere else."""


class StorageError(ForklakeError):
    """The disk or bucket with the data files did not do what was asked."""


class FileMissing(StorageError):
    """A file that should be there is not."""


class UnreadableIndex(StorageError):
    """An index file is torn, or of a format that this version does not know: scan its data files instead."""


class EngineError(ForklakeError):
    """DuckDB or Spark failed."""


class TransactionClosed(ForklakeError):
    """The transaction was committed or rolled back before, or a statement of it has failed."""


class NotPicklable(ForklakeError, TypeError):
    """A handle belongs to the process that opened it, and cannot be pickled."""


class CommitConflict(ForklakeError):
    """Another commit conflicts with this one; nothing was written."""

    def __init__(self, message: str, conflicts: Sequence[Conflict] = ()) -> None:
        """Keep what collided as values, beside the sentence."""
        super().__init__(message)
        self.conflicts = tuple(conflicts)

    def _repr_html_(self) -> str:
        """For notebooks: the sentence, and what collided."""
        listed = display.html_list(self.conflicts, title="conflicts")
        return display.html_title(type(self).__name__) + display.html_message(str(self)) + listed


class MergeConflict(CommitConflict):
    """Both catalogs changed the same rows or definitions; nothing was written."""


class CommittedBefore(ForklakeError):
    """Work of this name (`once=`) was committed before; nothing was written."""

    def __init__(self, message: str, snapshot_id: int) -> None:
        """Keep the snapshot that it became."""
        super().__init__(message)
        self.snapshot_id = snapshot_id


class ReservationError(ForklakeError):
    """A distributed snapshot cannot be committed."""


class ReservationExpired(ReservationError):
    """The distributed snapshot expired before it was committed."""


class ReservationConsumed(ReservationError):
    """The distributed snapshot was committed or cancelled before."""

    def __init__(self, message: str, snapshot_id: int | None = None) -> None:
        """Keep the snapshot that it became, if it was committed."""
        super().__init__(message)
        self.snapshot_id = snapshot_id


class InvalidManifest(ReservationError):
    """A manifest is truncated, or belongs to another distributed snapshot."""


class MissingDependency(ForklakeError):
    """An optional package is needed and not installed."""
