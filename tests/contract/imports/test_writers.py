"""Files of other programs, as they write them, read as part of a table."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

DDL = (
    "id BIGINT, name VARCHAR, price DECIMAL(10,2), at TIMESTAMP, seen TIMESTAMPTZ, day DATE, ok BOOLEAN, "
    "x DOUBLE"
)
ROWS = [
    {
        "id": 1,
        "name": "ä€😀",
        "price": Decimal("1.50"),
        "at": datetime(2024, 2, 29, 12, 30, 15, 250),
        "seen": datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC),
        "day": date(1900, 1, 1),
        "ok": True,
        "x": float("inf"),
    },
    {"id": -(2**62), "name": "", "price": Decimal("-99999999.99")},
]
ROWS = [{name: row.get(name) for name in ROWS[0]} for row in ROWS]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us")),
        ("seen", pa.timestamp("us", "Europe/Berlin")),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("x", pa.float64()),
    ]
)
TABLE = pa.Table.from_pylist(ROWS, SCHEMA)


def test_arrow_files_of_every_format_version_read_the_same(catalog, put, rows) -> None:
    table = catalog.create_table("t", DDL)
    forms = [
        {"version": "1.0"},
        {"version": "2.6", "data_page_version": "2.0"},
        {"use_dictionary": False, "compression": "gzip"},
        {"store_schema": False, "compression": "none"},
        {"write_statistics": False},
        {"row_group_size": 1, "write_page_index": True},
    ]
    for at, form in enumerate(forms):
        assert table.add_files(put(f"{at}.parquet", TABLE, **form), mapping="by_name") == 2
    assert rows(table) == sorted(ROWS * len(forms), key=str)
    assert table.count() == 2 * len(forms)


def test_duckdb_files_read_the_same(catalog, incoming, rows) -> None:
    path = incoming / "duck.parquet"
    # DuckDB 2.0 writes nanoseconds as Parquet does, which older ones would cut: so that is not taken.
    nanoseconds = "TIME_NS" if duckdb.__version__.startswith("1.") else "TIME_NS::VARCHAR"
    with duckdb.connect() as connection:
        connection.register("given", TABLE)
        connection.execute(f"COPY given TO '{path}' (FORMAT parquet)")
        connection.execute(
            f"COPY (SELECT uuid() AS u, '1:02:03'::TIMETZ AS z, [1, 2]::INT[2] AS l, 'a'::BLOB AS b, "
            f"'{{}}'::JSON AS j, 200::UTINYINT AS n, '04:05:06.000000007'::{nanoseconds} AS ns, "
            f"INTERVAL 3 DAY AS i) TO '{incoming / 'odd.parquet'}' (FORMAT parquet)"
        )
        known = connection.execute(f"SELECT u FROM '{incoming / 'odd.parquet'}'").fetchone()
    table = catalog.create_table("t", DDL)
    table.add_files(path, mapping="by_name")
    assert rows(table) == sorted(ROWS, key=str)
    ddl = "u UUID, z TIMETZ, l INT[], b BLOB, j JSON, n UTINYINT, ns TIME_NS, i INTERVAL"
    odd = catalog.create_table("odd", ddl)
    odd.add_files(incoming / "odd.parquet", mapping="by_name")
    assert odd.scan("i = INTERVAL 3 DAY").count() == 1
    (row,) = odd.scan(columns=["u", "z", "l", "b", "j", "n"]).to_arrow().to_pylist()
    assert row == {"u": known[0], "z": time(1, 2, 3), "l": [1, 2], "b": b"a", "j": "{}", "n": 200}
    assert odd.scan(columns=["ns"]).to_arrow().column(0)[0].value == 14_706_000_000_007


def test_pandas_files_read_the_same_if_their_nanoseconds_are_whole_microseconds(
    catalog, incoming, rows, refused
) -> None:
    df = pd.DataFrame(ROWS)
    df["at"] = df["at"].astype("datetime64[ns]")
    df["seen"] = pd.to_datetime(df["seen"], utc=True).astype("datetime64[ns, UTC]")
    df["ok"] = df["ok"].astype("boolean")
    path = incoming / "pandas.parquet"
    df.to_parquet(path, index=False)
    units = {field.type.unit for field in pq.read_schema(path) if pa.types.is_timestamp(field.type)}
    assert units == {"ns"}
    table = catalog.create_table("t", DDL)
    df["price"] = None
    finer = incoming / "finer.parquet"
    df.assign(at=df["at"] + pd.Timedelta(1, "ns")).to_parquet(finer, index=False)
    assert table.add_files(path, mapping="by_name") == 2
    assert rows(table) == sorted(ROWS, key=str)
    message = refused(table, finer, mapping="by_name")
    assert str(finer) in message and '"at"' in message


def test_a_pandas_index_is_an_extra_column(catalog, incoming, refused) -> None:
    path = incoming / "pandas.parquet"
    pd.DataFrame({"n": [1, 2]}, index=pd.Index([5, 6], name="key")).to_parquet(path)
    table = catalog.create_table("t", "n BIGINT")
    assert '"key"' in refused(table, path, mapping="by_name")
    assert table.add_files(path, mapping="by_name", ignore_extra=True) == 2


def test_columns_of_nothing_but_null_fit_every_type(catalog, put, rows, refused) -> None:
    path = put(
        "n.parquet",
        pa.table({"n": [1, 2], **{name: pa.nulls(2) for name in "vdl"}, "s": [{"a": 1, "b": None}] * 2}),
    )
    table = catalog.create_table(
        "t", "n BIGINT, v UUID, d DATE, l STRUCT(x INT)[], s STRUCT(a BIGINT, b DATE)"
    )
    table.add_files(path, mapping="by_name")
    assert rows(table) == [
        {"n": n, "v": None, "d": None, "l": None, "s": {"a": 1, "b": None}} for n in (1, 2)
    ]
    assert table.scan("v IS NULL AND d IS NULL").count() == 2
    assert table.scan("d > DATE '2000-01-01'").count() == 0
    required = catalog.create_table("required", "n BIGINT, v UUID NOT NULL")
    assert '"v" is NOT NULL' in refused(required, path, mapping="by_name", ignore_extra=True)
    filled = catalog.create_table("filled", "n BIGINT, v VARCHAR DEFAULT 'x'")
    assert '"v"' in refused(filled, path, mapping="by_name", ignore_extra=True)


def test_polars_files_read_the_same(catalog, incoming, rows) -> None:
    path = incoming / "polars.parquet"
    pl.from_arrow(TABLE).write_parquet(path, statistics="full")
    table = catalog.create_table("t", DDL)
    table.add_files(path, mapping="by_name")
    assert rows(table) == sorted(ROWS, key=str)


def test_spark_files_with_96_bit_timestamps_read_as_moments_or_local_times(catalog, put, rows) -> None:
    """As parquet-mr writes them: 96 bits, no bounds where NaN is, none for timestamps."""
    timestamps = [
        datetime(1900, 1, 1),
        datetime(2024, 2, 29, 23, 59, 59, 999_999),
        datetime(2261, 1, 1),
        None,
    ]
    given = pa.table(
        {
            "a": pa.array(timestamps, pa.timestamp("us")),
            "b": pa.array(timestamps, pa.timestamp("us")),
            "x": [1.0, float("nan"), None, -1.0],
            "l": pa.array([[timestamp] for timestamp in timestamps], pa.list_(pa.timestamp("us"))),
        }
    )
    path = put(
        "part-00000-x.snappy.parquet",
        given,
        use_deprecated_int96_timestamps=True,
        write_statistics=["x"],
        store_schema=False,
    )
    assert pq.read_metadata(path).schema.column(0).physical_type == "INT96"
    table = catalog.create_table("t", "a TIMESTAMP, b TIMESTAMPTZ, x DOUBLE, l TIMESTAMPTZ[]")
    assert table.add_files(path, mapping="by_name") == 4
    found = table.scan(columns=["a", "b", "l"]).to_arrow().to_pylist()
    zoned = [None if timestamp is None else timestamp.replace(tzinfo=UTC) for timestamp in timestamps]
    expected = [{"a": a, "b": b, "l": [b]} for a, b in zip(timestamps, zoned, strict=True)]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert table.scan("a = TIMESTAMP '1900-01-01'").count() == 1
    assert table.scan("b > TIMESTAMPTZ '2200-01-01'").count() == 1
    assert table.scan("x = 'NaN'").count() == 1
    assert table.scan().min("a") == timestamps[0]
