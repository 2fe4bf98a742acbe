"""The part of the demo's story that is about forks: a thousand agents on one set of trips."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from forklake.api.catalog import Catalog
from forklake.api.lake import Lake
from forklake.demo.rows import BIKES, TRIPS
from forklake.demo.steps import Step, checked
from forklake.errors import MergeConflict

AGENTS = 1000
BUSY = 8
CORRECTORS = 20
CLEANER, APPRAISER = "agent_0001", "agent_0002"


def fork_agents(lake: Lake) -> Iterator[str]:
    """A fork is a few rows of metadata, however much its parent holds."""
    bikes = lake.catalog(BIKES)
    rows, files = bikes.table(TRIPS).count(), len(bikes.table(TRIPS).files())
    start = time.perf_counter()
    agents = lake.fork_many(BIKES, [f"agent_{number:04}" for number in range(1, AGENTS + 1)])
    took = time.perf_counter() - start
    start = time.perf_counter()
    lake.fork(BIKES, "one_more")
    single = time.perf_counter() - start
    last = agents[-1].table(TRIPS)
    yield checked(
        len(agents) == AGENTS and last.count() == rows and len(last.files()) == files,
        f"{AGENTS:,} agents have a fork each, made in {took * 1000:.0f} ms; each sees all {rows:,} trips, "
        "and nothing was copied",
    )
    yield checked(
        lake.catalog("one_more").table(TRIPS).count() == rows, f"one more took {single * 1000:.1f} ms"
    )


def agents_work(lake: Lake) -> Iterator[str]:
    """Forks do not wait for each other, and do not see each other."""
    bikes = lake.catalog(BIKES)
    before = bikes.table(TRIPS).count()
    agents = [lake.catalog(f"agent_{number:04}") for number in range(1, BUSY + 1)]
    start = time.perf_counter()
    with ThreadPoolExecutor(BUSY) as pool:
        gone = list(pool.map(_clean, agents, range(BUSY)))
    took = time.perf_counter() - start
    counts = [agent.table(TRIPS).count() for agent in agents]
    yield checked(
        counts == [before - lost for lost in gone] and bikes.table(TRIPS).count() == before,
        f"{BUSY} of them deleted trips and noted it in a table of their own, at once, in "
        f"{took * 1000:.0f} ms: each sees its own {min(counts):,} to {max(counts):,} trips, "
        f"{BIKES} still has {before:,}",
    )


def _clean(agent: Catalog, number: int) -> int:
    lost = agent.table(TRIPS).delete(f"trip % 100 = {number}")
    agent.create_table("notes", "what VARCHAR, rows BIGINT").append([{"what": "deleted", "rows": lost}])
    return lost


def look_at_one(lake: Lake) -> Iterator[str]:
    """What a fork did is known at once, row by row if asked for."""
    difference = lake.catalog(CLEANER).diff()
    trips, notes = difference.table(TRIPS), difference.table("notes")
    rows = [] if trips is None else trips.rows().to_arrow()["change_type"].to_pylist()
    removed, files = (0, 0) if trips is None else (trips.rows_removed, len(trips.files_with_deletes))
    yield checked(
        set(rows) == {"delete"} and len(rows) == removed and notes is not None and notes.change == "created",
        f"{CLEANER} took {removed} rows from {files} files of trips, and made a table notes",
    )


def merge_one(lake: Lake) -> Iterator[str]:
    """A merge is one commit, and takes over files as they are."""
    bikes = lake.catalog(BIKES)
    before = bikes.table(TRIPS).count()
    start = time.perf_counter()
    result = lake.merge(CLEANER, into=BIKES)
    took = time.perf_counter() - start
    removed = sum(table.rows_removed for table in result.tables)
    yield checked(
        bikes.table(TRIPS).count() == before - removed and result.snapshot == bikes.snapshot,
        f"{CLEANER} was merged into {BIKES} in {took * 1000:.0f} ms, as snapshot {result.snapshot}: "
        f"{removed} trips are gone there too",
    )


def merge_many(lake: Lake) -> Iterator[str]:
    """Agents that change different rows of the same files are all merged."""
    bikes = lake.catalog(BIKES)
    names = [f"agent_{number:04}" for number in range(BUSY + 1, BUSY + 1 + CORRECTORS)]
    changed = [
        lake.catalog(name)
        .table(TRIPS)
        .update({"minutes": 1_000 + at}, f"trip % 97 = {at} AND trip % 100 > {BUSY}")
        for at, name in enumerate(names)
    ]
    before = bikes.table(TRIPS).count()
    start = time.perf_counter()
    for name in names:
        lake.merge(name, into=BIKES)
    took = time.perf_counter() - start
    found = bikes.table(TRIPS).scan(f"minutes >= 1000 AND minutes < {1_000 + CORRECTORS}").count()
    yield checked(
        found == sum(changed) and bikes.table(TRIPS).count() == before,
        f"{CORRECTORS} agents corrected {sum(changed):,} trips of the same files, and all were merged, in "
        f"{took * 1000 / CORRECTORS:.0f} ms each",
    )


def resolve_a_conflict(lake: Lake) -> Iterator[str]:
    """Only a row that both changed collides: it is shown, and one side is preferred."""
    bikes, agent = lake.catalog(BIKES), lake.catalog(APPRAISER)
    where = f"trip % 97 = 0 AND trip % 100 > {BUSY}"
    both = agent.table(TRIPS).update({"minutes": 5_000}, where)
    before = bikes.snapshot
    try:
        lake.merge(APPRAISER, into=BIKES, tables=[TRIPS])
    except MergeConflict as refusal:
        (conflict,) = refusal.conflicts
        row = conflict.rows()[0]
        yield checked(
            conflict.row_count == both and bikes.snapshot == before,
            f"{APPRAISER} changed {both} of these trips too, so it was refused: of one, it says "
            f"{(row.ours or {})['minutes']} minutes, and {BIKES} {(row.theirs or {})['minutes']}",
        )
    lake.merge(APPRAISER, into=BIKES, tables=[TRIPS], prefer="source")
    yield checked(
        bikes.table(TRIPS).scan("minutes = 5000").count() == both and bikes.snapshot != before,
        f"with prefer=source it was merged: {both} trips are as the agent says, all others came together",
    )


def drop_the_rest(lake: Lake) -> Iterator[str]:
    """A fork that is dropped takes nothing with it that anybody else reads."""
    bikes = lake.catalog(BIKES)
    before = bikes.table(TRIPS).count()
    start = time.perf_counter()
    lake.drop_catalogs([catalog.name for catalog in lake.catalogs() if catalog.parent == BIKES])
    took = time.perf_counter() - start
    left = [catalog.name for catalog in lake.catalogs() if catalog.parent == BIKES]
    yield checked(
        left == [] and bikes.table(TRIPS).count() == before == len(bikes.table(TRIPS).scan().to_arrow()),
        f"all {AGENTS + 1:,} forks were dropped in {took * 1000:.0f} ms, and {BIKES} has its "
        f"{before:,} trips",
    )


STEPS = (
    Step("A thousand agents get a fork each", fork_agents),
    Step("Agents work at the same time", agents_work),
    Step("What did an agent do?", look_at_one),
    Step("One of them is merged", merge_one),
    Step("Twenty agents correct trips of the same files", merge_many),
    Step("Two agents change the same trips", resolve_a_conflict),
    Step("The rest are dropped", drop_the_rest),
)
