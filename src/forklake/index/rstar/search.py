"""Searching boxes: first those of row groups, then those of entries, then the geometries in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, Protocol, TypeAlias

from forklake.errors import InvalidData
from forklake.index.kind import Alive, SegmentFile
from forklake.index.ranking import Numbers, living
from forklake.index.rstar.boxes import Boxes, as_wkb, distances, meets, parsed, stored_boxes
from forklake.index.rstar.query import Query
from forklake.index.rstar.segments import BOX, FORMAT, VERSION, WKB, boxes_of
from forklake.index.segment_parquet import ORDINAL, POSITION, Footer, footer_of, kept, read_groups
from forklake.lazy.arrow import pa
from forklake.lazy.numpy import np
from forklake.lazy.shapely import shapely

_AT_ONCE = 256
"""How many geometries are looked at together, at least."""

Result: TypeAlias = "tuple[Numbers, Numbers, bool]"
"""Rows as segment, ordinal and position; how far they are; whether there are no others."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a row group."""

    boxes: Boxes
    segment: int
    pairs: Numbers
    """Ordinal and position of each."""

    def addresses(self, chunk: Numbers) -> Numbers:
        """Segment, ordinal and position of some."""
        return np.column_stack([np.full(len(chunk), self.segment), self.pairs[chunk]])


class Places(Protocol):
    """Entries in groups, with a box around each group."""

    @property
    def nodes(self) -> Boxes:
        """The boxes of the groups."""
        ...

    def entries(self, group: int) -> Entries:
        """What is in a group."""
        ...

    def wkb(self, group: int) -> pa.Array:
        """The geometries of a group."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """A segment."""

    number: int
    file: SegmentFile
    footer: Footer
    nodes: Boxes

    @classmethod
    def of(cls, number: int, file: SegmentFile) -> Stored:
        """A segment by its number in what is searched."""
        footer = footer_of(file, FORMAT, VERSION)
        return cls(number, file, footer, boxes_of(footer.fences))

    def entries(self, group: int) -> Entries:
        """The boxes of a row group: one request, then they are in memory."""

        def load() -> tuple[tuple[Boxes, Numbers], int]:
            table = read_groups(self.file, self.footer, [group], [*BOX, ORDINAL, POSITION], keep=False)
            pairs = np.column_stack([table.column(name).to_numpy() for name in (ORDINAL, POSITION)])
            boxes = boxes_of(table)
            return (boxes, pairs.astype(np.int64)), boxes.nbytes + 16 * len(pairs)

        boxes, pairs = kept(self.file, ("entries", str(group)), load)
        return Entries(boxes, self.number, pairs)

    def wkb(self, group: int) -> pa.Array:
        """The geometries of a row group."""
        return read_groups(self.file, self.footer, [group], [WKB]).column(WKB).combine_chunks()


@dataclass(frozen=True, slots=True)
class Loose:
    """Rows that no segment covers, as one group."""

    all: Entries
    geometries: pa.Array

    @classmethod
    def of(cls, table: pa.Table, name: str) -> Loose:
        """Rows as a search is handed them."""
        wkb = as_wkb(table.column(name))
        boxes = stored_boxes(wkb)
        known = ~np.isnan(boxes[:, 0])
        positions = table.column(POSITION).to_numpy()[known].astype(np.int64)
        pairs = np.column_stack([np.zeros(len(positions), np.int64), positions])
        return cls(Entries(boxes[known], -1, pairs), wkb.filter(pa.array(known)))

    @property
    def nodes(self) -> Boxes:
        """Always looked at."""
        everywhere = np.array([[-np.inf, -np.inf, np.inf, np.inf]], np.float32)
        return everywhere[: min(1, len(self.geometries))]

    def entries(self, group: int) -> Entries:
        """All of them."""
        return self.all

    def wkb(self, group: int) -> pa.Array:
        """The geometries of all."""
        return self.geometries


def best(places: Sequence[Places], query: Query, k: int, alive: Alive) -> Result:
    """The nearest rows that count: groups in the order of how near anything in them can be."""
    box = np.array(query.geometry.bounds)
    rows, far = np.empty((0, 3), np.int64), np.empty(0)
    # One more than was asked for tells whether there are others.
    wanted = k + 1
    streams = [_nearest(place, box) for place in places]
    for nearest, place, group in merge(*streams, key=lambda each: each[0]):
        if len(far) >= wanted and nearest > far[-1]:
            break
        entries = place.entries(group)
        bounds = distances(entries.boxes, box)
        size = max(_AT_ONCE, 2 * wanted)
        left = np.arange(len(bounds))
        while True:
            if len(far) >= wanted:
                left = left[bounds[left] <= far[-1]]
            if not len(left):
                break
            # The nearest first, in no order among them: they make most of the others needless.
            order = np.argpartition(bounds[left], size) if len(left) > size else np.arange(len(left))
            chunk, left = left[order[:size]], left[order[size:]]
            chunk = chunk[_counting(entries, chunk, alive)]
            found = entries.addresses(chunk)
            measured = _asked(found, query, shapely.distance, place.wkb(group), chunk)
            rows, far = np.concatenate([rows, found]), np.concatenate([far, measured])
            # Of those at one distance the first in the segments, so that pages are stable.
            first_ones = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0], far))[:wanted]
            rows, far = rows[first_ones], far[first_ones]
    return rows[:k], far[:k], len(far) <= k


def related(places: Sequence[Places], query: Query, k: int, alive: Alive) -> Result:
    """The rows that lie to a geometry as is asked, in the order of the segments."""
    box = np.array(query.geometry.bounds)
    found = [np.empty((0, 3), np.int64)]
    for place in places:
        for group in np.flatnonzero(meets(place.nodes, box)).tolist():
            entries = place.entries(group)
            chunk = np.flatnonzero(meets(entries.boxes, box))
            chunk = chunk[_counting(entries, chunk, alive)]
            if len(chunk):
                rows = entries.addresses(chunk)
                holds = _asked(rows, query, lambda _, each: query.holds(each), place.wkb(group), chunk)
                found.append(rows[holds])
    rows = np.concatenate(found)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    return rows[:k], np.zeros(len(rows[:k])), len(rows) <= k


def _nearest(place: Places, box: Boxes) -> Iterator[tuple[float, Places, int]]:
    far = distances(place.nodes, box)
    return ((float(far[group]), place, int(group)) for group in np.argsort(far, kind="stable"))


def _counting(entries: Entries, chunk: Numbers, alive: Alive) -> Any:
    rows = entries.addresses(chunk)
    return living(alive, rows[:, 0], rows[:, 1], rows[:, 2])


def _asked(rows: Numbers, query: Query, ask: Any, wkb: pa.Array, chunk: Numbers) -> Any:
    """What geometries answer. Those that cannot be asked are told, with their place."""
    geometries = parsed(wkb.take(pa.array(chunk)))
    torn = np.flatnonzero(shapely.is_missing(geometries))
    if len(torn):
        raise InvalidData(
            f"row {rows[torn[0], 2]:,} of a data file holds bytes that are no geometry: "
            "delete it or give it another value"
        )
    try:
        # Coordinates may be so large that no distance is a number.
        with np.errstate(over="ignore", invalid="ignore"):
            return ask(query.geometry, geometries)
    except shapely.errors.GEOSException as problem:
        reason = str(problem).partition("\n")[0][:200]
        raise InvalidData(f"a geometry cannot be compared ({reason}): repair it, or delete its row") from None
