"""The change feed of a table as a DataFrame: rows that came and went, with both sides of updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from forklake.api.change_feed import ChangeFeed
from forklake.context.lake_context import LakeContext
from forklake.engine.change_feed import KIND, ROW_COLUMN, SNAPSHOT_COLUMN
from forklake.lazy.arrow import pa
from forklake.model.ids import DataFileId, SnapshotId
from forklake.model.table.columns import Columns
from forklake.model.types.data_types import DataType, List, Map, Struct
from forklake.scan.change_plan import Gone, plan_places
from forklake.scan.scan_plan import ScanPlan
from forklake.spark.condition import condition
from forklake.spark.deleted_rows import INDEX, PATH
from forklake.spark.read import DATA_FILE, ROW_ID, read_places
from forklake.spark.sql_text import field_of, name, text
from forklake.spark.types import lists_of

_KIND, _SNAPSHOT = "kind", "snapshot"


def read_changes(spark: SparkSession, context: LakeContext, feed: ChangeFeed) -> DataFrame:
    """The changes of a feed, in no order."""
    columns, predicate = feed.columns, feed.predicate
    names = {column.id: f"c{column.id}" for column in columns}
    nanos = {column.id: f"n{column.id}" for column in columns if column.type == "timestamp_ns"}
    filtered = None if predicate is None else condition(predicate, columns, names, nanos)
    plan = feed.plan()
    came = _whole(spark, context, plan.inserted, columns).selectExpr(f"'insert' AS {_KIND}", "*")
    went = _whole(spark, context, plan.dropped, columns)
    if plan.deleted:
        went = went.unionByName(
            _rows(spark, context, plan_places(feed.source, plan.deleted), plan.deleted, columns)
        )
    every = came.unionByName(went.selectExpr(f"'delete' AS {_KIND}", "*"))
    # A row that went and came back in one commit, with the same id, was updated.
    both = f"OVER (PARTITION BY {_SNAPSHOT}, {ROW_ID})"
    every = every.selectExpr("*", f"(min({_KIND}) {both} <> max({_KIND}) {both}) AS updated")
    if plan.net:
        every = _without_moved(every, plan.net, columns, nanos.values())
    if filtered is not None:
        every = every.where(filtered)
    kind = f"IF(NOT updated, {_KIND}, IF({_KIND} = 'delete', 'update_preimage', 'update_postimage'))"
    return every.selectExpr(
        f"{kind} AS {KIND}",
        f"{_SNAPSHOT} AS {SNAPSHOT_COLUMN}",
        f"{ROW_ID} AS {ROW_COLUMN}",
        *(f"c{column.id} AS {name(column.name)}" for column in columns),
    )


def _whole(spark: SparkSession, context: LakeContext, plan: ScanPlan, columns: Columns) -> DataFrame:
    """All rows of files, which came or went when their files began to be told of."""
    begins = {place.file.id: place.file.begin for place in (*plan.files, *plan.rows)}
    rows = read_places(spark, context, plan, columns, row_id=True)
    return rows.join(F.broadcast(_known(spark, begins)), DATA_FILE).drop(DATA_FILE, INDEX, PATH)


def _known(spark: SparkSession, begins: Mapping[DataFileId, SnapshotId]) -> DataFrame:
    table = pa.table(
        {
            DATA_FILE: pa.array(list(begins), pa.int64()),
            _SNAPSHOT: pa.array(list(begins.values()), pa.int64()),
        }
    )
    return spark.createDataFrame(table, f"{DATA_FILE} BIGINT, {_SNAPSHOT} BIGINT")


def _rows(
    spark: SparkSession, context: LakeContext, plan: ScanPlan, gone: Iterable[Gone], columns: Columns
) -> DataFrame:
    """Single rows that went."""
    events = list(gone)
    table = pa.table(
        {
            DATA_FILE: pa.array([event.place.file.id for event in events], pa.int64()),
            _SNAPSHOT: pa.array([event.snapshot for event in events], pa.int64()),
            "positions": lists_of([event.positions for event in events]),
        }
    )
    schema = f"{DATA_FILE} BIGINT, {_SNAPSHOT} BIGINT, positions ARRAY<BIGINT>"
    lost = spark.createDataFrame(table, schema)
    lost = lost.selectExpr(DATA_FILE, _SNAPSHOT, f"explode(positions) AS {INDEX}")
    rows = read_places(spark, context, plan, columns, row_id=True)
    return rows.join(lost, [DATA_FILE, INDEX]).drop(DATA_FILE, INDEX, PATH)


def _without_moved(
    every: DataFrame, net: Iterable[SnapshotId], columns: Columns, nanos: Iterable[str]
) -> DataFrame:
    """Where rows were taken over, one may have come in another file and be the same."""
    values = [_comparable(f"c{column.id}", column.data_type) for column in columns]
    row = f"struct({', '.join((*values, *nanos))})"
    both = f"OVER (PARTITION BY {_SNAPSHOT}, {ROW_ID})"
    listed = ", ".join(map(str, sorted(net)))
    every = every.selectExpr("*", f"{row} AS whole")
    every = every.selectExpr("*", f"(min(whole) {both} <=> max(whole) {both}) AS same")
    return every.where(f"NOT ({_SNAPSHOT} IN ({listed}) AND updated AND same)").drop("whole", "same")


def _comparable(expression: str, type: DataType, depth: int = 0) -> str:
    """A value in a form that Spark can order: maps have none."""
    if not _has_map(type):
        return expression
    one = f"x{depth}"
    match type:
        case List(element):
            return f"transform({expression}, {one} -> {_comparable(one, element, depth + 1)})"
        case Map(key, value):
            first = _comparable(f"{one}.key", key, depth + 1)
            second = _comparable(f"{one}.value", value, depth + 1)
            return f"array_sort(transform(map_entries({expression}), {one} -> struct({first}, {second})))"
        case Struct(fields):
            inner = ", ".join(
                f"{text(field)}, {_comparable(field_of(expression, field), child, depth)}"
                for field, child in fields
            )
            return f"if({expression} IS NULL, NULL, named_struct({inner}))"
        case _:
            return expression


def _has_map(type: DataType) -> bool:
    match type:
        case Map():
            return True
        case List(element):
            return _has_map(element)
        case Struct(fields):
            return any(_has_map(child) for _, child in fields)
        case _:
            return False
