"""Finding one of very many random UUIDs: `hash` and `btree` against a scan of the same files by DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.index_kinds import Built, ahead, build, report
from benchmarks.report import Section, Target
from benchmarks.timing import in_turns, same
from forklake.index import segment_parquet
from forklake.index.btree import Btree
from forklake.index.hash import Hash
from forklake.index.kind import Part
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.index import IndexSpec
from forklake.model.sql.predicate import Node, compare

AHEAD = 25
_LOOKUPS = 20
_AGAIN = 20
"""How often the same are looked up in memory: the first time they are read."""
_COLUMN = Column(ColumnId(1), "id", "uuid")
_SCAN = "a scan by DuckDB"
_KINDS = {"hash": Hash(), "btree": Btree()}


def keys(folder: Path, files: int, rows: int, *, rounds: int) -> Section:
    """Write files of random UUIDs and a segment of each kind over all of them, then look keys up in turns."""
    paths = [folder / f"{number}.parquet" for number in range(files)]
    random = np.random.default_rng(7)
    wanted: list[UUID] = []
    for path in paths:
        data = random.bytes(16 * rows)
        pq.write_table(pa.table({"id": _uuids(data), "value": random.random(rows)}), path)
        wanted.append(UUID(bytes=data[:16]))
    spec = {
        name: IndexSpec(name, (_COLUMN,), (), kind.check(IndexSpec(name, (_COLUMN,))))
        for name, kind in _KINDS.items()
    }
    built = {
        name: build(kind, spec[name], _parts(paths), files * rows, folder / name)
        for name, kind in _KINDS.items()
    }
    chosen = wanted[:: max(1, len(wanted) // _LOOKUPS)]
    nodes = [compare(_COLUMN, "=", key) for key in chosen]
    found = {name: _finder(name, spec[name], built[name]) for name in _KINDS}
    connection = duckdb.connect()
    works = {
        **{f"{name}, from the disk": _each(find, nodes, forget=True) for name, find in found.items()},
        **{f"{name}, in memory": _each(find, nodes * _AGAIN, forget=False) for name, find in found.items()},
        _SCAN: lambda: [_scanned(connection, paths, chosen[0])],
    }
    same({title: work()[:1] for title, work in works.items()})
    timings = in_turns(works, rounds)
    searches = {title: len(nodes) * (_AGAIN if title.endswith("in memory") else 1) for title in works}
    searches[_SCAN] = 1
    slowest = min(
        ahead(timings, title, _SCAN, searches[title]) for title in works if title.endswith("from the disk")
    )
    return Section(
        f"keys: {files * rows:,} random UUIDs in {files} files",
        report(timings, searches, _SCAN, built),
        [Target(slowest >= AHEAD, f"a scan takes {AHEAD}x the CPU of finding a key", f"{slowest:.0f}x")],
    )


def _uuids(data: bytes) -> pa.Array:
    raw = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(data) // 16, [None, pa.py_buffer(data)])
    return pa.ExtensionArray.from_storage(pa.uuid(), raw)


def _parts(paths: Sequence[Path]) -> Iterator[Part]:
    for number, path in enumerate(paths):
        rows = pq.read_table(path, columns=["id"]).rename_columns(["1"])
        yield Part(number, rows.to_batches())


Find = Callable[[Node], list[tuple[int, int]]]


def _finder(name: str, spec: IndexSpec, built: Built) -> Find:
    kind = _KINDS[name]

    def find(node: Node) -> list[tuple[int, int]]:
        found = kind.filter(spec, [built.segment], node).positions
        return [(ordinal, at) for (_, ordinal), positions in found.items() for at in positions.to_pylist()]

    return find


def _each(find: Find, nodes: Sequence[Node], *, forget: bool) -> Callable[[], list[list[tuple[int, int]]]]:
    def work() -> list[list[tuple[int, int]]]:
        found: list[list[tuple[int, int]]] = []
        for node in nodes:
            if forget:
                segment_parquet.forget(footers=False)
            found.append(find(node))
        return found

    return work


def _scanned(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], key: UUID
) -> list[tuple[int, int]]:
    rows = connection.execute(
        "SELECT filename, file_row_number"
        " FROM read_parquet($1, file_row_number = true, filename = true) WHERE id = $2",
        [list(map(str, paths)), key],
    ).fetchall()
    return [(int(Path(name).stem), at) for name, at in rows]
