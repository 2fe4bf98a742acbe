"""One row out of very many files with Spark: what it helps that the catalog knows which file has it."""

from __future__ import annotations

from benchmarks.report import Section, Target, table
from benchmarks.sample import SCHEMA, sample
from benchmarks.spark_shared import OURS, PLAIN, TABLE, Bench, cpu_seconds
from benchmarks.timing import Work, cost, in_turns, same, seconds

MOST = 0.05
_PER_FILE = 1_000
_PRUNED, _UNPRUNED, _FILTERED = f"{OURS}(…, where)", f"{OURS}(…).where", f"{PLAIN}(…).where"


def point(bench: Bench, *, files: int, rounds: int) -> Section:
    """Look for one id, with and without the help of the catalog."""
    with bench.lake() as lake:
        on = bench.catalog(lake)
        bench.progress(f"point: {files:,} files are written")
        made = on.create_table(TABLE, SCHEMA)
        # A file is full with its first row group.
        made.set_option("parquet_row_group_size", _PER_FILE)
        made.set_option("target_file_size", 1)
        made.append(sample(files * _PER_FILE))
        paths = bench.files(on)
        same({"files": len(paths), "wanted": files})
        where = f"id = {files * _PER_FILE * 2 // 3 + 1}"
        bench.progress("point: one row is looked for")
        contenders: dict[str, Work] = {
            _PRUNED: lambda: on.read(TABLE, where).collect(),
            _UNPRUNED: lambda: on.read(TABLE).where(where).collect(),
            _FILTERED: lambda: bench.spark.read.parquet(*paths).where(where).collect(),
        }
        answers = {title: [tuple(row) for row in work()] for title, work in contenders.items()}
        same({"a row": 1, **{title: len(found) for title, found in answers.items()}})
        same(answers)
        timings = in_turns(contenders, rounds, warm=False, cpu=cpu_seconds)
    ours = timings[_PRUNED]
    lines = [
        (timing.title, seconds(timing.median), seconds(timing.cpu), f"{cost(ours, timing):.3f}x")
        for timing in timings.values()
    ]
    found = cost(ours, timings[_UNPRUNED])
    target = Target(found <= MOST, f"a point filter takes at most {MOST:g}x of {_UNPRUNED}", f"{found:.3f}x")
    title = f"point: one row of {files:,} files"
    return Section(title, table(("", "median", "CPU", "pruned takes"), lines), [target])
