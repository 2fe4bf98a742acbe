"""Indexes on Spark: the driver prunes files by them, and searches give DataFrames."""

from __future__ import annotations

import pyarrow as pa

import forklake
from forklake.spark import SparkCatalog
from tests.index_segments import build_segment


def test_files_without_hits_are_not_read_and_searches_are_dataframes(
    catalog: forklake.Catalog, on_spark: SparkCatalog
) -> None:
    sc = on_spark
    table = catalog.create_table("notes", "id BIGINT, note VARCHAR, u UUID")
    table.set_option("data_inlining_row_limit", 2)
    for number in range(4):
        ids = range(number, 400, 4)
        table.append(pa.table({"id": ids, "note": [f"note {at}" for at in ids]}))
    table.append([{"id": 101, "note": "bicycle"}])
    table.create_index("by_id", kind="hash", columns=["id"], maintain="later")
    table.create_index("by_note", kind="bm25", columns=["note"])
    build_segment(table, "by_id")
    build_segment(table, "by_note")
    df = sc.read("notes", "id = 101")
    assert len(df.inputFiles()) == 1
    assert sorted(row["note"] for row in df.collect()) == ["bicycle", "note 101"]
    assert {row["note"] for row in sc.sql("SELECT note FROM notes WHERE id = 101").collect()} == {
        "bicycle",
        "note 101",
    }
    assert sc.update("notes", {"note": "'other'"}, "id = 102") == 1
    source = sc.spark.createDataFrame([(103, "new"), (1000, "new")], "id BIGINT, note STRING")
    merged = sc.merge(source, "notes", on="id")
    assert (merged.updated, merged.inserted) == (1, 1)
    assert sc.delete("notes", "id = 101 AND note LIKE 'note%'") == 1
    found = sc.search("notes", "by_note", "bicycle OR new", k=5, columns=["id", "u"])
    assert found.columns == ["id", "u", "row_id", "_score"]
    assert {row["id"] for row in found.collect()} == {101, 103, 1000}
    assert table.scan("id IN (101, 102, 103, 1000)").count() == 4
