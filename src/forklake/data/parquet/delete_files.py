"""Delete files: the positions of rows that a data file has lost.

A position is deleted once: a delete file names none that was deleted inline. Readers that do not remove
duplicates, such as the DuckLake extension, would otherwise bring rows back.
"""

from __future__ import annotations

from forklake.data.parquet.positions import united, without
from forklake.data.storage.storage import Storage
from forklake.errors import StorageError
from forklake.lazy.arrow import pa, pq
from forklake.model.table.files import DeleteFile
from forklake.model.types.arrow import one_array


def positions_of(storage: Storage, file: DeleteFile) -> pa.Array:
    """What a delete file names, ascending."""
    try:
        with storage.open_input(file.path, file.path_is_relative) as stream:
            found = pq.read_table(stream, columns=["pos"]).column("pos")
    except pa.ArrowException as error:
        address = storage.address(file.path, file.path_is_relative)
        raise StorageError(
            f"the delete file {address} cannot be read: {error}; restore it from a copy"
        ) from error
    positions = one_array(found)
    if len(positions) != file.delete_count:
        address = storage.address(file.path, file.path_is_relative)
        raise StorageError(
            f"the delete file {address} names {len(positions)} rows and should name {file.delete_count}: "
            "it is not the file that was written, restore that"
        )
    return positions.cast(pa.int64())


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
