"""Agents that update different rows of the same few files of a large table, each in a fork, and all merge."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

import forklake
from benchmarks.fork_agents import workers
from benchmarks.fork_shared import STEADY, WORKERS, Bench
from benchmarks.many_files import Backend
from benchmarks.report import Section, Target
from benchmarks.timing import seconds

UPDATED = 500
"""Rows that each agent updates: more than what stays in the metadata for a file."""
_FILES = 20
_STRIDE = 4
"""One row in so many is updated, so that they lie in several files."""
_COLUMNS = "id BIGINT, value BIGINT"


@dataclass(frozen=True, slots=True)
class Share:
    """The agents that one worker plays, of how many."""

    url: str
    mine: tuple[int, ...]
    agents: int


def _name(agent: int) -> str:
    return f"agent_{agent}"


def update(share: Share) -> int:
    """Let each agent update its rows in its fork; gives how many rows that were."""
    updated = 0
    with forklake.connect(share.url) as lake:
        for agent in share.mine:
            table = lake.catalog(_name(agent)).table("shared")
            period = _STRIDE * share.agents
            where = f"id < {period * UPDATED} AND id % {period} = {_STRIDE * agent}"
            updated += table.update({"value": str(agent + 1)}, where)
    return updated


def updates(bench: Bench, backend: Backend, *, rows: int, agents: int) -> Section:
    """No two agents touch the same row, so all can be merged, and the last as fast as the first."""
    bench.progress(f"{backend}: {agents:,} agents update {UPDATED} of {rows:,} rows each")
    place = bench.place(backend, "updates")
    refused: Counter[str] = Counter()
    taken: list[float] = []
    with forklake.connect(place.url, data_path=bench.folder / "updates" / backend, create=True) as lake:
        shared = lake.create_catalog("parent").create_table("shared", _COLUMNS)
        size = rows // _FILES
        for start in range(0, rows, size):
            shared.append(pa.table({"id": range(start, start + size), "value": pa.repeat(0, size)}))
        lake.fork_many("parent", [_name(agent) for agent in range(agents)])
        shares = [Share(place.url, tuple(range(at, agents, WORKERS)), agents) for at in range(WORKERS)]
        with workers() as pool:
            updated = sum(pool.map(update, shares, chunksize=1))
        bench.progress(f"{backend}: merging")
        for agent in range(agents):
            began = time.perf_counter()
            try:
                lake.merge(_name(agent), into="parent")
            except forklake.MergeConflict as conflict:
                refused[conflict.conflicts[0].rule] += 1
            taken.append(time.perf_counter() - began)
        wrong = _wrong(shared, rows, agents)
    tenth = max(1, agents // 10)
    first, last = (statistics.median(part) for part in (taken[:tenth], taken[-tenth:]))
    return Section(
        f"updates: {agents:,} agents update {UPDATED} rows each of {rows:,}, on {backend}",
        f"{updated:,} rows updated in forks; {agents:,} merges in {seconds(sum(taken))}, one takes "
        f"{seconds(first)} in the first tenth and {seconds(last)} in the last",
        [
            Target(
                not refused, "no merge conflicts", f"{refused.total()} refused {', '.join(refused)}".rstrip()
            ),
            Target(
                updated == agents * UPDATED and not wrong,
                "the parent has exactly the rows that it should have",
                ", ".join(wrong) or f"{rows:,} rows",
            ),
            Target(
                last <= first * STEADY,
                "a merge does not take longer for those before it",
                f"{last / first:.2f} times as long in the last tenth as in the first",
            ),
        ],
    )


def _wrong(shared: forklake.Table, rows: int, agents: int) -> list[str]:
    """What is not as it should be after all have merged."""
    found = shared.scan().to_arrow()
    ids, values = found["id"], found["value"]
    bounds = pc.min_max(ids).as_py()
    changed = found.filter(pc.greater(values, 0))
    agent = pc.subtract(changed["value"], 1)
    period = _STRIDE * agents
    turns = pc.divide(pc.subtract(changed["id"], pc.multiply(agent, _STRIDE)), period)
    again = pc.add(pc.multiply(turns, period), pc.multiply(agent, _STRIDE))
    checks = {
        f"{shared.count():,} rows are counted": shared.count() == rows,
        f"{found.num_rows:,} rows are read": found.num_rows == rows,
        "ids are missing or there twice": pc.count_distinct(ids).as_py() == rows
        and bounds == {"min": 0, "max": rows - 1},
        f"{changed.num_rows:,} of {agents * UPDATED:,} rows are updated": changed.num_rows
        == agents * UPDATED,
        "rows have the values of others": again.equals(changed["id"]),
    }
    return [said for said, holds in checks.items() if not holds]
