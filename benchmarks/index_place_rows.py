"""Rows of places in a lake: a search by `rstar`, and the same search where no segment has been built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely

import forklake
from benchmarks.report import Section, Target, table
from benchmarks.timing import cpu_cost, in_turns, same, seconds

AHEAD = 20
_BUILT, _NOT_BUILT = "with a segment", "without: every WKB is parsed"
_SEARCHES = 5


def place_rows(folder: Path, boxes: int, *, rounds: int) -> Section:
    """Search small boxes at random places, in ten files, for those that meet a box; rows come with a name."""
    lake = forklake.connect(f"sqlite:///{folder}/places.db", data_path=folder / "places", create=True)
    catalog = lake.create_catalog("c")
    random = np.random.default_rng(11)
    x, y = random.random(boxes) * 360 - 180, random.random(boxes) * 180 - 90
    size = random.random((2, boxes)) / 100
    wkb = pa.array(shapely.to_wkb(shapely.box(x, y, x + size[0], y + size[1])), pa.binary())
    names = pa.array([f"shop {at}" for at in range(boxes)])
    rows = pa.table({"id": pa.array(range(boxes), pa.int64()), "name": names, "place": wkb})
    step = -(-boxes // 10)
    made: dict[str, forklake.Table] = {}
    for title, name in ((_BUILT, "built"), (_NOT_BUILT, "plain")):
        made[title] = catalog.create_table(name, "id BIGINT, name VARCHAR, place BLOB")
        made[title].create_index("by_place", kind="rstar", columns=["place"], maintain="later")
        for first in range(0, boxes, step):
            made[title].append(rows.slice(first, step))
    catalog.build_indexes("built")
    boxes_asked = [
        (float(a), float(b), a + 0.5, b + 0.5) for a, b in zip(x[:_SEARCHES], y[:_SEARCHES], strict=True)
    ]
    works = {
        _BUILT: _searching(made[_BUILT], boxes_asked),
        _NOT_BUILT: _searching(made[_NOT_BUILT], boxes_asked[:1]),
    }
    same({title: work()[0] for title, work in works.items()})
    timings = in_turns(works, rounds)
    searches = {_BUILT: len(boxes_asked), _NOT_BUILT: 1}
    ahead = cpu_cost(timings[_NOT_BUILT], timings[_BUILT]) * len(boxes_asked)
    lines = [
        (title, seconds(each.median / searches[title]), seconds(each.cpu / searches[title]))
        for title, each in timings.items()
    ]
    return Section(
        f"places with rows: those of {boxes:,} boxes that meet a box",
        table(("", "median", "CPU"), lines),
        [Target(ahead >= AHEAD, f"without a segment it takes {AHEAD}x the CPU", f"{ahead:.0f}x")],
    )


def _searching(each: forklake.Table, asked: list[tuple[float, ...]]) -> Callable[[], list[list[int]]]:
    return lambda: [
        sorted(
            each.search("by_place", {"intersects": box}, k=1_000, columns=["id", "name"])
            .to_arrow()
            .column("id")
            .to_pylist()
        )
        for box in asked
    ]
