"""A chain of forks, each of the one before, in which every level adds a file and retires one."""

from __future__ import annotations

import time
from dataclasses import dataclass

import forklake
from benchmarks.fork_shared import FEW, STEADY, Bench, ms
from benchmarks.many_files import ROWS, Backend, Place
from benchmarks.report import Section, Target, table
from benchmarks.timing import Timings, Work, cost, in_turns, seconds

_ROUNDS = 25
_FIRST, _LAST = "level 1", "the last level"


@dataclass(frozen=True, slots=True)
class _Filter:
    title: str
    where: str | None


@dataclass(frozen=True, slots=True)
class _Planned:
    files: int
    filter: _Filter
    timings: Timings

    @property
    def ratio(self) -> float:
        return cost(self.timings[_LAST], self.timings[_FIRST])


def chain(bench: Bench, backend: Backend, *, levels: int, files: int) -> Section:
    """Make a chain over a small table and one over a large table, and plan at both of its ends."""
    found: list[_Planned] = []
    made: list[str] = []
    for number in (FEW, files):
        place = bench.lake_of_files(backend, f"chain_{number}", number)
        began = time.perf_counter()
        _make(bench, place, levels)
        taken = time.perf_counter() - began
        made.append(f"{number:,} files: {levels:,} levels made in {seconds(taken)}")
        bench.progress(f"{backend}: planning at both ends")
        found += _planned(place, number, levels)
    lines = [
        (
            f"{one.files:,} files, {one.filter.title}",
            ms(one.timings[_FIRST].median),
            ms(one.timings[_LAST].median),
            f"{one.ratio:.2f}x",
        )
        for one in found
    ]
    text = "\n".join([*made, table(("plan", _FIRST, _LAST, "the last takes"), lines)])
    targets = [
        Target(
            one.ratio <= STEADY,
            f"{one.files:,} files, {one.filter.title}: at most {STEADY:g}x of level 1 at level {levels}",
            f"{one.ratio:.2f}x",
        )
        for one in found
    ]
    return Section(
        f"chain: {levels:,} levels, a file added and one retired in each, on {backend}", text, targets
    )


def _name(level: int) -> str:
    return f"level_{level}"


def _row(level: int) -> list[dict[str, int]]:
    # No other file has such an id.
    return [{"id": -1 - level, "day": 0, "customer": 0}]


def _make(bench: Bench, place: Place, levels: int) -> None:
    """Every level retires the file that the one before has added, so each file stays for one level."""
    with forklake.connect(place.url) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.catalog("bench").table("t").append(_row(0))
        parent = "bench"
        for level in range(1, levels + 1):
            if level % 100 == 1:
                bench.progress(f"{place.backend}: level {level} of {levels}")
            with lake.fork(parent, _name(level)).transaction() as changes:
                changes.table("t").append(_row(level))
                changes.table("t").delete(f"id = {_row(level - 1)[0]['id']}")
            parent = _name(level)


def _planned(place: Place, files: int, levels: int) -> list[_Planned]:
    filters = (_Filter("a point filter", f"id = {files // 2 * ROWS + 7}"), _Filter("no filter", None))
    with forklake.connect(place.url) as lake:
        tables = {
            title: lake.catalog(_name(level)).table("t") for title, level in ((_FIRST, 1), (_LAST, levels))
        }
        planned: list[_Planned] = []
        for one in filters:
            expected = files + 1 if one.where is None else 1
            for title, found in tables.items():
                assert len(found.scan(where=one.where).plan().files) == expected, (title, one)
            works: dict[str, Work] = {
                title: lambda found=found, one=one: found.scan(where=one.where).plan()
                for title, found in tables.items()
            }
            planned.append(_Planned(files, one, in_turns(works, _ROUNDS)))
    return planned
