"""Writing a part of a distributed snapshot: rows to add, rows to delete, files to remove."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

from forklake.data.input.arrow_streams import Rows, arrow_rows, stream_of
from forklake.data.input.batches import rows_of
from forklake.data.parquet.delete_files import next_positions, write_deletes
from forklake.data.parquet.schema import ROW_ID_NAME, SNAPSHOT_ID_NAME, arrow_schema
from forklake.distributed.work import Keep, Part, Work, check_keep, ids_in
from forklake.engine.local import Engine
from forklake.errors import InvalidArgument, InvalidData
from forklake.lazy.arrow import pa, pc
from forklake.model.distributed import BaseFile, DistributedSnapshot
from forklake.model.ids import DataFileId, SnapshotId
from forklake.model.manifest import DeleteFilePart, Entry, FilePart, Manifest, PositionsPart, RemovalPart
from forklake.model.names import QualifiedName

Deleted: TypeAlias = "Mapping[int, Any] | pa.Table | pa.RecordBatch"
"""Positions by the id of their data file; or Arrow columns `data_file_id` and `position`."""

_CARRIED = (ROW_ID_NAME, SNAPSHOT_ID_NAME)


def write_part(
    ds: DistributedSnapshot,
    table: str | tuple[str, str] | QualifiedName,
    data: Rows | None = None,
    *,
    part: Part | None = None,
    delete: Deleted | None = None,
    files: Iterable[BaseFile] = (),
    remove: Iterable[int] = (),
    moved: Iterable[int] = (),
    unless_there: bool = False,
    cast: bool = False,
    manifest: Keep = "value",
    storage_options: Mapping[str, str] | None = None,
) -> Manifest:
    """Write one part of a distributed snapshot: rows to insert, positions to delete, files to remove.

    Nothing takes effect before the commit. `part` names the part: a retry uses the same name, and the commit
    takes one of the manifests. Without a name, each call is a part of its own.

    Rows may carry row ids in an Arrow column `forklake.distributed.ROW_ID`: they replace deleted rows, as in
    an update, and are new where it is NULL. With the column `SNAPSHOT_ID` as well, they are the rows of the
    files in `moved`, written again, as in a compaction.

    `delete` has positions by data file id. With `files`, which has earlier deletes of a file, a delete file
    is written here if there are many; otherwise the commit does it. `remove` has ids of data files to remove.
    `unless_there` is for upserts: the commit fails if another commit inserted rows meanwhile. `cast` converts
    values as in `Table.append`.
    """
    check_keep(manifest)
    work = Work.begin(ds, table, part, storage_options)
    gone = _positions(delete)
    written: list[str] = []
    engine = Engine(work.storage)
    try:
        entries: list[Entry] = (
            list(_write_rows(work, data, engine, written, cast)) if data is not None else []
        )
        entries += _write_deletes(work, gone, {file.id: file for file in files}, written)
        entries += _removals(work, remove, moved)
        return work.done(entries, manifest, unless_there=unless_there)
    except BaseException:
        work.discard(written)
        raise
    finally:
        engine.close()


# ---- Rows to add ---


def _write_rows(work: Work, data: Rows, engine: Engine, written: list[str], cast: bool) -> Iterator[Entry]:
    newest = [-1]
    for file in work.writer(written).write(_batches(work, data, engine, newest, cast)):
        newest_row = SnapshotId(newest[0]) if newest[0] >= 0 else None
        yield FilePart(work.table.id, file, ids_in(file), newest_row)


def _batches(work: Work, data: Rows, engine: Engine, newest: list[int], cast: bool) -> pa.RecordBatchReader:
    """The rows as files hold them, with the ids that they carry."""
    columns = work.table.columns
    evaluate = engine.evaluate
    given, stream = _carrying(data)
    if stream is None:
        return rows_of(given, columns, evaluate=evaluate, cast=cast)
    with_snapshots = SNAPSHOT_ID_NAME in stream.schema.names
    if with_snapshots and ROW_ID_NAME not in stream.schema.names:
        raise InvalidData("rows that carry their snapshots have to carry their ids too")
    schema = arrow_schema(columns, row_ids=True, snapshot_ids=with_snapshots)
    carried = _CARRIED if with_snapshots else _CARRIED[:1]

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in stream:
            for name in carried:
                if name not in batch.schema.names:
                    raise InvalidData(f'the first rows carry "{name}", and later ones do not: give it to all')
            ids = [batch.column(name).cast(pa.int64()) for name in carried]
            if with_snapshots:
                if any(array.null_count for array in ids):
                    raise InvalidData("rows that were moved carry an id and a snapshot each, and one is NULL")
                newest[0] = max(newest[0], pc.max(ids[1]).as_py() or 0)
            done = 0
            for rows in rows_of(batch.drop_columns(list(carried)), columns, evaluate=evaluate, cast=cast):
                arrays = [*rows.columns, *(array.slice(done, rows.num_rows) for array in ids)]
                yield pa.record_batch(arrays, schema=schema)
                done += rows.num_rows

    return pa.RecordBatchReader.from_batches(schema, batches())


def _carrying(data: Any) -> tuple[Rows, pa.RecordBatchReader | None]:
    """The data as they can still be read, and as batches if these carry ids of rows."""
    if isinstance(data, Iterator) and not isinstance(data, pa.RecordBatchReader):
        first = next(data, None)
        if first is None:
            return [], None
        rest = chain([first], data)
        if not isinstance(first, pa.RecordBatch) or not _carries(first):
            return rest, None
        return [], stream_of(rest)
    if isinstance(data, list | tuple) and data and isinstance(data[0], pa.RecordBatch):
        reader = stream_of(iter(data))
        return data, reader if reader is not None and _carries(reader) else None
    # DataFrames are made by people, who know no ids of rows.
    is_dataframe = hasattr(data, "__dataframe__") and not isinstance(data, pa.Table | pa.RecordBatch)
    reader = None if is_dataframe else arrow_rows(data)
    if reader is None:
        return data, None
    return reader, reader if _carries(reader) else None


def _carries(given: pa.RecordBatch | pa.RecordBatchReader) -> bool:
    return any(name in given.schema.names for name in _CARRIED)


# ---- Rows and files to take away ---


def _positions(delete: Deleted | None) -> dict[DataFileId, pa.Array]:
    """Positions by file, ascending and each once."""
    if delete is None:
        return {}
    if isinstance(delete, pa.RecordBatch):
        delete = pa.Table.from_batches([delete])
    if isinstance(delete, pa.Table):
        delete = _grouped(delete)
    if not isinstance(delete, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(
            "rows to delete are given as positions by the id of their data file, or as Arrow columns "
            f"data_file_id and position, not as {type(delete).__name__}"
        )
    try:
        found = {
            DataFileId(int(file)): pa.array(positions, pa.int64())
            if not isinstance(positions, pa.Array)
            else positions.cast(pa.int64())
            for file, positions in delete.items()
        }
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"positions of rows are whole numbers: {error}") from error
    for file, positions in found.items():
        if file < 0 or positions.null_count or (len(positions) and pc.min(positions).as_py() < 0):
            raise InvalidArgument(f"rows of data file {file} are to be deleted at positions that cannot be")
    return {file: pc.unique(positions).sort() for file, positions in found.items() if len(positions)}


def _grouped(table: pa.Table) -> dict[int, pa.Array]:
    if not {"data_file_id", "position"} <= set(table.column_names):
        raise InvalidArgument("rows to delete have the columns data_file_id and position")
    grouped = table.group_by("data_file_id").aggregate([("position", "list")])
    lists = grouped.column("position_list").to_pylist()
    return {
        file: pa.array(positions, pa.int64())
        for file, positions in zip(grouped.column("data_file_id").to_pylist(), lists, strict=True)
    }


def _write_deletes(
    work: Work, gone: Mapping[DataFileId, pa.Array], files: Mapping[int, BaseFile], written: list[str]
) -> Iterator[Entry]:
    """Few rows are listed, many become a delete file that names all that is gone and not inlined."""
    for number, positions in gone.items():
        base = files.get(number)
        if base is None or base.file.inlined or work.table.stays_inline(base.inlined_since + len(positions)):
            yield PositionsPart(work.table.id, number, tuple(positions.to_pylist()))
            continue
        inlined = pa.array(base.deleted, pa.int64())
        named = next_positions(work.storage, base.file.deletes, inlined, positions)
        before = 0 if base.file.deletes is None else base.file.deletes.own_count
        if len(named) < len(positions) + before or positions[-1].as_py() >= base.file.record_count:
            raise InvalidData(
                f"{base.file.path} has no row at one of the positions that are to be deleted, or not any more"
            )
        path = work.writer(written).new_delete_path()
        address = work.storage.address(base.file.path, base.file.path_is_relative)
        size, footer = write_deletes(work.storage, path, address, named, relative=work.relative)
        yield DeleteFilePart(
            work.table.id, number, path, len(named), size, footer, base.replaces, len(base.deleted)
        )


def _removals(work: Work, remove: Iterable[int], moved: Iterable[int]) -> Iterator[Entry]:
    for files, is_moved in ((remove, False), (moved, True)):
        numbers = tuple(DataFileId(int(file)) for file in files)
        if numbers:
            yield RemovalPart(work.table.id, numbers, is_moved)
