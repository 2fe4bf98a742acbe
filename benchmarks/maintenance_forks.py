"""Very many idle forks that are dropped: how long it takes until nothing is left of them."""

from __future__ import annotations

import time
from datetime import timedelta

import psycopg

import forklake
from benchmarks.fork_shared import FEW, Bench
from benchmarks.maintenance_collect import MOST_SECONDS, rows_of
from benchmarks.many_files import Backend, Place
from benchmarks.report import Section, Target, table
from benchmarks.timing import seconds

MOST_LEFT = 1.1
"""How many times as large as before the database may be."""
_BATCH = 10_000
_SIZE = """
SELECT sum(pg_total_relation_size(oid)) FROM pg_class
 WHERE relkind = 'r' AND relnamespace = %s::regnamespace
"""
NOW = timedelta(0)


def dropped_forks(bench: Bench, backend: Backend, *, forks: int) -> Section:
    """Make forks, drop them, expire and collect; then compare rows and size with what was there before."""
    place = bench.lake_of_files(backend, "forks", FEW)
    names = [f"agent_{number:07}" for number in range(forks)]
    with forklake.connect(place.url) as lake:
        # A server that has run for a while has cleaned up after its first rows.
        lake.expire(older_than=NOW)
        lake.collect_garbage(older_than=NOW)
        rows, size = rows_of(place), shrunk(place)
        bench.progress(f"{backend}: {forks:,} forks")
        for start in range(0, forks, _BATCH):
            lake.fork_many("bench", names[start : start + _BATCH])
        full = _size(place)
        bench.progress(f"{backend}: dropping and collecting them")
        times = [time.perf_counter()]
        for start in range(0, forks, _BATCH):
            lake.drop_catalogs(names[start : start + _BATCH])
        times.append(time.perf_counter())
        forgotten = lake.expire(older_than=NOW).forgotten
        times.append(time.perf_counter())
        lake.collect_garbage(older_than=NOW)
        times.append(time.perf_counter())
    left = {name: number - rows[name] for name, number in rows_of(place).items() if number != rows[name]}
    collected = _size(place)
    after = shrunk(place)
    took = times[-1] - times[0]
    steps = [
        (what, seconds(end - start))
        for what, start, end in zip(("drop", "expire", "collect"), times, times[1:], strict=False)
    ]
    sizes = [
        (what, f"{bytes_ / 1e6:,.1f} MB")
        for what, bytes_ in (
            ("before", size),
            ("with the forks", full),
            ("after the collection", collected),
            (f"after {_SHRINKING[backend]}", after),
        )
    ]
    return Section(
        f"forks: {forks:,} idle forks dropped and collected on {backend}",
        "\n".join([table(("", "took"), steps), table(("size of the metadata", ""), sizes)]),
        [
            Target(took < MOST_SECONDS, f"under {MOST_SECONDS:g} s", seconds(took)),
            Target(forgotten == forks, "every fork is forgotten", f"{forgotten:,}"),
            # The last snapshot of all always stays.
            Target(
                left in ({}, {"ducklake_snapshot": 1}),
                "as many rows in each table as before, and the last snapshot",
                str(left or "the same"),
            ),
            Target(
                after <= MOST_LEFT * size,
                f"the database is within {MOST_LEFT - 1:.0%} of its size before",
                f"{after / size:.2f}x",
            ),
        ],
    )


_SHRINKING: dict[Backend, str] = {"PostgreSQL": "VACUUM FULL", "SQLite": "VACUUM"}
"""What gives room back to the disk. Without it the room is used again for what comes next."""


def shrunk(place: Place) -> int:
    """The bytes that the metadata takes once free room is given back."""
    if place.backend == "PostgreSQL":
        with psycopg.connect(place.server, autocommit=True) as connection:
            connection.execute("VACUUM FULL")
    else:
        place.query("VACUUM")
        place.query("PRAGMA wal_checkpoint(TRUNCATE)")
    return _size(place)


def _size(place: Place) -> int:
    """Tables with their indexes; or the files of the database, without what is free in them."""
    if place.backend == "PostgreSQL":
        with psycopg.connect(place.server) as connection:
            (size,) = connection.execute(_SIZE, [place.name]).fetchone() or (0,)
        return int(size)
    return sum(path.stat().st_size for path in place.folder.glob(f"{place.name}.db*"))
