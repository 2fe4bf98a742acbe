"""One row by its UUID with Spark, in a table with a hash index and in one without."""

from __future__ import annotations

import numpy as np

from benchmarks.index_tables import rows_of, uuids
from benchmarks.report import Section, Target, table
from benchmarks.spark_shared import Bench, cpu_seconds
from benchmarks.timing import Work, cost, in_turns, same, seconds

AHEAD = 15
_WITH, _WITHOUT = "with a hash index", "without"


def index(bench: Bench, *, files: int, rows: int, rounds: int) -> Section:
    """Write the same files twice, and look for one row of each of a few."""
    with bench.lake() as lake:
        on = bench.catalog(lake)
        catalog = on.catalog
        random = np.random.default_rng(7)
        made = {
            title: catalog.create_table(name, "id UUID, n BIGINT, value DOUBLE, note VARCHAR")
            for title, name in ((_WITH, "indexed"), (_WITHOUT, "plain"))
        }
        made[_WITH].create_index("by_id", kind="hash", columns=["id"], maintain="later")
        bench.progress(f"index: {files:,} files of {rows:,} rows are written")
        ids: list[str] = []
        for _ in range(files):
            data = rows_of(random, uuids(random, rows))
            ids.append(str(data.column("id")[rows // 2].as_py()))
            for each in made.values():
                each.append(data)
        catalog.build_indexes("indexed")
        id = ids[files // 2]
        contenders: dict[str, Work] = {
            title: lambda each=each: [row["n"] for row in on.read(each.name, f"id = '{id}'").collect()]
            for title, each in made.items()
        }
        same({title: work() for title, work in contenders.items()})
        timings = in_turns(contenders, rounds, cpu=cpu_seconds)
    found = cost(timings[_WITHOUT], timings[_WITH])
    lines = [(timing.title, seconds(timing.median), seconds(timing.cpu)) for timing in timings.values()]
    return Section(
        f"index: one row of {files * rows:,} in {files} files",
        table(("", "median", "CPU"), lines),
        [Target(found >= AHEAD, f"without an index it takes {AHEAD}x as long", f"{found:.1f}x")],
    )
