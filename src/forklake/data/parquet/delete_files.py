"""Delete files: the positions of rows that a data file has lost.

A position is deleted once: a delete file names none that was deleted inline. Readers that do not remove
duplicates, such as the DuckLake extension, would otherwise bring rows back.
"""

from __future__ import annotations

from collections.abc import Iterable

from forklake.data.storage.storage import Storage
from forklake.errors import StorageError
from forklake.lazy.arrow import pa, pc, pq
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


def ascending(positions: Iterable[int]) -> pa.Array:
    """Positions in order."""
    return pa.array(sorted(positions), pa.int64())


def joined(one: pa.Array | None, other: pa.Array) -> pa.Array:
    """Positions of two lists that have none in common, in order."""
    return other if one is None else pa.concat_arrays([one, other]).sort()


def united(parts: list[pa.Array]) -> pa.Array:
    """Positions of several lists: ascending, each once."""
    return pc.unique(pa.concat_arrays(parts)).sort() if len(parts) > 1 else parts[0]


def without(positions: pa.Array, gone: pa.Array | None) -> pa.Array:
    """Those positions that are not among others."""
    if gone is None or not len(gone):
        return positions
    return positions.filter(pc.invert(pc.is_in(positions, value_set=gone)))


def next_positions(
    storage: Storage, file: DeleteFile | None, inlined: pa.Array | None, fresh: pa.Array
) -> pa.Array:
    """What the next delete file of a data file names: what the last one did, and `fresh`; none inlined."""
    named = united([fresh, positions_of(storage, file)]) if file is not None else fresh
    return without(named, inlined)
