"""Random tables of random types: what is written is read again by Arrow and by DuckDB, and bounds hold."""

from __future__ import annotations

import math
import struct
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.input.batches import rows_of
from forklake.data.parquet.schema import arrow_schema
from forklake.data.parquet.writer import WriteOptions, write_files
from forklake.data.storage.storage import open_storage
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.sql.ddl import ColumnSpec
from forklake.model.table.columns import build
from forklake.model.table.files import ColumnStats, WrittenFile
from forklake.model.table.layout import PartitionField, Partitioning, SortKey
from forklake.model.types.data_types import DataType, Decimal, List, Map, Scalar, Struct, to_sql
from forklake.model.types.sort_keys import has_key, max_key, min_key
from forklake.model.types.text import stored, text_of

_words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_moments = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))
_seconds = _moments.map(lambda timestamp: timestamp.replace(microsecond=0))
_millis = _moments.map(lambda timestamp: timestamp.replace(microsecond=timestamp.microsecond // 1000 * 1000))

VALUES: dict[str, st.SearchStrategy] = {
    "boolean": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "int128": st.integers(-(10**38) + 1, 10**38 - 1),
    "uint8": st.integers(0, 2**8 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "uint128": st.integers(0, 10**38 - 1),
    "float32": st.floats(width=32),
    "float64": st.floats(),
    "date": st.dates(date(1, 1, 2), date(9999, 12, 30)),
    "time": st.times(),
    "timetz": st.times(timezones=st.just(UTC)),
    "timestamp": _moments,
    "timestamp_s": _seconds,
    "timestamp_ms": _millis,
    "timestamp_ns": _moments,
    "timestamptz": st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
    "varchar": _words,
    "blob": st.binary(max_size=8),
    "json": st.sampled_from(["1", '{"a": [1, null]}', '"x"', "[]", ' {"é": 1.5}']),
    "uuid": st.uuids(),
}
_scalars = st.sampled_from(sorted(VALUES)).map(Scalar)
_decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s)))
_names = st.lists(
    st.text(st.characters(categories=["L", "N"], max_codepoint=0x24F), min_size=1, max_size=4),
    min_size=1, max_size=3, unique_by=str.lower,
)  # fmt: skip
_flat = _scalars | _decimals
_keys = _flat.filter(lambda type: type not in (Scalar("float32"), Scalar("float64"), Scalar("json")))
_types = st.recursive(
    _flat,
    lambda inner: (
        inner.map(List)
        | st.builds(Map, _keys, inner)
        | _names.flatmap(
            lambda names: st.tuples(*[inner] * len(names)).map(
                lambda types: Struct(tuple(zip(names, types, strict=True)))
            )
        )
    ),
    max_leaves=4,
)


def values_of(type: DataType) -> st.SearchStrategy:
    return st.none() | present(type)


def present(type: DataType) -> st.SearchStrategy:
    match type:
        case Scalar(name):
            return VALUES[name]
        case Decimal(precision, scale):
            most = 10**precision - 1
            return st.integers(-most, most).map(lambda number: Number(f"{number}e-{scale}"))
        case List(element):
            return st.lists(values_of(element), max_size=3)
        case Map(key, value):
            pairs = st.tuples(present(key), values_of(value))
            return st.lists(pairs, max_size=3, unique_by=lambda pair: repr(pair[0]))
        case Struct(fields):
            return st.fixed_dictionaries({name: values_of(inner) for name, inner in fields})


@st.composite
def tables(draw) -> tuple[tuple[Column, ...], list[dict]]:
    names = draw(_names)
    types = [draw(_types) for _ in names]
    specs = [ColumnSpec(name, type) for name, type in zip(names, types, strict=True)]
    row = st.fixed_dictionaries({spec.name: values_of(spec.type) for spec in specs})
    return build(specs), draw(st.lists(row, min_size=1, max_size=8))


def plain(value: object, type: DataType) -> object:
    """One way to write a value, whoever read it."""
    if value is None:
        return None
    match type:
        case List(element):
            return [plain(item, element) for item in value]
        case Map(key, inner):
            pairs = value.items() if isinstance(value, dict) else value
            return {repr(plain(name, key)): plain(item, inner) for name, item in pairs}
        case Struct(fields):
            return {name: plain(value[name], inner) for name, inner in fields}
        case Scalar("float32" | "float64") if value != value:
            return "nan"
        case Scalar("float32"):
            return struct.pack("<f", value)
        case Scalar("float64"):
            return struct.pack("<d", value)
        case Scalar("time" | "timetz") if hasattr(value, "tzinfo"):
            return value.replace(tzinfo=None, fold=0)
        case Scalar("uuid"):
            return str(value)
        case Scalar("timestamp_ns") if hasattr(value, "to_pydatetime"):
            return value.to_pydatetime()
        case _ if isinstance(value, datetime):
            return (value.astimezone(UTC) if value.tzinfo else value).replace(fold=0)
        case Decimal(_, scale):
            return f"{value:.{scale}f}" if value else "0"
        case Scalar("int128" | "uint128"):
            return int(value)
        case _:
            return value


def leaves(value: object, column: Column) -> Iterator[tuple[Column, object]]:
    """Every value other than NULL that a leaf of the file holds."""
    if value is None:
        return
    match column.type:
        case "list":
            for item in value:
                yield from leaves(item, column.children[0])
        case "map":
            for key, item in value:
                yield from leaves(key, column.children[0])
                yield from leaves(item, column.children[1])
        case "struct":
            for child in column.children:
                yield from leaves(value[child.name], child)
        case _:
            yield column, value


def check_bounds(stats: ColumnStats, type: DataType, values: list) -> None:
    """No value lies outside of what is known of the column, and it is known exactly where nothing was cut."""
    numbers = [value for value in values if value == value]
    if type in (Scalar("float32"), Scalar("float64")):
        assert stats.contains_nan == (len(numbers) < len(values))
    if not values:
        assert (stats.min_key, stats.max_key, stats.min_value, stats.max_value) == (None, None, None, None)
        return
    assert stats.min_key is not None
    assert stats.max_key is not None
    if not has_key(type):
        return
    keyed = [value if isinstance(value, UUID) else stored(value, type) for value in numbers]
    for value in keyed:
        assert stats.min_key <= min_key(value, type)
        assert max_key(value, type) <= stats.max_key
    if keyed and type not in (Scalar("float32"), Scalar("float64")):
        assert stats.min_key == min(min_key(value, type) for value in keyed)
        assert stats.max_key == max(max_key(value, type) for value in keyed)
        texts = {text_of(stored(value, type), type) for value in numbers}
        assert {stats.min_value, stats.max_value} <= texts | {None}


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@given(table=tables(), group=st.integers(1, 9), chunk=st.integers(1, 9))
def test_what_is_written_is_read_again(
    duck: duckdb.DuckDBPyConnection, table, group: int, chunk: int
) -> None:
    columns, rows = table
    given_rows = rows_of(rows, columns).read_all().to_batches(max_chunksize=chunk)
    # What fits once fits again, and stays what it is.
    given_rows = list(rows_of(given_rows, columns))
    with tempfile.TemporaryDirectory() as folder:
        storage = open_storage(folder)
        (file,) = write_files(
            pa.RecordBatchReader.from_batches(arrow_schema(columns), given_rows),
            columns=columns,
            folder="t/",
            storage=storage,
            options=WriteOptions("commit", row_group_rows=group),
        )
        path = storage.address(file.path)
        by_arrow = pq.ParquetFile(path).read().to_pylist()
        schema = ", ".join(
            f"{column.id}: {{name: {quoted('c' + str(at))}, type: {quoted(to_sql(column.data_type))}, "
            "default_value: NULL}"
            for at, column in enumerate(columns)
        )
        query = f"SELECT * FROM read_parquet({quoted(path)}, schema = MAP {{{schema}}})"
        by_duckdb = duck.execute(query).fetchall()

    types = {column.name: column.data_type for column in columns}
    expected = [{name: plain(row[name], type) for name, type in types.items()} for row in rows]
    assert [{name: plain(row[name], type) for name, type in types.items()} for row in by_arrow] == expected
    assert [
        {name: plain(value, type) for value, (name, type) in zip(row, types.items(), strict=True)}
        for row in by_duckdb
    ] == expected

    assert file.record_count == len(rows)
    stats = {one.column_id: one for one in file.stats}
    assert list(stats) == [field.id for column in columns for field in column.walk()]
    found: dict[int, list] = {}
    for row in rows:
        for column in columns:
            for leaf, value in leaves(row[column.name], column):
                found.setdefault(leaf.id, []).append(value)
    for column in columns:
        if not column.children or column.type == "struct":
            nulls = sum(row[column.name] is None for row in rows)
            assert (stats[column.id].value_count, stats[column.id].null_count) == (len(rows), nulls)
        for leaf in column.walk():
            if not leaf.children:
                check_bounds(stats[leaf.id], leaf.data_type, found.get(leaf.id, []))


KEY = Column(ColumnId(1000), "the key", "int8")


def write_twos(table, folder: str, **layout) -> list[tuple[WrittenFile, list[dict]]]:
    """Write with a key column, two rows to a group; every file with its rows."""
    columns, rows = table
    columns = (*columns, KEY)
    keyed = [{**row, KEY.name: at * 7 % 3 or None} for at, row in enumerate(rows)]
    storage = open_storage(folder)
    files = write_files(
        rows_of(keyed, columns),
        columns=columns,
        folder="t/",
        storage=storage,
        options=WriteOptions("commit", row_group_rows=2),
        **layout,
    )
    found = [(file, pq.ParquetFile(storage.address(file.path)).read().to_pylist()) for file in files]
    assert shown([row for _, part in found for row in part], columns) == shown(keyed, columns)
    return found


def shown(rows: list[dict], columns: tuple[Column, ...]) -> list[str]:
    return sorted(repr([plain(row[column.name], column.data_type) for column in columns]) for row in rows)


@given(table=tables())
def test_every_row_is_in_its_partition(table) -> None:
    partitioning = Partitioning(1, 1, (PartitionField(KEY.id, "identity"),))
    with tempfile.TemporaryDirectory() as folder:
        found = write_twos(table, folder, partitioning=partitioning)
    for file, rows in found:
        assert {row[KEY.name] and str(row[KEY.name]) for row in rows} == set(file.partition_values)


@given(table=tables(), direction=st.sampled_from(["ASC", "DESC"]), first=st.booleans())
def test_every_row_is_in_its_place(table, direction, first: bool) -> None:
    key = SortKey(KEY.name, direction, "NULLS_FIRST" if first else "NULLS_LAST")
    with tempfile.TemporaryDirectory() as folder:
        ((_, rows),) = write_twos(table, folder, sort=[key])
    found = [row[KEY.name] for row in rows]
    known = sorted((value for value in found if value is not None), reverse=direction == "DESC")
    missing = [None] * found.count(None)
    assert found == (missing + known if first else known + missing)


def test_the_check_of_bounds_can_fail() -> None:
    wrong = ColumnStats(build([ColumnSpec("a", Scalar("int32"))])[0].id, 1, 0, min_key="9", max_key="9")
    with pytest.raises(AssertionError):
        check_bounds(wrong, Scalar("int32"), [5])
    with pytest.raises(AssertionError):
        check_bounds(ColumnStats(wrong.column_id, 1, 0, contains_nan=False), Scalar("float64"), [math.nan])
