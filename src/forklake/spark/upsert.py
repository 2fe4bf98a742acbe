"""Upserts a DataFrame into a table: Spark joins the keys, and the tasks that have the files do the rest.

Of the table only the keys are read for the join, in files that may have one of the DataFrame. Rows of the
DataFrame that meet one then go to the task that has its file, and there are joined to the whole row by its
position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal as Number
from functools import reduce
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from forklake.api.upsert import check_extra, join_of, key_range, matched_values, unmatched_values
from forklake.data.input.lossless import cast_rows, fit
from forklake.engine.scan_sql import PLACE, POSITION
from forklake.engine.sql_text import text
from forklake.engine.upsert import SOURCE, TARGET, Join, matched_rows, unmatched_rows
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Column
from forklake.model.ids import DataFileId
from forklake.model.index import Index
from forklake.model.manifest import Manifest
from forklake.model.names import quoted
from forklake.model.sql.predicate import Predicate
from forklake.model.table.columns import Columns
from forklake.model.types.arrow import one_array
from forklake.model.types.data_types import Decimal, Scalar
from forklake.scan.scan_plan import ScanFile, ScanPlan, ScanRows, plan_scan
from forklake.spark.deleted_rows import INDEX
from forklake.spark.jobs import failures, task_number, through
from forklake.spark.plan_splits import only
from forklake.spark.read import DATA_FILE, located, read_places
from forklake.spark.task_results import Done
from forklake.spark.task_writes import TaskWriter
from forklake.spark.types import ALIKE, ddl, given_schema, shown_type, takes, to_arrow

if TYPE_CHECKING:
    from forklake.spark.commit import Writing

_SPREAD = 64
"""Over how many tasks rows that are new go at most."""
_MOST_FILES, _MANY_ROWS = 64, 500_000
"""How much a task looks at in one query."""
_MOST_BROADCAST = 64 * 2**20
"""Up to about so many bytes every executor gets all rows of the source; otherwise both sides are sorted."""
_MOST_LISTED = 100_000
"""So many keys are looked up in indexes; of more, hardly a file has none."""
_ORDERED = ("int8", "int16", "int32", "int64", "date", "varchar")


@dataclass(frozen=True, slots=True)
class _ByPosition(Join):
    """Rows of the source whose rows in a file have been found: the last two columns say where."""

    @property
    def condition(self) -> str:
        at, inside = self.rows.column_names[-2:]
        return f"{TARGET}.{POSITION} = {SOURCE}.{quoted(at)} AND {TARGET}.{PLACE} = {SOURCE}.{quoted(inside)}"

    @classmethod
    def of(cls, join: Join, positions: pa.ChunkedArray, files: pa.ChunkedArray) -> Self:
        """A join of rows by where their rows are."""
        taken = {name.lower() for name in join.rows.column_names}
        at, inside = islice((name for n in count() if (name := f"place_{n}") not in taken), 2)
        rows = join.rows.append_column(at, positions).append_column(inside, files)
        return cls(rows, join.keys, join.names)

    def among(self, places: Sequence[ScanFile | ScanRows]) -> Self:
        numbers = pa.array([place.file.id for place in places], pa.int64())
        last = self.rows.num_columns - 1
        found = pc.index_in(self.rows.column(last), numbers).cast(pa.int64())
        return replace(self, rows=self.rows.set_column(last, self.rows.column_names[last], found))


@dataclass(frozen=True, slots=True)
class _UpsertTask:
    """All that a worker has to know of a merge."""

    writer: TaskWriter
    plan: ScanPlan
    places: Mapping[DataFileId, ScanFile | ScanRows]
    names: tuple[str, ...]
    """What the source calls its columns."""
    on: tuple[str, ...]
    changed: Mapping[str, str] | None
    """New values of rows that match; None if they go."""
    inserted: Mapping[str, str] | None
    cast: bool

    def done(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Done]:
        runs = _Runs(batches)
        part = task_number()
        counted = _Counted()
        fresh = self.writer.write(self._fresh(runs.without_file(), counted), part, unless_there=True)
        found: dict[DataFileId, tuple[ScanFile | ScanRows, pa.Array]] = {}
        changed = self.writer.write(self._changed(runs, found), part)
        gone = self.writer.delete(found, part)
        met = sum(len(positions) for _, positions in found.values())
        manifest = Manifest.joined([fresh, changed, gone])
        if manifest.entries:
            updated = 0 if self.changed is None else met
            yield Done(manifest.to_json(), counted.rows, updated, met - updated)

    def _fresh(self, batches: Iterator[pa.RecordBatch], counted: _Counted) -> Iterator[pa.RecordBatch]:
        """Rows of the source that met none, as rows of the table."""
        if self.inserted is None:
            return
        chosen = tuple(column for column in self.writer.columns if column.name in self.inserted)
        nothing = only(self.plan, ())
        for batch in batches:
            join = join_of(self._given(batch), self.on, self.writer.columns, cast=self.cast)
            for rows in unmatched_rows(self.writer.engine, nothing, join, self.inserted, chosen):
                counted.rows += rows.num_rows
                yield rows

    def _changed(
        self, runs: _Runs, found: dict[DataFileId, tuple[ScanFile | ScanRows, pa.Array]]
    ) -> Iterator[pa.RecordBatch]:
        """Rows of the table that met one of the source, with new values; where they are is noted."""
        if self.changed is None:
            for file, batches in runs.by_file():
                rows = pa.Table.from_batches(batches)
                found[file] = (self.places[file], pc.unique(rows.column(INDEX)).sort())
            return
        for files, batches in runs.by_files():
            rows = pa.Table.from_batches(batches)
            join = join_of(self._given(rows), self.on, self.writer.columns, cast=self.cast)
            joined = _ByPosition.of(join, rows.column(INDEX), rows.column(DATA_FILE))
            part = only(self.plan, [self.places[file] for file in files])
            places, values = matched_rows(self.writer.engine, part, joined, self.changed)
            yield from values
            found |= places.found(twice="refused")

    def _given(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        """The columns of the source, under the names that it has for them."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        return table.select([f"s{at}" for at in range(len(self.names))]).rename_columns(list(self.names))


@dataclass(slots=True)
class _Counted:
    rows: int = 0


class _Runs:
    """Rows in the order of the files that they are for; those that are for none come first."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._rest = (piece for batch in batches for piece in _cut(batch))

    def without_file(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rest:
            if _file_of(batch) is not None:
                self._rest = chain([batch], self._rest)
                return
            yield batch

    def by_file(self) -> Iterator[tuple[DataFileId, list[pa.RecordBatch]]]:
        taken: list[pa.RecordBatch] = []
        for batch in self._rest:
            if taken and _file_of(batch) != _file_of(taken[0]):
                yield DataFileId(_file_of(taken[0]) or 0), taken
                taken = []
            taken.append(batch)
        if taken:
            yield DataFileId(_file_of(taken[0]) or 0), taken

    def by_files(self) -> Iterator[tuple[list[DataFileId], list[pa.RecordBatch]]]:
        """Several files at once, so that small ones do not cost a query each."""
        files: list[DataFileId] = []
        taken: list[pa.RecordBatch] = []
        for file, batches in self.by_file():
            files.append(file)
            taken += batches
            if len(files) == _MOST_FILES or sum(batch.num_rows for batch in taken) >= _MANY_ROWS:
                yield files, taken
                files, taken = [], []
        if files:
            yield files, taken


def _file_of(batch: pa.RecordBatch) -> int | None:
    return batch.column(DATA_FILE)[0].as_py()


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    start = 0
    for run in pc.run_end_encode(batch.column(DATA_FILE)).run_ends.to_pylist() if batch.num_rows else ():
        yield batch.slice(start, run - start)
        start = run


def merge_dataframe(
    spark: SparkSession,
    writing: Writing,
    df: DataFrame,
    on: str | Sequence[str],
    when_matched: object,
    when_not_matched: object,
    *,
    cast: bool = False,
) -> list[Done]:
    """Bring rows of a DataFrame into a table: those with the same keys change, the others are new."""
    columns = writing.target.columns
    # Without rows, and yet all that can be wrong with columns shows.
    join = join_of(given_schema(df.schema).empty_table(), on, columns, cast=cast)
    asked = (when_matched, when_not_matched)
    check_extra(join, columns, may_be_read=any(isinstance(one, Mapping) for one in asked))
    changed = matched_values(when_matched, join, columns)
    inserted = unmatched_values(when_not_matched, join, columns)
    matters = when_matched != "ignore"
    if not matters and inserted is None:
        return []
    keys = _Keys(tuple(join.keys), tuple(join.names[key.name] for key in join.keys), cast)
    # Kept while it is needed, because it is looked at more than once and has to be the same each time.
    source = keys.of_dataframe(df).persist()
    try:
        with failures("read the rows"):
            known = _Known.of(source, keys)
        if not known.rows:
            return []
        target = writing.draft.source(writing.table)
        listed = keys.listed(source, known.rows, target.find_indexes().definitions)
        storage = None if listed is None else writing.context.storage
        plan = plan_scan(target, known.condition(keys), storage, listed)
        sent = (*plan.files, *plan.rows) if matters else ()
        task = _UpsertTask(
            TaskWriter.of(writing),
            only(plan, ()),
            {place.file.id: place for place in sent},
            tuple(df.columns),
            tuple(key.name for key in join.keys),
            changed,
            inserted,
            cast,
        )
        values = [f"s{at}" for at in range(len(df.columns))]
        places = read_places(spark, writing.context, plan, keys.columns)
        same = F.expr(" AND ".join(f"k{at} = {keys.place(at)}" for at in range(len(keys.columns))))
        if known.size > _MOST_BROADCAST:
            how = "left" if inserted is not None else "inner"
            met = source.join(places, same, how if matters else "left_anti")
            met = located(spark, writing.context, plan, met) if matters else _placeless(met)
            return through(_sent(met, keys, values, changed is None), task.done)
        found = located(spark, writing.context, plan, places.join(F.broadcast(source), same))
        found = found.select(*values, *keys.own, DATA_FILE, INDEX).persist()
        try:
            parts = [found] if matters else []
            if inserted is not None:
                parts.append(_placeless(source.join(found.select(*keys.own), list(keys.own), "left_anti")))
            met = reduce(DataFrame.unionByName, parts)
            return through(_sent(met, keys, values, changed is None), task.done)
        finally:
            found.unpersist()
    finally:
        source.unpersist()


def _placeless(rows: DataFrame) -> DataFrame:
    """Rows that met none."""
    return rows.selectExpr("*", *(f"CAST(NULL AS BIGINT) AS {place}" for place in (DATA_FILE, INDEX)))


def _sent(met: DataFrame, keys: _Keys, values: Sequence[str], deletes: bool) -> DataFrame:
    """Rows of the DataFrame as workers get them: for each file together, in order, and the others spread."""
    if deletes:
        # Of rows that go, nothing has to be known but where they are.
        values = [f"IF({DATA_FILE} IS NULL, {value}, NULL) AS {value}" for value in values]
    spread = f"IF({DATA_FILE} IS NULL, pmod(xxhash64({', '.join(keys.own)}), {_SPREAD}), 0)"
    met = met.selectExpr(*values, DATA_FILE, INDEX, f"{spread} AS spread")
    return met.repartition(DATA_FILE, "spread").sortWithinPartitions(F.col(DATA_FILE).asc_nulls_first())


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a source once it has been looked at."""

    rows: int
    size: int
    """About how many bytes they take."""
    low: object
    high: object
    """The least and the greatest first key, if its type is one whose order all engines share."""

    @classmethod
    def of(cls, source: DataFrame, keys: _Keys) -> _Known:
        fields = source.schema.fields
        long = [f.name for f in fields if isinstance(f.dataType, T.StringType | T.BinaryType)]
        asked = [F.count(F.lit(1)), *(F.coalesce(F.sum(F.octet_length(name)), F.lit(0)) for name in long)]
        asked += [F.min("k0"), F.max("k0")] if keys.is_ordered else []
        found = source.agg(*asked).first()
        if found is None:
            raise AssertionError("a count is one row")
        size = found[0] * sum(_width(field.dataType) for field in fields) + sum(found[1 : len(long) + 1])
        low, high = found[-2:] if keys.is_ordered else (None, None)
        return cls(found[0], size, low, high)

    def condition(self, keys: _Keys) -> Predicate | None:
        """What rows of the table meet that meet one of the source; only to pass over files."""
        column = keys.columns[0]
        if self.low is None or "\0" in f"{self.low}{self.high}":
            return None
        low, high = (text(f"{b:f}" if isinstance(b, Number) else str(b)) for b in (self.low, self.high))
        return key_range(column, low, high)


def _width(type: T.DataType) -> int:
    """About how many bytes a value takes, without those of a text."""
    match type:
        case T.StructType():
            return sum(_width(field.dataType) for field in type.fields)
        case T.ArrayType() | T.MapType():
            return 200
        case _:
            return 16


@dataclass(frozen=True, slots=True)
class _Keys:
    """What is joined on, in a form in which Spark compares it as we do."""

    columns: Columns
    given: tuple[str, ...]
    """What the source calls them."""
    cast: bool

    def __post_init__(self) -> None:
        for column in self.columns:
            if column.data_type in (Scalar("interval"), Scalar("geometry")):
                raise InvalidArgument(f'Spark cannot join on "{column.name}": join on other columns')

    @property
    def own(self) -> tuple[str, ...]:
        """What they are called in the DataFrame of the source."""
        return tuple(f"k{at}" for at in range(len(self.columns)))

    @property
    def is_ordered(self) -> bool:
        """Whether all engines agree on the order of the first, and write it alike."""
        kind = self.columns[0].data_type
        return isinstance(kind, Decimal) or (isinstance(kind, Scalar) and kind.name in _ORDERED)

    def place(self, at: int) -> str:
        """A key of the table, in a DataFrame of its places."""
        column = self.columns[at]
        return f"{'n' if column.type == 'timestamp_ns' else 'c'}{column.id}"

    def listed(self, source: DataFrame, rows: int, indexes: Sequence[Index]) -> pa.Table | None:
        """The keys themselves, for indexes that may find them; None if there are many, or no such index."""
        ids = {column.id for column in self.columns}
        if rows > _MOST_LISTED or not any(ids.issuperset(index.keys) for index in indexes):
            return None
        with failures("read the keys"):
            found = source.select(*self.own).distinct().toArrow()
        arrays = [_as_stored(found.column(at), column) for at, column in enumerate(self.columns)]
        return pa.table(arrays, [str(column.id) for column in self.columns])

    def of_dataframe(self, df: DataFrame) -> DataFrame:
        """A DataFrame with its columns as `s0`, `s1` and so on, and keys `k0`, `k1`."""
        fields = [df.schema.fields[df.columns.index(given)] for given in self.given]
        source = df.toDF(*(f"s{at}" for at in range(len(df.columns))))
        places = [df.columns.index(given) for given in self.given]
        if all(map(_is_plain, self.columns, (field.dataType for field in fields))):
            cast = [
                f"CAST(s{place} AS {ddl(shown_type(column.data_type))}) AS k{at}"
                for at, (column, place) in enumerate(zip(self.columns, places, strict=True))
            ]
            return source.selectExpr("*", *cast)
        kinds = [T.StructField(f"k{at}", _key_type(column)) for at, column in enumerate(self.columns)]
        schema = T.StructType([*source.schema.fields, *kinds])
        columns, cast = self.columns, self.cast

        def fitted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                keys = [
                    _key(batch.column(p), column, cast) for column, p in zip(columns, places, strict=True)
                ]
                yield pa.record_batch([*batch.columns, *keys], schema.names)

        return source.mapInArrow(fitted, schema)


def _is_plain(column: Column, given: T.DataType) -> bool:
    kind = column.data_type
    plain = not isinstance(kind, Scalar) or kind.name in ALIKE
    return plain and takes(column, given)


def _key_type(column: Column) -> T.DataType:
    return T.LongType() if column.type == "timestamp_ns" else shown_type(column.data_type)


def _as_stored(shown: pa.ChunkedArray, column: Column) -> pa.Array:
    """Keys as Spark shows them, in the type of the table."""
    values = one_array(shown)
    return values.cast(pa.timestamp("ns")) if column.type == "timestamp_ns" else cast_rows(values, column, 0)


def _key(values: pa.Array, column: Column, cast: bool) -> pa.Array:
    """A key in the type of the table, as Spark shows it; refused if it does not fit."""
    fitted = cast_rows(values, column, 0) if cast else fit(values, column)
    if column.type == "timestamp_ns":
        return fitted.cast(pa.int64())
    return to_arrow(fitted, column.data_type)
