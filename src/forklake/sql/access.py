"""What SQL of users may reach beside tables: nothing outside of the lake, unless it was allowed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forklake.errors import InvalidSql

_READERS = frozenset(
    {
        *("read_parquet", "parquet_scan", "parquet_metadata", "parquet_schema", "parquet_file_metadata"),
        *("parquet_kv_metadata", "parquet_bloom_probe", "parquet_full_metadata"),
        *("read_csv", "read_csv_auto", "sniff_csv", "read_json", "read_json_auto", "read_json_objects"),
        *("read_json_objects_auto", "read_ndjson", "read_ndjson_auto", "read_ndjson_objects"),
        *("read_text", "read_blob", "glob"),
    }
)
"""Table functions that read files that their first argument names."""
_HARMLESS = frozenset(
    {
        *("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree"),
        *("summary", "test_all_types", "icu_calendar_names", "pg_timezone_names", "duckdb_keywords"),
        *("duckdb_types", "duckdb_optimizers", "pragma_version", "sql_auto_complete"),
    }
)
_WILD = r"[*?\[{]"
_REFUSED_CALLS = frozenset(
    {"getenv", "current_setting", "which_secret", "write_log", "json_execute_serialized_sql"}
)
"""Functions that tell about this process."""


def _nowhere() -> None:
    """No folder."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a statement may do."""

    folders: tuple[str, ...] = ()
    """Folders and URLs whose files it may read, and write by COPY."""
    protected: tuple[str, ...] = ()
    """Folders inside of these that it may not: those of the lake, which other catalogs keep files in."""
    own: Callable[[], str | None] = _nowhere
    """The folder of the catalog itself, whose files it may read; None if others keep files there too."""
    read_only: bool = False
    elsewhere: Callable[[], Iterable[str]] = tuple
    """Where forks keep their files, which are protected too; asked only if a path is looked at."""

    @property
    def directories(self) -> frozenset[str]:
        """For DuckDB, which checks it again."""
        return frozenset(folder if folder.endswith("/") else f"{folder}/" for folder in self.folders)

    def check_calls(self, calls: Iterable[Sequence[str]]) -> None:
        """Refuse functions that tell what is not in the lake."""
        for parts in calls:
            if parts and parts[-1].lower() in _REFUSED_CALLS:
                raise InvalidSql(
                    f"{parts[-1]}() cannot be used here: it tells about this process, not the lake"
                )

    def needs_values(self, parts: Sequence[str], call: Callable[..., object]) -> bool:
        """Whether somebody looks at the arguments of a table function before DuckDB does."""
        return parts[-1].lower() not in _HARMLESS

    def check_table_function(self, parts: Sequence[str], arguments: Sequence[Any]) -> None:
        """Refuse table functions that reach outside of the lake."""
        name = parts[-1].lower()
        if name in _HARMLESS:
            return
        if name not in _READERS:
            raise InvalidSql(f"there is no function {name}() for FROM and CALL")
        given = arguments[0] if arguments else None
        for path in given if isinstance(given, list | tuple) else [given]:
            self.check_read(path, f"{name}()")

    def is_reader(self, parts: Sequence[str]) -> bool:
        """Whether a table function reads the files that its first argument names."""
        return parts[-1].lower() in _READERS

    def check_written(self, path: object, what: str) -> str:
        """Refuse to write where nobody allowed it, or around files of the lake."""
        if isinstance(path, str) and self._is_allowed(path):
            real = _resolved(path)
            if any(_is_inside(folder, real) for folder in self._protected()):
                raise InvalidSql(f"{what} would write to {path!r}, where files of the lake are")
            return path
        raise self._refusal(path, what)

    def check_read(self, path: object, what: str) -> None:
        """Refuse to read a file that nobody allowed."""
        if not (isinstance(path, str) and (self._is_allowed(path) or self._is_own(path))):
            raise self._refusal(path, what)

    def _protected(self) -> Iterator[str]:
        return map(_resolved, (*self.protected, *self.elsewhere()))

    def _refusal(self, path: object, what: str) -> InvalidSql:
        return InvalidSql(
            f"{what} would reach {path!r}, which is outside of the lake: "
            "allow its folder, as in sql(text, allow=['/data/in'])"
        )

    def is_file(self, name: str) -> bool:
        """Whether a name after FROM is that of a file; refused if nobody allowed it."""
        if "/" not in name and not re.search(r"\.(parquet|csv|tsv|json|jsonl|ndjson)(\.\w+)?\Z", name, re.I):
            return False
        self.check_read(name, "FROM")
        return True

    def _is_own(self, path: str) -> bool:
        """Whether a file is the catalog's own; who keeps files there is only asked if that matters."""
        if _is_odd(path):
            return False
        real, folder = _resolved(path), self.own()
        if folder is None or not _is_inside(real, _resolved(folder)):
            return False
        return not _is_pattern(path) or "://" in real or not any(_links(real))

    def _is_allowed(self, path: str) -> bool:
        if _is_odd(path):
            return False
        real = _resolved(path)
        is_pattern = _is_pattern(path)
        for folder in self._protected():
            # A pattern may match what is inside of a folder further up.
            if _is_inside(real, folder) or (is_pattern and _is_inside(folder, real)):
                return False
        if not any(_is_inside(real, _resolved(folder)) for folder in self.folders):
            return False
        return not is_pattern or "://" in real or all(map(self._is_allowed, _links(real)))


def default_access(
    url_path: str | None,
    data_path: str,
    elsewhere: Callable[[], Iterable[str]],
    *,
    allow: Sequence[str],
    read_only: bool,
    own: Callable[[], str | None] = _nowhere,
) -> Access:
    """What is allowed without a word: files beside an embedded database, and the catalog's own."""
    beside = () if url_path is None or read_only or allow else (str(Path(url_path).absolute().parent),)
    database = () if url_path is None else tuple(f"{url_path}{end}" for end in ("", "-wal", "-shm", ".wal"))
    return Access((*allow, *beside), (*database, data_path), own, read_only, elsewhere)


def _is_pattern(path: str) -> bool:
    return re.search(_WILD, path) is not None


def _is_odd(path: str) -> bool:
    """Whether DuckDB, or a server, could take a path for another one than it seems to be."""
    if "\0" in path:
        return True
    if "://" in path:
        return re.search(r"(?:/|%2f)(?:\.|%2e){1,2}(?:/|%2f|\Z)", path, re.I) is not None
    return path.startswith("~") or path.lower().startswith("file:")


def _resolved(path: str) -> str:
    if "://" in path:
        return path
    # Of a pattern, the part before it: what it matches is inside of that, unless it goes up again.
    fixed = re.split(_WILD, path, maxsplit=1)[0]
    if ".." in path[len(fixed) :].split("/"):
        return "/"
    folder = fixed if fixed == path else fixed.rpartition("/")[0] or ("/" if fixed.startswith("/") else ".")
    return os.path.realpath(folder)


def _links(folder: str) -> Iterator[str]:
    """Where links in a folder lead, that a pattern may follow."""
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(here, name)  # noqa: PTH118  # What os.walk gives are strings.
            if os.path.islink(path):  # noqa: PTH114
                yield os.path.realpath(path)


def _is_inside(path: str, folder: str) -> bool:
    folder = folder.rstrip("/")
    return path == folder or path.startswith(f"{folder}/")
