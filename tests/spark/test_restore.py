"""Tables that were restored, read by Spark as by the local engine."""

from __future__ import annotations

import forklake
from forklake.spark import SparkCatalog
from tests.spark.compare import same_feed, same_rows


def test_restored_rows_and_their_changes(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    start = catalog.snapshot
    table.append([{"id": n, "v": f"n{n}"} for n in range(20)])
    table.append([{"id": 100, "v": "inlined"}])
    table.delete("id < 3")
    then = catalog.snapshot
    table.add_column("more", "INTEGER", default="7")
    table.update({"v": "'changed'"}, "id < 10")
    table.delete("id IN (12, 100)")
    spoiled = catalog.snapshot
    table.restore(then)
    assert same_rows(on_spark, table) == 18
    table.restore(spoiled)
    assert same_rows(on_spark, table, "more = 7 AND id > 9") == 9
    table.delete("id = 15")
    # Files have had several lives in this span, with other rows deleted in each.
    assert same_feed(on_spark, table, start) > 40


def test_changes_on_spark_can_be_restored_and_undone(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.append([{"id": n, "v": "a"} for n in range(10)])
    then = catalog.snapshot
    on_spark.update("t", {"v": "'b'"}, "id < 5")
    updated = catalog.snapshot
    on_spark.delete("t", "id >= 8")
    catalog.undo(updated)
    assert same_rows(on_spark, table, "v = 'a'") == 8
    table.restore(then)
    # Rows of a file that came back are found again where they are.
    on_spark.update("t", {"v": "'c'"}, "id = 3")
    on_spark.delete("t", "id = 4")
    assert same_rows(on_spark, table) == 9


def test_imported_files_that_came_back(
    on_spark: SparkCatalog, catalog: forklake.Catalog, tmp_path: object
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = f"{tmp_path}/in.parquet"
    pq.write_table(pa.table({"other": [1, 2, 3]}), file)
    table = catalog.create_table("t", "id BIGINT")
    start = catalog.snapshot
    table.add_files(file, mapping={"other": "id"})
    then = catalog.snapshot
    table.delete("id = 1")
    table.delete()
    table.restore(then)
    assert same_rows(on_spark, table) == 3
    assert same_feed(on_spark, table, start) > 6
