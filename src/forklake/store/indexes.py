"""Files of indexes: read as a catalog sees them, added, and ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from forklake.model.ids import CatalogId, DataFileId, IndexFileId, IndexId, SnapshotId, TableId
from forklake.model.index import GONE, Index, IndexFile, SegmentSummary, WrittenSegment
from forklake.model.snapshots import Head
from forklake.store.backend import Database, Row, Session
from forklake.store.entity_rows import RowKey
from forklake.store.entity_values import origin_of
from forklake.store.entity_writes import EntityWrites
from forklake.store.index_values import indexes_of
from forklake.store.row_sets import INDEX_COVERAGE, INDEX_FILES


def index_files(
    database: Database, catalog: CatalogId, tables: Iterable[TableId], at: SnapshotId
) -> list[IndexFile]:
    """The segments and models of all indexes of some tables that count at a snapshot or now."""
    where = {"catalog": catalog, "tables": json.dumps(sorted(tables)), "at": at}
    rows = database.rows("index_files", **where)
    if not rows:
        return []
    covers: dict[int, dict[int, DataFileId]] = {}
    for number, ordinal, file in database.rows("index_coverage", **where):
        covers.setdefault(number, {})[ordinal] = DataFileId(file)
    return [_index_file(row, _in_order(covers.get(row[0], {}))) for row in rows]


def known_index_files(
    database: Database, catalog: CatalogId, files: Iterable[IndexFileId]
) -> set[IndexFileId]:
    """Those of some files of indexes that a catalog has or had."""
    listed = json.dumps(sorted(files))
    return {
        IndexFileId(file) for (file,) in database.rows("known_index_files", catalog=catalog, files=listed)
    }


def indexes_now_or_then(
    database: Database, catalog: CatalogId, table: TableId, at: SnapshotId
) -> list[Index]:
    """The indexes of a table that count at a snapshot or now, of columns that were not altered after it."""
    rows = database.rows("indexes_now_or_then", catalog=catalog, table=table, at=at)
    return indexes_of(rows).get(table, [])


def _index_file(row: Row, covers: tuple[DataFileId, ...]) -> IndexFile:
    number, index, source, begin, path, relative, size, *about = row
    entries, format, version, low, high, footer, summary, level, role, model = about
    return IndexFile(
        IndexFileId(number),
        IndexId(index),
        CatalogId(source),
        SnapshotId(begin),
        path,
        bool(relative),
        size,
        SegmentSummary(entries, format, version, low, high, footer, summary),
        covers,
        level,
        role,
        None if model is None else IndexFileId(model),
    )


def _in_order(covers: Mapping[int, DataFileId]) -> tuple[DataFileId, ...]:
    """By ordinal: where there is none, the data file was gone before the segment was committed."""
    return tuple(covers.get(place, GONE) for place in range(max(covers, default=-1) + 1))


def add_index_files(
    session: Session, head: Head, table: int, files: Sequence[tuple[int, int, WrittenSegment]]
) -> None:
    """Store files of indexes of a table: the id of each, that of its index, and what it is."""
    session.insert(
        INDEX_FILES,
        [
            (
                head.catalog_id,
                number,
                index,
                table,
                head.snapshot_id,
                written.path,
                written.path_is_relative,
                written.file_size_bytes,
                written.facts.footer_size,
                written.role,
                written.facts.format,
                written.facts.format_version,
                written.level,
                written.facts.entry_count,
                written.facts.min_key,
                written.facts.max_key,
                written.model,
                written.facts.summary,
            )
            for number, index, written in files
        ],
    )
    session.insert(
        INDEX_COVERAGE,
        [
            (head.catalog_id, number, place, file)
            for number, _, written in files
            for place, file in enumerate(written.covers)
            if file != GONE
        ],
    )


def end_index_files(
    session: Session, head: Head, tables: Iterable[int], replaced: Iterable[IndexFileId]
) -> set[IndexFileId]:
    """End files of indexes that are replaced, or of no use any more; gives all that ended.

    A segment is of no use when all of its data files have ended, and everything is when its index has.
    """
    rows = session.rows(
        "index_files_to_end",
        catalog=head.catalog_id,
        tables=json.dumps(sorted(tables)),
        replaced=json.dumps(sorted(replaced)),
    )
    ended = {RowKey("index_file", number): origin_of(source, begin) for number, source, begin in rows}
    if ended:
        EntityWrites(head, ended).send(session)
    return {IndexFileId(key.entity_id) for key in ended}
