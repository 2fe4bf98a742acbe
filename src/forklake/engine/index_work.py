"""What is to be done for an index of a table, as a draft sees it: segments to be built and to be merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forklake.commit.draft import Draft
from forklake.commit.write_target import folder_of
from forklake.engine.index_segments import Build, Merge, Train
from forklake.index.coverage import groups, joint_ordinals, level_of, merges
from forklake.index.registry import kind_of
from forklake.index.specs import spec_of
from forklake.model.entities import Table
from forklake.model.index import Index, IndexFile
from forklake.model.table.files import DataFile
from forklake.scan.whole_files import plan_whole_files, visible_files


def model_of(index: Index, known: Iterable[IndexFile]) -> IndexFile | None:
    """The model that new segments of an index share."""
    models = [file for file in known if file.index_id == index.id and file.role == "model"]
    return models[-1] if models else None


def training(
    draft: Draft, table: Table, index: Index, files: Sequence[DataFile], known: Iterable[IndexFile]
) -> Train | None:
    """What is to be trained before the first segment; that there is one shows that there is no need."""
    if any(file.index_id == index.id for file in known):
        return None
    plan = plan_whole_files(draft.source(table), files)
    return Train(index, spec_of(index, table.columns), plan, folder_of(draft.head, table))


def builds(
    draft: Draft, table: Table, index: Index, files: Iterable[DataFile], known: Iterable[IndexFile]
) -> list[Build]:
    """Segments to be built of some data files; `known` are the files of indexes that there are."""
    model, spec = model_of(index, known), spec_of(index, table.columns)
    folder, source = folder_of(draft.head, table), draft.source(table)
    return [
        Build(index, spec, plan_whole_files(source, some), folder, level_of(_rows(some)), model)
        for some in groups(files)
    ]


def joining(draft: Draft, table: Table, index: Index, known: Iterable[IndexFile]) -> list[Merge]:
    """Segments to be merged, of those that the catalog wrote itself."""
    segments = [file for file in known if file.index_id == index.id]
    found = merges(segments, draft.head.catalog_id, kind_of(index.kind).most_rows)
    if not found:
        return []
    live = {file.id for file in visible_files(draft.source(table))}
    spec, folder = spec_of(index, table.columns), folder_of(draft.head, table)
    models = {file.id: file for file in segments if file.role == "model"}
    work: list[Merge] = []
    for some in found:
        files, ordinals = joint_ordinals(some, live)
        model = None if some[0].model is None else models[some[0].model]
        work.append(Merge(index, spec, some, files, ordinals, folder, some[0].level + 1, model))
    return work


def _rows(files: Iterable[DataFile]) -> int:
    return sum(file.record_count for file in files)
