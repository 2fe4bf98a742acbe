"""Segments and models where they lie: on a disk or in a bucket, with what the metadata knows of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forklake.data.storage.storage import Storage
from forklake.index.recent import Recent
from forklake.lazy.arrow import pa
from forklake.model.index import IndexFile, SegmentSummary, WrittenSegment

_OPEN: Recent[tuple[object, pa.NativeFile]] = Recent(1_000)
"""Files in buckets that were read lately: of one that is open, the size is known. None holds a connection.

Each is kept with the filesystem that opened it: another one never gets its id, and so not its files.
"""


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment, or a model, in the storage of a lake. The `SegmentFile` that kinds are handed."""

    storage: Storage
    path: str
    path_is_relative: bool
    file_size_bytes: int
    facts: SegmentSummary
    """What the metadata knows of it."""

    @classmethod
    def of(cls, file: IndexFile | WrittenSegment, storage: Storage) -> StoredSegment:
        """An index file, whether it is committed or not."""
        return cls(storage, file.path, file.path_is_relative, file.file_size_bytes, file.facts)

    @property
    def key(self) -> str:
        """Its address: what is kept in memory of a file is kept under it, and holds for ever."""
        return self.storage.address(self.path, self.path_is_relative)

    @property
    def is_on_disk(self) -> bool:
        """Whether it is read without requests, for which it would pay to ask for much at once."""
        return self.storage.is_on_disk(self.path, self.path_is_relative)

    def open(self) -> pa.NativeFile:
        """A file to read ranges of; whoever opens it closes it."""
        if self.is_on_disk:
            return self.storage.opened(self.path, self.path_is_relative)
        # Whoever connects in another way, or with other rights, opens it himself.
        filesystem = self.storage.resolve(self.path, self.path_is_relative)[0]
        _, kept = _OPEN.get(
            (id(filesystem), self.key),
            lambda: (filesystem, self.storage.opened(self.path, self.path_is_relative)),
        )
        return pa.PythonFile(_Ranges(kept), "r")

    def local(self) -> Path:
        """The file itself if it is on a disk, else a copy that is kept for some time."""
        return self.storage.local_copy(self.path, self.file_size_bytes, self.path_is_relative)


class _Ranges:
    """What reads a file that others read too, and stays open."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._at = 0
        self.closed = False

    def read(self, count: int = -1) -> bytes:
        data = self._file.read_at(self._file.size() - self._at if count < 0 else count, self._at)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._file.size())[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self.closed = True


def forget() -> None:
    """Close what is open."""
    _OPEN.clear()
