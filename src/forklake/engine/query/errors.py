"""What DuckDB says of SQL that users wrote, in our words."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from forklake.data.storage.storage import Storage
from forklake.engine.errors import unreadable_file
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID
from forklake.errors import EngineError, ForklakeError, InvalidData, InvalidSql, StatementLimit, raise_alone
from forklake.lazy.duckdb import duckdb
from forklake.scan.scan_plan import ScanPlan


@contextmanager
def refused(storage: Storage, plans: Sequence[ScanPlan] = ()) -> Generator[None]:
    """Errors of DuckDB in the block become ours."""
    try:
        yield
    except duckdb.Error as error:
        translation = _translation(storage, plans, error)
        if storage.s3.options.hidden(str(error)) != str(error):
            raise_alone(translation)
        raise translation from error
    except RuntimeError as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from error
        raise


def _translation(storage: Storage, plans: Sequence[ScanPlan], error: duckdb.Error) -> ForklakeError:
    message = storage.s3.options.hidden(str(error).strip())
    for plan in plans:
        broken = unreadable_file(storage, plan, message)
        if broken is not None:
            return broken
    kind, _, reason = message.partition(": ")
    told = reason or kind
    match error:
        case duckdb.ParserException() | duckdb.BinderException() | duckdb.CatalogException():
            return InvalidSql(_without_own(told))
        case duckdb.ConversionException() | duckdb.OutOfRangeException() | duckdb.ConstraintException():
            # What follows quotes the statement, which may be one of ours.
            return InvalidData(told.partition("\n\nLINE ")[0])
        case duckdb.InvalidInputException() | duckdb.TypeMismatchException():
            return InvalidData(told)
        case duckdb.NotImplementedException():
            return InvalidSql(f"DuckDB does not do that: {told}")
        case duckdb.PermissionException():
            return InvalidSql(f"{told.partition(' - ')[0]}: it is outside of the lake, and was not allowed")
        case duckdb.InterruptException():
            return StatementLimit("the statement was interrupted")
        case duckdb.OutOfMemoryException():
            return StatementLimit(f"the statement needs more memory than it may use: {told.splitlines()[0]}")
        case _:
            return EngineError(f"DuckDB failed: {message}")


def _without_own(told: str) -> str:
    """A message that proposes no columns of ours, by which rows are found again."""
    before, proposed, listed = told.partition("\nCandidate bindings: ")
    line, *after = listed.split("\n")
    own = {f'"{name}"' for name in (PLACE, POSITION, ROW_ID)}
    names = [name for name in line.split(", ") if name.rpartition(".")[2] not in own]
    return "\n".join([before + (f"{proposed}{', '.join(names)}" if names else ""), *after])
