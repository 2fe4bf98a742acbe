"""A database of very many forks: what each takes, and whether the last works as fast as the first."""

from __future__ import annotations

import time
from itertools import count

import psycopg

import forklake
from benchmarks.fork_shared import FEW, STEADY, Bench
from benchmarks.many_files import ROWS, Place
from benchmarks.report import Section, Target, table
from benchmarks.timing import Timings, Work, cost, in_turns, seconds
from forklake.lake import Lake

MOST_BYTES = 600
_BATCH = 10_000
_ROUNDS = 51
_FIRST, _LAST = "first", "last"
_SIZE = """
SELECT sum(pg_total_relation_size(oid)) FROM pg_class
 WHERE relkind = 'r' AND relnamespace = %s::regnamespace
"""


def million(bench: Bench, *, forks: int) -> Section:
    """Make them in batches, then let the first and the last do the same by turns."""
    place = bench.lake_of_files("PostgreSQL", "million", FEW)
    before = _size(place)
    began = time.perf_counter()
    _make(bench, place, forks)
    made = time.perf_counter() - began
    each = (_size(place) - before) / forks
    _analyze(place)
    bench.progress("what the first and the last can do")
    names = {_FIRST: _name(0), _LAST: _name(forks - 1)}
    steps = {
        "list tables, nothing known yet": _listings(place, names),
        f"plan a point filter over {FEW} files": _plans(place, names),
        "commit one inlined row": _commits(place, names),
    }
    lines = [
        (title, seconds(timings[_FIRST].median), seconds(timings[_LAST].median), f"{_ratio(timings):.2f}x")
        for title, timings in steps.items()
    ]
    text = (
        f"made in {seconds(made)} in batches of {min(_BATCH, forks):,}: {forks / made:,.0f} forks/s, "
        f"{each:.0f} bytes each, with indexes\n"
        f"{table(('', 'the first', 'the last', 'the last takes'), lines)}"
    )
    found = [Target(each <= MOST_BYTES, f"a fork takes at most {MOST_BYTES} bytes", f"{each:.0f}")]
    for title, timings in steps.items():
        what = f"{title}: the last takes at most {STEADY:g}x as long as the first"
        found.append(Target(_ratio(timings) <= STEADY, what, f"{_ratio(timings):.2f}x"))
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


def _analyze(place: Place) -> None:
    # A server does this by itself some time after so many rows came; not while something is measured.
    with psycopg.connect(place.server, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _ratio(timings: Timings) -> float:
    return cost(timings[_LAST], timings[_FIRST])


def _listings(place: Place, names: dict[str, str]) -> Timings:
    """What was read is kept in a lake's handle, so each is measured on a fresh one."""
    handles: list[Lake] = []

    def renew() -> None:
        if handles:
            handles.pop().close()
        handles.append(forklake.connect(place.url))
        handles[0].catalog("bench")  # The connection is there from now on.

    def listing(name: str) -> Work:
        return lambda: handles[0].catalog(name).tables()

    try:
        works = {title: listing(name) for title, name in names.items()}
        return in_turns(works, _ROUNDS, before=renew, warm=False)
    finally:
        handles.pop().close()


def _plans(place: Place, names: dict[str, str]) -> Timings:
    where = f"id = {FEW // 2 * ROWS + 7}"
    with forklake.connect(place.url) as lake:
        tables = {title: lake.catalog(name).table("t") for title, name in names.items()}
        for one in tables.values():
            assert len(one.scan(where=where).plan().files) == 1
        works: dict[str, Work] = {
            title: lambda one=one: one.scan(where=where).plan() for title, one in tables.items()
        }
        return in_turns(works, _ROUNDS)


def _commits(place: Place, names: dict[str, str]) -> Timings:
    numbers = count()

    def row() -> list[dict[str, int]]:
        return [{"id": -next(numbers), "day": 0, "customer": 0}]

    with forklake.connect(place.url) as lake:
        tables = {title: lake.catalog(name).table("t") for title, name in names.items()}
        works: dict[str, Work] = {title: lambda one=one: one.append(row()) for title, one in tables.items()}
        return in_turns(works, _ROUNDS)
