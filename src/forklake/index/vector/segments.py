"""Segments of vectors: arrays in a tar, ordered by list. They are mapped into memory, and merged as arrays.

    sizes      how many vectors each list has
    codes      their bytes, list by list: numbers of half or single precision
    ordinals   the data file of each
    positions  and the position in it

A segment without a model has one list, with the vectors themselves.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from forklake.errors import UnreadableIndex
from forklake.index.archive import Format, open_archive, torn, write_archive
from forklake.index.kind import Segment
from forklake.index.ranking import Numbers
from forklake.index.vector.definition import Shape
from forklake.index.vector.model import Model, code_size, read_model
from forklake.lazy.numpy import np
from forklake.model.index import SegmentSummary

FORMAT = Format("vector", 1)

_BATCH_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """A segment, mapped into memory."""

    key: str
    model: Model | None
    sizes: Numbers
    codes: Numbers
    ordinals: Numbers
    positions: Numbers

    @property
    def count(self) -> int:
        """How many vectors it has."""
        return len(self.ordinals)

    @property
    def starts(self) -> Numbers:
        """Where each list begins, and where the last one ends."""
        return np.concatenate(([0], np.cumsum(self.sizes)))

    def lists(self) -> Numbers:
        """The list of each vector."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def stored(segment: Segment, shape: Shape) -> Stored:
    """A segment as arrays; `UnreadableIndex` if it is torn, newer, or of another index."""
    archive = open_archive(segment.file, FORMAT)
    model = None if segment.model is None else read_model(segment.model, shape)
    try:
        count, lists = int(archive.manifest["count"]), int(archive.manifest["lists"])
        dimension, metric = archive.manifest["dimension"], archive.manifest["metric"]
        trained = archive.manifest["model"]
    except (KeyError, TypeError, ValueError) as error:
        raise torn(archive.key, f"its description lacks {error}") from error
    if trained is None:
        model = None
    elif model is None or model.id != trained:
        raise UnreadableIndex(f"the index file {archive.key} was made with another model: build it again")
    size = shape.dimension * 4 if model is None else code_size(shape)
    if (dimension, metric) != (shape.dimension, shape.metric) or min(count, lists) < 0:
        raise torn(archive.key, "it is of another index")
    if lists != (1 if model is None else model.lists):
        raise torn(archive.key, "it has not as many lists as its model")
    sizes = np.array(archive.array("sizes", "<i8", (lists,)))
    if (sizes < 0).any() or sizes.sum() != count:
        raise torn(archive.key, "its lists have other sizes")
    codes = archive.array("codes", "u1", (count, size))
    ordinals = np.array(archive.array("ordinals", "<i4", (count,)))
    positions = np.array(archive.array("positions", "<i8", (count,)))
    return Stored(archive.key, model, sizes, codes, ordinals, positions)


class Writer:
    """Collects vectors, their bytes in a file, and writes them ordered by list."""

    def __init__(self, out: Path, shape: Shape, model: Model | None) -> None:
        """Nothing is written yet."""
        self._out = out
        self._shape = shape
        self._model = model
        self._size = shape.dimension * 4 if model is None else code_size(shape)
        self._columns: list[tuple[Numbers, Numbers, Numbers]] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Open a file beside the segment."""
        folder = self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix=".vector-", dir=self._out.parent)
        )
        self._folder = Path(folder)
        self._codes = self._stack.enter_context((self._folder / "unordered").open("wb"))
        return self

    def __exit__(self, *error: Any) -> None:
        """Remove what was needed meanwhile."""
        self._stack.close()

    def add_vectors(self, vectors: Numbers, ordinals: Numbers, positions: Numbers) -> None:
        """Take vectors."""
        if self._model is None:
            lists, codes = np.zeros(len(vectors), np.int64), np.ascontiguousarray(vectors).view(np.uint8)
        else:
            lists, codes = self._model.encode(vectors)
        self.add_codes(lists, codes, ordinals, positions)

    def add_codes(self, lists: Numbers, codes: Numbers, ordinals: Numbers, positions: Numbers) -> None:
        """Take vectors that are encoded with the model."""
        self._columns.append((lists, ordinals.astype("<i4"), positions.astype("<i8")))
        self._codes.write(np.ascontiguousarray(codes).data)

    def finish(self, skipped: int = 0) -> SegmentSummary:
        """Write the segment."""
        self._codes.flush()
        columns = self._columns or [(np.empty(0, np.int64), np.empty(0, "<i4"), np.empty(0, "<i8"))]
        lists, ordinals, positions = (np.concatenate(each) for each in zip(*columns, strict=True))
        order = np.argsort(lists, kind="stable")
        ordered = self._folder / "codes"
        with ordered.open("wb") as target:
            if len(order):
                source = np.memmap(self._folder / "unordered", np.uint8, "r", 0, (len(order), self._size))
                rows = max(1, _BATCH_BYTES // self._size)
                for first in range(0, len(order), rows):
                    target.write(source[order[first : first + rows]].data)
        count = 1 if self._model is None else self._model.lists
        trained = None if self._model is None else self._model.id
        manifest = {"dimension": self._shape.dimension, "metric": self._shape.metric, "model": trained}
        members = {
            "sizes": np.bincount(lists, minlength=count).astype("<i8").tobytes(),
            "codes": ordered,
            "ordinals": ordinals[order].tobytes(),
            "positions": positions[order].tobytes(),
        }
        write_archive(self._out, FORMAT, {**manifest, "count": len(order), "lists": count}, members)
        summary = json.dumps({"model": trained, "skipped": skipped})
        return SegmentSummary(len(order), FORMAT.name, FORMAT.version, summary=summary)


def merge(
    shape: Shape, segments: Sequence[Segment], ordinals: Sequence[Mapping[int, int]], out: Path
) -> SegmentSummary:
    """Write one segment, with the model of the first that has one.

    Vectors in lists of the same model are copied as they are; others are read, and put into its lists.
    """
    found = [stored(segment, shape) for segment in segments]
    model = next((each.model for each in found if each.model is not None), None)
    with Writer(out, shape, model) as writer:
        for each, becomes in zip(found, ordinals, strict=True):
            for rows in _batches(each, becomes):
                to = _renumbered(each.ordinals[rows], becomes)
                lists, codes, positions = each.lists()[rows], each.codes[rows], each.positions[rows]
                if (each.model and each.model.id) == (model and model.id):
                    writer.add_codes(lists, codes, to, positions)
                else:
                    writer.add_vectors(_vectors(each, lists, codes), to, positions)
        return writer.finish()


def _batches(each: Stored, becomes: Mapping[int, int]) -> Iterable[Numbers]:
    kept = np.flatnonzero(np.isin(each.ordinals, np.fromiter(becomes, np.int64, len(becomes))))
    size = max(1, _BATCH_BYTES // max(1, each.codes.shape[1]))
    return (kept[first : first + size] for first in range(0, len(kept), size))


def _renumbered(ordinals: Numbers, becomes: Mapping[int, int]) -> Numbers:
    old = np.array(sorted(becomes), np.int64)
    new = np.array([becomes[ordinal] for ordinal in sorted(becomes)], np.int64)
    return new[np.searchsorted(old, ordinals)]


def _vectors(each: Stored, lists: Numbers, codes: Numbers) -> Numbers:
    if each.model is None:
        return np.ascontiguousarray(codes).view(np.float32)
    return each.model.decode(lists, codes)
