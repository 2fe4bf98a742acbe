"""The files of a table as inputs of rewrites, and the inputs of a rewrite as a scan plan."""

from __future__ import annotations

from forklake.commit.draft import Draft
from forklake.commit.write_target import target_of
from forklake.compact.plan import Input, Rewrite, Target
from forklake.data.inlined import InlinedRows, decode
from forklake.lazy.arrow import pa
from forklake.model.entities import Table
from forklake.model.ids import DataFileId
from forklake.model.options import Options
from forklake.model.table.columns import find
from forklake.model.table.files import DataFile
from forklake.scan.scan_plan import Positions, ScanFile, ScanPlan, ScanRows, Source, with_deletes


def rewrite_target(draft: Draft, table: Table, lake: Options) -> Target:
    """A table as a draft sees it, and where new files of it go."""
    source = draft.source(table)
    return Target(
        table,
        draft.head.snapshot_id,
        target_of(draft, table, lake),
        tuple(source.reader.mappings().values()) if source.is_stored else (),
        source.has_old_names,
    )


def inputs_of(source: Source, target: Target) -> list[Input]:
    """Every file of a table that is committed, as a transaction sees it."""
    if not source.is_stored:
        return []
    reader, gone = source.reader, source.uncommitted.retired
    committed = [file for file in reader.files() if file.id not in gone]
    inlined = {file.id: (file, text) for file, text in reader.inlined_files() if file.id not in gone}
    files, deleted = with_deletes(source, committed, list(inlined))
    parted = [file for file in files if file.partition_id is not None]
    values = reader.partition_values(parted) if parted else {}
    lows = _lows(source, files, target)
    return [
        *(
            Input(file, _numbers(deleted.get(file.id)), None, values.get(file.id, ()), lows.get(file.id))
            for file in files
        ),
        *(Input(file, _numbers(deleted.get(file.id)), text) for file, text in inlined.values()),
    ]


def _lows(source: Source, files: list[DataFile], target: Target) -> dict[DataFileId, str | None]:
    if not target.write.sort or target.write.sort[0].is_expression:
        return {}
    column = find(target.table.columns, [target.write.sort[0].name]).id
    found = source.reader.stats(files, [column])
    return {file: stats[column].min_key for file, stats in found.items() if column in stats}


def _numbers(positions: Positions | None) -> tuple[int, ...]:
    return () if positions is None else tuple(positions.to_pylist())


def rewrite_scan(rewrite: Rewrite) -> ScanPlan:
    """What has to be read for a rewrite: these rows, and nothing else."""
    files: list[ScanFile] = []
    rows: list[ScanRows] = []
    for one in rewrite.inputs:
        deleted = pa.array(one.deleted, pa.int64()) if one.deleted else None
        if one.content is None:
            files.append(ScanFile(one.file, deleted))
        else:
            rows.append(ScanRows(one.file, InlinedRows.of(decode(one.content)), deleted))
    target = rewrite.target
    return ScanPlan(
        target.table,
        target.at,
        tuple(files),
        tuple(rows),
        mappings={mapping.id: mapping for mapping in target.mappings},
        has_old_names=target.has_old_names,
    )
