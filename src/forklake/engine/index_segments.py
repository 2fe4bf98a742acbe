"""Segments and models of indexes: built of data files, trained, merged, and put where they belong.

What is to be done is a value that travels, so that anybody who reaches the storage can do it.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias
from uuid import uuid4

from forklake.data.storage.storage import Storage
from forklake.engine.index_parts import parts, sample
from forklake.engine.local import Engine
from forklake.index.kind import Segment
from forklake.index.registry import kind_of
from forklake.index.segment_files import StoredSegment
from forklake.model.ids import DataFileId
from forklake.model.index import Index, IndexFile, IndexSpec, WrittenSegment, index_file_name
from forklake.model.names import is_absolute
from forklake.model.table.columns import Columns
from forklake.scan.scan_plan import ScanPlan

_COPY_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Build:
    """A segment to be built of the data files of a plan."""

    index: Index
    spec: IndexSpec
    plan: ScanPlan
    folder: str
    """Where its file goes."""
    level: int = 0
    model: IndexFile | None = None

    @property
    def files(self) -> tuple[DataFileId, ...]:
        """The data files that it will cover, by ordinal."""
        return tuple(file.file.id for file in self.plan.files)

    @property
    def rows(self) -> int:
        """How many rows have to be read."""
        return sum(file.file.record_count for file in self.plan.files)

    def run(self, engine: Engine, written: list[str]) -> WrittenSegment:
        """Build it; `written` collects its path."""
        kind, model = kind_of(self.spec.kind), _stored(self.model, engine.storage)
        with _scratch() as out:
            facts = kind.build(self.spec, parts(engine, self.plan, _columns(self.spec)), out, model)
            path = _put(engine.storage, out, self.folder, written)
            return WrittenSegment(
                path,
                out.stat().st_size,
                facts,
                self.files,
                self.level,
                model=None if self.model is None else self.model.id,
                path_is_relative=not is_absolute(path),
            )


@dataclass(frozen=True, slots=True)
class Train:
    """A model to be trained with a sample of the data files of a plan."""

    index: Index
    spec: IndexSpec
    plan: ScanPlan
    folder: str

    @property
    def files(self) -> tuple[DataFileId, ...]:
        """A model covers nothing."""
        return ()

    @property
    def rows(self) -> int:
        """Only some rows are used, and none is counted."""
        return 0

    def run(self, engine: Engine, written: list[str]) -> WrittenSegment | None:
        """Train it; None if the kind has no models. `written` collects its path."""
        with _scratch() as out:
            rows = sample(engine, self.plan, _columns(self.spec))
            facts = kind_of(self.spec.kind).train(self.spec, rows, out)
            if facts is None:
                return None
            path = _put(engine.storage, out, self.folder, written)
            size = out.stat().st_size
            return WrittenSegment(path, size, facts, (), role="model", path_is_relative=not is_absolute(path))


@dataclass(frozen=True, slots=True)
class Merge:
    """Segments to be merged into one."""

    index: Index
    spec: IndexSpec
    segments: tuple[IndexFile, ...]
    files: tuple[DataFileId, ...]
    """The data files that it will cover, by ordinal."""
    ordinals: tuple[dict[int, int], ...]
    """What the ordinals of each become."""
    folder: str
    level: int
    model: IndexFile | None = None

    @property
    def rows(self) -> int:
        """How many entries have to be read."""
        return sum(segment.facts.entry_count for segment in self.segments)

    def run(self, engine: Engine, written: list[str]) -> WrittenSegment:
        """Merge them; `written` collects the path of the new one."""
        model = _stored(self.model, engine.storage)
        segments = [Segment(StoredSegment.of(one, engine.storage), model) for one in self.segments]
        with _scratch() as out:
            facts = kind_of(self.spec.kind).merge(self.spec, segments, self.ordinals, out)
            path = _put(engine.storage, out, self.folder, written)
            return WrittenSegment(
                path,
                out.stat().st_size,
                facts,
                self.files,
                self.level,
                model=None if self.model is None else self.model.id,
                path_is_relative=not is_absolute(path),
            )


Work: TypeAlias = "Build | Train | Merge"


@contextmanager
def _scratch() -> Generator[Path]:
    """Where a kind writes, on the local disk: what it leaves beside its file goes too."""
    with TemporaryDirectory(prefix="forklake-index-") as folder:
        yield Path(folder) / "segment"


def _put(storage: Storage, made: Path, folder: str, written: list[str]) -> str:
    """Copy a file that was made to the storage; gives its path."""
    path = folder + index_file_name(f"{uuid4().hex}-0", "segment")
    written.append(path)
    with made.open("rb") as source, storage.open_output(path, not is_absolute(path)) as target:
        shutil.copyfileobj(source, target, _COPY_BYTES)
    return path


def _stored(file: IndexFile | None, storage: Storage) -> StoredSegment | None:
    return None if file is None else StoredSegment.of(file, storage)


def _columns(spec: IndexSpec) -> Columns:
    return (*spec.keys, *spec.include)
