"""DuckDB's errors in our words."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

from forklake.data.storage.storage import Storage
from forklake.engine.remote_files import literal
from forklake.errors import (
    EngineError,
    FileMissing,
    ForklakeError,
    InvalidData,
    InvalidPredicate,
    StorageError,
    raise_alone,
)
from forklake.lazy.arrow import pa, pq
from forklake.lazy.duckdb import duckdb
from forklake.model.table.files import DataFile
from forklake.scan.scan_plan import ScanPlan


@contextmanager
def translated(storage: Storage, plan: ScanPlan | None) -> Generator[None]:
    """Errors of the block become ours."""
    try:
        yield
    except duckdb.Error as error:
        translation = _translation(storage, plan, error)
        if storage.s3.options.hidden(str(error)) != str(error):
            raise_alone(translation)
        raise translation from error


def batches_of(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches of a result. Of an error that meets a later one, Arrow hands on the text alone."""
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (OSError, pa.ArrowException) as error:
            raise _kind_of(str(error))(str(error)) from error
        yield batch


def _kind_of(message: str) -> type[duckdb.Error]:
    """The class of an error by the beginning of its text, such as "Out of Range Error: "."""
    name = message.partition(" Error:")[0].replace(" ", "").lower() + "exception"
    kinds = [duckdb.Error]
    for kind in kinds:
        if kind.__name__.lower() == name:
            return kind
        kinds += kind.__subclasses__()
    return duckdb.Error


@contextmanager
def about_files(paths: Sequence[str]) -> Generator[None]:
    """Errors of DuckDB that were translated in the block are those of files that somebody wants to read."""
    try:
        yield
    except ForklakeError as error:
        if not isinstance(error.__cause__, duckdb.Error):
            raise
        message = " ".join(line.strip() for line in str(error.__cause__).strip().splitlines()[:3])
        shown = ", ".join(paths)
        if "No files found" in message:
            raise FileMissing(f"there is no file {shown}: see whether the path is right") from error
        raise InvalidData(f"{shown} cannot be read: {message}") from error


def _translation(storage: Storage, plan: ScanPlan | None, error: duckdb.Error) -> ForklakeError:
    # What follows quotes our own query, and files stand there that have nothing to do with it.
    message = str(error).strip().partition("\n\nLINE ")[0]
    message = storage.s3.options.hidden(message.partition("\n")[0])
    file = _file_in(storage, plan, message)
    if file is not None:
        return _unreadable(storage, plan, file, message)
    match error:
        case duckdb.ParserException() | duckdb.BinderException() | duckdb.CatalogException():
            return InvalidPredicate(f"DuckDB does not understand the expression: {message}")
        case duckdb.ConversionException() | duckdb.InvalidInputException() | duckdb.OutOfRangeException():
            return InvalidPredicate(f"the expression fails on the rows it meets: {message}")
        case duckdb.HTTPException():
            return StorageError(f"a file cannot be read: {message}")
        case _:
            broken = _broken_file(storage, plan)
            if broken is not None:
                return _unreadable(storage, plan, broken, message)
            return EngineError(f"DuckDB failed: {message}")


def unreadable_file(storage: Storage, plan: ScanPlan, message: str) -> ForklakeError | None:
    """What is wrong with the file that a message of DuckDB speaks of, if it speaks of one of a plan."""
    file = _file_in(storage, plan, message)
    return None if file is None else _unreadable(storage, plan, file, message)


def missing_at(plan: ScanPlan, error: FileMissing) -> FileMissing:
    """The same, with the snapshot that names the file: a scan may be run long after it was planned."""
    return FileMissing(
        f'{error}; snapshot {plan.at} of table "{plan.table.name}" names it: if the scan was planned '
        "longer ago than collections keep files, plan it again"
    )


@contextmanager
def naming_snapshot(plan: ScanPlan) -> Generator[None]:
    """Files that are missing in the block are those of a plan."""
    try:
        yield
    except FileMissing as error:
        raise missing_at(plan, error) from error


def _unreadable(storage: Storage, plan: ScanPlan | None, file: DataFile, message: str) -> StorageError:
    address = storage.address(file.path, file.path_is_relative)
    try:
        storage.info(file.path, file.path_is_relative)
    except StorageError as error:
        # That it is missing, or that nobody may look at it, says more.
        return missing_at(plan, error) if plan is not None and isinstance(error, FileMissing) else error
    return StorageError(f"{address} cannot be read: {message}; restore it")


def _file_in(storage: Storage, plan: ScanPlan | None, message: str) -> DataFile | None:
    """The file that an error speaks of."""
    for scanned in () if plan is None else plan.files:
        address = storage.address(scanned.file.path, scanned.file.path_is_relative)
        # DuckDB quotes a pattern as we wrote it, and an object of a bucket by its address in the web.
        key = address.removeprefix("s3://").partition("/")[2] if address.startswith("s3://") else address
        if any(name in message for name in (address, literal(address), key, quote(key))):
            return scanned.file
    return None


def _broken_file(storage: Storage, plan: ScanPlan | None) -> DataFile | None:
    """The first file without a footer that makes sense, which DuckDB does not always name."""
    for scanned in () if plan is None else plan.files:
        try:
            with storage.open_input(scanned.file.path, scanned.file.path_is_relative) as stream:
                pq.read_metadata(stream)
        except (pa.ArrowException, StorageError):
            return scanned.file
    return None
