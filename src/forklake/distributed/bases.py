"""What a scan knows of files that may lose rows, for those who write deletes elsewhere."""

from __future__ import annotations

from forklake.model.distributed import BaseFile
from forklake.scan.scan_plan import ScanFile, ScanPlan, ScanRows


def base_files(plan: ScanPlan) -> list[BaseFile]:
    """The files of a scan plan, inlined rows included, as `write_part` takes them."""
    return [base_file(place) for place in (*plan.files, *plan.rows)]


def base_file(place: ScanFile | ScanRows) -> BaseFile:
    """One of them."""
    return BaseFile(place.file, () if place.deleted is None else tuple(place.deleted.to_pylist()))
