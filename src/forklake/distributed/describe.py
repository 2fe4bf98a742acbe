"""Files that another engine wrote into the folder of a distributed snapshot, described by their footers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from forklake.data.parquet.foreign_files import By, Existing, Inspection
from forklake.distributed.work import Keep, Part, Work, check_keep, ids_in
from forklake.errors import InvalidArgument
from forklake.model.distributed import DistributedSnapshot
from forklake.model.manifest import FilePart, Manifest
from forklake.model.names import QualifiedName
from forklake.model.table.files import WrittenFile

_THREADS = 8


def describe_files(
    ds: DistributedSnapshot,
    table: str | tuple[str, str] | QualifiedName,
    paths: Iterable[str],
    *,
    part: Part | None = None,
    mapping: By = "field_id",
    partition_values: Mapping[str, Sequence[str | None]] | None = None,
    row_ids: bool = False,
    unless_there: bool = False,
    manifest: Keep = "value",
    storage_options: Mapping[str, str] | None = None,
) -> Manifest:
    """Make a part of Parquet files that another engine wrote into an `output_folder`. Returns its manifest.

    Columns are found as in `Table.add_files`. `partition_values` has those of each file, if the table is
    partitioned and all rows of a file are in one partition. With `row_ids`, rows carry the ids of the rows
    that they replace.
    """
    check_keep(manifest)
    work = Work.begin(ds, table, part, storage_options)
    inspection = Inspection(work.storage, work.table.columns, mapping, row_ids=row_ids)
    own = work.ds.address(work.ds.folder(work.table))
    named = list(dict.fromkeys(paths))
    for path in named:
        if not path.startswith(own):
            raise InvalidArgument(f"{path} is not in {own}: write files where output_folder says")
    # The data path of a lake may lie above the folder of a catalog, or elsewhere.
    skipped = len(ds.data_path) if work.relative else 0
    with ThreadPoolExecutor(_THREADS, "forklake-describe") as pool:
        found = list(pool.map(lambda path: inspection.inspect(path[skipped:], work.relative), named))
    values = partition_values or {}
    entries = [
        _part(work, existing, values.get(path))
        for path, existing in zip(named, found, strict=True)
        # A file without rows would only be in the way.
        if existing.written.record_count
    ]
    return work.done(entries, manifest, unless_there=unless_there)


def _part(work: Work, existing: Existing, values: Sequence[str | None] | None) -> FilePart:
    signature = hashlib.sha256(repr(existing.signature).encode()).hexdigest()[:16] if existing.names else ""
    written = _placed(work, existing.written, values)
    return FilePart(work.table.id, written, ids_in(written), None, existing.names, signature)


def _placed(work: Work, written: WrittenFile, values: Sequence[str | None] | None) -> WrittenFile:
    """The file in its partition."""
    if values is None:
        return written
    fields = () if work.table.partitioning is None else work.table.partitioning.fields
    if work.table.partitioning is None or len(values) != len(fields):
        raise InvalidArgument(
            f"{written.path} is said to have {len(values)} partition values, and the table has {len(fields)}"
        )
    return replace(written, partition_id=work.table.partitioning.id, partition_values=tuple(values))
