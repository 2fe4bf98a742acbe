"""TPC-H through SQL of a catalog, against the same text over its plain files, and against stock DuckLake."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.report import Section, Target, table
from benchmarks.timing import Timing, Timings, Work, cost, cpu_cost, in_turns, same, seconds
from benchmarks.tpch import Lakes, answer, queries

OURS, PLAIN, STOCK = "sql", "read_parquet", "DuckLake"
MOST_OF_PLAIN, MOST_OF_HANDLE = 1.15, 1.10
_HANDLE = "handle"
_SCANS = {
    "lineitem, all columns": (("lineitem", None, None), "FROM lineitem"),
    "lineitem, three columns": (
        ("lineitem", ["l_orderkey", "l_extendedprice", "l_shipdate"], None),
        "SELECT l_orderkey, l_extendedprice, l_shipdate FROM lineitem",
    ),
    "lineitem of a month": (
        ("lineitem", None, "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-02-01'"),
        "FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-02-01'",
    ),
    "one order": (("orders", None, "o_orderkey = 1000001"), "FROM orders WHERE o_orderkey = 1000001"),
}
"""The same scan for a handle (table, columns, condition) and in SQL."""


def scans(lakes: Lakes, *, rounds: int) -> Section:
    """Rows to Arrow by a scan of a handle, and by the same said in SQL."""
    lines: list[Sequence[str]] = []
    targets: list[Target] = []
    for title, ((name, columns, where), sql) in _SCANS.items():
        handle = lakes.catalog.table(name)
        contenders: dict[str, Work] = {
            OURS: lambda sql=sql: lakes.catalog.sql(sql).to_arrow(),
            _HANDLE: lambda handle=handle, columns=columns, where=where: handle.scan(
                where, columns=columns
            ).to_arrow(),
        }
        rows = {title: work() for title, work in contenders.items()}
        same({title: (found.schema.names, found.num_rows) for title, found in rows.items()})
        timings = in_turns(contenders, rounds)
        ours, other = timings[OURS], timings[_HANDLE]
        factor, by_cpu = cost(ours, other), cpu_cost(ours, other)
        lines.append((title, seconds(ours.median), seconds(other.median), f"{factor:.2f}x", f"{by_cpu:.2f}x"))
        what = f"{title} takes at most {MOST_OF_HANDLE:g}x of the handle"
        targets.append(Target(factor <= MOST_OF_HANDLE, what, f"{factor:.2f}x, CPU {by_cpu:.2f}x"))
    heading = ("", OURS, _HANDLE, "sql takes", "of its CPU")
    return Section("scan: rows to Arrow", table(heading, lines), targets)


def tpch(lakes: Lakes, scale_factor: float, *, rounds: int) -> Section:
    """All queries, whose answers are compared before times are."""
    lines: list[Sequence[str]] = []
    found: list[Timings] = []
    for title, sql in queries(scale_factor).items():
        contenders: dict[str, Work] = {
            OURS: lambda sql=sql: lakes.catalog.sql(sql).to_arrow(),
            PLAIN: lambda sql=sql: lakes.plain.execute(sql).to_arrow_table(),
            STOCK: lambda sql=sql: lakes.stock.execute(sql).to_arrow_table(),
        }
        same({name: answer(work()) for name, work in contenders.items()})
        timings = in_turns(contenders, rounds)
        found.append(timings)
        lines.append(_line(title, timings))
    total = {name: _sum(name, [timings[name] for timings in found]) for name in (OURS, PLAIN, STOCK)}
    lines.append(_line("sum", total))
    worst = statistics.median(cost(timings[OURS], timings[PLAIN]) for timings in found)
    lines.append(("median of the queries", "", "", "", f"{worst:.2f}x", "", "", ""))
    heading = ("", OURS, PLAIN, STOCK, f"of {PLAIN}", "CPU", f"of {STOCK}", "CPU")
    title = f"tpch: scale factor {scale_factor:g}, the same answers from all"
    return Section(title, table(heading, lines), _targets(total))


def _targets(total: Timings) -> list[Target]:
    of_plain, of_stock = cost(total[OURS], total[PLAIN]), cost(total[OURS], total[STOCK])
    cpu = cpu_cost(total[OURS], total[PLAIN])
    return [
        Target(
            of_plain <= MOST_OF_PLAIN,
            f"the sum takes at most {MOST_OF_PLAIN:g}x of {PLAIN}",
            f"{of_plain:.2f}x, CPU {cpu:.2f}x",
        ),
        Target(of_stock < 1, f"the sum is ahead of {STOCK}", f"{of_stock:.2f}x of its time"),
    ]


def _sum(title: str, timings: Sequence[Timing]) -> Timing:
    """What all queries took, round by round."""
    wall = tuple(sum(found) for found in zip(*(timing.seconds for timing in timings), strict=True))
    cpu = tuple(sum(found) for found in zip(*(timing.cpu_seconds for timing in timings), strict=True))
    return replace(timings[0], title=title, seconds=wall, cpu_seconds=cpu)


def _line(title: str, timings: Timings) -> Sequence[str]:
    ours = timings[OURS]
    return (
        title,
        *(seconds(timing.median) for timing in timings.values()),
        *(f"{factor(ours, timings[name]):.2f}x" for name in (PLAIN, STOCK) for factor in (cost, cpu_cost)),
    )
