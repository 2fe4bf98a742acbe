"""Indexes in a merge: definitions come and go as in the source, segments come with what they find."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from forklake.commit.draft import Draft
from forklake.errors import TableNotFound
from forklake.fork.catalog_state import Side
from forklake.fork.definition_changes import DefinitionChanges
from forklake.model.entities import Table
from forklake.model.ids import DataFileId, IndexFileId, IndexId, TableId
from forklake.model.index import IndexFile
from forklake.store.backend import Database
from forklake.store.file_states import file_states
from forklake.store.indexes import index_files, known_index_files


def stage_indexes(draft: Draft, net: DefinitionChanges) -> None:
    """Make and drop what the source did, in tables that the target has."""
    for change in net.indexes:
        table = _table(draft, change.index.table_id)
        if table is None:
            continue
        if change.is_new:
            draft.adopt_index(change.index)
        elif any(index.id == change.index.id for index in draft.indexes(table)):
            draft.drop_index(change.index)


def _table(draft: Draft, number: TableId) -> Table | None:
    try:
        return draft.table(number)
    except TableNotFound:
        return None


def index_files_to_adopt(
    database: Database,
    ours: Side,
    theirs: Side,
    indexes: Collection[IndexId],
    tables: Sequence[TableId],
    added: Collection[DataFileId],
    retired: Collection[DataFileId],
) -> tuple[IndexFileId, ...]:
    """The segments of the source that find rows in the target, with their models, whatever the tables hold.

    Those count of which all data files are there after the merge, unless the target has segments of all of
    them. `indexes` are those that it has then; `added` and `retired` are the data files that come and go.
    """
    if not indexes:
        return ()
    head = ours.head
    found = index_files(database, head.catalog_id, tables, head.snapshot_id)
    known = (
        known_index_files(database, theirs.head.catalog_id, (file.id for file in found)) if found else set()
    )
    new = {file.id: file for file in found if file.index_id in indexes and file.id not in known}
    if not new:
        return ()
    catalog, at = theirs.head.catalog_id, theirs.head.snapshot_id
    covered = {(file.index_id, f) for file in index_files(database, catalog, tables, at) for f in file.covers}
    wanted = {data for file in new.values() for data in file.covers}
    states = file_states(database, catalog, at, wanted)
    live = {file for file, state in states.items() if state.is_live} - set(retired) | set(added)

    def is_useful(file: IndexFile) -> bool:
        is_missing = any((file.index_id, data) not in covered for data in file.covers)
        return file.role == "segment" and is_missing and live.issuperset(file.covers)

    segments = [file for file in new.values() if is_useful(file)]
    models = {file.model for file in segments if file.model is not None} & new.keys()
    return (*sorted(models), *(file.id for file in segments))
