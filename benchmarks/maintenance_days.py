"""Days of agents that fork, write, and are merged or dropped, with cleaning every hour: rows and files.

The clock of the days is the database's, so what an hour of cleaning retains is counted in what was done: an
expiry in each hour keeps the snapshots since the hour before, and each collection removes what the one before
has scheduled.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import forklake
from benchmarks.fork_shared import Bench
from benchmarks.maintenance_collect import rows_of
from benchmarks.many_files import Backend, Place
from benchmarks.report import Section, Target, table
from benchmarks.timing import seconds
from forklake.api.lake import Lake

MOST_GROWTH = 1.1
"""How many times as much as in the first half of the days may be there in the second, at most."""
_COLUMNS = "agent BIGINT, n BIGINT, value BIGINT"
_ROWS = 50
_KEPT_ROWS = 2_000
"""Older rows are deleted once a day, so that the data itself levels off."""


@dataclass(slots=True)
class _Days:
    lake: Lake
    agents: int
    random: random.Random = field(default_factory=lambda: random.Random(7))
    made: int = 0
    """Agents so far."""
    idle: list[str] = field(default_factory=list[str])
    """Forks of the hour before that are still there."""

    def hour(self) -> None:
        """Agents come, work, and are merged or dropped; some stay for another hour."""
        started: list[str] = []
        for _ in range(self.agents):
            name = f"agent_{self.made}"
            self.made += 1
            shared = self.lake.fork("parent", name).table("shared")
            for step in range(3):
                n = self.made * 10 + step
                shared.append([{"agent": self.made, "n": n, "value": row} for row in range(_ROWS)])
            shared.delete(f"agent = {self.made} AND value < 5")
            if self.random.random() < 0.2:
                started.append(name)
            else:
                self.end(name)
        for name in self.idle:
            self.end(name)
        self.idle = started

    def end(self, name: str) -> None:
        """Half are merged first."""
        if self.random.random() < 0.5:
            self.lake.merge(name, "parent")
        self.lake.drop_catalog(name)

    def clean(self, since: datetime) -> None:
        """What runs every hour: compaction, expiry, collection, orphans."""
        self.lake.catalog("parent").compact()
        self.lake.expire(older_than=since)
        self.lake.collect_garbage(older_than=timedelta(0))


def days(bench: Bench, backend: Backend, *, days: int, hours: int, agents: int) -> Section:
    """So many days with so many agents an hour; rows and files at the end of each day."""
    place = bench.place(backend, "days")
    files = place.files
    began = time.perf_counter()
    with forklake.connect(place.url, data_path=files, create=True) as lake:
        shared = lake.create_catalog("parent").create_table("shared", _COLUMNS)
        shared.set_option("data_inlining_row_limit", 10)
        run = _Days(lake, agents)
        found: list[_Day] = []
        since = lake.now()
        for day in range(days):
            bench.progress(f"{backend}: day {day + 1} of {days}")
            for _ in range(hours):
                before, since = since, lake.now()
                run.hour()
                run.clean(before)
            shared.delete(f"agent < {run.made - _KEPT_ROWS // _ROWS}")
            found.append(_day(place))
    took = time.perf_counter() - began
    lines = [
        (str(number), f"{day.rows:,}", f"{day.files:,}", f"{day.bytes / 1e6:,.2f} MB")
        for number, day in enumerate(found, 1)
    ]
    first, second = found[: len(found) // 2], found[len(found) // 2 :]
    text = "\n".join(
        [
            f"{run.made:,} agents in {seconds(took)}, each with a fork and four commits; half of them merge",
            table(("day", "rows of metadata", "files", "in bytes"), lines),
            _growing(first, second),
        ]
    )
    targets = [
        Target(
            now <= MOST_GROWTH * then,
            f"{what} level off: in the second half at most {MOST_GROWTH}x of the first",
            f"{now / max(then, 1):.2f}x",
        )
        for what, then, now in (
            ("rows", max(day.rows for day in first), max(day.rows for day in second)),
            ("files", max(day.files for day in first), max(day.files for day in second)),
        )
    ]
    title = f"days: {days} simulated days of {hours} hours, {agents} agents an hour, on {backend}"
    return Section(title, text, targets)


@dataclass(frozen=True, slots=True)
class _Day:
    by_table: dict[str, int]
    files: int
    bytes: int

    @property
    def rows(self) -> int:
        return sum(self.by_table.values())


def _day(place: Place) -> _Day:
    found = [path for path in place.files.rglob("*") if path.is_file()]
    return _Day(rows_of(place), len(found), sum(path.stat().st_size for path in found))


def _growing(then: Sequence[_Day], now: Sequence[_Day]) -> str:
    """The tables that have grown."""
    lines: list[tuple[str, str, str]] = []
    for name in now[-1].by_table:
        before, after = (max(day.by_table[name] for day in half) for half in (then, now))
        if after > max(MOST_GROWTH * before, before + 10):
            lines.append((name, f"{before:,}", f"{after:,}"))
    heading = ("grown", "first half", "second half")
    return table(heading, lines) if lines else "no table of the metadata has grown"
