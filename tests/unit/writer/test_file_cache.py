"""What was read from delete files lately is kept up to a number of bytes, and goes with its file."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.parquet.delete_files import positions_of, write_deletes
from forklake.data.storage.file_cache import FileCache
from forklake.data.storage.storage import Storage
from forklake.errors import StorageError
from forklake.model.ids import CatalogId, DataFileId, DeleteFileId, SnapshotId
from forklake.model.table.files import DeleteFile

PATH = "t/d.parquet"


def delete_file(count: int) -> DeleteFile:
    return DeleteFile(DeleteFileId(1), CatalogId(1), SnapshotId(1), DataFileId(1), PATH, True, count, 1)


def positions(count: int) -> pa.Array:
    return pa.array(range(count), pa.int64())


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 12), st.booleans())))
def test_those_used_last_are_kept_within_the_size(steps: list[tuple[str, int, bool]]) -> None:
    cache, known = FileCache(10 * 8), dict[str, int]()
    for address, length, forget in steps:
        if forget:
            cache.forget(address)
            known.pop(address, None)
        else:
            cache.put(address, positions(length))
            if length <= 10:
                known.pop(address, None)
                known[address] = length
            while sum(known.values()) > 10:
                del known[next(iter(known))]
        for name in "abcdef":
            found = cache.get(name)
            assert (None if found is None else len(found)) == known.get(name)
        # Looking at all of them in one order made that the order of use.
        known = {name: known[name] for name in "abcdef" if name in known}


def test_a_written_delete_file_is_not_read_again_until_it_is_deleted(storage: Storage) -> None:
    write_deletes(storage, PATH, "x.parquet", positions(5))
    assert positions_of(storage, delete_file(5)) is positions_of(storage, delete_file(5))
    with pytest.raises(StorageError, match="names 5 rows and should name 6"):
        positions_of(storage, delete_file(6))
    storage.delete([PATH])
    with pytest.raises(StorageError, match="missing"):
        positions_of(storage, delete_file(5))
