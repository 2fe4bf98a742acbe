"""Files as earlier versions wrote them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {b"PARQUET:field_id": b"2147483646"}),
        pa.field("pos", pa.int64(), False, {b"PARQUET:field_id": b"2147483645"}),
    ]
)
_OLDER = (
    "SELECT position FROM ducklake_inlined_delete WHERE data_file_id = {file} AND begin_snapshot < {begin}"
)


def make_deletes_old(raw: Callable[..., Any], folder: Path) -> None:
    """Let every delete file name again what was deleted inline before, under field ids that are no one's."""
    for path, file, begin in raw("SELECT path, data_file_id, begin_snapshot FROM ducklake_delete_file"):
        table = pq.read_table(folder / path)
        inlined = {position for (position,) in raw(_OLDER.format(file=file, begin=begin))}
        every = sorted({*table.column("pos").to_pylist(), *inlined})
        old = path.removesuffix("-deletes.parquet") + ".parquet"
        assert old != path
        addresses = [table.column("file_path")[0].as_py()] * len(every)
        pq.write_table(pa.table([addresses, every], schema=_SCHEMA), folder / old)
        raw(
            f"UPDATE ducklake_delete_file SET path = '{old}', delete_count = {len(every)}, "
            f"footer_size = NULL, file_size_bytes = {(folder / old).stat().st_size} WHERE path = '{path}'"
        )
