"""Files as they are written: cut, named and described."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forklake.data.input.batches import rows_of
from forklake.data.parquet import writer
from forklake.data.parquet.schema import ROW_ID_NAME, arrow_schema
from forklake.data.parquet.writer import WriteOptions, write_files
from forklake.data.storage.storage import Storage
from forklake.errors import InvalidArgument, InvalidData
from forklake.model.ids import ROW_ID_COLUMN
from tests.unit.writer.written import COMMIT, left, read, table_of, write


def test_a_file_is_described_as_it_lies_there(storage: Storage) -> None:
    (file,) = write(storage, [{"a": at, "b": "x" * at} for at in range(1000)], "a INTEGER, b VARCHAR")
    content = storage.read_bytes(file.path)
    assert file.path == f"lake/main/orders/{COMMIT}-0.parquet"
    assert file.path_is_relative
    assert file.record_count == 1000
    assert file.file_size_bytes == len(content)
    assert file.footer_size == int.from_bytes(content[-8:-4], "little")
    assert not file.has_row_ids
    assert (file.partition_id, file.partition_values) == (None, ())
    assert left(storage) == [file.path]


def test_no_rows_are_no_file(storage: Storage) -> None:
    assert write(storage, [], "a INTEGER") == []
    assert left(storage) == []


def test_columns_are_packed_and_have_ids_statistics_and_page_indexes(storage: Storage) -> None:
    (file,) = write(storage, [{"a": 1, "l": [2]}], "a INTEGER, l INTEGER[]")
    metadata = pq.read_metadata(storage.address(file.path))
    group = metadata.row_group(0)
    assert {group.column(at).compression for at in range(2)} == {"ZSTD"}
    assert all(group.column(at).has_column_index and group.column(at).is_stats_set for at in range(2))
    assert metadata.metadata is None
    assert [file_id.column_id for file_id in file.stats] == [1, 2, 3]


def test_small_batches_become_full_row_groups(storage: Storage) -> None:
    table = pa.Table.from_batches(pa.table({"a": range(1000)}).to_batches(max_chunksize=7))
    (file,) = write(storage, table, "a INTEGER", row_group_rows=300)
    metadata = pq.read_metadata(storage.address(file.path))
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == [300, 300, 300, 100]
    assert [row["a"] for row in read(storage, [file])] == list(range(1000))


def test_a_large_batch_is_cut_into_row_groups_without_a_copy(storage: Storage) -> None:
    table = pa.table({"a": pa.array(range(100_000), pa.int64())})
    before = pa.total_allocated_bytes()
    seen: list[int] = []

    original = writer._File.write

    def watched(self, group):
        seen.append(pa.total_allocated_bytes() - before)
        original(self, group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer._File, "write", watched)
        (file,) = write(storage, table, "a BIGINT", row_group_rows=10_000)
    assert len(seen) == 10
    assert min(seen) < 10_000 * 8
    assert file.record_count == 100_000


def test_wide_rows_make_short_row_groups(storage: Storage) -> None:
    table = pa.table({"a": ["x" * 1000] * 1000})
    (file,) = write(storage, table, "a VARCHAR", row_group_bytes=100_000)
    metadata = pq.read_metadata(storage.address(file.path))
    assert 9 <= metadata.num_row_groups <= 12
    assert file.record_count == 1000


def test_a_full_file_is_followed_by_the_next(storage: Storage) -> None:
    values = [uuid.uuid4().bytes for _ in range(5000)]
    files = write(storage, pa.table({"u": values}), "u BLOB", row_group_rows=100, target_file_size=20_000)
    assert len(files) > 3
    assert [file.path for file in files] == [
        f"lake/main/orders/{COMMIT}-{at}.parquet" for at in range(len(files))
    ]
    assert all(20_000 <= file.file_size_bytes < 30_000 for file in files[:-1])
    assert [row["u"] for row in read(storage, files)] == values


def test_options_that_are_used_again_count_on(storage: Storage) -> None:
    columns, options = table_of("a INTEGER"), WriteOptions(COMMIT)
    names = [
        write_files(
            rows_of([{"a": 1}], columns), columns=columns, folder="t", storage=storage, options=options
        )[0].path
        for _ in range(2)
    ]
    assert names == [f"t/{COMMIT}-0.parquet", f"t/{COMMIT}-1.parquet"]


def test_absolute_folders_are_remembered_as_such(storage: Storage, tmp_path: Path) -> None:
    columns = table_of("a INTEGER")
    (file,) = write_files(
        rows_of([{"a": 1}], columns), columns=columns, folder=f"{tmp_path}/other/", storage=storage,
        options=WriteOptions(COMMIT), relative=False,
    )  # fmt: skip
    assert not file.path_is_relative
    assert Path(file.path).exists()


def test_ids_of_rows_travel_with_the_rows(storage: Storage) -> None:
    columns = table_of("a INTEGER")
    schema = arrow_schema(columns, row_ids=True, snapshot_ids=True)
    batch = pa.record_batch([pa.array([1, 2], pa.int32()), [10, 11], [5, 6]], schema=schema)
    reader = pa.RecordBatchReader.from_batches(schema, [batch])
    (file,) = write_files(reader, columns=columns, folder="t/", storage=storage, options=WriteOptions(COMMIT))
    assert file.has_row_ids
    assert [row[ROW_ID_NAME] for row in read(storage, [file])] == [10, 11]
    assert [(stats.column_id, stats.min_value) for stats in file.stats] == [(1, "1"), (ROW_ID_COLUMN, "10")]


def test_batches_of_another_schema_are_refused(storage: Storage) -> None:
    reader = pa.table({"b": [1]}).to_reader()
    with pytest.raises(InvalidData, match="schema"):
        write_files(
            reader, columns=table_of("a INTEGER"), folder="t/", storage=storage, options=WriteOptions(COMMIT)
        )
    assert left(storage) == []


@pytest.mark.parametrize("name", ["target_file_size", "row_group_rows", "row_group_bytes", "buffer_bytes"])
def test_sizes_are_positive(name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        WriteOptions(COMMIT, **{name: 0})


def test_stamps_keep_their_zone(storage: Storage) -> None:
    files = write(storage, [{"t": datetime(2024, 1, 1, tzinfo=UTC)}], "t TIMESTAMPTZ")
    assert read(storage, files) == [{"t": datetime(2024, 1, 1, tzinfo=UTC)}]
