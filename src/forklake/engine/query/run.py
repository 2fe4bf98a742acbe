"""Running a query in a workbench: its rows, as they are asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from forklake.data.storage.storage import Storage
from forklake.engine.errors import batches_of
from forklake.engine.local import BATCH_ROWS
from forklake.engine.query.errors import refused
from forklake.engine.query.workbench import Workbench
from forklake.errors import InvalidSql, StatementLimit
from forklake.lazy.arrow import pa
from forklake.lazy.duckdb import duckdb
from forklake.scan.scan_plan import ScanPlan

Parameters = Sequence[Any] | Mapping[str, Any] | None
_MANY = 1_000_000
"""Rows of files from which on a query is worth waiting until it is known how its own are wanted."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """For how long a statement may run, all of its parts together, or each by itself if it has no end."""

    seconds: float
    until: float | None = None
    """When it is over, by the monotonic clock."""

    @property
    def left(self) -> float:
        """The seconds from now on."""
        return self.seconds if self.until is None else self.until - time.monotonic()

    def over(self) -> StatementLimit:
        """What to say when it is over."""
        return StatementLimit(f"the statement was ended after {self.seconds:g} seconds, its limit")


class Rows:
    """The rows of a query that was begun. It has the workbench for itself until it is closed."""

    def __init__(
        self,
        workbench: Workbench,
        storage: Storage,
        plans: Sequence[ScanPlan],
        give_back: Callable[[], None],
        *,
        most_rows: int | None = None,
        limit: TimeLimit | None = None,
    ) -> None:
        """Use `run`."""
        self._workbench = workbench
        self._storage = storage
        self._plans = plans
        self._give_back: Callable[[], None] | None = give_back
        self._most_rows = most_rows
        self._limit = limit
        self.names: tuple[str, ...] = ()
        self.types: tuple[str, ...] = ()
        self._relation: Any = None
        """A query that was bound, and that is computed when its rows are asked for."""
        self._reader: Any = None
        self._schema: pa.Schema | None = None

    def begin(self, sql: str, params: Parameters) -> None:
        """Bind the query and begin to compute it; what is wrong with it is said now."""
        with self._watched():
            connection = self._workbench.connection
            if params:
                connection.execute(sql, params)
                description = connection.description or []
                _check_types(description)
                self._reader = connection.to_arrow_reader(BATCH_ROWS)
            else:
                description = self._begin_relation(connection, sql)
            self.names = tuple(str(column[0]) for column in description)
            self.types = tuple(str(column[1]) for column in description)
            if self._relation is None:
                self._schema = _plain_schema(self._reader.schema)

    def _begin_relation(self, connection: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
        """Without parameters: DuckDB 2.0 holds a statement's own result in memory as a whole first."""
        try:
            relation: Any = connection.sql(sql)
            if relation is None:
                self._reader = pa.table({}).to_reader()
                return []
            _check_types(relation.description)
            if self._most_rows is None and sum(map(_rows_read, self._plans)) >= _MANY:
                self._relation = relation
            else:
                self._reader = relation.to_arrow_reader(BATCH_ROWS)
        except duckdb.Error:
            # What fails here leaves its transaction behind, and the next would be refused for that.
            connection.execute("SELECT 1")
            raise
        return list(relation.description)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        if self._relation is not None:
            with self._watched():
                self._reader, self._relation = self._relation.to_arrow_reader(BATCH_ROWS), None
                self._schema = _plain_schema(self._reader.schema)
        if self._schema is None:
            raise AssertionError("a query is begun before its schema is asked for")
        return self._schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, once."""
        schema, count = self.schema, 0
        reader = self._reader
        if reader is None:
            raise AssertionError("a query is begun before its rows are asked for")
        try:
            with self._watched():
                for batch in batches_of(reader):
                    count += batch.num_rows
                    if self._most_rows is not None and count > self._most_rows:
                        raise StatementLimit(
                            f"the statement returns more than {self._most_rows:,} rows, which is its limit: "
                            "add a LIMIT, or ask for fewer"
                        )
                    yield _plain(batch, schema)
        finally:
            self.close()

    def all(self) -> pa.Table:
        """All rows."""
        if self._relation is None:
            return pa.Table.from_batches(list(self.batches()), self.schema)
        try:
            with self._watched():
                # As a stream, DuckDB hands them out one after the other.
                found = self._relation.to_arrow_table(BATCH_ROWS)
            schema = _plain_schema(found.schema)
            return pa.Table.from_batches([_plain(batch, schema) for batch in found.to_batches()], schema)
        finally:
            self.close()

    def close(self) -> None:
        """Give the workbench back."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            self._reader = self._relation = None
            give_back()

    def _watched(self) -> AbstractContextManager[None]:
        return watched(self._workbench.connection, self._storage, self._plans, self._limit)


@contextmanager
def watched(
    connection: duckdb.DuckDBPyConnection,
    storage: Storage,
    plans: Sequence[ScanPlan],
    limit: TimeLimit | None,
) -> Generator[None]:
    """End what runs in the block on Ctrl-C, and after some time; the process goes on."""
    try:
        with refused(storage, plans), _time_limit(connection, limit):
            yield
    except KeyboardInterrupt:
        # DuckDB has only stopped waiting: the query goes on, and what comes next would wait for it.
        connection.interrupt()
        raise


@contextmanager
def _time_limit(connection: duckdb.DuckDBPyConnection, limit: TimeLimit | None) -> Generator[None]:
    if limit is None:
        yield
        return
    left = limit.left
    if left <= 0:
        raise limit.over()
    over = threading.Event()

    def end() -> None:
        over.set()
        connection.interrupt()

    timer = threading.Timer(left, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if over.is_set() and not isinstance(error, StatementLimit):
            raise limit.over() from error
        raise
    finally:
        timer.cancel()
    if over.is_set():
        # What was interrupted may answer all the same, with less than it should.
        raise limit.over()


def _check_types(description: Sequence[Any]) -> None:
    """Refuse columns that DuckDB does not hand out as Arrow."""
    for name, type, *_ in description:
        if "VARIANT" in str(type):
            raise InvalidSql(
                f'column "{name}" is {type}, which Arrow does not have: CAST it to JSON or VARCHAR'
            )


def _rows_read(plan: ScanPlan) -> int:
    return sum(place.file.record_count for place in plan.files)


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain_type(field.type), field.nullable, field.metadata)


def _plain_type(type: pa.DataType) -> pa.DataType:
    """What Arrow has for 128-bit numbers, which DuckDB hands out as bytes."""
    is_opaque = isinstance(type, pa.OpaqueType) and type.vendor_name == "DuckDB"
    return pa.decimal128(38, 0) if is_opaque and type.type_name in ("hugeint", "uhugeint") else type


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema == schema:
        return batch
    arrays = [
        array if array.type == field.type else array.storage.view(field.type)
        for array, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)
