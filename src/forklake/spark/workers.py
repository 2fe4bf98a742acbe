"""Files that Spark's own reader cannot open, read by the local engine in Spark's Python workers.

That is for files in a bucket where Spark has no `hadoop-aws`, and for imported ones of types that Spark does
not read. Each executor needs forklake installed.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from forklake.data.storage.paths import S3Options
from forklake.data.storage.storage import Storage
from forklake.engine.condition import naming
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.engine.select import ALIAS, where
from forklake.engine.sql_text import shown, shown_as
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.names import quoted
from forklake.model.table.columns import Columns
from forklake.model.types.data_types import DataType, Decimal, List, Map, Scalar, Struct, to_sql
from forklake.scan.scan_plan import ScanFile, ScanPlan
from forklake.spark.arrow_types import arrow_schema
from forklake.spark.jobs import engine_of
from forklake.spark.plan_splits import only, parts_of

_OTHERS: dict[str, DataType] = {
    "uint8": Scalar("int16"),
    "uint16": Scalar("int32"),
    "uint32": Scalar("int64"),
    "uint64": Decimal(20, 0),
    "time_ns": Scalar("varchar"),
    "interval": Scalar("varchar"),
    "json": Scalar("varchar"),
    "uuid": Scalar("varchar"),
    "timestamp_s": Scalar("timestamp"),
    "timestamp_ms": Scalar("timestamp"),
    "timestamp_ns": Scalar("timestamp"),
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Some files of a plan, with all that it takes to read them elsewhere."""

    data_path: str
    options: S3Options = field(repr=False)
    plan: ScanPlan
    columns: Columns
    nanos: tuple[ColumnId, ...]
    row_id: bool
    place: bool


def through_workers(
    spark: SparkSession,
    storage: Storage,
    plan: ScanPlan,
    files: Sequence[ScanFile],
    schema: T.StructType,
    columns: Columns,
    nanos: Sequence[ColumnId],
    row_id: bool,
    place: bool,
) -> DataFrame:
    """The rows of files as a DataFrame of this schema: columns, nanoseconds, and what else was asked for."""
    pieces = [
        pickle.dumps(
            Piece(
                storage.data_path,
                storage.s3.options,
                replace(part, predicate=None),
                columns,
                tuple(nanos),
                row_id,
                place,
            )
        )
        for part in parts_of(only(plan, files))
    ]
    given = spark.createDataFrame(pa.table({"piece": pa.array(pieces, pa.binary())}), "piece BINARY")
    wanted = arrow_schema(schema)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch.column("piece"):
                yield from read_piece(pickle.loads(piece.as_py()), wanted)  # noqa: S301

    return given.repartition(len(pieces), "piece").mapInArrow(read, schema)


def read_piece(piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a piece that meet the condition of its plan."""
    engine = engine_of(piece.data_path, piece.options)
    plan = piece.plan
    needed = frozenset[str]() if plan.predicate is None else plan.predicate.columns
    names = {column.id: column.name for column in piece.columns}
    others = [column for column in plan.table.columns if column.name in needed and column.id not in names]
    found = relation(plan, engine.storage, Wanted((*piece.columns, *others), piece.row_id, place=piece.place))
    selected = [_shown(column) for column in piece.columns]
    selected += [f"epoch_ns({quoted(names[column])})" for column in piece.nanos]
    selected += [ROW_ID] if piece.row_id else []
    if piece.place:
        numbers = ", ".join(str(place.file.id) for place in found.places)
        selected += [f"CAST(([{numbers}])[{PLACE} + 1] AS BIGINT)", POSITION]
    listed = ", ".join(f"{value} AS v{at}" for at, value in enumerate(selected))
    sql = f"SELECT {listed} FROM ({found.sql}) AS {ALIAS}{where(plan)}"  # noqa: S608
    with naming(plan.predicate):
        for batch in engine.stream(sql, found.tables, plan):
            yield batch.rename_columns(schema.names).cast(schema)


def _shown(column: Column) -> str:
    return f"CAST({shown(quoted(column.name), column.data_type)} AS {plain_type(column)})"


def plain_type(column: Column) -> str:
    """The type that DuckDB gives to Spark."""
    return to_sql(_plain(shown_as(column.data_type)))


def _plain(type: DataType) -> DataType:
    match type:
        case Scalar(name):
            return _OTHERS.get(name, type)
        case List(element):
            return List(_plain(element))
        case Map(key, value):
            return Map(_plain(key), _plain(value))
        case Struct(fields):
            return Struct(tuple((name, _plain(field)) for name, field in fields))
        case _:
            return type
