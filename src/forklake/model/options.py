"""Settings of a lake or of one table: what they are called, what they may be. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from forklake.errors import InvalidArgument
from forklake.model.types.intervals import read_interval

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE = re.compile(r"\s*(\d+)\s*([KMG]?I?B?)\s*\Z", re.IGNORECASE | re.ASCII)
_CODECS = ("zstd", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "uncompressed", "none")
_SPANS = {
    "weeks": timedelta(weeks=1),
    "days": timedelta(days=1),
    "hours": timedelta(hours=1),
    "minutes": timedelta(minutes=1),
    "seconds": timedelta(seconds=1),
    "milliseconds": timedelta(milliseconds=1),
    "microseconds": timedelta(microseconds=1),
}
_SPAN_UNITS = {
    name: unit for word, unit in _SPANS.items() for name in (word, word.removesuffix("s"), word[0])
} | {"m": _SPANS["minutes"]}
_SPAN = re.compile(r"\s*(\d{1,20})\s*([a-z]+)\s*\Z", re.IGNORECASE | re.ASCII)
_NEVER = "never"
_AGES = ("expire_older_than", "delete_older_than", "orphans_older_than")
_SIZES = ("target_file_size", "parquet_row_group_size_bytes")


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of writes and of checkpoints. Those of a table override those of the lake."""

    data_inlining_row_limit: int = 100
    """A write of at most this many rows, or deletes from one file, is inlined in the metadata."""
    target_file_size: int = 512 * 2**20
    parquet_row_group_size: int = 122_880
    parquet_row_group_size_bytes: int = 64 * 2**20
    """A row group ends when its rows take so much memory, however few they are."""
    parquet_compression: str = "zstd"
    parquet_compression_level: int = 3
    parquet_version: int = 2
    """With 1, values are plain or in a dictionary, for readers that know no later encoding."""
    hive_file_pattern: bool = True
    """Whether files of a partition are in a folder that is named by it."""
    sort_on_insert: bool = True
    """Whether inserts write rows in the sort order; flushes and compaction always do."""
    per_thread_output: bool = False
    """Whether each thread that writes has files of its own, where many rows are written at once."""
    write_deletion_vectors: bool = False
    """Always false: deletes are kept in Parquet files."""
    require_commit_message: bool = False
    """Whether a commit that changes what can be read has to have a message. Of the lake only."""
    auto_compact: bool = True
    """Whether a checkpoint flushes, compacts and rewrites files of the table."""
    rewrite_delete_threshold: float = 0.95
    """A checkpoint rewrites files of which at least this share of rows is deleted."""
    expire_older_than: timedelta | None = timedelta(days=30)
    """A checkpoint expires snapshots that are older; None if it expires none. Of the lake only."""
    keep_last_snapshots: int = 1
    """So many of the latest snapshots of each catalog are never expired by a checkpoint. Of the lake only."""
    delete_older_than: timedelta = timedelta(days=2)
    """A checkpoint removes files that have been out of reach for this long. Of the lake only."""
    orphans_older_than: timedelta = timedelta(days=7)
    """A checkpoint removes orphans that are older. Of the lake only."""

    def with_settings(self, settings: Mapping[str, str]) -> Options:
        """With what was set, as it is stored."""
        known = {name: parse_option(name, value) for name, value in settings.items() if name in NAMES}
        return replace(self, **known)


DESCRIPTIONS = {
    "data_inlining_row_limit": "Writes of at most so many rows, or deletes of a file, stay in the metadata",
    "target_file_size": "The size that files are to have",
    "parquet_row_group_size": "How many rows a row group has at most",
    "parquet_row_group_size_bytes": "How much memory the rows of a row group take at most",
    "parquet_compression": f"The compression of files: {', '.join(_CODECS)}",
    "parquet_compression_level": "The level of zstd",
    "parquet_version": "Whether files have the encodings of Parquet 1 or 2",
    "hive_file_pattern": "Whether files of a partition are in a folder that is named by it",
    "sort_on_insert": "Whether inserts write rows in the sort order; flushes and compaction always do",
    "per_thread_output": "Whether each thread that writes many rows has files of its own",
    "write_deletion_vectors": "Always false: deletes are kept in Parquet files",
    "require_commit_message": "Whether commits that change what can be read need a message",
    "auto_compact": "Whether checkpoints, and compaction of all tables, touch a table",
    "rewrite_delete_threshold": "The share of deleted rows from which a file is rewritten",
    "expire_older_than": "Checkpoints expire snapshots that are older",
    "keep_last_snapshots": "So many of the latest snapshots of a catalog are never expired by checkpoints",
    "delete_older_than": "Files that have been out of reach for so long are removed",
    "orphans_older_than": "Orphans that are older are removed",
}
"""What each option is about, in a line."""
NAMES = tuple(Options.__slots__)
OF_LAKE = (
    "expire_older_than",
    "keep_last_snapshots",
    "delete_older_than",
    "orphans_older_than",
    "require_commit_message",
)
"""Options that a schema or a table cannot have, since history and files are the lake's."""


def parse_option(name: str, value: object) -> Any:
    """The value of a setting, checked; empty text for an age is the default."""
    if name not in NAMES:
        raise InvalidArgument(f"there is no option {name!r}: there are {', '.join(NAMES)}")
    if value == "" and name in _AGES:
        return getattr(Options(), name)
    parse = _PARSED.get(name)
    if parse is not None:
        return parse(name, value)
    number = _size(name, value) if name in _SIZES else _whole(name, value)
    least = 0 if name == "data_inlining_row_limit" else 1
    if not least <= number < 2**62:
        raise InvalidArgument(f"{name} must be at least {least}, not {value!r}")
    return number


def parse_table_option(name: str, value: object) -> Any:
    """The value of a setting of one table or schema, checked."""
    parsed = parse_option(name, value)
    if name in OF_LAKE:
        raise InvalidArgument(f"{name} is an option of the lake: lake.set_option({name!r}, {value!r})")
    return parsed


def option_text(value: Any) -> str:
    """A checked value as it is stored: text that DuckDB reads too, and `parse_option`."""
    match value:
        case None:
            return _NEVER
        case bool():
            return "true" if value else "false"
        case timedelta():
            unit = next(name for name, one in _SPANS.items() if not value % one)
            return f"{value // _SPANS[unit]} {unit}"
        case _:
            return str(value)


def _whole(name: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise ValueError
        return int(str(value))
    except ValueError:
        raise InvalidArgument(f"{name} is a whole number, not {value!r}") from None


def _size(name: str, value: object) -> int:
    match = None if isinstance(value, bool) else _SIZE.match(str(value))
    if match is None:
        raise InvalidArgument(f"{name} is a number of bytes or a string such as '512MiB', not {value!r}")
    return int(match[1]) * _UNITS[match[2].upper()]


def parse_size(name: str, value: object) -> int:
    """A number of bytes, or text such as `512MiB`, as bytes."""
    return _size(name, value)


def _codec(name: str, value: object) -> str:
    codec = str(value).lower()
    if codec not in _CODECS:
        raise InvalidArgument(f"unknown compression {value!r}: there are {', '.join(_CODECS)}")
    return codec


def _flag(name: str, value: object) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise InvalidArgument(f"{name} is true or false, not {value!r}")
    return text == "true"


def _version(name: str, value: object) -> int:
    version = str(value).upper().removeprefix("V")
    if isinstance(value, bool) or version not in ("1", "2"):
        raise InvalidArgument(f"{name} is 1 or 2, not {value!r}")
    return int(version)


def _off(name: str, value: object) -> bool:
    if _flag(name, value):
        raise InvalidArgument(f"{name} is always false: deletes are in Parquet files, which all engines read")
    return False


def _share(name: str, value: object) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        share = float(str(value))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InvalidArgument(f"{name} is the share of rows that are deleted, from 0 to 1, not {value!r}")
    return share


def parse_age(name: str, value: object) -> timedelta:
    """An age: a timedelta, or text such as `7 days`, `12h` or `1 month 2 days`."""
    try:
        age = _span(value) if isinstance(value, str) else value
    except (OverflowError, ValueError):
        age = None
    if not isinstance(age, timedelta) or age < timedelta(0):
        raise InvalidArgument(f"{name} is an age such as timedelta(days=7) or '7 days', not {value!r}")
    return age


def _span(text: str) -> timedelta:
    match = _SPAN.match(text)
    unit = None if match is None else _SPAN_UNITS.get(match[2].lower())
    if match is not None and unit is not None:
        return int(match[1]) * unit
    months, days, micros = read_interval(text.strip())
    # As long as epoch() of DuckDB and PostgreSQL says.
    return months // 12 * timedelta(days=365.25) + timedelta(
        days=months % 12 * 30 + days, microseconds=micros
    )


def _age_or_never(name: str, value: object) -> timedelta | None:
    """An age, or None for what has none."""
    if value is None or str(value).lower() == _NEVER:
        return None
    return parse_age(name, value)


_PARSED: dict[str, Callable[[str, object], Any]] = {
    "parquet_compression": _codec,
    "parquet_version": _version,
    "auto_compact": _flag,
    "hive_file_pattern": _flag,
    "sort_on_insert": _flag,
    "per_thread_output": _flag,
    "require_commit_message": _flag,
    "write_deletion_vectors": _off,
    "rewrite_delete_threshold": _share,
    "expire_older_than": _age_or_never,
    "delete_older_than": parse_age,
    "orphans_older_than": parse_age,
}
