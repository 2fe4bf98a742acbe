"""Finding boxes: `rstar` against looking at every WKB, as files have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from benchmarks.index_kinds import ahead, build, report
from benchmarks.report import Section, Target
from benchmarks.timing import in_turns, same
from forklake.index.kind import Part, Segment
from forklake.index.rstar.kind import Rstar
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.index import IndexSpec

AHEAD = 1_000
_SEARCHES = 20
_SPEC = IndexSpec("rstar", (Column(ColumnId(1), "shape", "geometry"),))
_SCAN = "every WKB, by shapely"
_MEETS, _NEAREST = "intersects a box", "the 10 nearest"


def places(folder: Path, boxes: int, *, rounds: int) -> Section:
    """Write small boxes at random places and a segment of them, then search in turns."""
    path = folder / "shapes.parquet"
    random = np.random.default_rng(11)
    x, y, size = (
        random.random(boxes) * 360 - 180,
        random.random(boxes) * 180 - 90,
        random.random((2, boxes)) / 100,
    )
    wkb = pa.array(shapely.to_wkb(shapely.box(x, y, x + size[0], y + size[1])), pa.binary())
    pq.write_table(pa.table({"1": wkb}), path)
    parts = [Part(0, pq.read_table(path).to_batches(max_chunksize=100_000))]
    built = build(Rstar(), _SPEC, parts, boxes, folder / "rstar")
    corners = [(float(a), float(b)) for a, b in zip(x[:_SEARCHES], y[:_SEARCHES], strict=True)]
    works = {
        _MEETS: _searched(
            built.segment, [{"intersects": (a, b, a + 0.1, b + 0.1)} for a, b in corners], boxes
        ),
        _NEAREST: _searched(built.segment, list(corners), 10),
        _SCAN: lambda: [_scanned(path, *corners[0])],
    }
    same({title: works[title]()[0] for title in (_MEETS, _SCAN)})
    timings = in_turns(works, rounds)
    searches = {title: 1 if title == _SCAN else len(corners) for title in works}
    found = ahead(timings, _MEETS, _SCAN, len(corners))
    return Section(
        f"places: {boxes:,} boxes",
        report(timings, searches, _SCAN, {"rstar": built}),
        [Target(found >= AHEAD, f"a scan takes {AHEAD:,}x the CPU of finding boxes", f"{found:.0f}x")],
    )


def _searched(segment: Segment, queries: Sequence[object], k: int) -> Callable[[], list[list[int]]]:
    def alive(number: int, ordinal: int, positions: pa.Array) -> pa.Array:
        return pa.repeat(True, len(positions))

    def work() -> list[list[int]]:
        return [
            Rstar().search(_SPEC, [segment], None, query, k, alive, {}).table.column("position").to_pylist()
            for query in queries
        ]

    return work


def _scanned(path: Path, x: float, y: float) -> list[int]:
    wkb = pq.read_table(path).column("1").to_numpy()
    return np.flatnonzero(
        shapely.intersects(shapely.box(x, y, x + 0.1, y + 0.1), shapely.from_wkb(wkb))
    ).tolist()
