"""Rows written to a file that is no part of the lake: Parquet, CSV or JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from forklake.engine.local import Engine
from forklake.engine.sql_text import text
from forklake.errors import InvalidArgument, StorageError
from forklake.lazy.arrow import pa

FORMATS = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".pq": "FORMAT parquet, COMPRESSION zstd",
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".json": "FORMAT json, ARRAY",
    ".ndjson": "FORMAT json",
    ".jsonl": "FORMAT json",
}
"""What DuckDB's COPY is told, by the end of a file's name."""


def export_format(path: Path) -> str:
    """How a file of this name is written; refused if the name does not say."""
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        known = ", ".join(FORMATS)
        raise InvalidArgument(f"the name of {path} does not say what to write: let it end in one of {known}")
    return found


def export_rows(engine: Engine, reader: pa.RecordBatchReader, path: Path) -> int:
    """Write rows to a file, which is complete or not there. Returns how many there are."""
    options = export_format(path)
    counted = 0

    def count(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal counted
        counted += batch.num_rows
        return batch

    rows = pa.RecordBatchReader.from_batches(reader.schema, (count(batch) for batch in reader))
    # Beside it, so that it takes its place in one step.
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        _copy(engine, rows, part, options)
        _attempt(path, lambda: part.replace(path))
    finally:
        part.unlink(missing_ok=True)
    return counted


def _copy(engine: Engine, rows: pa.RecordBatchReader, part: Path, options: str) -> None:
    # DuckDB would make no message of its own of a folder that is not there.
    _attempt(part, part.touch)
    with engine.connection({}, None) as connection:
        connection.register("rows", rows)
        connection.execute(f"COPY (FROM rows) TO {text(str(part))} ({options})")


def _attempt(path: Path, action: Callable[[], object]) -> None:
    try:
        action()
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}") from error
