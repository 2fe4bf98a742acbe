"""Delete files: the positions of rows that a data file has lost."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from forklake.data.storage import Storage
from forklake.errors import StorageError
from forklake.model.files import DeleteFile


def positions_of(storage: Storage, file: DeleteFile) -> pa.Array:
    """What a delete file names, ascending."""
    try:
        with storage.open_input(file.path, file.path_is_relative) as stream:
            found = pq.read_table(stream, columns=["pos"]).column("pos").combine_chunks()
    except pa.ArrowException as error:
        address = storage.address(file.path, file.path_is_relative)
        raise StorageError(
            f"the delete file {address} cannot be read: {error}; restore it from a copy"
        ) from error
    positions = found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
    if len(positions) != file.delete_count:
        address = storage.address(file.path, file.path_is_relative)
        raise StorageError(
            f"the delete file {address} names {len(positions)} rows and should name {file.delete_count}: "
            "it is not the file that was written, restore that"
        )
    return positions.cast(pa.int64())
