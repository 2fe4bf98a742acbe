"""Segments of data files that a commit adds, built with it for indexes that are maintained so.

An index is advice: where it cannot be built, the rows are committed all the same, and their files are scanned
until `build_indexes` has made up for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from forklake.commit.draft import Draft
from forklake.commit.inlining import TableWrites
from forklake.engine.index_work import builds, training
from forklake.engine.local import Engine
from forklake.errors import ForklakeError, IndexNotBuilt, StoreError
from forklake.index.coverage import uncovered
from forklake.model.entities import Table
from forklake.model.ids import TableId
from forklake.model.index import Index
from forklake.model.table.files import DataFile
from forklake.scan.whole_files import visible_files


def index_new_files(draft: Draft, rows: Iterable[TableWrites], engine: Engine) -> None:
    """Stage a segment for each index and all files that are new to it, whose rows were written here."""
    written = {table.table_id: [one for one in table.files if not one.elsewhere] for table in rows}
    tables = {number for number, files in written.items() if files}
    tables |= {index.table_id for index in draft.created_indexes()}
    for number in tables:
        table = draft.table(TableId(number))
        indexes = [index for index in draft.indexes(table) if index.maintain == "commit"]
        if indexes:
            new = [file.scanned(None).file for file in written.get(TableId(number), ())]
            _index(draft, table, indexes, new, engine)


def _index(
    draft: Draft, table: Table, indexes: Sequence[Index], new: Sequence[DataFile], engine: Engine
) -> None:
    created = {index.id for index in draft.created_indexes()}
    known = draft.index_files(table)
    every = visible_files(draft.source(table)) if created.intersection(index.id for index in indexes) else []
    for index in indexes:
        segments = [file for file in known if file.index_id == index.id]
        files = uncovered(every if index.id in created else new, segments)
        try:
            _build(draft, table, index, files, engine)
        except StoreError:
            raise
        except ForklakeError as error:
            warnings.warn(
                f'index "{index.name}" of table "{table.name}" was not built, and its new files are scanned '
                f"until build_indexes has built it: {error}",
                IndexNotBuilt,
                stacklevel=2,
            )


def _build(draft: Draft, table: Table, index: Index, files: Sequence[DataFile], engine: Engine) -> None:
    if not files:
        return
    known = draft.index_files(table)
    train = training(draft, table, index, files, known)
    if train is not None:
        model = train.run(engine, draft.written)
        if model is not None:
            draft.add_index_file(index, model)
            known = draft.index_files(table)
    for build in builds(draft, table, index, files, known):
        draft.add_index_file(index, build.run(engine, draft.written))
