"""Appending a table that is in memory, against Arrow's own Parquet writer."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import forklake
from benchmarks.report import Section, Target, table
from benchmarks.sample import SCHEMA, sample
from benchmarks.timing import Timings, cost, in_turns, same, seconds
from forklake.api.table import Table
from forklake.model.options import Options

MOST = 1.15
_OURS, _SYNCED, _PLAIN = "forklake append", "pyarrow write_table, fsync", "pyarrow write_table"


@dataclass(frozen=True, slots=True)
class Baseline:
    """Arrow's writer with the settings that forklake writes with."""

    folder: Path
    options: Options

    def write(self, rows: pa.Table, name: str, *, synced: bool) -> Path:
        """Write one file, and wait for the disk if asked to."""
        path = self.folder / name
        pq.write_table(
            rows,
            path,
            row_group_size=self.options.parquet_row_group_size,
            compression=self.options.parquet_compression,
            compression_level=self.options.parquet_compression_level,
        )
        if synced:
            sync(path)
            sync(path.parent)
        return path


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append(folder: Path, *, rows: int, rounds: int) -> Section:
    """Write the same rows in turns; every file is read back once before anything is compared."""
    made = sample(rows)
    baseline = Baseline(folder, Options())
    with forklake.connect(f"sqlite:///{folder}/append.db", data_path=folder / "lake", create=True) as lake:
        catalog = lake.create_catalog("bench")
        # Creating a table is no part of it.
        tables = [catalog.create_table(f"t{number}", SCHEMA) for number in range(rounds + 1)]

        def ours() -> Table:
            written = tables.pop()
            written.append(made)
            return written

        def arrows(*, synced: bool) -> Path:
            return baseline.write(made, "plain.parquet", synced=synced)

        def tidy() -> None:
            shutil.rmtree(folder / "lake", ignore_errors=True)
            (folder / "plain.parquet").unlink(missing_ok=True)
            # What one leaves in the cache is not written back at the cost of the next.
            os.sync()

        written = ours()
        arrows(synced=True)
        same(
            {
                _OURS: _digest(written.scan().to_arrow()),
                _PLAIN: _digest(pq.read_table(folder / "plain.parquet")),
                "the rows in memory": _digest(made),
            }
        )
        contenders = {
            _OURS: ours,
            _SYNCED: lambda: arrows(synced=True),
            _PLAIN: lambda: arrows(synced=False),
        }
        timings = in_turns(contenders, rounds, before=tidy, warm=False)
        tidy()
    return _section(timings, rows, made.nbytes)


def _digest(rows: pa.Table) -> tuple[object, ...]:
    sums = rows.group_by([]).aggregate(
        [("id", "sum"), ("quantity", "sum"), ("price", "sum"), ("score", "max"), ("customer", "max")]
    )
    return rows.num_rows, tuple(column[0].as_py() for column in sums.columns)


def _section(timings: Timings, rows: int, size: int) -> Section:
    ours = timings[_OURS]
    lines = [
        (
            timing.title,
            seconds(timing.median),
            seconds(timing.cpu),
            f"{rows / timing.median / 1e6:.2f} M",
            f"{cost(ours, timing):.2f}x",
        )
        for timing in timings.values()
    ]
    title = f"append: {rows:,} rows x {len(SCHEMA)} columns, {size / 2**20:,.0f} MiB in memory"
    found = cost(ours, timings[_SYNCED])
    target = Target(found <= MOST, f"append takes at most {MOST}x of {_SYNCED}", f"{found:.2f}x")
    return Section(title, table(("", "median", "CPU", "rows/s", "forklake takes"), lines), [target])
