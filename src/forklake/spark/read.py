"""A scan plan as a Spark DataFrame: files by field id, without what was deleted, and rows that came along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from forklake.context.lake_context import LakeContext
from forklake.data.parquet.hive import hive_values, value_of
from forklake.data.parquet.schema import ROW_ID_NAME, file_type
from forklake.data.storage.storage import Storage
from forklake.engine.errors import naming_snapshot
from forklake.engine.select import Selection
from forklake.errors import FileMissing
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.ids import ROW_ID_COLUMN, ColumnId
from forklake.model.sql.predicate_tree import columns_of
from forklake.model.table.columns import Columns
from forklake.model.types.arrow import one_array
from forklake.scan.inlined_rows import AMONG, WITHIN, gather
from forklake.scan.scan_plan import ScanFile, ScanPlan, ScanRows
from forklake.spark import paths
from forklake.spark.condition import condition
from forklake.spark.deleted_rows import INDEX, PATH, READ_OPTIONS, SHOWN, deletion_filter, same
from forklake.spark.file_groups import Group, Grouped, grouped, holed
from forklake.spark.sessions import has_hadoop_aws
from forklake.spark.sql_text import name
from forklake.spark.types import (
    FIELD_ID,
    ddl,
    initial,
    read_field,
    read_type,
    read_type_by_name,
    shown,
    shown_type,
    takes_default,
    to_arrow,
)
from forklake.spark.workers import through_workers

ROW_ID = "row_id"
_BY_PATH = f"xxhash64({PATH}) = hash AND {same(PATH, 'place')}"
_EMBEDDED = "embedded"
DATA_FILE = "data_file"
"""Where a row is: the id of its file, and `INDEX`, its position there."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the parts of a DataFrame have to show. A column is named by its id until the very end."""

    columns: Columns
    nanos: Mapping[ColumnId, str]
    """Columns of whole nanoseconds, beside those that are cut to microseconds."""
    row_id: bool
    place: bool = False

    @property
    def schema(self) -> T.StructType:
        fields = [T.StructField(_c(column), shown_type(column.data_type)) for column in self.columns]
        fields += [T.StructField(number, T.LongType()) for number in self.nanos.values()]
        fields += [T.StructField(ROW_ID, T.LongType())] if self.row_id else []
        fields += [T.StructField(extra, T.LongType()) for extra in (DATA_FILE, INDEX) if self.place]
        return T.StructType(fields)


def _c(column: Column) -> str:
    return f"c{column.id}"


def _place(path: Sequence[Column]) -> str:
    """A column, or a field of structs."""
    return ".".join((_c(path[0]), *(name(inner.name) for inner in path[1:])))


def _r(column: Column) -> str:
    """The same as it is read."""
    return f"r{column.id}"


def read_plan(spark: SparkSession, context: LakeContext, plan: ScanPlan, selection: Selection) -> DataFrame:
    """The rows of a plan as a DataFrame. Nothing is read before Spark is asked for it."""
    context.engine.verify(plan)
    wanted = _wanted(plan, selection)
    # Said first, so that a condition that Spark cannot take is refused before anything is opened.
    filtered = None if plan.predicate is None else _condition(plan, wanted)
    with naming_snapshot(plan):
        df = _united(_parts(spark, context.storage, plan, wanted))
    if filtered is not None:
        df = df.where(filtered)
    shown_names = [f"{_place(selection.path(column))} AS {name(column.name)}" for column in selection.columns]
    return df.selectExpr(*shown_names, *([ROW_ID] if wanted.row_id else []))


def read_places(
    spark: SparkSession, context: LakeContext, plan: ScanPlan, columns: Columns, *, row_id: bool = False
) -> DataFrame:
    """The rows of a plan and where each of them is, whatever its condition says.

    A column is named `c` and its id here; if it has nanoseconds, all of them are in a column `n` and its id.
    Without ids of rows, the file of some is only known by its path: `located` finds it.
    """
    context.engine.verify(plan)
    nanos = {column.id: f"n{column.id}" for column in columns if column.type == "timestamp_ns"}
    wanted = _Wanted(columns, nanos, row_id, place=True)
    with naming_snapshot(plan):
        return _united(_parts(spark, context.storage, plan, wanted))


def located(spark: SparkSession, context: LakeContext, plan: ScanPlan, places: DataFrame) -> DataFrame:
    """The same places, each with the id of its file: cheaper for the few rows that are left of many."""
    if not plan.files:
        return places.drop(PATH)
    storage = context.storage
    known = _known_by_path(
        spark,
        pa.table(
            {
                PATH: paths.of_files(storage, plan.files),
                "found": pa.array([file.file.id for file in plan.files], pa.int64()),
            }
        ),
        T.StructType([T.StructField(PATH, T.StringType()), T.StructField("found", T.LongType())]),
    )
    others = [column for column in places.columns if column not in (DATA_FILE, PATH)]
    joined = places.join(known, F.expr(_BY_PATH), "left")
    return joined.selectExpr(*others, f"coalesce({DATA_FILE}, found) AS {DATA_FILE}")


def _known_by_path(spark: SparkSession, facts: pa.Table, schema: T.StructType) -> DataFrame:
    """What is known of files, to be joined by `_BY_PATH`."""
    known = spark.createDataFrame(facts, schema)
    return F.broadcast(known.selectExpr("*", f"xxhash64({PATH}) AS hash").withColumnRenamed(PATH, "place"))


def _united(parts: Sequence[DataFrame]) -> DataFrame:
    df = parts[0]
    for part in parts[1:]:
        df = df.union(part)
    return df


def _wanted(plan: ScanPlan, selection: Selection) -> _Wanted:
    predicate = plan.predicate
    needed = frozenset[str]() if predicate is None else predicate.columns
    columns = selection.read(plan.table.columns, needed)
    compared = frozenset[ColumnId]() if predicate is None else columns_of(predicate.tree)
    nanos = {c.id: f"n{c.id}" for c in columns if c.id in compared and c.type == "timestamp_ns"}
    return _Wanted(columns, nanos, selection.row_id)


def _condition(plan: ScanPlan, wanted: _Wanted) -> str | None:
    if plan.predicate is None:
        return None
    names = {column.id: _c(column) for column in wanted.columns}
    return condition(plan.predicate, plan.table.columns, names, wanted.nanos)


def _parts(spark: SparkSession, storage: Storage, plan: ScanPlan, wanted: _Wanted) -> list[DataFrame]:
    if storage.is_local or has_hadoop_aws(spark):
        found = grouped(plan, storage, wanted.columns)
    else:
        found = Grouped([], list(plan.files))
    parts = [
        _native(spark, storage, group, files, wanted, lost=lost)
        for group in found.groups
        for files, lost in holed(group.files)
    ]
    if found.others:
        others = through_workers(
            spark,
            storage,
            plan,
            found.others,
            wanted.schema,
            wanted.columns,
            tuple(wanted.nanos),
            wanted.row_id,
            wanted.place,
        )
        parts.append(_pathless(others) if wanted.place else others)
    if plan.rows or not parts:
        rows = _rows(spark, plan.rows, wanted)
        parts.append(_pathless(rows) if wanted.place else rows)
    return parts


def _pathless(places: DataFrame) -> DataFrame:
    return places.selectExpr("*", f"CAST(NULL AS STRING) AS {PATH}")


def _native(
    spark: SparkSession,
    storage: Storage,
    group: Group,
    files: Sequence[ScanFile],
    wanted: _Wanted,
    *,
    lost: bool,
) -> DataFrame:
    df = _opened(spark, storage, group, files, wanted)
    facts = _facts(storage, group, files, wanted)
    alone = len(files) == 1 and not group.in_path
    deletions = deletion_filter(spark, storage, files) if lost else None
    needed = set(() if deletions is None else deletions.needed)
    needed |= {PATH, INDEX} if facts is not None or wanted.place else set()
    place = [f"{SHOWN[extra]} AS {extra}" for extra in sorted(needed)]
    # From here on all names are ours, whatever the columns are called.
    read = [f"{name(group.names[column.id])} AS {_r(column)}" for column in _inside(group)]
    read += [f"{name(ROW_ID_NAME)} AS {_EMBEDDED}"] if _has_ids(group, wanted) else []
    df = df.selectExpr(*read, *place) if read or place else df
    if deletions is not None:
        df = deletions.without(df)
    start, number = "start", DATA_FILE
    if facts is not None and alone:
        start, number = f"CAST({_started(files[0])} AS BIGINT)", f"{files[0].file.id}L"
    elif facts is not None:
        df = df.join(_known_by_path(spark, facts, _facts_schema(facts, group)), F.expr(_BY_PATH))
    elif wanted.place:
        number = "CAST(NULL AS BIGINT)"
    return df.selectExpr(*_shown(group, wanted, start, number), *([PATH] if wanted.place else []))


def _opened(
    spark: SparkSession, storage: Storage, group: Group, files: Sequence[ScanFile], wanted: _Wanted
) -> DataFrame:
    fields: list[T.StructField] = []
    for at, column in enumerate(group.columns):
        if column.id in group.absent or column.id in group.in_path:
            continue
        if group.shapes is None:
            default = initial(column) if takes_default(column) else None
            disguised = column.id in group.disguised
            fields.append(read_field(column, group.names[column.id], default, disguised=disguised))
        else:
            fields.append(T.StructField(group.names[column.id], read_type_by_name(group.shapes[at])))
    if _has_ids(group, wanted):
        fields.append(T.StructField(ROW_ID_NAME, T.LongType(), True, {FIELD_ID: ROW_ID_COLUMN}))
    addresses = [paths.given(storage.address(file.path, file.file.path_is_relative)) for file in files]
    try:
        return spark.read.options(**READ_OPTIONS).schema(T.StructType(fields)).parquet(*addresses)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        missing = (error.getMessageParameters() or {}).get("path", "a file")
        raise FileMissing(
            f"{missing} is missing: restore it, or see whether the data path is the right one"
        ) from error


def _inside(group: Group) -> list[Column]:
    return [c for c in group.columns if c.id not in group.absent and c.id not in group.in_path]


def _has_ids(group: Group, wanted: _Wanted) -> bool:
    """Files without field ids carry no ids of rows either."""
    return wanted.row_id and group.shapes is None


# ---- What is known of each file ---


def _facts(storage: Storage, group: Group, files: Sequence[ScanFile], wanted: _Wanted) -> pa.Table | None:
    inside = [column for column in group.columns if column.id in group.in_path]
    if not (wanted.row_id or inside):
        return None
    facts: dict[str, pa.Array] = {
        PATH: pa.array(paths.of_files(storage, files)),
        "start": pa.array([file.file.row_id_start for file in files], pa.int64()),
        DATA_FILE: pa.array([file.file.id for file in files], pa.int64()),
    }
    for column in inside:
        texts = [hive_values(file.path).get(group.names[column.id]) for file in files]
        values = [value_of(text, column).cast(file_type(column)) for text in texts]
        facts[_c(column)] = to_arrow(pa.concat_arrays(values), column.data_type)
    return pa.table(facts)


def _facts_schema(facts: pa.Table, group: Group) -> T.StructType:
    kinds = {_c(column): shown_type(column.data_type) for column in group.columns}
    plain = {PATH: T.StringType(), "start": T.LongType(), DATA_FILE: T.LongType()}
    return T.StructType([T.StructField(n, plain.get(n) or kinds[n]) for n in facts.column_names])


def _started(file: ScanFile) -> str:
    return "NULL" if file.file.row_id_start is None else str(file.file.row_id_start)


def _shown(group: Group, wanted: _Wanted, start: str, number: str) -> list[str]:
    found = {column.id: (at, column) for at, column in enumerate(group.columns)}
    selected = [f"{_value(group, at, column)} AS {_c(column)}" for at, column in found.values()]
    for column_id, nanos in wanted.nanos.items():
        at, column = found[column_id]
        selected.append(f"{_raw(group, at, column)} AS {nanos}")
    if wanted.row_id:
        counted = f"{start} + {INDEX}"
        embedded = f"coalesce({_EMBEDDED}, {counted})" if _has_ids(group, wanted) else counted
        selected.append(f"{embedded} AS {ROW_ID}")
    selected += [f"{number} AS {DATA_FILE}", INDEX] if wanted.place else []
    return selected


def _value(group: Group, at: int, column: Column) -> str:
    if column.id in group.in_path:
        return _c(column)
    return shown(_raw(group, at, column), column.data_type)


def _raw(group: Group, at: int, column: Column) -> str:
    """What is read of a column, with the names that the table has."""
    kind = ddl(read_type(column))
    if column.id in group.absent:
        return f"CAST({initial(column) or 'NULL'} AS {kind})"
    renamed = group.shapes is not None and not group.shapes[at].is_same
    if renamed or column.id in group.disguised:
        return f"CAST({_r(column)} AS {kind})"
    return _r(column)


# ---- Rows that came with the plan ---


def _rows(spark: SparkSession, parts: Sequence[ScanRows], wanted: _Wanted) -> DataFrame:
    schema = wanted.schema
    if not parts:
        return spark.createDataFrame([], schema)
    rows = gather(parts, wanted.columns).combine_chunks()
    arrays = [to_arrow(one_array(rows.column(_c(column))), column.data_type) for column in wanted.columns]
    arrays += [one_array(rows.column(f"c{key}")).cast(pa.int64()) for key in wanted.nanos]
    arrays += [one_array(rows.column(ROW_ID_NAME))] if wanted.row_id else []
    if wanted.place:
        numbers = pa.array([part.file.id for part in parts], pa.int64())
        arrays += [numbers.take(one_array(rows.column(AMONG))), one_array(rows.column(WITHIN))]
    return spark.createDataFrame(pa.table(arrays, schema.names), schema)
