"""Columns whose values stand in the folders of a file: `region=eu/day=2024-01-01/`."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from urllib.parse import quote
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

from forklake.errors import InvalidData

ONE = pa.table({"n": pa.array([1, 2], pa.int32())})


def test_folders_of_duckdb_are_columns(catalog, incoming, rows) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT i::INT AS n, ['eu', 'us/west', NULL, 'ü =%'][i] AS region, i % 2 = 0 AS even "
            f"FROM range(1, 5) t(i)) TO '{incoming}' (FORMAT parquet, PARTITION_BY (region, even))"
        )
    table = catalog.create_table("t", "even BOOLEAN, n INT, region VARCHAR")
    assert table.add_files(incoming, mapping="by_name") == 4
    assert rows(table, columns=["n", "region", "even"]) == [
        {"n": 1, "region": "eu", "even": False},
        {"n": 2, "region": "us/west", "even": True},
        {"n": 3, "region": None, "even": False},
        {"n": 4, "region": "ü =%", "even": True},
    ]
    assert rows(table, "region = 'us/west'", columns=["n"]) == [{"n": 2}]
    assert len(table.scan("region = 'us/west'").plan().files) == 1
    assert len(table.scan("region IS NULL").plan().files) == 1
    assert len(table.scan("NOT even").plan().files) == 2


VALUES = {
    "BOOLEAN": [("true", True), ("False", False)],
    "TINYINT": [("-128", -128), ("007", 7)],
    "UBIGINT": [(str(2**64 - 1), 2**64 - 1)],
    "HUGEINT": [(str(-(10**37)), Decimal(-(10**37)))],
    "DECIMAL(5,2)": [("1.5", Decimal("1.50")), ("-7", Decimal(-7))],
    "DOUBLE": [("1e300", 1e300), ("-0.5", -0.5), ("inf", float("inf"))],
    "FLOAT": [("0.5", 0.5)],
    "DATE": [("2024-02-29", date(2024, 2, 29))],
    "TIME": [("12:30:00", time(12, 30))],
    "TIMESTAMP": [("2024-02-29 12:30:00.5", datetime(2024, 2, 29, 12, 30, 0, 500_000))],
    "TIMESTAMPTZ": [("2024-02-29 12:30:00+02:00", datetime(2024, 2, 29, 10, 30, tzinfo=UTC))],
    "UUID": [(str(UUID(int=5)), UUID(int=5))],
    "VARCHAR": [("", ""), ("a b+c%", "a b+c%"), ("x=y", "x=y"), ("..", "..")],
    "JSON": [("[1]", "[1]")],
}
WRONG = {
    "BOOLEAN": ["banana", "1", ""],
    "TINYINT": ["128", "1.0", "1_0", " 1", "", "٣", "0x1"],
    "UTINYINT": ["-1"],
    "DECIMAL(5,2)": ["1.005", "1000", "1e2", "nan"],
    "DOUBLE": ["1,5", "1_0", ""],
    "DATE": ["2024-02-30", "29.2.2024", "2024"],
    "TIME": ["25:00:00", "12"],
    "TIMESTAMP": ["2024-01-01 12:00:00Z", "now"],
    "TIMESTAMPTZ": ["2024-01-01 12:00:00", "2024-01-01"],
    "UUID": ["5", "{00000000-0000-0000-0000-000000000005}"],
    "JSON": ["{"],
    "INT[]": ["[1]"],
    "STRUCT(a INT)": ["{'a': 1}"],
}


def test_folders_are_values_of_every_type(catalog, put, rows) -> None:
    with catalog.transaction() as tx:
        for ddl, values in VALUES.items():
            table = tx.create_table(("main", ddl), f"n INT, v {ddl}")
            paths = [
                put(f"{ddl}/v={quote(text, safe='')}/{at}.parquet", ONE)
                for at, (text, _) in enumerate([*values, ("__HIVE_DEFAULT_PARTITION__", None)])
            ]
            assert table.add_files(paths, mapping="by_name") == 2 * len(values) + 2
    for ddl, values in VALUES.items():
        table = catalog.table(("main", ddl))
        expected = [{"n": n, "v": value} for _, value in [*values, ("", None)] for n in (1, 2)]
        assert rows(table) == sorted(expected, key=str)
        assert table.scan("v IS NULL").count() == 2


def test_folders_that_are_no_values_are_refused(catalog, put) -> None:
    with catalog.transaction() as tx:
        for ddl, texts in WRONG.items():
            table = tx.create_table(("main", ddl), f"n INT, v {ddl}")
            for at, text in enumerate(texts):
                path = put(f"{quote(ddl)}/v={quote(text, safe='')}/{at}.parquet", ONE)
                with pytest.raises(InvalidData, match='"v"') as caught:
                    table.add_files(path, mapping="by_name")
                assert str(path) in str(caught.value) and repr(text) in str(caught.value)
            assert table.count() == 0


def test_a_folder_comes_before_a_column_in_the_file(catalog, put, rows) -> None:
    """As when DuckDB and Spark read such folders; the column may even be of a type that would not fit."""
    table = catalog.create_table("t", "n INT, v DOUBLE")
    both = pa.table({"n": pa.array([1], pa.int32()), "v": ["inside"]})
    table.add_files(put("v=3.5/a.parquet", both), mapping="by_name")
    table.add_files(put("v=__HIVE_DEFAULT_PARTITION__/a.parquet", both), mapping="by_name")
    table.add_files(put("V=4/b.parquet", ONE), mapping="by_name")
    assert rows(table) == [
        {"n": 1, "v": 3.5},
        {"n": 1, "v": 4.0},
        {"n": 1, "v": None},
        {"n": 2, "v": 4.0},
    ]
    assert len(table.scan("v IS NULL").plan().files) == 1


def test_a_column_in_the_file_counts_if_it_is_asked_for(catalog, put, rows) -> None:
    table = catalog.create_table("t", "n INT, v VARCHAR")
    both = pa.table({"n": pa.array([1], pa.int32()), "v": ["inside"]})
    table.add_files(put("v=outside/a.parquet", both), mapping="by_name", hive=False)
    table.add_files(put("v=outside/b.parquet", both), mapping={"n": "n", "v": "v"})
    assert rows(table) == [{"n": 1, "v": "inside"}] * 2


def test_a_dict_may_name_a_folder(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "n INT, area VARCHAR")
    path = put("region=eu/a.parquet", ONE)
    assert '"area"' in refused(table, path, mapping="by_name")
    assert 'no column "zone"' in refused(table, path, mapping={"n": "n", "zone": "area"})
    table.add_files(path, mapping={"n": "n", "region": "area"})
    assert rows(table) == [{"n": 1, "area": "eu"}, {"n": 2, "area": "eu"}]


def test_null_in_a_folder_is_refused_where_the_table_has_none(catalog, put, refused) -> None:
    table = catalog.create_table("t", "n INT, v INT NOT NULL")
    path = put("v=__HIVE_DEFAULT_PARTITION__/a.parquet", ONE)
    assert '"v" is NOT NULL' in refused(table, path, mapping="by_name")
    assert table.add_files(put("v=3/a.parquet", ONE), mapping="by_name") == 2


def test_columns_from_folders_change_like_others(catalog, put, rows) -> None:
    table = catalog.create_table("t", "n INT, v INT")
    table.add_files([put("v=3/a.parquet", ONE), put("v=4/a.parquet", ONE)], mapping="by_name")
    before = catalog.snapshot
    table.rename_column("v", "w")
    table.alter_type("w", "BIGINT")
    table.add_column("v", "VARCHAR", default="'new'")
    assert table.update({"w": "w * 1000000000000"}, "w = 4 AND n = 1") == 1
    assert table.delete("w = 3 AND n = 2") == 1
    assert rows(table) == [
        {"n": 1, "w": 3, "v": "new"},
        {"n": 1, "w": 4 * 10**12, "v": "new"},
        {"n": 2, "w": 4, "v": "new"},
    ]
    assert len(rows(catalog.table("t", at=before))) == 4
    table.drop_column("w")
    assert rows(table)[0] == {"n": 1, "v": "new"}


def test_folders_may_be_no_columns(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "n INT, region VARCHAR")
    path = put("region=eu/a.parquet", ONE)
    assert 'no column "region"' in refused(table, path, mapping="by_name", hive=False)
    table.add_files(path, mapping="by_name", hive=False, allow_missing=True)
    assert rows(table) == [{"n": 1, "region": None}, {"n": 2, "region": None}]


def test_files_of_one_partition_are_not_rewritten_for_their_layout(catalog, put) -> None:
    table = catalog.create_table(
        "t", "n INT, region VARCHAR, at TIMESTAMP", partition_by=["region", "year(at)"]
    )
    times = pa.array([datetime(2024, 1, 1), datetime(2024, 12, 31)], pa.timestamp("us"))
    paths = [put(f"region={region}/a.parquet", ONE.append_column("at", times)) for region in ("eu", "us")]
    table.add_files(paths, mapping="by_name")
    assert sorted(file.partition_values for file in table.files()) == [("eu", "2024"), ("us", "2024")]
    assert table.compact().tables == ()
    mixed = pa.array([datetime(2024, 1, 1), datetime(2025, 1, 1)], pa.timestamp("us"))
    table.add_files(put("region=ch/b.parquet", ONE.append_column("at", mixed)), mapping="by_name")
    assert [file.files_in for file in table.compact().tables] == [1]
    assert sorted(file.partition_values for file in table.files()) == [
        ("ch", "2024"),
        ("ch", "2025"),
        ("eu", "2024"),
        ("us", "2024"),
    ]
