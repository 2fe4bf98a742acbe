"""The exceptions of DB-API 2.0, and which of them each error of forklake becomes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from forklake import errors


class Warning(Exception):
    """Something that should be known of a statement that was run; nothing raises it."""


class Error(errors.ForklakeError):
    """The base of all errors of the DB-API. The error of forklake that led to it is its `__cause__`."""


class InterfaceError(Error):
    """The DB-API itself is used wrongly: a connection that was closed, a package that is missing."""


class DatabaseError(Error):
    """The base of errors that concern the lake."""


class DataError(DatabaseError):
    """Values do not fit."""


class OperationalError(DatabaseError):
    """The database, the storage, or another commit stands in the way: another try may succeed."""


class IntegrityError(DatabaseError):
    """A column that must have a value would have none."""


class InternalError(DatabaseError):
    """The metadata contradicts itself."""


class ProgrammingError(DatabaseError):
    """The statement is wrong, or names what is not there."""


class NotSupportedError(DatabaseError):
    """The lake cannot do that."""


_BECOMES: tuple[tuple[type[errors.ForklakeError], type[Error]], ...] = (
    (errors.CorruptMetadata, InternalError),
    (errors.InvalidUrl, InterfaceError),
    (errors.MissingDependency, InterfaceError),
    (errors.StoreError, OperationalError),
    (errors.StorageError, OperationalError),
    (errors.EngineError, OperationalError),
    (errors.CommitConflict, OperationalError),
    (errors.CommittedBefore, OperationalError),
    (errors.ReservationError, OperationalError),
    (errors.StatementLimit, OperationalError),
    (errors.NullNotAllowed, IntegrityError),
    (errors.InvalidData, DataError),
)
"""From the particular to the general; whatever is not here is a mistake in the statement."""


def error_of(error: errors.ForklakeError) -> Error:
    """The error of the DB-API that an error of forklake becomes."""
    kind = next((ours for theirs, ours in _BECOMES if isinstance(error, theirs)), ProgrammingError)
    return kind(str(error))


@contextmanager
def translated() -> Generator[None]:
    """Errors of forklake in the block become those of the DB-API."""
    try:
        yield
    except Error:
        raise
    except errors.ForklakeError as error:
        raise error_of(error) from error
