"""Kinds of indexes without a lake: segments of Arrow rows on the local disk."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.report import table
from benchmarks.timing import Timings, cpu_cost, seconds
from forklake.index.kind import Kind, Part, Segment
from forklake.model.index import IndexSpec, SegmentSummary

_POOLS: list[pa.MemoryPool] = []


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A segment on the disk."""

    path: Path
    facts: SegmentSummary

    @property
    def key(self) -> str:
        return str(self.path)

    @property
    def file_size_bytes(self) -> int:
        return self.path.stat().st_size

    def open(self) -> pa.NativeFile:
        return pa.OSFile(str(self.path))

    def local(self) -> Path:
        return self.path


@dataclass(frozen=True, slots=True)
class Built:
    """A segment, and what it took."""

    segment: Segment
    cpu_per_row: float
    bytes_per_row: float
    most_memory: int
    """How much Arrow had allocated at most, beyond what there was before."""


def build(kind: Kind, spec: IndexSpec, parts: Iterable[Part], rows: int, path: Path) -> Built:
    """A segment of parts; the CPU of reading them counts as well."""
    # One that counts for itself; what it gave out may live as long as this process.
    pool = pa.proxy_memory_pool(pa.system_memory_pool())
    _POOLS.append(pool)
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        began = time.process_time()
        facts = kind.build(spec, parts, path)
        used = time.process_time() - began
        most = pool.max_memory() or 0
    finally:
        pa.set_memory_pool(before)
    return Built(Segment(LocalFile(path, facts)), used / rows, path.stat().st_size / rows, most)


def report(timings: Timings, searches: Mapping[str, int], scan: str, built: Mapping[str, Built]) -> str:
    """What one search of each took, and what a scan does beside it; then what building took."""
    lines: list[Sequence[str]] = []
    for title, timing in timings.items():
        many = searches[title]
        lines.append(
            (
                title,
                seconds(timing.median / many),
                seconds(timing.cpu / many),
                f"{ahead(timings, title, scan, many):.0f}x",
            )
        )
    made = [
        (
            name,
            f"{one.cpu_per_row * 1e6:.2f} µs",
            f"{one.bytes_per_row:.1f} B",
            f"{one.most_memory / 2**20:.0f} MiB",
        )
        for name, one in built.items()
    ]
    searched = table(("one search", "median", "CPU", "CPU of a scan"), lines)
    return f"{searched}\n{table(('building', 'CPU per row', 'size per row', 'Arrow memory'), made)}"


def ahead(timings: Timings, title: str, scan: str, searches: int) -> float:
    """How many times the CPU of one search a scan takes: a busy machine changes that less than time."""
    return cpu_cost(timings[scan], timings[title]) * searches
