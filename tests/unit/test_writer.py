"""Files as they are written: cut, named, described, and gone if anything fails."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forklake.data.input.batches import rows_of
from forklake.data.parquet import writer
from forklake.data.parquet.footer import footer_stats
from forklake.data.parquet.schema import ROW_ID_NAME, arrow_schema
from forklake.data.parquet.writer import WriteOptions, write_deletes, write_files
from forklake.data.storage.storage import Storage, open_storage
from forklake.errors import InvalidArgument, InvalidData, StorageError
from forklake.model.ids import FILE_PATH_COLUMN, POSITION_COLUMN, ROW_ID_COLUMN, ColumnId
from forklake.model.sql.ddl import columns_of
from forklake.model.table.columns import build
from forklake.model.table.files import ColumnStats, WrittenFile
from forklake.model.table.layout import Partitioning, SortKey
from forklake.model.table.transforms import parse_transform
from forklake.model.types.data_types import Scalar
from forklake.model.types.sort_keys import HIGHEST, LOWEST, bounds, key_of

COMMIT = "0f8fad5b-d9cb-469f-a165-70867728950e"


def table_of(ddl: str):
    return build(columns_of(ddl))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def write(
    storage: Storage, rows: object, ddl: str, *, partition: str = "", sort=(), **options
) -> list[WrittenFile]:
    columns = table_of(ddl)
    fields = tuple(parse_transform(text, columns) for text in partition.split("; ") if text)
    return write_files(
        rows_of(rows, columns),
        columns=columns,
        folder="lake/main/orders/",
        storage=storage,
        options=WriteOptions(COMMIT, **options),
        partitioning=Partitioning(7, 1, fields) if fields else None,
        sort=sort,
    )


def read(storage: Storage, files: list[WrittenFile]) -> list[dict]:
    return [row for file in files for row in pq.ParquetFile(storage.address(file.path)).read().to_pylist()]


def left(storage: Storage) -> list[str]:
    return [file.path for file in storage.files()]


def stats_of(storage: Storage, values: object, type: str, **options) -> ColumnStats:
    """The statistics of the only column of the only file."""
    (file,) = write(storage, pa.table({"c": values}), f"c {type}", **options)
    return next(stats for stats in file.stats if stats.column_id == 1)


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


# Failures.


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


# Statistics.

EPOCH, EVE = "1970-01-01 00:00:00", "1969-12-31 23:59:59"
LOW, HIGH = uuid.UUID(int=1), uuid.UUID(int=2**127)
MANY = [
    ("BOOLEAN", pa.array([True, False, None]), "false", "true"),
    ("TINYINT", pa.array([5, -7, None], pa.int8()), "-7", "5"),
    ("UTINYINT", pa.array([200, 7, None], pa.uint8()), "7", "200"),
    ("UINTEGER", pa.array([2**32 - 1, 7, None], pa.uint32()), "7", "4294967295"),
    ("UBIGINT", pa.array([2**64 - 1, 7, None], pa.uint64()), "7", "18446744073709551615"),
    ("BIGINT", pa.array([-(2**63), 7, None]), "-9223372036854775808", "7"),
    ("HUGEINT", pa.array([Number(-5), Number(10**37), None], pa.decimal128(38, 0)), "-5", str(10**37)),
    ("DECIMAL(4,2)", pa.array([Number("-1.50"), Number("20.00"), None]), "-1.50", "20.00"),
    ("DECIMAL(18,2)", pa.array([Number("-1.50"), Number("20.00"), None]), "-1.50", "20.00"),
    ("DECIMAL(38,2)", pa.array([Number("-1.50"), Number("20.00"), None]), "-1.50", "20.00"),
    ("FLOAT", pa.array([0.1, -1.5, None], pa.float32()), "-1.5", "0.1"),
    ("DOUBLE", pa.array([0.1, -math.inf, None]), "-inf", "0.1"),
    ("DATE", pa.array([date(2024, 2, 29), date(1, 1, 2), None]), "0001-01-02", "2024-02-29"),
    ("TIME", pa.array([time(1), time(23, 59, 59, 999999), None]), "01:00:00", "23:59:59.999999"),
    ("TIME_NS", pa.array([1, 10**9, None], pa.time64("ns")), "00:00:00.000000001", "00:00:01"),
    ("TIMETZ", pa.array([time(1), time(2), None]), "01:00:00+00", "02:00:00+00"),
    ("TIMESTAMP", pa.array([-1, 5, None], pa.timestamp("us")), f"{EVE}.999999", f"{EPOCH}.000005"),
    ("TIMESTAMP_S", pa.array([-1, 5, None], pa.timestamp("s")), EVE, "1970-01-01 00:00:05"),
    ("TIMESTAMP_MS", pa.array([-1, 5, None], pa.timestamp("ms")), f"{EVE}.999", f"{EPOCH}.005"),
    ("TIMESTAMP_NS", pa.array([-1, 5, None], pa.timestamp("ns")), f"{EVE}.999999999", f"{EPOCH}.000000005"),
    ("TIMESTAMPTZ", pa.array([0, 5, None], pa.timestamp("us", "UTC")), f"{EPOCH}+00", f"{EPOCH}.000005+00"),
    ("VARCHAR", pa.array(["é", "a'b", None]), "a'b", "é"),
    ("BLOB", pa.array([b"\x00a", b"\xff", None]), "\\x00a", "\\xFF"),
    ("UUID", pa.array([HIGH.bytes, LOW.bytes, None], pa.uuid()), str(LOW), str(HIGH)),
]  # fmt: skip


@pytest.mark.parametrize(("type", "array", "low", "high"), MANY, ids=[row[0] for row in MANY])
def test_bounds_come_from_the_footer(
    storage: Storage, type: str, array: pa.Array, low: str, high: str
) -> None:
    stats = stats_of(storage, array, type, row_group_rows=1)
    assert (stats.min_value, stats.max_value) == (low, high)
    assert (stats.value_count, stats.null_count) == (3, 1)
    assert (stats.size_bytes or 0) > 0
    assert stats.contains_nan == (False if type in ("FLOAT", "DOUBLE") else None)
    if type == "TIMETZ":
        assert (stats.min_key, stats.max_key) == (LOWEST, HIGHEST)
    else:
        assert LOWEST < (stats.min_key or "") <= (stats.max_key or "") < HIGHEST


def test_keys_are_those_of_the_values(storage: Storage) -> None:
    stats = stats_of(storage, pa.array([7, -3]), "BIGINT")
    assert (stats.min_key, stats.max_key) == (key_of(-3, Scalar("int64")), key_of(7, Scalar("int64")))


@pytest.mark.parametrize("type", ["INTEGER", "VARCHAR", "DOUBLE", "UUID"])
def test_only_nulls_have_no_bounds(storage: Storage, type: str) -> None:
    stats = stats_of(storage, pa.nulls(3), type)
    assert (stats.min_key, stats.max_key, stats.min_value, stats.max_value) == (None, None, None, None)
    assert (stats.value_count, stats.null_count) == (3, 3)
    assert not stats.contains_nan


def test_a_row_group_of_nulls_does_not_hide_the_others(storage: Storage) -> None:
    stats = stats_of(storage, pa.array([None, None, 5, 3]), "INTEGER", row_group_rows=2)
    assert (stats.min_value, stats.max_value) == ("3", "5")


@pytest.mark.parametrize("type", ["FLOAT", "DOUBLE"])
def test_nan_is_seen_and_lies_outside_the_bounds(storage: Storage, type: str) -> None:
    stats = stats_of(storage, pa.array([1.5, math.nan, None]), type)
    assert stats.contains_nan
    assert (stats.min_value, stats.max_value) == ("1.5", "1.5")
    assert (stats.min_key, stats.max_key) == bounds(1.5, 1.5, Scalar("float64"), contains_nan=True)


def test_only_nan_has_bounds_that_nothing_known_excludes(storage: Storage) -> None:
    stats = stats_of(storage, pa.array([math.nan, math.nan]), "DOUBLE")
    assert stats.contains_nan
    assert (stats.min_value, stats.max_value, stats.min_key) == (None, None, LOWEST)
    assert stats.max_key == key_of(math.nan, Scalar("float64"))


def test_nan_is_seen_inside_nested_columns(storage: Storage) -> None:
    ddl = "l DOUBLE[], m MAP(VARCHAR, FLOAT), s STRUCT(a DOUBLE, b DOUBLE)"
    rows = [{"l": [1.0, math.nan], "m": {"k": math.nan}, "s": {"a": 1.0, "b": math.nan}}, {"l": None}]
    (file,) = write(storage, rows, ddl)
    names = {field.id: f"{top.name}.{field.name}" for top in table_of(ddl) for field in top.walk()}
    found = {
        names[stats.column_id]: stats.contains_nan for stats in file.stats if stats.contains_nan is not None
    }
    assert found == {"l.element": True, "m.value": True, "s.a": False, "s.b": True}


def test_long_texts_have_no_text_and_longer_ones_no_bounds(storage: Storage) -> None:
    stats = stats_of(storage, pa.array(["a" * 1025, "b"]), "VARCHAR")
    assert (stats.min_value, stats.max_value) == (None, "b")
    assert stats.min_key == (b"a" * 32).hex()


def test_texts_over_the_limit_of_footers_have_unknown_bounds(storage: Storage) -> None:
    stats = stats_of(storage, pa.array(["a" * 5000, "b"]), "VARCHAR")
    assert (stats.min_value, stats.max_value, stats.min_key, stats.max_key) == (None, None, LOWEST, HIGHEST)


def test_text_that_databases_do_not_take_is_left_out(storage: Storage) -> None:
    stats = stats_of(storage, pa.array(["a\0b", "z"]), "VARCHAR")
    assert (stats.min_value, stats.max_value) == (None, "z")
    assert stats.min_key == b"a\0b".hex()


def test_moments_beyond_python_have_keys_and_no_text(storage: Storage) -> None:
    stats = stats_of(storage, pa.array([0, 2**62], pa.timestamp("us")), "TIMESTAMP")
    assert (stats.min_value, stats.max_value) == ("1970-01-01 00:00:00", None)
    assert (stats.min_key or "") < (stats.max_key or "") < HIGHEST


def test_json_has_no_bounds(storage: Storage) -> None:
    stats = stats_of(storage, pa.array(["1", "2"]), "JSON")
    assert (stats.min_value, stats.max_value, stats.min_key, stats.max_key) == (None, None, LOWEST, HIGHEST)


def test_nested_columns_are_described_at_every_level(storage: Storage) -> None:
    ddl = "id INTEGER, l INTEGER[], s STRUCT(a INTEGER, b STRUCT(c VARCHAR))"
    rows = [
        {"id": 1, "l": [5, None], "s": {"a": 1, "b": {"c": "x"}}},
        {"id": 2, "l": [], "s": None},
        {"id": 3, "l": None, "s": {"a": None, "b": None}},
    ]
    (file,) = write(storage, rows, ddl)
    columns = [field for top in table_of(ddl) for field in top.walk()]
    assert [stats.column_id for stats in file.stats] == [column.id for column in columns]
    found = {column.name: stats for column, stats in zip(columns, file.stats, strict=True)}
    assert [(found[name].value_count, found[name].null_count) for name in "ls"] == [(3, 1), (3, 1)]
    assert (found["l"].min_key, found["l"].max_key) == (LOWEST, HIGHEST)
    assert found["b"].null_count is None
    assert (found["element"].min_value, found["c"].max_value, found["a"].null_count) == ("5", "x", 2)
    assert found["s"].size_bytes == (found["a"].size_bytes or 0) + (found["c"].size_bytes or 0)


def test_a_nested_column_of_nulls_holds_no_value(storage: Storage) -> None:
    (file,) = write(storage, [{"a": 1}], "a INTEGER, l INTEGER[]")
    assert [(stats.min_key, stats.max_key) for stats in file.stats[1:]] == [(None, None)] * 2


# Footers of others.


def test_the_footer_of_duckdb_is_read(tmp_path: Path) -> None:
    ddl = "i INTEGER, s VARCHAR, d DECIMAL(9,2), t TIMESTAMP, u UUID, f DOUBLE, h UBIGINT, b BLOB, day DATE"
    columns = table_of(ddl)
    path = tmp_path / "d.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t ({ddl})")
        connection.execute(
            "INSERT INTO t VALUES (1, 'a', 1.5, '2024-01-01', '00000000-0000-0000-0000-000000000001', 0.5, "
            "18446744073709551615, '\\x00', '2024-01-01'), (2, 'b', 2.5, '2024-01-02', "
            "'f0000000-0000-0000-0000-000000000001', 1.5, 1, '\\xFF', '2024-01-02')"
        )
        ids = ", ".join(f"{column.name}: {column.id}" for column in columns)
        connection.execute(f"COPY t TO '{path}' (FIELD_IDS {{{ids}}})")
    stats = footer_stats(pq.read_metadata(path), columns)
    assert [(one.min_value, one.max_value) for one in stats] == [
        ("1", "2"),
        ("a", "b"),
        ("1.50", "2.50"),
        ("2024-01-01 00:00:00", "2024-01-02 00:00:00"),
        ("00000000-0000-0000-0000-000000000001", "f0000000-0000-0000-0000-000000000001"),
        ("0.5", "1.5"),
        ("1", "18446744073709551615"),
        ("\\x00", "\\xFF"),
        ("2024-01-01", "2024-01-02"),
    ]
    assert stats[5].contains_nan is None
    assert stats[5].max_key == key_of(math.nan, Scalar("float64"))


def foreign(tmp_path: Path, array: pa.Array, **options) -> pq.FileMetaData:
    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"x": array}), path, **options)
    return pq.read_metadata(path)


@pytest.mark.parametrize(
    ("array", "type", "low", "high"),
    [
        (pa.array([-1, 5], pa.int32()), "BIGINT", "-1", "5"),
        (pa.array([-1, 5], pa.int32()), "DECIMAL(12,2)", "-1.00", "5.00"),
        (pa.array([-1, 5], pa.int32()), "DOUBLE", "-1.0", "5.0"),
        (pa.array([200, 255], pa.uint8()), "UINTEGER", "200", "255"),
        (pa.array([date(2024, 1, 1)]), "TIMESTAMP", "2024-01-01 00:00:00", "2024-01-01 00:00:00"),
        (
            pa.array([5], pa.timestamp("ms")),
            "TIMESTAMP",
            "1970-01-01 00:00:00.005",
            "1970-01-01 00:00:00.005",
        ),
        (pa.array([Number("1.5")], pa.decimal128(5, 1)), "DECIMAL(9,2)", "1.50", "1.50"),
        (pa.array([1.5], pa.float16()), "FLOAT", "1.5", "1.5"),
        (pa.array([1.5], pa.float32()), "DOUBLE", "1.5", "1.5"),
    ],
    ids=str,
)
def test_older_types_are_read_as_the_wider_ones(
    tmp_path: Path, array: pa.Array, type: str, low: str, high: str
) -> None:
    columns = table_of(f"c {type}")
    (stats,) = footer_stats(foreign(tmp_path, array), columns, leaves={ColumnId(1): 0})
    assert (stats.min_value, stats.max_value) == (low, high)
    assert (stats.min_key or "") <= (stats.max_key or "")


def test_a_coarser_column_has_bounds_that_lie_further_out(tmp_path: Path) -> None:
    metadata = foreign(tmp_path, pa.array([-1500, 1500], pa.timestamp("ns")))
    (stats,) = footer_stats(metadata, table_of("c TIMESTAMP"), leaves={ColumnId(1): 0})
    assert (stats.min_value, stats.max_value) == (None, None)
    assert (stats.min_key, stats.max_key) == (key_of(-2, Scalar("timestamp")), key_of(2, Scalar("timestamp")))


def test_a_footer_without_statistics_bounds_nothing(tmp_path: Path) -> None:
    metadata = foreign(tmp_path, pa.array([1.5]), write_statistics=False)
    (stats,) = footer_stats(metadata, table_of("c DOUBLE"), leaves={ColumnId(1): 0})
    assert (stats.null_count, stats.min_value, stats.contains_nan) == (None, None, None)
    assert (stats.min_key, stats.max_key) == (LOWEST, key_of(math.nan, Scalar("float64")))


def test_columns_that_a_file_lacks_have_no_statistics(tmp_path: Path) -> None:
    metadata = foreign(tmp_path, pa.array([1]))
    assert footer_stats(metadata, table_of("a INTEGER, l INTEGER[]")) == ()


def test_bounds_that_make_no_sense_for_the_column_are_not_believed(tmp_path: Path) -> None:
    metadata = foreign(tmp_path, pa.array(["x"]))
    (stats,) = footer_stats(metadata, table_of("c INTEGER"), leaves={ColumnId(1): 0})
    assert (stats.min_key, stats.max_key) == (LOWEST, HIGHEST)


# Delete files.


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


def test_stamps_keep_their_zone(storage: Storage) -> None:
    files = write(storage, [{"t": datetime(2024, 1, 1, tzinfo=UTC)}], "t TIMESTAMPTZ")
    assert read(storage, files) == [{"t": datetime(2024, 1, 1, tzinfo=UTC)}]
