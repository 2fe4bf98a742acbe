"""How much memory a streamed append takes, in a process of its own: `python -m benchmarks.memory` is that."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import forklake
from benchmarks.report import Section, Target, table
from benchmarks.sample import SCHEMA, sample
from benchmarks.timing import same, seconds
from forklake.model.options import Options

MOST = 10**9
_BATCH_ROWS = 65_536
_OURS, _ARROWS = "forklake append", "pyarrow ParquetWriter"


def memory(folder: Path, *, size: int) -> Section:
    """Stream the same rows through both, each in a new process."""
    told = {title: _measured(folder, title, size) for title in (_OURS, _ARROWS)}
    same({title: (found["rows"], found["sum"]) for title, found in told.items()})
    lines = [
        (title, f"{found['peak'] / 1e6:,.0f} MB", f"{found['before'] / 1e6:,.0f} MB", seconds(found["took"]))
        for title, found in told.items()
    ]
    peak = told[_OURS]["peak"]
    target = Target(
        peak < MOST, f"a streamed append of {size / 1e9:g} GB peaks below {MOST / 1e9:g} GB", lines[0][1]
    )
    title = f"memory: {size / 1e9:g} GB in {told[_OURS]['rows']:,} rows, never in memory at once"
    return Section(title, table(("", "peak", "before the first row", "took"), lines), [target])


def _measured(folder: Path, title: str, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.memory", title, str(folder), str(size)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def _batches(size: int) -> Iterator[pa.RecordBatch]:
    """Batches made on the fly: a few thousand kilobytes again and again, with other ids and scores."""
    (made,) = sample(_BATCH_ROWS).combine_chunks().to_batches()
    sent, start = 0, 0
    while sent < size:
        columns = list(made.columns)
        columns[0] = pc.add(made.column(0), start)
        columns[2] = pc.multiply(made.column(2), 1.0 + start / 1e9)
        batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        yield batch
        sent += batch.nbytes
        start += _BATCH_ROWS


def peak_memory() -> int:
    """The most memory this process ever had: `ru_maxrss` would count that of its parent before `exec`."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _run(title: str, folder: Path, size: int) -> dict[str, object]:
    reader = pa.RecordBatchReader.from_batches(SCHEMA, _batches(size))
    options = Options()
    if title == _OURS:
        with forklake.connect(
            f"sqlite:///{folder}/memory.db", data_path=folder / "memory", create=True
        ) as lake:
            target = lake.create_catalog("bench").create_table("t", SCHEMA)
            before, began = peak_memory(), time.perf_counter()
            target.append(reader)
            took, peak = time.perf_counter() - began, peak_memory()
            files = [str(folder / "memory" / file.path) for file in target.scan().plan().files]
    else:
        files = [str(folder / "memory.parquet")]
        before, began = peak_memory(), time.perf_counter()
        with pq.ParquetWriter(files[0], SCHEMA, compression="zstd", compression_level=3) as writer:
            for batch in reader:
                writer.write_batch(batch, options.parquet_row_group_size)
        took, peak = time.perf_counter() - began, peak_memory()
    rows, total = 0, 0
    for file in files:
        read = pq.ParquetFile(file)
        for group in range(read.num_row_groups):
            ids = read.read_row_group(group, columns=["id"]).column("id")
            rows, total = rows + len(ids), total + pc.sum(ids).as_py()
        Path(file).unlink()
    return {"rows": rows, "sum": total, "peak": peak, "before": before, "took": took}


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
