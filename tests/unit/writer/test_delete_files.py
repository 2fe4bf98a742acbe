"""Delete files hold positions in order."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from forklake.data.parquet.delete_files import write_deletes
from forklake.data.storage.storage import Storage
from forklake.model.ids import FILE_PATH_COLUMN, POSITION_COLUMN


def test_positions_are_written_in_order(storage: Storage) -> None:
    size, footer = write_deletes(
        storage, "t/d.parquet", "s3://b/x.parquet", pa.array([7, 0, 2**40], pa.int64())
    )
    content = storage.read_bytes("t/d.parquet")
    assert (size, footer) == (len(content), int.from_bytes(content[-8:-4], "little"))
    file = pq.ParquetFile(pa.BufferReader(content))
    assert file.read().to_pydict() == {"file_path": ["s3://b/x.parquet"] * 3, "pos": [0, 7, 2**40]}
    schema = file.schema_arrow
    assert [field.metadata[b"PARQUET:field_id"] for field in schema] == [
        str(number).encode() for number in (FILE_PATH_COLUMN, POSITION_COLUMN)
    ]
    assert schema.types == [pa.string(), pa.int64()]
    assert file.metadata.row_group(0).column(1).compression == "ZSTD"


def test_many_positions_do_not_repeat_the_address_in_memory(storage: Storage) -> None:
    positions = pa.array(range(300_000), pa.int64())
    size, _ = write_deletes(storage, "d.parquet", "x" * 10_000, positions)
    assert size < 2_000_000
    assert pq.read_table(storage.address("d.parquet"), columns=["pos"])["pos"].to_pylist() == list(
        range(300_000)
    )
