"""DuckDB's errors in our words."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import duckdb

from forklake.data.storage import Storage
from forklake.errors import EngineError, ForklakeError, InvalidPredicate, StorageError
from forklake.scan.plan import ScanPlan


@contextmanager
def translated(storage: Storage, plan: ScanPlan | None) -> Generator[None]:
    """Errors of the block become ours."""
    try:
        yield
    except duckdb.Error as error:
        raise _translation(storage, plan, error) from error


def _translation(storage: Storage, plan: ScanPlan | None, error: duckdb.Error) -> ForklakeError:
    message = storage.s3.options.hidden(str(error).strip().partition("\n")[0])
    file = _file_in(storage, plan, str(error))
    if file is not None:
        return StorageError(f"{file} cannot be read: {message}; restore it")
    match error:
        case duckdb.IOException() | duckdb.HTTPException():
            return StorageError(f"a file cannot be read: {message}")
        case duckdb.ParserException() | duckdb.BinderException() | duckdb.CatalogException():
            return InvalidPredicate(f"DuckDB does not understand the expression: {message}")
        case duckdb.ConversionException() | duckdb.InvalidInputException() | duckdb.OutOfRangeException():
            return InvalidPredicate(f"the expression fails on the rows it meets: {message}")
        case _:
            return EngineError(f"DuckDB failed: {message}")


def _file_in(storage: Storage, plan: ScanPlan | None, message: str) -> str | None:
    """The file that an error speaks of."""
    for scanned in () if plan is None else plan.files:
        address = storage.address(scanned.file.path, scanned.file.path_is_relative)
        if address in message:
            return address
    return None
