"""Merging a frame into a table: Spark joins the keys, and those who have the files do the rest.

Of the table only the keys are read for the join. Rows of the frame that meet one then go to the task that
has its file, and there are joined to the whole row by its position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from forklake.data.fit import fit
from forklake.engine.merge import SOURCE, TARGET, Join, matched_rows, unmatched_rows
from forklake.engine.relation import POSITION
from forklake.errors import InvalidArgument
from forklake.merging import check_extra, join_of, matched_values, unmatched_values
from forklake.model.columns import Columns
from forklake.model.entities import Column
from forklake.model.ids import DataFileId
from forklake.model.kernels import pc
from forklake.model.manifest import Manifest
from forklake.model.types import Scalar
from forklake.scan.plan import ScanFile, ScanPlan, ScanRows, plan_scan
from forklake.spark.dml import only
from forklake.spark.hands import Hands
from forklake.spark.holes import INDEX
from forklake.spark.jobs import task_number, through
from forklake.spark.publish import Done, Writing
from forklake.spark.read import DATA_FILE, read_places
from forklake.spark.types import ddl, given_schema, shown_type, takes, to_arrow

_SPREAD = 64
"""Over how many tasks rows that are new go at most."""
_AT = "forklake_at"
_PLAIN = frozenset(
    {"boolean", "int8", "int16", "int32", "int64", "float32", "float64", "date", "time", "timestamp"}
    | {"timestamptz", "varchar", "blob"}
)
"""Types of keys that Spark has too, and compares as we do."""


@dataclass(frozen=True, slots=True)
class _ByPosition(Join):
    """Rows of the source whose rows in a file have been found."""

    @property
    def condition(self) -> str:
        return f"{TARGET}.{POSITION} = {SOURCE}.{_AT}"


@dataclass(frozen=True, slots=True)
class _Merging:
    """All that a worker has to know of a merge."""

    hands: Hands
    plan: ScanPlan
    places: Mapping[DataFileId, ScanFile | ScanRows]
    names: tuple[str, ...]
    """What the source calls its columns."""
    on: tuple[str, ...]
    changed: Mapping[str, str] | None
    """New values of rows that match; None if they go."""
    inserted: Mapping[str, str] | None

    def done(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Done]:
        runs = _Runs(batches)
        part = task_number()
        counted = _Counted()
        fresh = self.hands.write(self._fresh(runs.without_file(), counted), part, unless_there=True)
        found: dict[DataFileId, tuple[ScanFile | ScanRows, pa.Array]] = {}
        changed = self.hands.write(self._changed(runs, found), part)
        gone = self.hands.delete(found, part)
        count = sum(len(positions) for _, positions in found.values())
        manifest = Manifest.joined([fresh, changed, gone])
        if manifest.entries:
            updated = 0 if self.changed is None else count
            yield Done(manifest.to_json(), counted.rows, updated, count - updated)

    def _fresh(self, batches: Iterator[pa.RecordBatch], counted: _Counted) -> Iterator[pa.RecordBatch]:
        """Rows of the source that met none, as rows of the table."""
        if self.inserted is None:
            return
        chosen = tuple(column for column in self.hands.columns if column.name in self.inserted)
        nothing = only(self.plan, ())
        for batch in batches:
            join = join_of(self._given(batch), self.on, self.hands.columns)
            for rows in unmatched_rows(self.hands.engine, nothing, join, self.inserted, chosen):
                counted.rows += rows.num_rows
                yield rows

    def _changed(
        self, runs: _Runs, found: dict[DataFileId, tuple[ScanFile | ScanRows, pa.Array]]
    ) -> Iterator[pa.RecordBatch]:
        """Rows of the table that met one of the source, with new values; where they are is noted."""
        for file, batches in runs.by_file():
            rows = pa.Table.from_batches(batches)
            place = self.places[file]
            if self.changed is None:
                positions = pc.unique(rows.column(INDEX)).sort()
                found[file] = (place, positions)
                continue
            join = join_of(self._given(rows), self.on, self.hands.columns)
            # One more column, which is not the table's.
            given = join.rows.append_column(_AT, rows.column(INDEX))
            joined = _ByPosition(given, join.keys, join.names)
            places, values = matched_rows(self.hands.engine, only(self.plan, [place]), joined, self.changed)
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


def _file_of(batch: pa.RecordBatch) -> int | None:
    return batch.column(DATA_FILE)[0].as_py()


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    start = 0
    for run in pc.run_end_encode(batch.column(DATA_FILE)).run_ends.to_pylist() if batch.num_rows else ():
        yield batch.slice(start, run - start)
        start = run


def merge_frame(
    spark: SparkSession,
    writing: Writing,
    frame: DataFrame,
    on: str | Sequence[str],
    when_matched: object,
    when_not_matched: object,
) -> list[Done]:
    """Bring rows of a frame into a table: those with the same keys change, the others are new."""
    columns = writing.target.columns
    # Without rows, and yet all that can be wrong with columns shows.
    join = join_of(given_schema(frame.schema).empty_table(), on, columns)
    check_extra(join, columns, when_matched, when_not_matched)
    changed = matched_values(when_matched, join, columns)
    inserted = unmatched_values(when_not_matched, join, columns)
    matters = when_matched != "ignore"
    if not matters and inserted is None:
        return []
    plan = plan_scan(writing.draft.source(writing.table))
    sent = (*plan.files, *plan.rows) if matters else ()
    merging = _Merging(
        Hands.of(writing),
        only(plan, ()),
        {place.file.id: place for place in sent},
        tuple(frame.columns),
        tuple(key.name for key in join.keys),
        changed,
        inserted,
    )
    met = _met(spark, writing, plan, frame, join, matters, inserted is not None, changed is None)
    return through(met, merging.done)


def _met(
    spark: SparkSession,
    writing: Writing,
    plan: ScanPlan,
    frame: DataFrame,
    join: Join,
    matters: bool,
    inserts: bool,
    deletes: bool,
) -> DataFrame:
    """The one join: rows of the frame, each with the file and position of the row that it met."""
    keys = _Keys(tuple(join.keys), tuple(join.names[key.name] for key in join.keys))
    source = keys.of_frame(frame)
    target = read_places(spark, writing.workbench, plan, keys.columns)
    same = " AND ".join(f"k{at} = {keys.place(at)}" for at in range(len(keys.columns)))
    values = [f"s{at}" for at in range(len(frame.columns))]
    if not matters:
        found = source.join(target, F.expr(same), "left_anti")
        return found.selectExpr(*values, f"CAST(NULL AS BIGINT) AS {DATA_FILE}")
    found = source.join(target, F.expr(same), "left" if inserts else "inner")
    if deletes:
        # Of rows that go, nothing has to be known but where they are.
        values = [f"IF({DATA_FILE} IS NULL, {value}, NULL) AS {value}" for value in values]
    hashed = ", ".join(f"k{at}" for at in range(len(keys.columns)))
    spread = f"IF({DATA_FILE} IS NULL, pmod(xxhash64({hashed}), {_SPREAD}), 0)"
    found = found.selectExpr(*values, DATA_FILE, INDEX, f"{spread} AS spread")
    return found.repartition(DATA_FILE, "spread").sortWithinPartitions(F.col(DATA_FILE).asc_nulls_first())


@dataclass(frozen=True, slots=True)
class _Keys:
    """What is joined on, in a form in which Spark compares it as we do."""

    columns: Columns
    given: tuple[str, ...]
    """What the source calls them."""

    def __post_init__(self) -> None:
        for column in self.columns:
            if column.data_type in (Scalar("interval"), Scalar("geometry")):
                raise InvalidArgument(f'Spark cannot join on "{column.name}": join on other columns')

    def place(self, at: int) -> str:
        """A key of the table, in a frame of its places."""
        column = self.columns[at]
        return f"{'n' if column.type == 'timestamp_ns' else 'c'}{column.id}"

    def of_frame(self, frame: DataFrame) -> DataFrame:
        """A frame with its columns as `s0`, `s1` and so on, and keys `k0`, `k1`."""
        fields = [frame.schema.fields[frame.columns.index(given)] for given in self.given]
        source = frame.toDF(*(f"s{at}" for at in range(len(frame.columns))))
        places = [frame.columns.index(given) for given in self.given]
        if all(map(_is_plain, self.columns, (field.dataType for field in fields))):
            cast = [
                f"CAST(s{place} AS {ddl(shown_type(column.data_type))}) AS k{at}"
                for at, (column, place) in enumerate(zip(self.columns, places, strict=True))
            ]
            return source.selectExpr("*", *cast)
        kinds = [T.StructField(f"k{at}", _key_type(column)) for at, column in enumerate(self.columns)]
        schema = T.StructType([*source.schema.fields, *kinds])
        columns = self.columns

        def fitted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                keys = [_key(batch.column(p), column) for column, p in zip(columns, places, strict=True)]
                yield pa.record_batch([*batch.columns, *keys], schema.names)

        return source.mapInArrow(fitted, schema)


def _is_plain(column: Column, given: T.DataType) -> bool:
    kind = column.data_type
    plain = not isinstance(kind, Scalar) or kind.name in _PLAIN
    return plain and takes(column, given)


def _key_type(column: Column) -> T.DataType:
    return T.LongType() if column.type == "timestamp_ns" else shown_type(column.data_type)


def _key(values: pa.Array, column: Column) -> pa.Array:
    """A key in the type of the table, as Spark shows it; refused if it does not fit."""
    fitted = fit(values, column)
    if column.type == "timestamp_ns":
        return fitted.cast(pa.int64())
    return to_arrow(fitted, column.data_type)
