"""What a search costs: words and vectors in segments, against what others take for the same rows.

`python -m benchmarks.index_search --only bm25 vector --quick`. Rows are generated, and the same in every run.
"""

from __future__ import annotations

import importlib.resources
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.program import Program, begin
from benchmarks.report import Section, Target, table
from benchmarks.timing import Timings, cost, cpu_cost, in_turns, seconds
from forklake.data.storage.storage import open_storage
from forklake.index.bm25 import Bm25
from forklake.index.kind import Part, Segment
from forklake.index.segment_files import StoredSegment
from forklake.index.vector import Vector
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.index import IndexSpec, Parameters, SegmentSummary

PARTS = ("bm25", "vector")
_WORDS = 60
_VOCABULARY = 50_000
_DIMENSION = 128
_FTS = "duckdb_extension_fts"


def _file(folder: Path, name: str, facts: SegmentSummary) -> StoredSegment:
    return StoredSegment(open_storage(str(folder)), name, True, (folder / name).stat().st_size, facts)


def _all(_: int, __: int, positions: pa.Array) -> pa.Array:
    return pa.array(np.ones(len(positions), bool))


def _timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    cpu, began = time.process_time(), time.perf_counter()
    made = work()
    return made, time.perf_counter() - began, time.process_time() - cpu


def documents(count: int) -> tuple[list[str], list[str]]:
    """Texts of words that are as frequent as Zipf says, and queries of two or three middling ones."""
    rng = np.random.default_rng(5)
    shares = 1 / np.arange(1, _VOCABULARY + 1)
    drawn = rng.choice(_VOCABULARY, (count, _WORDS), p=shares / shares.sum())
    names = np.array([f"w{n}x" for n in range(_VOCABULARY)])
    texts = [" ".join(row) for row in names[drawn]]
    queries = [" ".join(names[rng.integers(50, 5_000, rng.integers(2, 4))]) for _ in range(20)]
    return texts, queries


def bm25(folder: Path, count: int, rounds: int, program: Program) -> Section:
    """Twenty queries for the ten best rows."""
    kind = Bm25()
    spec = IndexSpec("bm25", (Column(ColumnId(1), "body", "varchar"),))
    spec = IndexSpec("bm25", spec.keys, (), kind.check(spec))
    texts, queries = documents(count)
    rows = pa.table({"1": texts})
    build, took, cpu = _timed(
        lambda: kind.build(spec, [Part(0, rows.to_batches(max_chunksize=10_000))], folder / "b")
    )
    file = _file(folder, "b", build)
    program.progress(f"bm25: built in {took:.1f} s")

    def ours() -> None:
        for query in queries:
            assert kind.search(spec, [Segment(file)], None, query, 10, _all, {}).table.num_rows == 10

    contenders: dict[str, Callable[[], None]] = {"forklake": ours}
    lite = sqlite3.connect(":memory:")
    lite.execute("CREATE VIRTUAL TABLE t USING fts5(body)")
    lite.executemany("INSERT INTO t VALUES (?)", ([text] for text in texts))

    def fts5() -> None:
        for query in queries:
            sql = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10"
            assert len(lite.execute(sql, [" OR ".join(query.split())]).fetchall()) == 10

    contenders["SQLite FTS5"] = fts5
    program.progress("bm25: SQLite is ready")
    duck = duckdb.connect()
    extension = f"extensions/v{duckdb.__version__}/fts.duckdb_extension"
    duck.execute(f"LOAD '{importlib.resources.files(_FTS) / extension}'")
    duck.register("rows", rows.append_column("id", pa.array(range(count))))
    duck.execute('CREATE TABLE t AS SELECT id, "1" AS body FROM rows')
    duck.execute(
        "PRAGMA create_fts_index('t', 'id', 'body', stemmer = 'none', stopwords = 'none', ignore = '')"
    )

    def fts() -> None:
        for query in queries:
            found = duck.execute(
                "SELECT id, fts_main_t.match_bm25(id, ?) AS score FROM t "
                "WHERE score IS NOT NULL ORDER BY score DESC LIMIT 10",
                [query],
            ).fetchall()
            assert len(found) == 10

    contenders["DuckDB fts"] = fts
    program.progress("bm25: DuckDB is ready")
    text = f"built in {seconds(took)} ({seconds(cpu)} CPU), {file.file_size_bytes / 1e6:.1f} MB\n"
    timings = in_turns(contenders, rounds)
    ahead = cpu_cost(timings["DuckDB fts"], timings["forklake"])
    targets = [Target(ahead >= 100, "DuckDB's fts takes 100x the CPU", f"{ahead:.0f}x")]
    return Section(f"bm25, {count:,} documents", text + _compared(timings, len(queries)), targets)


def _compared(timings: Timings, queries: int) -> str:
    first, *_ = timings.values()
    return table(
        ("", "a query", "CPU", "times", "times CPU"),
        [
            (
                title,
                seconds(each.median / queries),
                seconds(each.cpu / queries),
                f"{cost(each, first):.1f}",
                f"{cpu_cost(each, first):.1f}",
            )
            for title, each in timings.items()
        ],
    )


def _clustered(count: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(5)
    centers = rng.standard_normal((1_000, _DIMENSION))
    noise = rng.standard_normal((count, _DIMENSION))
    return (centers[rng.integers(0, 1_000, count)] + noise).astype(np.float32)


def vector(folder: Path, count: int, rounds: int, program: Program) -> Section:
    """Twenty queries for the ten nearest rows; they are like the rows, and none of them."""
    kind = Vector()
    keys = (Column(ColumnId(1), "v", "list", children=(Column(ColumnId(2), "element", "float32"),)),)
    told: Parameters = {"dimension": _DIMENSION}
    spec = IndexSpec("vector", keys, (), kind.check(IndexSpec("vector", keys, (), told)))
    drawn = _clustered(count + 20)
    vectors, queries = drawn[:count], drawn[count:]
    flat = pa.array(vectors.ravel())
    rows = pa.table({"1": pa.FixedSizeListArray.from_arrays(flat, _DIMENSION)})
    batches = rows.to_batches(max_chunksize=10_000)
    trained, first, first_cpu = _timed(lambda: kind.train(spec, batches, folder / "m"))
    assert trained is not None
    model = _file(folder, "m", trained)
    built, second, second_cpu = _timed(lambda: kind.build(spec, [Part(0, batches)], folder / "v", model))
    took, cpu = first + second, first_cpu + second_cpu
    segment = Segment(_file(folder, "v", built), model)
    program.progress(f"vector: built in {took:.1f} s")
    graph = faiss.IndexHNSWFlat(_DIMENSION, 32)
    _, graph_took, graph_cpu = _timed(lambda: graph.add(vectors))
    program.progress(f"vector: HNSW built in {graph_took:.1f} s")
    exact = faiss.knn(queries, vectors, 10)[1]

    def found(query: np.ndarray[Any, Any], **params: float) -> list[int]:
        hits = kind.search(spec, [segment], None, query, 10, _all, params)
        return hits.table.column("position").to_pylist()

    def recall(**params: float) -> float:
        pairs = zip(queries, exact, strict=True)
        return float(np.mean([len({*found(query, **params)} & {*best}) / 10 for query, best in pairs]))

    path = folder / "rows.parquet"
    pq.write_table(pa.table({"id": range(count), "v": rows.column("1")}), path)
    duck = duckdb.connect()

    def brute() -> None:
        for query in queries:
            answer = duck.execute(
                f"SELECT id FROM read_parquet('{path}') "
                f"ORDER BY array_distance(v::FLOAT[{_DIMENSION}], ?::FLOAT[{_DIMENSION}]) LIMIT 10",
                [query.tolist()],
            ).fetchall()
            assert len(answer) == 10

    def ours() -> None:
        for query in queries:
            assert len(found(query)) == 10

    reached = recall()
    text = (
        f"built in {seconds(took)} ({seconds(cpu)} CPU), HNSW in {seconds(graph_took)} ({seconds(graph_cpu)} "
        f"CPU): {graph_took / took:.1f} times, {graph_cpu / cpu:.1f} times the CPU\n"
        f"recall@10 {reached:.3f} at the default, {recall(recall=1.0):.3f} with all lists, "
        f"{segment.file.file_size_bytes / 1e6:.1f} MB\n"
    )
    contenders = {"forklake": ours, "DuckDB over Parquet": brute}
    timings = in_turns(contenders, rounds)
    ahead = cpu_cost(timings["DuckDB over Parquet"], timings["forklake"])
    targets = [
        Target(reached >= 0.95, "a recall of 0.95 of the ten nearest", f"{reached:.3f}"),
        Target(ahead >= 300, "brute force over Parquet takes 300x the CPU", f"{ahead:.0f}x"),
        Target(graph_cpu >= 8 * cpu, "a graph takes 8x the CPU to build", f"{graph_cpu / cpu:.1f}x"),
    ]
    title = f"vector, {count:,} x {_DIMENSION}"
    return Section(title, text + _compared(timings, len(queries)), targets)


def measured(program: Program) -> Iterator[Section]:
    """Part by part, as they are done."""
    rounds = 3 if program.quick else 5
    for part in program.parts:
        program.progress(part)
        with tempfile.TemporaryDirectory(prefix="forklake-bench-") as name:
            os.environ["FORKLAKE_CACHE"] = f"{name}/cache"
            if part == "bm25":
                yield bm25(Path(name), 20_000 if program.quick else 200_000, rounds, program)
            else:
                yield vector(Path(name), 20_000 if program.quick else 100_000, rounds, program)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    program = begin("index_search", __doc__, PARTS, arguments)
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before the start.\n", flush=True)
    for section in measured(program):
        print(f"{section}\n", flush=True)
    program.progress("done")


if __name__ == "__main__":
    main()
