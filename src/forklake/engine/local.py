"""The local engine: a DuckDB in memory that reads what plans name. One for each lake, used by any thread."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from forklake.data.storage.storage import Storage
from forklake.engine.errors import batches_of, translated
from forklake.engine.remote_files import attach_storage
from forklake.engine.sql_text import computed
from forklake.engine.verify_files import Verifier
from forklake.lazy.arrow import pa
from forklake.lazy.duckdb import duckdb
from forklake.model.types.arrow import one_array
from forklake.model.types.data_types import DataType
from forklake.scan.scan_plan import ScanPlan

BATCH_ROWS = 122_880
"""How many rows a batch of a stream has at most."""

# Timestamps are shown in UTC wherever the process runs, and what Arrow has a type for keeps it.
_SETTINGS = ("SET GLOBAL TimeZone = 'UTC'", "SET GLOBAL arrow_lossless_conversion = true")


class Engine:
    """Runs queries over the files of a lake."""

    def __init__(self, storage: Storage, *, threads: int | None = None) -> None:
        """Nothing is opened yet. It uses every core, unless it is told how many threads it has."""
        self.storage = storage
        self._threads = threads
        self._verifier = Verifier(storage)
        self._databases: dict[bool, duckdb.DuckDBPyConnection] = {}
        """By whether they are for queries that read few rows."""
        self._opening = threading.Lock()

    @contextmanager
    def connection(
        self, tables: Mapping[str, pa.Table], plan: ScanPlan | None
    ) -> Generator[duckdb.DuckDBPyConnection]:
        """A connection of one's own that knows some Arrow tables; errors become ours and name the file."""
        if plan is not None:
            self.verify(plan)
        cursor = self._open(few=plan is not None and plan.reads_few).cursor()
        try:
            with translated(self.storage, plan):
                for name, table in tables.items():
                    cursor.register(name, table)
                yield cursor
        finally:
            cursor.close()

    def verify(self, *plans: ScanPlan) -> None:
        """Raise if files are not those that were committed; queries with a plan see to it themselves."""
        for plan in plans:
            self._verifier.check(plan)

    def table(self, sql: str, tables: Mapping[str, pa.Table], plan: ScanPlan | None = None) -> pa.Table:
        """The whole result."""
        with self.connection(tables, plan) as cursor:
            return cursor.sql(sql).to_arrow_table(BATCH_ROWS)

    def stream(
        self,
        sql: str,
        tables: Mapping[str, pa.Table],
        plan: ScanPlan | None = None,
        macros: Sequence[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """The result batch by batch, computed as it is read. `macros` are statements that make them."""
        with self.connection(tables, plan) as cursor:
            for macro in macros:
                cursor.execute(macro)
            yield from batches_of(cursor.sql(sql).to_arrow_reader(BATCH_ROWS))

    def evaluate(self, expression: str, type: DataType, rows: int) -> pa.Array:
        """An expression that needs no row, such as `now()` or `uuid()`, for a number of rows."""
        sql = f"SELECT {computed(expression, type)} AS v FROM range({int(rows)})"
        return one_array(self.table(sql, {}).column("v"))

    def close(self) -> None:
        """Let go of everything."""
        with self._opening:
            databases, self._databases = self._databases, {}
        for database in databases.values():
            database.close()

    def _open(self, *, few: bool = False) -> duckdb.DuckDBPyConnection:
        with self._opening:
            if few not in self._databases:
                # What does not fit into memory goes where temporary files belong, not where we were started.
                spill = Path(tempfile.gettempdir()) / f"forklake-{os.getpid()}-{id(self):x}.tmp"
                # To hand a few rows from thread to thread takes longer than all that is done with them.
                number = 1 if few else self._threads
                threads = {} if number is None else {"threads": number}
                database = duckdb.connect(":memory:", config={"temp_directory": str(spill), **threads})
                for setting in _SETTINGS:
                    database.execute(setting)
                attach_storage(database, self.storage)
                self._databases[few] = database
            return self._databases[few]
