"""Scan plans in parts, each for one task. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from forklake.scan.scan_plan import ScanFile, ScanPlan, ScanRows

_MOST_BYTES = 128 << 20
_OPENING = 4 << 20
"""A task reads so many bytes, and opening a file counts as so many: as Spark does for files of its own."""


def parts_of(plan: ScanPlan) -> Iterator[ScanPlan]:
    """All that a plan reads, in parts of about the same size; rows that came along are one of them."""
    for files in _grouped(plan.files):
        yield only(plan, files)
    if plan.rows:
        yield only(plan, plan.rows)


def only(plan: ScanPlan, places: Sequence[ScanFile | ScanRows]) -> ScanPlan:
    """A plan that reads some of its files, fit to be sent elsewhere."""
    files = tuple(place for place in places if isinstance(place, ScanFile))
    rows = tuple(place for place in places if isinstance(place, ScanRows))
    return replace(plan, files=files, rows=rows, found={}, find_pruned=tuple)


def _grouped(files: Sequence[ScanFile]) -> Iterator[list[ScanFile]]:
    group: list[ScanFile] = []
    size = 0
    for file in files:
        cost = file.file.file_size_bytes + _OPENING
        if group and size + cost > _MOST_BYTES:
            yield group
            group, size = [], 0
        group.append(file)
        size += cost
    if group:
        yield group
