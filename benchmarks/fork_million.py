"""A database of very many forks: what each takes, and whether the last works as fast as the first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count

import psycopg

import forklake
from benchmarks.fork_shared import AFTER, BEFORE, FEW, STEADY, Bench, analyze, stop_vacuum
from benchmarks.many_files import ROWS, Place
from benchmarks.report import Section, Target, table
from benchmarks.timing import Timings, Work, cost, in_turns, seconds
from forklake.api.lake import Lake
from forklake.api.table import Table
from forklake.store.tables import TABLES

MOST_BYTES = 600
_BATCH = 10_000
_ROUNDS = 51
_FIRST_ID = 1_000_000_000
"""Of files that no commit has made."""
_numbers = count(1)
_LAST_INLINED = """
SELECT max(data_file_id) FROM ducklake_data_file
 WHERE file_format = 'inlined'
   AND catalog_id = (SELECT catalog_id FROM ducklake_catalog WHERE catalog_name = %s)
"""
_SIZE = """
SELECT sum(pg_total_relation_size(oid)) FROM pg_class
 WHERE relkind = 'r' AND relnamespace = %s::regnamespace
"""


def million(bench: Bench, *, forks: int) -> Section:
    """Make them in batches, then let the first, the last and a lake of one fork do the same by turns."""
    alone = bench.lake_of_files("PostgreSQL", "alone", FEW)
    place = bench.lake_of_files("PostgreSQL", "million", FEW)
    for one in (alone, place):
        stop_vacuum(one)
    before = _size(place)
    _make(bench, alone, 1)
    began = time.perf_counter()
    _make(bench, place, forks)
    made = time.perf_counter() - began
    each = (_size(place) - before) / forks
    ends = _Pair(_Spot("the first", place, _name(0)), _Spot("the last", place, _name(forks - 1)))
    lakes = _Pair(_Spot("a lake of one fork", alone, _name(0)), _Spot("many", place, _name(forks // 2)))
    bench.progress("what can be done among so many")
    compared = [(BEFORE, step) for step in _among(lakes)]
    analyze(place)
    compared += [(AFTER, step) for step in _among(lakes)]
    bench.progress("what the first and the last can do")
    steps = [
        _Step("list tables, nothing known yet", ends, _listings(ends)),
        _Step(f"plan a point filter over {FEW} files", ends, _plans(ends)),
        _Step("commit one inlined row", ends, _commits(ends)),
    ]
    bench.progress("a row in each fork")
    with _tables(lakes) as tables:
        tables[lakes.one.title].append(_row())
    _write_everywhere(place, ends.other.fork)
    title = f"plan over {FEW} files, after each fork wrote"
    compared.append((BEFORE, _Step(title, lakes, _plans(lakes))))
    analyze(place)
    compared.append((AFTER, _Step(title, lakes, _plans(lakes))))
    text = "\n".join(
        [
            f"made in {seconds(made)} in batches of {min(_BATCH, forks):,}: {forks / made:,.0f} forks/s, "
            f"{each:.0f} bytes each, with indexes",
            table(("", ends.one.title, ends.other.title, "the last takes"), [step.line() for step in steps]),
            table(
                ("", "", lakes.one.title, f"among {forks:,}", "that takes"),
                [(step.title, when, *step.line()[1:]) for when, step in compared],
            ),
        ]
    )
    found = [Target(each <= MOST_BYTES, f"a fork takes at most {MOST_BYTES} bytes", f"{each:.0f}")]
    found += [step.target(f"the last takes at most {STEADY:g}x of the first") for step in steps]
    found += [step.target(f"at most {STEADY:g}x of a lake of one fork, {when}") for when, step in compared]
    return Section(f"million: {forks:,} forks of one parent on PostgreSQL", text, found)


def _name(number: int) -> str:
    return f"agent_{number:07}"


def _make(bench: Bench, place: Place, forks: int) -> None:
    with forklake.connect(place.url) as lake:
        for start in range(0, forks, _BATCH):
            if start % (10 * _BATCH) == 0:
                bench.progress(f"fork {start:,} of {forks:,}")
            lake.fork_many("bench", [_name(number) for number in range(start, min(start + _BATCH, forks))])


def _size(place: Place) -> int:
    with psycopg.connect(place.server) as connection:
        (size,) = connection.execute(_SIZE, [place.name]).fetchone() or (0,)
    return int(size)


@dataclass(frozen=True, slots=True)
class _Spot:
    """A fork somewhere."""

    title: str
    place: Place
    fork: str


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two forks that do the same by turns."""

    one: _Spot
    other: _Spot

    def __iter__(self) -> Iterator[_Spot]:
        return iter((self.one, self.other))


@dataclass(frozen=True, slots=True)
class _Step:
    """What both did, and how long it took."""

    title: str
    pair: _Pair
    timings: Timings

    @property
    def ratio(self) -> float:
        return cost(self.timings[self.pair.other.title], self.timings[self.pair.one.title])

    def line(self) -> tuple[str, str, str, str]:
        taken = (seconds(self.timings[spot.title].median) for spot in self.pair)
        return (self.title, *taken, f"{self.ratio:.2f}x")

    def target(self, what: str) -> Target:
        return Target(self.ratio <= STEADY, f"{self.title}: {what}", f"{self.ratio:.2f}x")


def _among(pair: _Pair) -> list[_Step]:
    """What begins with a name, and so is looked for among all of them."""

    def fork(lake: Lake) -> Work:
        return lambda: lake.fork("bench", f"more_{next(_numbers)}")

    def live(lake: Lake) -> Work:
        def work() -> None:
            name = f"short_lived_{next(_numbers)}"
            lake.fork("bench", name).table("t").append(_row())
            lake.merge(name, "bench")
            lake.drop_catalog(name)

        return work

    with ExitStack() as stack:
        lakes = {spot.title: stack.enter_context(forklake.connect(spot.place.url)) for spot in pair}
        return [
            _Step(title, pair, in_turns({name: work(lake) for name, lake in lakes.items()}, _ROUNDS))
            for title, work in (("fork", fork), ("fork, append, merge, drop", live))
        ]


def _listings(pair: _Pair) -> Timings:
    """What was read is kept in a lake's handle, so each is measured on a fresh one."""
    handles: list[Lake] = []

    def renew() -> None:
        if handles:
            handles.pop().close()
        handles.append(forklake.connect(pair.one.place.url))
        handles[0].catalog("bench")  # The connection is there from now on.

    def listing(name: str) -> Work:
        return lambda: handles[0].catalog(name).tables()

    try:
        works = {spot.title: listing(spot.fork) for spot in pair}
        return in_turns(works, _ROUNDS, before=renew, warm=False)
    finally:
        handles.pop().close()


def _plans(pair: _Pair) -> Timings:
    where = f"id = {FEW // 2 * ROWS + 7}"

    def plan(one: Table) -> Work:
        assert len(one.scan(where=where).plan().files) == 1
        return lambda: one.scan(where=where).plan()

    with _tables(pair) as tables:
        return in_turns({title: plan(one) for title, one in tables.items()}, _ROUNDS)


def _commits(pair: _Pair) -> Timings:
    def commit(one: Table) -> Work:
        return lambda: one.append(_row())

    with _tables(pair) as tables:
        return in_turns({title: commit(one) for title, one in tables.items()}, _ROUNDS)


@contextmanager
def _tables(pair: _Pair) -> Iterator[dict[str, Table]]:
    with ExitStack() as stack:
        lakes = [stack.enter_context(forklake.connect(spot.place.url)) for spot in pair]
        yield {spot.title: lake.catalog(spot.fork).table("t") for spot, lake in zip(pair, lakes, strict=True)}


def _row() -> list[dict[str, int]]:
    return [{"id": -next(_numbers), "day": 0, "customer": 0}]


def _write_everywhere(place: Place, name: str) -> None:
    """Give each fork that has no row of its own yet the last one of another, as a commit would write it."""
    with psycopg.connect(place.server, options=f"-c search_path={place.name}") as connection:
        model = connection.execute(_LAST_INLINED, [name]).fetchone()
        for written in ("ducklake_data_file", "ducklake_inlined_file"):
            columns = {column: f"m.{column}" for column in TABLES[written]}
            columns |= {"catalog_id": "h.catalog_id", "data_file_id": f"{_FIRST_ID} + h.catalog_id"}
            if "begin_snapshot" in columns:
                columns["begin_snapshot"] = "h.snapshot_id"
            connection.execute(
                f"INSERT INTO {written} ({', '.join(columns)}) SELECT {', '.join(columns.values())} "
                f"FROM {written} m, ducklake_catalog_head h WHERE m.data_file_id = %s AND h.catalog_id <> "
                "ALL (SELECT catalog_id FROM ducklake_data_file WHERE data_file_id < %s)".encode(),
                [*(model or ()), _FIRST_ID],
            )
