"""Data files as a whole: every row, those that were deleted included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forklake.model.table.files import DataFile
from forklake.scan.scan_plan import ScanFile, ScanPlan, Source


def visible_files(source: Source) -> list[DataFile]:
    """The data files that a scan reads, those that a transaction has added included."""
    stored = source.reader.files() if source.is_stored else []
    kept = [file for file in stored if file.id not in source.uncommitted.retired]
    return kept + [added.file for added in source.uncommitted.files]


def plan_whole_files(source: Source, files: Sequence[DataFile]) -> ScanPlan:
    """A plan that reads some files, as if nothing had been deleted from them."""
    mapped = any(file.mapping_id is not None and file.mapping_id >= 0 for file in files)
    return ScanPlan(
        source.table,
        source.reader.at,
        tuple(ScanFile(replace(file, deletes=None)) for file in files),
        mappings={**(source.reader.mappings() if mapped else {}), **source.uncommitted.mappings},
        has_old_names=source.has_old_names,
        steady=source.steady,
        promoted=source.promoted,
    )
