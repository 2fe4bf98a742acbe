"""Settings of a lake or of one table: what they are called, what they may be. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from forklake.errors import InvalidArgument

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE = re.compile(r"\s*(\d+)\s*([KMG]?I?B?)\s*\Z", re.IGNORECASE | re.ASCII)
_CODECS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")


@dataclass(frozen=True, slots=True)
class Options:
    """Write options. Those of a table override those of the lake."""

    data_inlining_row_limit: int = 100
    """A write of at most this many rows, or deletes from one file, is inlined in the metadata."""
    target_file_size: int = 512 * 2**20
    parquet_row_group_size: int = 122_880
    parquet_compression: str = "zstd"
    parquet_compression_level: int = 3

    def with_settings(self, settings: Mapping[str, str]) -> Options:
        """With what was set, as it is stored."""
        known = {name: parse_option(name, value) for name, value in settings.items() if name in NAMES}
        return replace(self, **known)


NAMES = tuple(Options.__slots__)


def parse_option(name: str, value: object) -> Any:
    """The value of a setting, checked."""
    if name not in NAMES:
        raise InvalidArgument(f"there is no option {name!r}: there are {', '.join(NAMES)}")
    if name == "parquet_compression":
        codec = str(value).lower()
        if codec not in _CODECS:
            raise InvalidArgument(f"unknown compression {value!r}: there are {', '.join(_CODECS)}")
        return codec
    number = _size(value) if name == "target_file_size" else _whole(name, value)
    least = 0 if name == "data_inlining_row_limit" else 1
    if not least <= number < 2**62:
        raise InvalidArgument(f"{name} must be at least {least}, not {value!r}")
    return number


def _whole(name: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise ValueError
        return int(str(value))
    except ValueError:
        raise InvalidArgument(f"{name} is a whole number, not {value!r}") from None


def _size(value: object) -> int:
    match = None if isinstance(value, bool) else _SIZE.match(str(value))
    if match is None:
        raise InvalidArgument(f"a file size is a number of bytes or text such as '512MiB', not {value!r}")
    return int(match[1]) * _UNITS[match[2].upper()]
