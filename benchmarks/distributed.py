"""What it takes to commit a distributed snapshot of very many files, after the last of them is written.

The commit runs in a process of its own, `python -m benchmarks.distributed`, which reads the manifests that
workers have left: 200 files in each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

import forklake
from benchmarks.contenders import lake_url
from benchmarks.memory import peak_memory
from benchmarks.report import Section, Target, table
from benchmarks.timing import same, seconds
from forklake.data.manifests import write_manifest
from forklake.data.storage.storage import open_storage
from forklake.distributed import DistributedSnapshot, FilePart, write_part

BACKENDS = ("SQLite", "DuckDB", "PostgreSQL")
PER_PART = 200
ROWS = 1_000
COLUMNS = 10
MOST_SECONDS = 10.0
MOST_GROWTH = 100e6
"""How much more memory four times as many files may take."""


def distributed(
    backend: str, server: str, folder: Path, *, files: int, progress: Callable[[str], None]
) -> Section:
    """Commit a quarter of the files first, for comparison."""
    told: dict[int, dict[str, float]] = {}
    for number in (files // 4, files):
        name = f"lake_{number}"
        urls = {
            "SQLite": f"sqlite:///{folder}/{name}.db",
            "DuckDB": f"duckdb:///{folder}/{name}.duckdb",
            "PostgreSQL": lake_url(server, name),
        }
        progress(f"distributed: {number:,} files are laid out, {backend}")
        laid = _lay_out(urls[backend], folder / name, number)
        progress(f"distributed: {number:,} files are committed, {backend}")
        command = [sys.executable, "-m", "benchmarks.distributed", urls[backend], str(laid)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        told[number] = json.loads(done.stdout)
        same({"committed": told[number]["rows"], "written": number * ROWS})
    lines = [
        (
            f"{number:,} files",
            seconds(found["took"]),
            _mb(found["before"]),
            _mb(found["peak"] - found["before"]),
        )
        for number, found in told.items()
    ]
    few, many = (found["peak"] - found["before"] for found in told.values())
    targets = [
        Target(
            told[files]["took"] < MOST_SECONDS,
            f"{files:,} files are committed within {MOST_SECONDS:g} s of the last one",
            seconds(told[files]["took"]),
        ),
        Target(
            many - few < MOST_GROWTH,
            f"the coordinator takes less than {MOST_GROWTH / 1e6:g} MB more than for {files // 4:,} files",
            _mb(many - few),
        ),
    ]
    heading = ("", "commit", "memory before", "taken by the commit")
    return Section(
        f"distributed: one snapshot on {backend}, {COLUMNS} columns", table(heading, lines), targets
    )


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


def _lay_out(url: str, folder: Path, files: int) -> Path:
    """Begin a snapshot and write its files, as copies of one, with manifests by many workers."""
    names = [f"c{number}" for number in range(COLUMNS)]
    with forklake.connect(url, data_path=folder, create=True) as lake:
        catalog = lake.create_catalog("bench")
        rows = pa.table({name: pa.array(range(ROWS), pa.int64()) for name in names})
        catalog.create_table("t", rows.schema)
        ds = catalog.begin_distributed(["t"])
    storage = open_storage(ds.data_path)
    first = write_part(ds, "t", rows, part=0)
    (file,) = first.files
    content = storage.read_bytes(file.written.path)
    for part in range(0, files, PER_PART):
        manifest = replace(
            first, part=str(part), entries=tuple(_copies(file, part, min(PER_PART, files - part)))
        )
        for entry in manifest.files:
            (folder / entry.written.path).write_bytes(content)
        write_manifest(storage, ds.staging, manifest)
    descriptor = folder / "snapshot.json"
    descriptor.write_text(ds.to_json(), encoding="utf-8")
    return descriptor


def _copies(file: FilePart, start: int, number: int) -> Iterator[FilePart]:
    """The same file under other names, with other values."""
    for at in range(start, start + number):
        path = file.written.path.replace("-0.parquet", f"-{at + 1}.parquet")
        yield replace(file, written=replace(file.written, path=path))


def _commit(url: str, descriptor: Path) -> dict[str, float]:
    ds = DistributedSnapshot.from_json(descriptor.read_text(encoding="utf-8"))
    with forklake.connect(url) as lake:
        catalog = lake.catalog("bench")
        before, began = peak_memory(), time.perf_counter()
        catalog.commit_distributed(ds)
        took, peak = time.perf_counter() - began, peak_memory()
        return {"took": took, "before": before, "peak": peak, "rows": catalog.table("t").count()}


if __name__ == "__main__":
    print(json.dumps(_commit(sys.argv[1], Path(sys.argv[2]))))
