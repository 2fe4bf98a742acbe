"""Indexes of tables in a lake: finding, upserting, appending and forking, with an index and without."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa

import forklake
from benchmarks.report import Section, Target, table
from benchmarks.timing import Timings, cost, cpu_cost, in_turns, same, seconds
from forklake.index import segment_files, segment_parquet
from forklake.model.sql.predicate import compare
from forklake.scan.table_indexes import UsableIndex, usable_indexes
from tests.moto_server import S3Server

AHEAD_FIND, AHEAD_REQUESTS, AHEAD_UPSERT, MOST_APPEND, MOST_FORK = 25, 35, 3, 1.5, 1.5
_LOOKUPS = 10
_WITH, _WITHOUT, _HELD = "with a hash index", "without", "with its row in the index"
_SMALL = "with a hash index, small row groups"
_SMALL_ROWS = 8_192
_SCHEMA = "id UUID, n BIGINT, value DOUBLE, note VARCHAR"


def uuids(random: np.random.Generator, count: int) -> pa.Array:
    """Random UUIDs."""
    raw = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), count, [None, pa.py_buffer(random.bytes(16 * count))]
    )
    return pa.ExtensionArray.from_storage(pa.uuid(), raw)


def rows_of(random: np.random.Generator, ids: pa.Array) -> pa.Table:
    """Rows of ids."""
    count = len(ids)
    notes = pa.array(random.integers(0, 1 << 40, count)).cast(pa.string())
    return pa.table(
        {"id": ids, "n": pa.array(range(count), pa.int64()), "value": random.random(count), "note": notes}
    )


def _tables(catalog: forklake.Catalog, files: int, rows: int) -> tuple[dict[str, forklake.Table], list[UUID]]:
    """The same rows several times, and ids of some of them."""
    made = {
        title: catalog.create_table(f"t{at}", _SCHEMA)
        for at, title in enumerate((_WITHOUT, _WITH, _HELD, _SMALL))
    }
    made[_SMALL].set_option("parquet_row_group_size", _SMALL_ROWS)
    for title in (_WITH, _SMALL):
        made[title].create_index("by_id", kind="hash", columns=["id"], maintain="later")
    made[_HELD].create_index(
        "by_id", kind="hash", columns=["id"], include=["n", "value", "note"], maintain="later"
    )
    random = np.random.default_rng(7)
    known: list[UUID] = []
    for _ in range(files):
        data = rows_of(random, uuids(random, rows))
        known.append(data.column("id")[rows // 2].as_py())
        for each in made.values():
            each.append(data)
    catalog.build_indexes()
    return made, known


def find(folder: Path, files: int, rows: int, *, rounds: int) -> list[Section]:
    """One row by its id: from a disk, and from a bucket by counted requests; then upserts of 1 %."""
    lake = forklake.connect(f"sqlite:///{folder}/find.db", data_path=folder / "find", create=True)
    catalog = lake.create_catalog("c")
    made, known = _tables(catalog, files, rows)
    chosen = known[:: max(1, files // _LOOKUPS)]
    works = {title: _finding(each, chosen) for title, each in made.items()}
    same({title: work() for title, work in works.items()})
    timings = in_turns(works, rounds)
    targets: list[Target] = []
    for title in (_WITH, _SMALL, _HELD):
        ahead = cpu_cost(timings[_WITHOUT], timings[title])
        what = f"a scan takes {AHEAD_FIND}x the CPU without the index than {title}"
        targets.append(Target(ahead >= AHEAD_FIND, what, f"{ahead:.0f}x"))
    title = f"find: one row of {files * rows:,} in {files} files, a scan from Python"
    found = Section(title, _shown(timings, len(chosen)), targets)
    return [found, _upserts(catalog, made, files * rows, rounds=rounds), _forks(lake, made, rounds=rounds)]


def _finding(each: forklake.Table, chosen: Sequence[UUID]) -> Callable[[], list[object]]:
    columns = ["id", "n", "value", "note"]
    return lambda: [each.scan(f"id = '{id}'", columns).to_pylist() for id in chosen]


def _upserts(
    catalog: forklake.Catalog, made: dict[str, forklake.Table], count: int, *, rounds: int
) -> Section:
    """A source of 1 % of the keys, at random; each round changes other rows."""
    random = np.random.default_rng(11)
    chosen = {title: made[title] for title in (_WITHOUT, _WITH)}
    ids = made[_WITH].scan(columns=["id"]).to_arrow().column("id").combine_chunks()
    sources = [
        rows_of(random, ids.take(pa.array(random.choice(len(ids), max(1, count // 100), replace=False))))
        for _ in range(rounds + 1)
    ]
    works: dict[str, Callable[[], object]] = {}
    for title, each in chosen.items():
        left = iter(sources)
        works[title] = lambda each=each, left=left: str(each.merge(next(left), on="id"))
    timings = in_turns(works, rounds)
    ahead = cpu_cost(timings[_WITHOUT], timings[_WITH])
    return Section(
        f"upsert: {count // 100:,} random keys into {count:,} rows",
        _shown(timings, 1),
        [
            Target(
                ahead >= AHEAD_UPSERT, f"an upsert takes {AHEAD_UPSERT}x without the index", f"{ahead:.1f}x"
            )
        ],
    )


def _forks(lake: forklake.Lake, made: dict[str, forklake.Table], *, rounds: int) -> Section:
    """A fork of a catalog that has tables with indexes, and of one that has none; then its first lookup."""
    plain = lake.create_catalog("plain")
    plain.create_table("t", _SCHEMA).append([{"n": 1}])
    numbers = iter(range(1_000_000))
    works: dict[str, Callable[[], object]] = {
        "of tables with indexes": lambda: lake.fork("c", f"f{next(numbers)}"),
        "of one without": lambda: lake.fork("plain", f"f{next(numbers)}"),
    }
    timings = in_turns(works, rounds * 5)
    takes = cost(timings["of tables with indexes"], timings["of one without"])
    fork = lake.fork("c", "first").table(made[_WITH].name)
    own = UUID(int=5)
    fork.append(rows_of(np.random.default_rng(3), pa.array([own.bytes], pa.uuid())))
    theirs = made[_WITH].scan(columns=["id"]).to_arrow().column("id")[0].as_py()
    same({str(id): fork.scan(f"id = '{id}'").count() for id in (own, theirs)})
    pruned = sum(use.pruned for use in fork.scan(f"id = '{theirs}'").plan().indexes)
    return Section(
        "fork: of tables with indexes",
        _shown(timings, 1),
        [
            Target(
                takes <= MOST_FORK, f"a fork takes at most {MOST_FORK}x one without indexes", f"{takes:.2f}x"
            ),
            Target(pruned > 0, "its first lookup uses what the parent built", f"{pruned} files pruned"),
        ],
    )


def append(folder: Path, files: int, rows: int, *, rounds: int) -> Section:
    """Files that commits add, with the segment that they build."""
    lake = forklake.connect(f"sqlite:///{folder}/append.db", data_path=folder / "append", create=True)
    catalog = lake.create_catalog("c")
    made = {title: catalog.create_table(f"t{at}", _SCHEMA) for at, title in enumerate((_WITHOUT, _WITH))}
    made[_WITH].create_index("by_id", kind="hash", columns=["id"])
    random = np.random.default_rng(7)
    data = [rows_of(random, uuids(random, rows)) for _ in range(min(files, 5))]
    works = {title: (lambda each=each: [each.append(one) for one in data]) for title, each in made.items()}
    timings = in_turns(works, rounds)
    takes = cpu_cost(timings[_WITH], timings[_WITHOUT])
    sizes = sum(path.stat().st_size for path in (folder / "append").rglob("index-*"))
    per_row = sizes / (len(data) * rows * (rounds + 1))
    return Section(
        f"append: {len(data)} files of {rows:,} rows, {per_row:.1f} bytes of index for each row",
        _shown(timings, len(data)),
        [Target(takes <= MOST_APPEND, f"at most {MOST_APPEND}x the CPU without an index", f"{takes:.2f}x")],
    )


def requests(folder: Path, files: int, rows: int) -> Section:
    """One row out of a bucket by a client that has read nothing yet, and by one that knows the footers."""
    server = S3Server()
    url, address = f"sqlite:///{folder}/requests.db", server.url(server.new_bucket(), "lake/")
    lines: list[Sequence[str]] = []
    asked: dict[str, int] = {}
    with forklake.connect(url, data_path=address, create=True) as lake:
        known = _tables(lake.create_catalog("c"), files, rows)[1]
    for title, name in ((_WITHOUT, "t0"), (_WITH, "t1"), (_HELD, "t2")):
        segment_parquet.forget()
        segment_files.forget()
        with forklake.connect(url, data_path=address) as lake:
            each = lake.catalog("c").table(name)
            for when, id in (("first", known[0]), ("later", known[-1])):
                server.requests.clear()
                found = each.scan(f"id = '{id}'", ["id", "n", "value", "note"]).to_pylist()
                same({"found": len(found), "wanted": 1})
                gets = [one for one in server.requests if one.method in ("GET", "HEAD")]
                asked[f"{title}, {when}"] = len(gets)
                lines.append((f"{title}, {when}", f"{len(gets):,}", f"{sum(map(_bytes, gets)) / 1e6:.2f} MB"))
    server.stop()
    ahead = asked[f"{_WITHOUT}, first"] / max(1, asked[f"{_WITH}, first"])
    what = f"{AHEAD_REQUESTS}x fewer requests, if there are 100 files"
    return Section(
        f"requests: one row of {files * rows:,} in {files} files in a bucket",
        table(("", "requests", "read"), lines),
        [Target(ahead >= AHEAD_REQUESTS * files / 100, what, f"{ahead:.0f}x")],
    )


def _bytes(request: object) -> int:
    found = getattr(request, "range", None)
    if found is None:
        return 0
    first, _, last = found.removeprefix("bytes=").partition("-")
    return int(last) - int(first) + 1


def _shown(timings: Timings, searches: int) -> str:
    first, *_ = timings.values()
    return table(
        ("", "median", "CPU", "CPU, of the first"),
        [
            (
                title,
                seconds(each.median / searches),
                seconds(each.cpu / searches),
                f"{cpu_cost(each, first):.3f}x",
            )
            for title, each in timings.items()
        ],
    )


def held(folder: Path, rows: int) -> Section:
    """A lookup of a row that an index holds, in a segment whose row groups are in memory."""
    lake = forklake.connect(f"sqlite:///{folder}/held.db", data_path=folder / "held", create=True)
    each = lake.create_catalog("c").create_table("t", _SCHEMA)
    each.create_index("by_id", kind="hash", columns=["id"], include=["n", "value"])
    random = np.random.default_rng(7)
    each.append(rows_of(random, uuids(random, rows)))
    id = each.scan("n = 5", ["id"]).to_pylist()[0]["id"]
    draft = each._scope.read()
    definition = draft.table(each.id)
    (index,) = draft.indexes(definition)
    (usable,) = usable_indexes(
        draft.scan_indexes(definition), definition.columns, each._scope.context.storage
    )
    if not isinstance(usable, UsableIndex):
        raise AssertionError(usable.problem)
    node = compare(definition.columns[0], "=", id)
    segments = [segment for _, segment in usable.segments]

    def look() -> object:
        return usable.kind.filter(usable.spec, segments, node, with_rows=True).rows

    look()
    taken: list[float] = []
    for _ in range(50):
        began = time.thread_time()
        look()
        taken.append(time.thread_time() - began)
    median = sorted(taken)[len(taken) // 2]
    return Section(
        f"held: a row that index {index.name} includes, of {rows:,}",
        f"{seconds(median)} of CPU for the index alone, {seconds(_scanning(each, id))} for a scan",
        [Target(median <= 0.001, "at most 1 ms of CPU for the index, once it is in memory", seconds(median))],
    )


def _scanning(each: forklake.Table, id: UUID) -> float:
    taken: list[float] = []
    for _ in range(20):
        began = time.process_time()
        each.scan(f"id = '{id}'", ["id", "n", "value"]).to_arrow()
        taken.append(time.process_time() - began)
    return sorted(taken)[len(taken) // 2]
