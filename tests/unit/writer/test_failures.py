"""When anything fails, the error says why, and no file stays."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forklake.data.storage.storage import Storage
from forklake.errors import InvalidData, StorageError
from tests.unit.writer.written import left, write


def failing_after(batches: int, error: BaseException) -> pa.RecordBatchReader:
    def produce() -> Iterator[pa.RecordBatch]:
        for at in range(batches):
            yield pa.record_batch({"a": pa.array([at] * 100, pa.int32())})
        raise error

    return pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int32())]), produce())


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt(), InvalidData("bad")])
@pytest.mark.parametrize("partition", ["", "a"])
def test_nothing_stays_if_the_rows_fail(storage: Storage, error: BaseException, partition: str) -> None:
    with pytest.raises(type(error)):
        write(
            storage,
            failing_after(6, error),
            "a INTEGER",
            partition=partition,
            row_group_rows=50,
            target_file_size=200,
        )
    assert left(storage) == []


def test_rows_that_do_not_fit_are_refused_and_nothing_stays(storage: Storage) -> None:
    with pytest.raises(InvalidData, match="row 150"):
        write(storage, [{"a": at if at != 150 else "x"} for at in range(200)], "a INTEGER", row_group_rows=50)
    assert left(storage) == []


def test_a_disk_that_fails_is_reported_and_nothing_stays(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = pq.ParquetWriter.write_table
    calls = 0

    def full(self, *args, **options):
        nonlocal calls
        calls += 1
        if calls == 5:
            raise OSError(28, "No space left on device")
        return original(self, *args, **options)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(StorageError, match="no room"):
        write(
            storage, [{"a": at} for at in range(1000)], "a INTEGER", row_group_rows=50, target_file_size=500
        )
    assert calls == 5
    assert left(storage) == []


def test_a_file_that_cannot_be_closed_is_reported_and_nothing_stays(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = pq.ParquetWriter.close
    calls = 0

    def full(self):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(28, "No space left on device")
        original(self)

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="no room"):
        patch.setattr(pq.ParquetWriter, "close", full)
        write(storage, [{"a": at % 3} for at in range(1000)], "a INTEGER", partition="a")
    assert left(storage) == []


def test_values_that_the_writer_cannot_take_are_bad_data(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self, *args, **options):
        raise pa.ArrowInvalid("no such value")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", refuse)
    with pytest.raises(InvalidData, match="no such value"):
        write(storage, [{"a": 1}], "a INTEGER")
    assert left(storage) == []
