"""What `.option(…)` says to the data source, checked. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Literal, TypeVar, cast

from forklake.data.storage.storage import split_data_path
from forklake.errors import InvalidArgument
from forklake.model.time_travel import AsOf

Changes = Literal["fail", "skip", "feed"]
Start = int | Literal["latest"] | None

T = TypeVar("T")

_CHANGES: Mapping[str, Changes] = {"fail": "fail", "skip": "skip", "feed": "feed"}
_TRUTH = {"true": True, "false": False}
_FOR_SPARK = frozenset({"path", "checkpointlocation"})
"""What Spark itself passes along."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Which table, and what of it."""

    # The address may hold a password.
    lake: str = field(repr=False)
    catalog: str
    table: str
    data_path: str | None = field(default=None, repr=False)
    at: AsOf | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    row_ids: bool = False
    starting_snapshot: Start = None
    changes: Changes = "fail"
    max_files: int | None = None
    max_rows: int | None = None
    max_bytes: int | None = None

    @property
    def storage(self) -> Mapping[str, str]:
        """Options of a bucket that came with its address."""
        return {} if self.data_path is None else split_data_path(self.data_path)[1]

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SourceOptions:
        """Options as Spark hands them over: texts, in any case, with or without underscores."""
        known = {name.replace("_", ""): name for name in (field.name for field in fields(cls))}
        known |= {f"max{unit}pertrigger": f"max_{unit}" for unit in ("files", "rows", "bytes")}
        found: dict[str, str] = {}
        for key, value in given.items():
            plain = key.lower().replace("_", "")
            if plain in known:
                found[known[plain]] = value
            elif plain not in _FOR_SPARK:
                raise InvalidArgument(
                    f'the format "forklake" has no option {key!r}; it has lake, catalog, table, data_path, '
                    "at, columns, where and row_ids, and for streams startingSnapshot, changes, "
                    "maxFilesPerTrigger, maxRowsPerTrigger and maxBytesPerTrigger"
                )
        if "table" not in found and given.get("path"):
            # So that .load("sales.orders") does what it says.
            found["table"] = given["path"]
        for name in ("lake", "catalog", "table"):
            if not found.get(name, "").strip():
                raise InvalidArgument(
                    f'the format "forklake" needs the option "{name}": .option("{name}", …)'
                )
        return cls(
            found["lake"],
            found["catalog"],
            found["table"],
            found.get("data_path"),
            _as_of(found.get("at")),
            _columns(found.get("columns")),
            found.get("where"),
            _one_of("row_ids", found.get("row_ids", "false").lower(), _TRUTH),
            _start(found.get("starting_snapshot")),
            _one_of("changes", found.get("changes", "fail"), _CHANGES),
            *(_limit(f"max{n.title()}PerTrigger", found.get(f"max_{n}")) for n in ("files", "rows", "bytes")),
        )


def _one_of(name: str, text: str, known: Mapping[str, T]) -> T:
    if text not in known:
        raise InvalidArgument(f'the option "{name}" is {" or ".join(known)}, not {text!r}')
    return known[text]


def _as_of(text: str | None) -> AsOf | None:
    if text is None:
        return None
    if text.strip().isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgument(
            f'the option "at" is the number of a snapshot, or a time such as 2026-01-31T12:00Z, not {text!r}'
        ) from None


def _columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    if not text.lstrip().startswith("["):
        return tuple(name.strip() for name in text.split(","))
    try:
        names: object = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(
        isinstance(name, str) for name in cast("Sequence[object]", names)
    ):
        raise InvalidArgument('the option "columns" is a list such as id, city or ["id", "city"]')
    return tuple(cast("list[str]", names))


def _start(text: str | None) -> Start:
    if text is None or text.lower() == "latest":
        return None if text is None else "latest"
    if not text.strip().isdecimal():
        raise InvalidArgument(
            f'the option "startingSnapshot" is the number of a snapshot, or latest, not {text!r}'
        )
    return int(text)


def _limit(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise InvalidArgument(f'the option "{name}" is a whole number from 1 on, not {text!r}')
    return int(text)
