"""Reading imported files with Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import forklake
from forklake.spark import SparkCatalog
from tests.spark.compare import same_rows


def test_imported_files_are_read_by_their_own_names(
    on_spark: SparkCatalog, catalog: forklake.Catalog, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    for region in ("eu", "us"):
        (folder / f"region={region}").mkdir(parents=True)
        rows = pa.table(
            {"ID": pa.array(range(10), pa.int32()), "Name": ["x"] * 10, "s": [{"q": at} for at in range(10)]}
        )
        # In whatever order columns are, they are found by their names.
        turned = rows.select(rows.column_names[::-1])
        # What the folder says comes before this.
        turned = turned.append_column("region", pa.array(["inside"] * 10))
        pq.write_table(turned if region == "us" else rows, folder / f"region={region}" / "data [1].parquet")
    table = catalog.create_table(
        "t", "id BIGINT, name VARCHAR, s STRUCT(q BIGINT), region VARCHAR, more INTEGER DEFAULT 3"
    )
    table.add_files(folder, mapping="by_name", allow_missing=True)
    table.append([{"id": 100 + at, "name": "y", "region": "de"} for at in range(5)])
    table.delete("id = 3 AND region = 'eu'")
    table.rename_column("name", "id2")
    assert same_rows(on_spark, table) == 24
    assert same_rows(on_spark, table, "region = 'us' AND id < 5") == 5
    assert on_spark.read("t").where("id2 = 'x' AND more = 3").count() == 19


def test_imported_files_of_types_that_spark_does_not_read_are_read_by_the_local_engine(
    on_spark: SparkCatalog, catalog: forklake.Catalog, tmp_path: Path
) -> None:
    stamps = pa.array([1_700_000_000_000_000_000 + at * 1000 for at in range(5)], pa.timestamp("ns"))
    odd = pa.table({"id": range(5), "ts": stamps, "u": pa.array([b"0123456789abcdef"] * 5, pa.binary())})
    pq.write_table(odd, tmp_path / "_hidden.parquet", use_deprecated_int96_timestamps=True)
    table = catalog.create_table("t", "id BIGINT, ts TIMESTAMP, u UUID")
    table.add_files(tmp_path / "_hidden.parquet", mapping="by_name")
    table.append([{"id": 9, "ts": None, "u": None}])
    table.delete("id = 2")
    assert same_rows(on_spark, table, "id > 0") == 4
