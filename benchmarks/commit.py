"""What a commit costs, against what the server can do and against the stock DuckLake client.

`python -m benchmarks.commit` starts a throwaway PostgreSQL with fsync on, measures and prints a report.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from benchmarks.burst import Burst, burst
from benchmarks.contenders import Contender, make_forklake
from benchmarks.limit import make_inserts
from benchmarks.listing import FEW, Listing, listing
from benchmarks.race import STRETCH, Entry, Figure, Race, TableStatistics, ratio
from benchmarks.report import Target, table, verdicts
from benchmarks.stock import make_ducklake
from forklake.localpg import LocalPostgres

OURS = Contender("forklake, a catalog each", make_forklake)
LIMIT = Contender("INSERTs, psycopg pipeline", partial(make_inserts, sending="pipeline"))
HARD_LIMIT = Contender("INSERTs, libpq in one packet", partial(make_inserts, sending="libpq"))
SOFT_LIMIT = Contender("INSERTs, one by one", partial(make_inserts, sending="statements"))
# Its ten retries take some 11 seconds; in a shorter time nothing could fail.
STOCK = Contender("DuckLake, shared", partial(make_ducklake, shared=True), slow=True)
PATIENT = Contender("DuckLake, 1000 retries", partial(make_ducklake, shared=True, retries=1000), slow=True)
APART = Contender("DuckLake, a lake each", partial(make_ducklake, shared=False), slow=True)

PARTS = ("writers", "limit", "ducklake", "burst", "listing")
COMPARED = 8
NOISE = 0.05
_LIMIT_SECONDS = 45 * 60


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    writers: tuple[int, ...]
    rounds: int
    seconds: float
    ramp: float
    threads: int
    tables: int


FULL = Scale((1, 2, 4, 8, 16), rounds=5, seconds=3.0, ramp=0.5, threads=250, tables=10_000)
QUICK = Scale((1, 8), rounds=1, seconds=1.5, ramp=0.3, threads=250, tables=1_000)


def entries(parts: Sequence[str], writers: Sequence[int]) -> list[Entry]:
    """What the parts need, each thing once, and what is compared side by side."""
    wanted: set[Entry] = set()
    if "writers" in parts:
        wanted |= {(OURS, number) for number in writers}
    if "limit" in parts:
        wanted |= {(contender, number) for number in writers for contender in (OURS, LIMIT)}
        wanted |= {(contender, number) for number in (1, COMPARED) for contender in (HARD_LIMIT, SOFT_LIMIT)}
    if "ducklake" in parts:
        wanted |= {(contender, number) for number in (1, COMPARED) for contender in (OURS, STOCK)}
        wanted |= {(PATIENT, COMPARED), (APART, COMPARED)}
    order = (OURS, LIMIT, HARD_LIMIT, SOFT_LIMIT, STOCK, PATIENT, APART)
    return sorted(wanted, key=lambda entry: (entry[0].slow, entry[1], order.index(entry[0])))


def targets(
    statistics: TableStatistics, burst: Burst | None, listing: Listing | None, parts: Sequence[str]
) -> list[Target]:
    """What should hold, and whether it does."""
    found: list[Target] = []
    if "writers" in parts:
        found += _targets_of_writers(
            [figure for (title, _), figure in statistics.items() if title == OURS.title]
        )
    if "limit" in parts:
        found.append(_ratio(statistics, LIMIT, 0.5))
    if "ducklake" in parts:
        found += [_ratio(statistics, contender, 5.0) for contender in (STOCK, PATIENT)]
    if burst is not None:
        what = f"{burst.threads} commits at once into one catalog all succeed"
        told = f"{burst.stand} tables there, {burst.failed} failed, {burst.transactions} transactions"
        found.append(Target(burst.stand == burst.threads and not burst.errors, what, told))
    if listing is not None:
        same = listing.many == listing.few
        what = f"as many statements for {listing.tables:,} tables as for {FEW}"
        found.append(Target(same, what, "the same" if same else f"{listing.many} and {listing.few}"))
        what = f"listing {listing.tables:,} tables takes less than 300 ms"
        found.append(Target(listing.median < 0.3, what, f"{listing.median * 1e3:.0f} ms"))
    return found


def _targets_of_writers(ours: list[Figure]) -> list[Target]:
    ours.sort(key=lambda figure: figure.writers)
    best = ours[0]
    falls = False
    steps: list[str] = []
    for figure in ours[1:]:
        change = ratio(figure, best)
        falls |= change < 1 - NOISE
        steps.append(f"{change:.2f}x at {figure.writers} of what {best.writers} made")
        best = max(best, figure, key=lambda figure: figure.rate)
    failed = sum(figure.failed for figure in ours)
    slowest = min(ours, key=lambda figure: figure.slowest)
    return [
        Target(
            not falls, f"throughput never falls as writers are added ({NOISE:.0%} noise)", ", ".join(steps)
        ),
        Target(not failed, "no commit fails", f"{failed} failed"),
        Target(
            slowest.slowest >= 0.5,
            "the slowest writer makes at least 0.5 of the mean",
            f"{slowest.slowest:.2f} at {slowest.writers}",
        ),
    ]


def _ratio(statistics: TableStatistics, other: Contender, least: float) -> Target:
    found = ratio(statistics[OURS.title, COMPARED], statistics[other.title, COMPARED])
    what = f"at least {least:g}x of {other.title}, at {COMPARED} writers"
    return Target(found >= least, what, f"{found:.2f}x")


def show(statistics: TableStatistics, burst: Burst | None, listing: Listing | None) -> str:
    """Every figure that was measured."""
    parts: list[str] = []
    if statistics:
        parts.append(_race_table(statistics))
    if burst is not None:
        parts.append(
            f"{burst.threads} threads, one catalog, a table each: {burst.seconds:.2f} s, "
            f"{burst.threads / burst.seconds:.0f} commits/s, {burst.failed} failed"
        )
        parts += [f"  {number} x {error}" for error, number in burst.errors.items()]
    if listing is not None:
        parts.append(_listing_table(listing))
    return "\n\n".join(parts)


def _race_table(statistics: TableStatistics) -> str:
    heading = ("", "writers", "commits/s", "ours", "failed", "slowest", "latency", "client CPU", "WAL")
    rows: list[Sequence[str]] = []
    for figure in statistics.values():
        ours = statistics.get((OURS.title, figure.writers))
        rows.append(
            (
                figure.contender,
                str(figure.writers),
                f"{figure.rate:.0f}" if figure.rate >= 100 else f"{figure.rate:.1f}",
                f"{ratio(ours, figure):.2f}x" if ours else "",
                str(figure.failed),
                f"{figure.slowest:.2f}",
                f"{figure.latency * 1e3:.1f} ms",
                f"{figure.cpu * 1e3:.2f} ms",
                f"{figure.wal:.0f} B",
            )
        )
    said = sorted(
        {f"  {figure.contender}: {error}" for figure in statistics.values() for error in figure.errors}
    )
    note = (
        "ours: forklake's commits/s as a multiple of this row's, median of the rounds. slowest: the slowest\n"
        "writer's share of the mean. Latency, client CPU and write-ahead log are for one commit."
    )
    return "\n".join([table(heading, rows), note, *said])


def _listing_table(listing: Listing) -> str:
    heading = ("statements on a fresh handle", f"{FEW} tables", f"{listing.tables:,} tables")
    steps = {
        "open_catalog": "open the catalog",
        "open_table": "open a table",
        "list_tables": "list the tables",
    }
    rows = [
        (name, str(getattr(listing.few, step)), str(getattr(listing.many, step)))
        for step, name in steps.items()
    ]
    return (
        f"{listing.tables:,} tables x {listing.columns} columns: created in {listing.transactions} "
        f"transactions in {listing.creation:.1f} s; listed in {listing.median * 1e3:.0f} ms (the first time "
        f"{listing.first * 1e3:.0f} ms)\n{table(heading, rows)}"
    )


def introduction(server: str, scale: Scale) -> str:
    """Where and how it was measured."""
    with psycopg.connect(server) as connection:
        (version,) = connection.execute("SHOW server_version").fetchone() or ("",)
        (fsync,) = connection.execute("SHOW fsync").fetchone() or ("",)
    cores, load = os.cpu_count(), os.getloadavg()[0]
    return (
        "Each commit changes the metadata of one table, by turns: CREATE TABLE of three columns, ADD\n"
        "COLUMN. Each writer is a process of its own. INSERTs are the very rows that our commits write, in\n"
        "tables with the same indexes, as plain transactions without reads or logic.\n"
        f"Medians of {scale.rounds} interleaved rounds of {scale.seconds:g} s; DuckLake, which retries for "
        f"long, has {(scale.rounds + 1) // 2} of {scale.seconds * STRETCH:g} s.\n"
        f"PostgreSQL {version} on loopback, fsync {fsync}; DuckDB {duckdb.__version__}; Python "
        f"{platform.python_version()}; {cores} cores, load average {load:.1f} before the start."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commit", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short run, for a first impression")
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be given several times")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the statistics here too")
    given = parser.parse_args(arguments)
    scale = QUICK if given.quick else FULL
    parts: Sequence[str] = given.only or PARTS

    # Ending by a signal, our own alarm included, still runs every clean-up.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _stop)
    signal.alarm(_LIMIT_SECONDS)
    began = time.monotonic()

    def progress(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", file=sys.stderr, flush=True)

    progress("starting PostgreSQL")
    with LocalPostgres() as server, tempfile.TemporaryDirectory(prefix="forklake-bench-") as temporary:
        folder = Path(temporary)
        head = introduction(server.url, scale)
        statistics: TableStatistics = {}
        many: Burst | None = None
        wide: Listing | None = None
        if contest := entries(parts, scale.writers):
            race = Race(server.url, folder, scale.rounds, scale.seconds, scale.ramp)
            statistics = race.run(contest, progress)
        if "burst" in parts:
            progress(f"{scale.threads} commits at once")
            many = burst(server.url, folder, threads=scale.threads)
        if "listing" in parts:
            progress(f"a catalog of {scale.tables:,} tables")
            wide = listing(server.url, folder, tables=scale.tables)
    reached = targets(statistics, many, wide, parts)
    progress("done")
    print(f"\n{head}\n\n{show(statistics, many, wide)}\n\n{verdicts(reached)}")
    if given.json is not None:
        told: dict[str, Any] = {
            "statistics": [asdict(figure) for figure in statistics.values()],
            "burst": many and asdict(many),
            "listing": wide and asdict(wide),
            "targets": [asdict(target) for target in reached],
        }
        given.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def _stop(number: int, _: object) -> None:
    raise SystemExit(f"ended by {signal.Signals(number).name}")


if __name__ == "__main__":
    main()
