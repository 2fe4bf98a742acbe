"""Indexes on Spark: the driver prunes files by them, and searches give DataFrames."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.scan.scan_plan import ScanPlan
from forklake.spark import SparkCatalog, upsert
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


KEYS = {
    "id UUID": [f"{at:08}-0000-4000-8000-000000000000" for at in range(40)],
    "id TIMESTAMP_NS": [f"2026-01-01 00:00:00.{at:06}" for at in range(40)],
}
"""Keys that Spark shows as something else."""


@pytest.mark.parametrize(("column", "kind"), list(zip(KEYS, ("hash", "btree"), strict=True)), ids=str)
def test_merges_read_only_files_that_have_the_keys(
    catalog: forklake.Catalog,
    on_spark: SparkCatalog,
    monkeypatch: pytest.MonkeyPatch,
    column: str,
    kind: str,
) -> None:
    plans: list[ScanPlan] = []

    def noting(*given: Any) -> ScanPlan:
        plans.append(scan(*given))
        return plans[-1]

    scan = upsert.plan_scan
    monkeypatch.setattr(upsert, "plan_scan", noting)
    values = KEYS[column]
    table = catalog.create_table("t", f"{column}, v INTEGER")
    table.create_index("by_id", kind=kind, columns=["id"])
    # What statistics cannot tell apart.
    for number in range(4):
        listed = values[number:32:4]
        table.append([{"id": value, "v": 0} for value in listed], cast=True)
    told = [(str(value), 1) for value in (values[5], values[9], values[35])]
    source = on_spark.spark.createDataFrame(told, "id STRING, v INT")
    merged = on_spark.merge(source, "t", on="id", cast=True)
    assert (merged.updated, merged.inserted) == (2, 1)
    assert [len(plan.files) for plan in plans] == [1]
    assert (table.scan("v = 1").count(), table.scan().count()) == (3, 33)
