"""Statistics that are read from footers of other writers."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal as Number
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forklake.data.parquet.footer import footer_stats
from forklake.model.ids import ColumnId
from forklake.model.types.data_types import Scalar
from forklake.model.types.sort_keys import HIGHEST, LOWEST, key_of
from tests.unit.writer.written import table_of


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
