"""Rows are written to the folder of their partition, in the order of their table, within bounded memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal as Number

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forklake.data.parquet import writer
from forklake.data.storage.storage import Storage
from forklake.model.table.layout import SortKey
from tests.unit.writer.written import read, write

# Partitions.

TRIPS = [
    {"day": date(2023 + at % 2, 1 + at % 3, 1), "city": ("a/b", None, "ü")[at % 3], "n": at}
    for at in range(60)
]


def test_partitions_lie_in_folders_of_their_own(storage: Storage) -> None:
    files = write(
        storage, TRIPS, "day DATE, city VARCHAR, n INTEGER", partition="year(day); city", row_group_rows=3
    )
    assert {file.path.rpartition("/")[0] for file in files} == {
        f"lake/main/orders/year={year}/city={city}"
        for year in (2023, 2024)
        for city in ("a%2Fb", "__HIVE_DEFAULT_PARTITION__", "%C3%BC")
    }
    assert {file.partition_id for file in files} == {7}
    for file in files:
        year, city = file.partition_values
        rows = read(storage, [file])
        assert {(str(row["day"].year), row["city"]) for row in rows} == {(year, city)}
        assert [row["n"] for row in rows] == sorted(row["n"] for row in rows)
    assert sorted(row["n"] for row in read(storage, files)) == list(range(60))


def test_many_partitions_are_written_with_few_files_open(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_OPEN_FILES", 3)
    open_now, most = 0, 0
    original = storage.open_output

    @contextmanager
    def counted(path: str, relative: bool = True) -> Iterator[pa.NativeFile]:
        nonlocal open_now, most
        with original(path, relative) as sink:
            open_now += 1
            most = max(most, open_now)
            yield sink
            open_now -= 1

    monkeypatch.setattr(storage, "open_output", counted)
    rows = [{"k": at % 20, "n": at} for at in range(400)]
    files = write(storage, rows, "k INTEGER, n INTEGER", partition="k", row_group_rows=5, buffer_bytes=200)
    assert most <= 4
    assert sorted(row["n"] for row in read(storage, files)) == list(range(400))
    assert {file.partition_values for file in files} == {(str(k),) for k in range(20)}


def test_what_waits_in_memory_is_bounded(storage: Storage) -> None:
    rows = pa.table({"k": [at % 10 for at in range(5000)], "s": ["x" * 100] * 5000})
    batches = pa.Table.from_batches(rows.to_batches(max_chunksize=100))
    most = 0
    original = writer._Writing._make_room

    def watched(self) -> None:
        nonlocal most
        original(self)
        assert self._waiting == sum(part.waiting_bytes for part in self._partitions.values())
        most = max(most, self._waiting)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer._Writing, "_make_room", watched)
        files = write(storage, batches, "k INTEGER, s VARCHAR", partition="k", buffer_bytes=50_000)
    assert 10_000 < most <= 50_000
    assert sum(file.record_count for file in files) == 5000


# Sort order.


def test_every_file_is_sorted(storage: Storage) -> None:
    rows = [{"k": (at * 7) % 100 if at % 9 else None, "n": at} for at in range(1000)]
    files = write(
        storage, rows, "k INTEGER, n INTEGER", sort=[SortKey("k"), SortKey("n", "DESC")], row_group_rows=100,
    )  # fmt: skip
    (file,) = files
    found = [(row["k"], row["n"]) for row in read(storage, files)]
    assert found == sorted(found, key=lambda pair: (pair[0] is None, pair[0] or 0, -pair[1]))
    assert pq.read_metadata(storage.address(file.path)).num_row_groups == 10


def test_nulls_stand_where_each_key_wants_them(storage: Storage) -> None:
    rows = [{"a": a, "b": b} for a in (1, None, 2) for b in (None, 1, 2)]
    keys = [SortKey("a", "DESC", "NULLS_FIRST"), SortKey("b", "ASC", "NULLS_LAST")]
    found = [
        (row["a"], row["b"]) for row in read(storage, write(storage, rows, "a INTEGER, b INTEGER", sort=keys))
    ]
    assert found == [(a, b) for a in (None, 2, 1) for b in (1, 2, None)]


@pytest.mark.parametrize("key", ["u", "s", "d", "b"])
def test_every_kind_of_scalar_can_be_sorted_by(storage: Storage, key: str) -> None:
    rows = [
        {"u": uuid.UUID(int=at * 7 % 5), "s": str(at * 7 % 5), "d": Number(at * 7 % 5), "b": at % 2 == 0}
        for at in range(5)
    ]
    found = read(
        storage, write(storage, rows, "u UUID, s VARCHAR, d DECIMAL(9,2), b BOOLEAN", sort=[SortKey(key)])
    )
    assert [row[key] for row in found] == sorted(row[key] for row in rows)


def test_more_than_fits_into_memory_becomes_several_sorted_files(storage: Storage) -> None:
    table = pa.Table.from_batches(
        pa.table({"k": [at * 7 % 1000 for at in range(1000)]}).to_batches(max_chunksize=50)
    )
    files = write(storage, table, "k BIGINT", sort=[SortKey("k")], buffer_bytes=2000)
    assert len(files) > 2
    for file in files:
        values = [row["k"] for row in read(storage, [file])]
        assert values == sorted(values)
    assert sorted(row["k"] for row in read(storage, files)) == list(range(1000))
