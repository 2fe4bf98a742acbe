"""Delete files: the positions of rows that a data file has lost.

A position is deleted once: a delete file names none that was deleted inline. Readers that do not remove
duplicates, such as the DuckLake extension, would otherwise bring rows back.
"""

from __future__ import annotations

from forklake.data.parquet.encoding import DELETE_FILE
from forklake.data.parquet.positions import is_ascending, united, without
from forklake.data.parquet.schema import FIELD_ID
from forklake.data.parquet.writer import WriteOptions, footer_size, parquet_writer
from forklake.data.storage.storage import Storage
from forklake.errors import StorageError
from forklake.lazy.arrow import pa, pq
from forklake.model.ids import FILE_PATH_COLUMN, POSITION_COLUMN
from forklake.model.table.files import DeleteFile
from forklake.model.types.arrow import one_array


def positions_of(storage: Storage, file: DeleteFile) -> pa.Array:
    """What a delete file names, ascending."""
    address = storage.address(file.path, file.path_is_relative)
    positions = storage.cache.get(address)
    if positions is None:
        positions = _read(storage, file, address)
        storage.cache.put(address, positions)
    if len(positions) != file.delete_count:
        raise StorageError(
            f"the delete file {address} names {len(positions)} rows and should name {file.delete_count}: "
            "it is not the file that was written, restore that"
        )
    return positions


def _read(storage: Storage, file: DeleteFile, address: str) -> pa.Array:
    try:
        with storage.open_input(file.path, file.path_is_relative) as stream:
            found = pq.ParquetFile(stream).read(["pos"]).column("pos")
    except pa.ArrowException as error:
        raise StorageError(
            f"the delete file {address} cannot be read: {error}; restore it from a copy"
        ) from error
    return one_array(found).cast(pa.int64())


def lost_positions(storage: Storage, file: DeleteFile | None, inlined: pa.Array | None) -> pa.Array:
    """All that a data file has lost, through its delete file and inline: ascending, each once."""
    parts = [pa.array([], pa.int64())] if inlined is None else [inlined]
    if file is not None:
        parts.append(positions_of(storage, file))
    return united(parts)


def next_positions(
    storage: Storage, file: DeleteFile | None, inlined: pa.Array | None, fresh: pa.Array
) -> pa.Array:
    """What the next delete file of a data file names: what the last one did, and `fresh`; none inlined."""
    named = united([fresh, positions_of(storage, file)]) if file is not None else fresh
    return without(named, inlined)


def write_deletes(
    storage: Storage,
    path: str,
    data_file_address: str,
    positions: pa.Array,
    *,
    relative: bool = True,
    options: WriteOptions | None = None,
) -> tuple[int, int]:
    """Write the positions of a data file's deleted rows, in order; gives the sizes of file and footer."""
    ordered = positions.cast(pa.int64())
    if not is_ascending(ordered):
        ordered = ordered.sort()
    # Bytes of zeros: Arrow takes as long to repeat a number and to check it as to write the rest of the file.
    first = pa.Array.from_buffers(pa.int32(), len(ordered), [None, pa.py_buffer(bytes(4 * len(ordered)))])
    addresses = pa.DictionaryArray.from_arrays(first, pa.array([data_file_address]), safe=False)
    schema = pa.schema(
        [
            pa.field("file_path", addresses.type, False, {FIELD_ID: str(FILE_PATH_COLUMN).encode()}),
            pa.field("pos", pa.int64(), False, {FIELD_ID: str(POSITION_COLUMN).encode()}),
        ]
    )
    options = options or WriteOptions("")
    footers: list[pq.FileMetaData] = []
    with storage.open_output(path, relative) as sink:
        writer = parquet_writer(sink, schema, options, footers, DELETE_FILE)
        try:
            writer.write_table(pa.table([addresses, ordered], schema=schema), options.row_group_rows)
            writer.close()
        except BaseException:
            # It would write its footer when it is collected, into a file that is closed.
            writer.is_open = False
            raise
        size = sink.tell()
    # The next delete file of the data file repeats what this one names.
    storage.cache.put(storage.address(path, relative), ordered)
    return size, footer_size(footers[0])
