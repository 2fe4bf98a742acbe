"""Segments and models where they lie: on a disk or in a bucket, with what the metadata knows of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forklake.data.storage.storage import Storage
from forklake.lazy.arrow import pa
from forklake.model.index import IndexFile, SegmentSummary, WrittenSegment


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

    def open(self) -> pa.NativeFile:
        """A file to read ranges of; whoever opens it closes it."""
        return self.storage.opened(self.path, self.path_is_relative)

    def local(self) -> Path:
        """The file itself if it is on a disk, else a copy that is kept for some time."""
        return self.storage.local_copy(self.path, self.file_size_bytes, self.path_is_relative)
