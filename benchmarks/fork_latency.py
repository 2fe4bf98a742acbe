"""How long one fork takes, for a small parent and a large one, by reference and by copy."""

from __future__ import annotations

from itertools import count

import forklake
from benchmarks.fork_shared import FEW, STEADY, Bench, ms, percentile
from benchmarks.many_files import Backend
from benchmarks.report import Section, Target, table
from benchmarks.timing import Timing, Work, cost, in_turns
from forklake.api.lake import Lake
from forklake.fork.create import Mode

MOST_P50 = 0.005
MOST_P99 = 0.025


def latency(
    bench: Bench, backend: Backend, *, files: int, forks: int, copied_files: int, copies: int
) -> Section:
    """Fork parents of different sizes, by turns."""
    few = bench.lake_of_files(backend, "fork_few", FEW)
    many = bench.lake_of_files(backend, "fork_many", files)
    middle = bench.lake_of_files(backend, "fork_middle", copied_files)
    with (
        forklake.connect(few.url) as small,
        forklake.connect(many.url) as large,
        forklake.connect(middle.url) as copied,
    ):
        bench.progress(f"{backend}: {forks:,} forks of each parent")
        titles = f"reference, {FEW} files", f"reference, {files:,} files"
        by_reference = in_turns(dict(zip(titles, (_forks(small), _forks(large)), strict=True)), forks)
        bench.progress(f"{backend}: {copies} copies of each parent")
        by_copy = in_turns(
            {
                f"copy, {FEW} files": _forks(small, "copy"),
                f"copy, {copied_files:,} files": _forks(copied, "copy"),
            },
            copies,
        )
    first, second = (by_reference[title] for title in titles)
    lines = [_line(timing, first) for timing in (by_reference | by_copy).values()]
    heading = ("", "forks", "p50", "p99", f"of {FEW} files by reference")
    text = table(heading, lines)
    targets = _targets(first, second) if backend == "PostgreSQL" else []
    return Section(f"fork: one by one on {backend}", text, targets)


def _forks(lake: Lake, mode: Mode = "reference") -> Work:
    numbers = count()
    return lambda: lake.fork("bench", f"{mode}_{next(numbers)}", mode=mode)


def _line(timing: Timing, first: Timing) -> tuple[str, ...]:
    middle = percentile(timing.seconds, 0.5)
    return (
        timing.title,
        f"{len(timing.seconds):,}",
        ms(middle),
        # Of a few copies, the slowest is no percentile.
        ms(percentile(timing.seconds, 0.99)) if len(timing.seconds) >= 100 else "",
        f"{middle / percentile(first.seconds, 0.5):.2f}x",
    )


def _targets(first: Timing, second: Timing) -> list[Target]:
    p50 = max(percentile(timing.seconds, 0.5) for timing in (first, second))
    p99 = max(percentile(timing.seconds, 0.99) for timing in (first, second))
    ratio = cost(second, first)
    return [
        Target(p50 <= MOST_P50, f"half of all forks take at most {MOST_P50 * 1e3:g} ms", ms(p50)),
        Target(p99 <= MOST_P99, f"99 % of all forks take at most {MOST_P99 * 1e3:g} ms", ms(p99)),
        Target(
            ratio <= STEADY,
            f"a large parent takes at most {STEADY:g}x as long as a small one",
            f"{ratio:.2f}x",
        ),
    ]
