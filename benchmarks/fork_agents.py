"""Agents that work in forks of their own, many at once, and merge back into the parent."""

from __future__ import annotations

import multiprocessing
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.pool import Pool

import pyarrow as pa

import forklake
from benchmarks.counting import calls
from benchmarks.fork_shared import WORKERS, Bench, percentile
from benchmarks.many_files import Backend
from benchmarks.report import Section, Target, table
from benchmarks.timing import seconds
from forklake.api.lake import Lake
from forklake.store.postgres import PostgresDatabase
from forklake.store.sqlite import SqliteDatabase

CHANGES = 50
ROWS = 100_000
_COLUMNS = "agent BIGINT, n BIGINT, value BIGINT"
_BASE = 1_000
_DATABASES: dict[Backend, type] = {"PostgreSQL": PostgresDatabase, "SQLite": SqliteDatabase}
_START_SECONDS = 2.0
_Row = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker does at one time."""

    backend: Backend
    url: str
    agents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """How it went."""

    taken: dict[str, list[float]]
    """Seconds of every step, by what it was."""
    errors: Counter[str]
    retries: int
    """Transactions beyond one for each step."""


class _Log:
    """Counts and times steps; one that fails is told and not tried again."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.taken: dict[str, list[float]] = {}
        self.errors: Counter[str] = Counter()

    def step(self, what: str, work: Callable[[], object]) -> None:
        began = time.perf_counter()
        try:
            work()
        except forklake.ForklakeError as error:
            self.errors[f"{what}: {type(error).__name__}: {str(error).partition(chr(10))[0][:160]}"] += 1
        self.taken.setdefault(what, []).append(time.perf_counter() - began)


def _name(agent: int) -> str:
    return f"agent_{agent}"


def _steps() -> Iterator[tuple[str, int]]:
    """Eight inserts, an update and a delete, each of a row that the agent has inserted, over and over."""
    for n in range(CHANGES):
        match n % 10:
            case 7:
                yield "update", n - 3
            case 9:
                yield "delete", n - 6
            case _:
                yield "insert", n


def _rows_of(agent: int) -> set[_Row]:
    """What should be there of an agent in the end."""
    rows: dict[int, int] = {}
    for what, n in _steps():
        match what:
            case "insert":
                rows[n] = 0
            case "update":
                rows[n] += 1
            case _:
                del rows[n]
    return {(agent, n, value) for n, value in rows.items()}


def _is_merged(agent: int) -> bool:
    return agent % 2 == 0


# ---- What worker processes do ---


@contextmanager
def _logged(share: Share) -> Iterator[_Log]:
    with forklake.connect(share.url) as lake:
        yield _Log(lake)


def _done(share: Share, work: Callable[[_Log], None]) -> Done:
    with calls(_DATABASES[share.backend], "transaction") as transactions, _logged(share) as log:
        work(log)
    steps = sum(len(taken) for taken in log.taken.values())
    return Done(log.taken, log.errors, transactions() - steps)


def work(share: Share) -> Done:
    """Fork for each agent and let it make its changes."""

    def live(log: _Log) -> None:
        for agent in share.agents:
            _live(log, agent)

    return _done(share, live)


def _live(log: _Log, agent: int) -> None:
    log.step("fork", lambda: log.lake.fork("parent", _name(agent)))
    shared = log.lake.catalog(_name(agent)).table("shared")
    for what, n in _steps():
        where = f"agent = {agent} AND n = {n}"
        match what:
            case "insert":
                log.step(what, lambda n=n: shared.append([{"agent": agent, "n": n, "value": 0}]))
            case "update":
                log.step(what, lambda where=where: shared.update({"value": "value + 1"}, where))
            case _:
                log.step(what, lambda where=where: shared.delete(where))


def finish(share: Share) -> Done:
    """Merge every other agent's fork into the parent, and drop the others."""

    def end(log: _Log) -> None:
        for agent in share.agents:
            if _is_merged(agent):
                log.step("merge", lambda agent=agent: log.lake.merge(_name(agent), "parent"))
            else:
                log.step("drop", lambda agent=agent: log.lake.drop_catalog(_name(agent)))

    return _done(share, end)


def fill(share: Share) -> list[str]:
    """Append very many rows in a fork; gives the files that came."""
    (agent,) = share.agents
    with forklake.connect(share.url) as lake:
        shared = lake.fork("parent", _name(agent)).table("shared")
        known = {file.path for file in shared.files()}
        shared.append(pa.table({"agent": [agent] * ROWS, "n": range(ROWS), "value": [0] * ROWS}))
        return [str(file.path) for file in shared.files() if file.path not in known]


def _ready(_: int) -> None:
    """Do once, elsewhere, what loads libraries when it is first done."""
    with (
        tempfile.TemporaryDirectory(prefix="forklake-bench-") as folder,
        forklake.connect(f"sqlite:///{folder}/lake.db", create=True) as lake,
    ):
        warm = lake.create_catalog("warm").create_table("t", _COLUMNS)
        warm.append([{"agent": 0, "n": 0, "value": 0}])
        warm.update({"value": "value + 1"}, "n = 0")
        warm.delete("n = 0")
    # Long enough that nobody is free twice.
    time.sleep(_START_SECONDS)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the others.


@contextmanager
def workers() -> Iterator[Pool]:
    """Processes that have loaded everything."""
    with multiprocessing.get_context("spawn").Pool(WORKERS, _ignore_interrupts) as pool:
        pool.map(_ready, range(WORKERS), chunksize=1)
        yield pool


# ---- What is measured ---


def agents(bench: Bench, backend: Backend, *, agents: int) -> Section:
    """Agents that insert, update and delete in one shared table; half are merged, half are dropped."""
    url = _make_lake(bench, backend, "agents")
    shares = [Share(backend, url, tuple(range(place, agents, WORKERS))) for place in range(WORKERS)]
    with workers() as pool:
        bench.progress(f"{backend}: {agents:,} agents make {CHANGES} changes each")
        began = time.perf_counter()
        worked = pool.map(work, shares, chunksize=1)
        middle = time.perf_counter()
        bench.progress(f"{backend}: merging and dropping")
        finished = pool.map(finish, shares, chunksize=1)
        end = time.perf_counter()
    expected = {(-1, n, 0) for n in range(_BASE)}
    for agent in filter(_is_merged, range(agents)):
        expected |= _rows_of(agent)
    with forklake.connect(url) as lake:
        rows = lake.catalog("parent").table("shared").scan().to_arrow().to_pylist()
        left = {info.name for info in lake.catalogs()}
    found = Counter((row["agent"], row["n"], row["value"]) for row in rows)
    wanted = Counter(expected)
    missing, extra = (wanted - found).total(), (found - wanted).total()
    errors = sum((done.errors for done in (*worked, *finished)), Counter[str]())
    should_be = {"parent", *(_name(agent) for agent in filter(_is_merged, range(agents)))}
    commits = agents * (CHANGES + 1)
    text = "\n".join(
        [
            f"{commits:,} commits in {seconds(middle - began)}: {commits / (middle - began):,.0f} commits/s, "
            f"{sum(done.retries for done in worked):,} tried again",
            f"merging and dropping in {seconds(end - middle)}: {agents / (end - middle):,.0f}/s, "
            f"{sum(done.retries for done in finished):,} tried again",
            _steps_table([*worked, *finished]),
            *(f"  {number} x {error}" for error, number in errors.items()),
        ]
    )
    return Section(
        f"agents: {agents:,} with {CHANGES} changes each, in {WORKERS} processes on {backend}",
        text,
        [
            Target(not errors, "nothing fails and nothing conflicts", f"{errors.total()} failed"),
            Target(
                not missing and not extra,
                "the parent has exactly the rows that it should have",
                f"{len(rows):,} rows, {missing} missing, {extra} too many",
            ),
            Target(left == should_be, "dropped forks are gone, and only those", f"{len(left):,} catalogs"),
        ],
    )


def appends(bench: Bench, backend: Backend) -> Section:
    """Workers that each append very many rows in a fork of their own, and merge at once."""
    url = _make_lake(bench, backend, "appends")
    numbers = range(0, 2 * WORKERS, 2)  # Those that are merged.
    shares = [Share(backend, url, (number,)) for number in numbers]
    with workers() as pool, forklake.connect(url) as lake:
        shared = lake.catalog("parent").table("shared")
        before = {str(file.path) for file in shared.files()}
        bench.progress(f"{backend}: {WORKERS} workers append {ROWS:,} rows each")
        began = time.perf_counter()
        added = pool.map(fill, shares, chunksize=1)
        middle = time.perf_counter()
        finished = pool.map(finish, shares, chunksize=1)
        end = time.perf_counter()
        after = [str(file.path) for file in shared.files()]
        count = shared.count()
    errors = sum((done.errors for done in finished), Counter[str]())
    union = sorted(before.union(*added))
    text = "\n".join(
        [
            f"{WORKERS * ROWS:,} rows appended in {seconds(middle - began)}; merged in "
            f"{seconds(end - middle)}, {sum(done.retries for done in finished)} tried again",
            _steps_table(finished),
            *(f"  {number} x {error}" for error, number in errors.items()),
        ]
    )
    return Section(
        f"agents: {WORKERS} append {ROWS:,} rows each and merge at once, on {backend}",
        text,
        [
            Target(not errors, "no merge conflicts", f"{errors.total()} failed"),
            Target(
                sorted(after) == union,
                "no file is rewritten: the parent has its own and those of the forks",
                f"{len(after)} of {len(union)}",
            ),
            Target(count == _BASE + WORKERS * ROWS, "every row is there", f"{count:,} rows"),
        ],
    )


def _make_lake(bench: Bench, backend: Backend, name: str) -> str:
    place = bench.place(backend, name)
    with forklake.connect(place.url, data_path=bench.folder / name / backend, create=True) as lake:
        shared = lake.create_catalog("parent").create_table("shared", _COLUMNS)
        shared.append(pa.table({"agent": [-1] * _BASE, "n": range(_BASE), "value": [0] * _BASE}))
    return place.url


def _steps_table(done: Sequence[Done]) -> str:
    taken: dict[str, list[float]] = {}
    for one in done:
        for what, found in one.taken.items():
            taken.setdefault(what, []).extend(found)
    lines = [
        (
            what,
            f"{len(found):,}",
            seconds(statistics.median(found)),
            seconds(percentile(found, 0.99)),
            seconds(max(found)),
        )
        for what, found in taken.items()
    ]
    return table(("", "times", "p50", "p99", "slowest"), lines)
