"""One attempt at a piece of work: what its files are called, where its manifest goes, when it is too late."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import Literal, Self
from uuid import uuid4

from forklake.data import manifests
from forklake.data.parquet.table_writer import TableWriter
from forklake.data.storage.storage import Storage, open_storage
from forklake.errors import InvalidArgument, ReservationExpired, StorageError
from forklake.model.distributed import DistributedSnapshot, TableTarget
from forklake.model.ids import ROW_ID_COLUMN
from forklake.model.manifest import Entry, Manifest
from forklake.model.names import QualifiedName, check_text, is_absolute
from forklake.model.table.files import WrittenFile

Part = str | int
Keep = Literal["value", "file"]

_ODD = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt. Its files are named after it, so that attempts never meet."""

    ds: DistributedSnapshot
    table: TableTarget
    storage: Storage
    part: str
    attempt: str
    numbers: count[int] = field(default_factory=count)

    @classmethod
    def begin(
        cls,
        ds: DistributedSnapshot,
        table: str | tuple[str, str] | QualifiedName,
        part: Part | None,
        storage_options: Mapping[str, str] | None,
    ) -> Self:
        """Check what can be checked before anything is written."""
        if not isinstance(ds, DistributedSnapshot):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(
                f"a DistributedSnapshot is needed, not {type(ds).__name__}: its from_json reads a string"
            )
        named = uuid4().hex if part is None else _name(part, "part")
        work = cls(ds, ds.table(table), storage_of(ds.data_path, storage_options), named, _new_attempt())
        work.check_time()
        return work

    @property
    def prefix(self) -> str:
        """What the names of its files begin with."""
        return f"{self.ds.commit_uuid}-{_slug(self.part)}-{self.attempt}"

    @property
    def relative(self) -> bool:
        """Whether its paths are relative to the data path of the lake."""
        return not is_absolute(self.table.folder)

    def writer(self, written: list[str]) -> TableWriter:
        """What writes files of the table; `written` collects their paths."""
        target = replace(self.table, folder=self.ds.folder(self.table))
        return TableWriter(self.storage, target, written, self.prefix, self.numbers)

    def check_time(self) -> None:
        """Refuse to write what nobody could commit."""
        if datetime.now(UTC) >= self.ds.expires_at:
            raise ReservationExpired(
                f"the distributed snapshot {self.ds.reservation_id} expired at "
                f"{self.ds.expires_at:%Y-%m-%d %H:%M:%S} UTC: begin another one, with a longer ttl"
            )

    def done(self, entries: Iterable[Entry], keep: Keep, *, unless_there: bool = False) -> Manifest:
        """The manifest of all that was written, unless time ran out meanwhile."""
        manifest = Manifest(
            self.ds.reservation_id,
            self.ds.commit_uuid,
            self.part,
            self.attempt,
            (self.table.id,),
            tuple(entries),
            unless_there,
        )
        self.check_time()
        if keep == "value":
            return manifest
        return manifests.write_manifest(self.storage, self.ds.staging, manifest)

    def discard(self, paths: Iterable[str]) -> None:
        """Remove files of an attempt that failed; those that cannot be removed go with the reservation."""
        with suppress(StorageError):
            self.storage.delete(paths, self.relative)


def ids_in(file: WrittenFile) -> int:
    """How many rows of a file carry an id, as far as it is known."""
    for stats in file.stats:
        if stats.column_id == ROW_ID_COLUMN and stats.null_count is not None:
            return stats.value_count - stats.null_count
    return 0


def check_keep(keep: object) -> None:
    """Refuse what is no way to hand a manifest over."""
    if keep not in ("value", "file"):
        raise InvalidArgument(f'a manifest is given as a "value" or kept in a "file", not {keep!r}')


def output_folder(
    ds: DistributedSnapshot,
    table: str | tuple[str, str] | QualifiedName,
    part: Part,
) -> str:
    """A new folder for files of another engine, as path or URL; see `describe_files`."""
    target = ds.table(table)
    return ds.address(f"{ds.folder(target)}{_slug(_name(part, 'part'))}-{_new_attempt()}/")


def read_manifest(
    ds: DistributedSnapshot, path: str, *, storage_options: Mapping[str, str] | None = None
) -> Manifest:
    """Read a manifest that was stored as a file."""
    return manifests.read_manifest(storage_of(ds.data_path, storage_options), path)


def storage_of(data_path: str, options: Mapping[str, str] | None) -> Storage:
    """The storage of a lake; opened once for all parts that a process writes."""
    # A forked child must not use the connections of its parent.
    return _opened(data_path, tuple(sorted((options or {}).items())), os.getpid())


@lru_cache(16)
def _opened(data_path: str, options: tuple[tuple[str, str], ...], process: int) -> Storage:
    return open_storage(data_path, dict(options))


def _new_attempt() -> str:
    return uuid4().hex[:12]


def _name(given: Part, what: str) -> str:
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(f"a {what} is named by a string or a whole number, not {given!r}")
    return check_text(str(given), what)


def _slug(name: str) -> str:
    """A name as far as every storage takes it in a path; manifests keep the whole."""
    return _ODD.sub("_", name)[:_LONGEST] or "_"
