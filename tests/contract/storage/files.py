"""Files and tables that tests of the storage write."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forklake.data.storage.storage import Storage

# Below, and above, what Arrow sends to a bucket in one piece.
SMALL, LARGE = 1_000, 12_000_000


def write(storage: Storage, path: str, content: bytes = b"x", relative: bool = True) -> None:
    with storage.open_output(path, relative) as stream:
        stream.write(content)


def paths(storage: Storage, folder: str = "") -> list[str]:
    return sorted(file.path for file in storage.files(folder))


def numbers(start: int, count: int) -> pa.Table:
    """Two columns with field ids: `n` counts on from `start`, `text` spells it."""
    schema = pa.schema(
        [
            pa.field("n", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("text", pa.string(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    values = range(start, start + count)
    return pa.table([list(values), [str(value) for value in values]], schema=schema)


def write_table(storage: Storage, path: str, table: pa.Table, **options: Any) -> str:
    with storage.open_output(path) as stream:
        pq.write_table(table, stream, **options)
    return storage.address(path)
