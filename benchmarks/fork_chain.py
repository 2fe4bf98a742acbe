"""A chain of forks, each of the one before, in which every level adds a file and retires one."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass

import forklake
from benchmarks.fork_shared import AFTER, BEFORE, FEW, STEADY, Bench, analyze, ms, stop_vacuum
from benchmarks.many_files import ROWS, Backend, Place
from benchmarks.report import Section, Target, table
from benchmarks.timing import Timings, Work, cost, in_turns, seconds
from forklake.api.table import Table

_ROUNDS = 25
_ENOUGH = 5
"""Rounds for what takes long."""
_ALONE, _FIRST, _LAST = "level 1, no more", "level 1", "the last level"


@dataclass(frozen=True, slots=True)
class _Filter:
    title: str
    where: str | None


@dataclass(frozen=True, slots=True)
class _Planned:
    files: int
    filter: _Filter
    when: str
    timings: Timings

    @property
    def title(self) -> str:
        return f"{self.files:,} files, {self.filter.title}"

    @property
    def ratio(self) -> float:
        return cost(self.timings[_LAST], self.timings[_ALONE])


def chain(bench: Bench, backend: Backend, *, levels: int, files: int) -> Section:
    """Make chains over a small table and a large one, and plan at both ends, and in a lake of one level."""
    found: list[_Planned] = []
    made: list[str] = []
    for number in (FEW, files):
        alone = bench.lake_of_files(backend, f"alone_{number}", number)
        place = bench.lake_of_files(backend, f"chain_{number}", number)
        for one in (alone, place):
            stop_vacuum(one)
        _make(bench, alone, 1)
        began = time.perf_counter()
        _make(bench, place, levels)
        taken = time.perf_counter() - began
        made.append(f"{number:,} files: {levels:,} levels made in {seconds(taken)}")
        bench.progress(f"{backend}: planning at both ends")
        for when in (BEFORE, AFTER) if backend == "PostgreSQL" else ("",):
            if when == AFTER:
                analyze(place)
            found += _planned(alone, place, number, levels, when)
    lines = [
        (
            one.title,
            one.when,
            *(ms(one.timings[title].median) for title in (_ALONE, _FIRST, _LAST)),
            f"{one.ratio:.2f}x",
        )
        for one in found
    ]
    text = "\n".join([*made, table(("plan", "", _ALONE, _FIRST, _LAST, "the last takes"), lines)])
    targets = [
        Target(
            one.ratio <= STEADY,
            f"{one.title}: level {levels} takes at most {STEADY:g}x of a lone level 1"
            f"{', ' if one.when else ''}{one.when}",
            f"{one.ratio:.2f}x",
        )
        for one in found
    ]
    title = f"chain: {levels:,} levels, a file added and one retired in each, on {backend}"
    return Section(title, text, targets)


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


def _planned(alone: Place, place: Place, files: int, levels: int, when: str) -> list[_Planned]:
    filters = (_Filter("a point filter", f"id = {files // 2 * ROWS + 7}"), _Filter("no filter", None))

    def plan(found: Table, where: str | None) -> Work:
        planned = found.scan(where=where).plan()
        assert len(planned.files) == (files + 1 if where is None else 1)
        return lambda: found.scan(where=where).plan()

    with ExitStack() as stack:
        one, many = (stack.enter_context(forklake.connect(lake.url)) for lake in (alone, place))
        tables = {
            title: lake.catalog(_name(level)).table("t")
            for title, lake, level in ((_ALONE, one, 1), (_FIRST, many, 1), (_LAST, many, levels))
        }
        return [
            _Planned(
                files,
                chosen,
                when,
                in_turns(
                    {title: plan(found, chosen.where) for title, found in tables.items()},
                    _ENOUGH if files > FEW and chosen.where is None else _ROUNDS,
                ),
            )
            for chosen in filters
        ]
