"""Rows of files that are no part of the lake: CSV, Parquet and JSON, streamed by the local engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from forklake.api.result_formats import ResultFormats
from forklake.engine.errors import about_files
from forklake.engine.local import Engine
from forklake.engine.sql_text import text
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.names import quoted

Paths = str | Path | Sequence[str | Path]

_READERS = {"csv": "read_csv", "parquet": "read_parquet", "json": "read_json", "ndjson": "read_ndjson"}
_SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json",
    ".ndjson": "ndjson", ".jsonl": "ndjson",
}  # fmt: skip
_COMPRESSED = (".gz", ".zst")
_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, slots=True, repr=False)
class FileRows(ResultFormats):
    """Rows of files, streamed in batches each time they are used."""

    _engine: Engine
    _paths: tuple[str, ...]
    _call: str

    def __repr__(self) -> str:
        """Of which files."""
        return f"<FileRows of {', '.join(self._paths)}>"

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the files; for CSV and JSON, inferred from a sample."""
        with about_files(self._paths):
            return self._engine.table(f"FROM {self._call} LIMIT 0", {}).schema

    def count(self) -> int:
        """The number of rows."""
        with about_files(self._paths):
            return self._engine.table(f"FROM {self._call} SELECT count(*) AS n", {}).column("n")[0].as_py()

    def to_arrow(self) -> pa.Table:
        """Read all rows as an Arrow table."""
        with about_files(self._paths):
            return self._engine.table(f"FROM {self._call}", {})

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows in batches, with bounded memory."""
        with about_files(self._paths):
            yield from self._engine.stream(f"FROM {self._call}", {})


def read_files(engine: Engine, given: Paths, format: str | None, options: Mapping[str, object]) -> FileRows:
    """Rows of files by their paths or patterns; the format follows from their names if it is not given."""
    listed: list[object] = list(given) if isinstance(given, list | tuple) else [given]
    if not listed:
        raise InvalidArgument("there is no file to read: give a path, a pattern, or a list of them")
    paths = tuple(_path(engine, one) for one in listed)
    reader = _READERS[_format(paths, format)]
    arguments = [f"[{', '.join(map(text, paths))}]"]
    for name, value in options.items():
        if not _OPTION.match(name):
            raise InvalidArgument(f"{name!r} is no option of a reader")
        arguments.append(f"{name} = {_value(value)}")
    return FileRows(engine, paths, f"{reader}({', '.join(arguments)})")


def _path(engine: Engine, given: object) -> str:
    if not isinstance(given, str | Path):
        raise InvalidArgument(f"a file is named by a path, not by {type(given).__name__}")
    path = str(given)
    if not path or "\0" in path:
        raise InvalidArgument(f"{path!r} is no path")
    scheme = _SCHEME.match(path)
    if scheme is None:
        return str(Path(path).expanduser())
    if scheme[1] == "file":
        return path
    if scheme[1] != "s3" or engine.storage.is_local:
        raise InvalidArgument(
            f"{path[:80]} cannot be read by this lake: files on disk can, and buckets if its data path is "
            "in one; pass a relation of your own DuckDB instead"
        )
    return path


def _format(paths: Sequence[str], given: str | None) -> str:
    if given is not None:
        if given not in _READERS:
            raise InvalidArgument(f"there are the formats {', '.join(_READERS)}, not {given!r}")
        return given
    found = {_suffix(path) for path in paths}
    known = {_SUFFIXES.get(suffix) for suffix in found}
    if len(known) != 1 or None in known:
        raise InvalidArgument(
            f"what {', '.join(paths)[:80]} holds does not follow from its name: "
            f"pass format={' or '.join(map(repr, _READERS))}"
        )
    return str(known.pop())


def _suffix(path: str) -> str:
    name = PurePosixPath(path.replace("\\", "/"))
    return (name.with_suffix("") if name.suffix.lower() in _COMPRESSED else name).suffix.lower()


def _value(value: object) -> str:
    """An option as SQL."""
    match value:
        case bool() | int() | float():
            return str(value)
        case str():
            return text(value)
        case Mapping():
            return "{" + ", ".join(f"{quoted(str(key))}: {_value(one)}" for key, one in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
        case _:
            raise InvalidArgument(
                f"an option is a number, a text, a list or a dict, not {type(value).__name__}"
            )
