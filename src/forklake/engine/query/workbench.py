"""DuckDB databases in memory that run SQL of users: each statement has one for itself.

They reach the files of the lake and the folders that the caller allowed, and nothing else outside.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from forklake.data.storage.storage import Storage
from forklake.engine.empty_file import empty_file
from forklake.engine.remote_files import attach_storage
from forklake.engine.sql_text import text
from forklake.lazy.arrow import pa
from forklake.lazy.duckdb import duckdb
from forklake.model.names import quoted

_MOST_IDLE = 4
_HAS_TABLE = "SELECT count(*) FROM duckdb_tables() WHERE temporary AND table_name = $1"
_VALUE = "forklake value"
_CONFIG = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


Described = list[tuple[str, str]]
"""Columns of a query: their names, and DuckDB's types."""


class Variable(NamedTuple):
    """The value of a variable."""

    rows: pa.Table
    """One row, with the column `value`."""
    type: str
    """DuckDB's name of it."""


class Workbench:
    """A DuckDB of its own, in which views stand for tables of a lake."""

    def __init__(
        self,
        storage: Storage,
        folders: frozenset[str],
        owner: object,
        threads: int | None = None,
        memory: int | None = None,
    ) -> None:
        """Open it. Afterwards nothing but these folders can be reached, and no statement can change that."""
        self.folders = folders
        self.owner = owner
        """The catalog whose statements it runs: it holds views of no other."""
        self.token = f"f{secrets.token_hex(4)}"
        """What names of ours begin with, so that no user's name is one of them."""
        self.memory = memory
        """How many bytes DuckDB may take; None for what it takes by itself."""
        self._storage = storage
        self._threads = threads
        self._variables: dict[str, Variable] = {}
        self._more: frozenset[str] = frozenset()
        self._files: frozenset[str] = frozenset()
        self._registered: dict[str, pa.Table] = {}
        self._temporary: list[str] = []
        self._lists: list[str] = []
        self._open()

    def _open(self) -> None:
        spill = Path(tempfile.gettempdir()) / f"forklake-{os.getpid()}-sql-{id(self):x}.tmp"
        config: Any = _CONFIG | {"temp_directory": str(spill)}
        config |= {} if self._threads is None else {"threads": str(self._threads)}
        config |= {} if self.memory is None else {"memory_limit": f"{self.memory}B"}
        self.connection = duckdb.connect(":memory:", config=config)
        run = self.connection.execute
        run("SET GLOBAL TimeZone = 'UTC'; SET GLOBAL arrow_lossless_conversion = true")
        attach_storage(self.connection, self._storage)
        folders = ", ".join(text(folder) for folder in sorted(self.folders | self._more))
        files = ", ".join(text(file) for file in sorted(self._files))
        run(f"SET allowed_directories = [{folders}]; SET allowed_paths = [{files}]")
        run("SET enable_external_access = false; SET lock_configuration = true")
        self._macros: list[str] = []
        self._attached: set[str] = set()
        self._schemas: set[tuple[str, str]] = set()
        self._used: tuple[str, str] | None = None
        self._views: dict[str, tuple[object, ...]] = {}
        """What views of tables show, by their places in lower case: for DuckDB these are the same."""

    def reaches(self, path: str) -> bool:
        """Whether a file can be read."""
        return path in self._files or any(map(path.startswith, self.folders | self._more))

    def widen(self, folders: Iterable[str], files: Iterable[str]) -> None:
        """Let it reach more, which takes a new DuckDB: views are gone, and rows that were kept are not."""
        kept: dict[str, Any] = {
            name: self.connection.execute(f"FROM temp.main.{quoted(name)}").to_arrow_table()
            for name in self._temporary
            if self.connection.execute(_HAS_TABLE, [name]).fetchone() == (1,)
        }
        self.connection.close()
        self._more, self._files = self._more | {*folders}, self._files | {*files}
        self._open()
        for name, rows in self._registered.items():
            self.connection.register(name, rows)
        for name, rows in kept.items():
            self.connection.register(f"{name} kept", rows)
            run = self.connection.execute
            run(f"CREATE TEMP TABLE {quoted(name)} AS FROM {quoted(f'{name} kept')}")
            self.connection.unregister(f"{name} kept")
        self.set_variables(self._variables)

    def use(self, catalog: str, schema: str) -> None:
        """Let names without a schema be those of one."""
        if self._used != (catalog, schema):
            self.add_schema(catalog, schema)
            self.connection.execute(f"USE {quoted(catalog)}.{quoted(schema)}")
            self._used = (catalog, schema)

    def add_schema(self, catalog: str, schema: str) -> None:
        """A place for views."""
        if catalog not in self._attached:
            self.connection.execute(f"ATTACH ':memory:' AS {quoted(catalog)}")
            self._attached.add(catalog)
        if schema != "main" and (catalog, schema) not in self._schemas:
            self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(catalog)}.{quoted(schema)}")
            self._schemas.add((catalog, schema))

    def add_view(self, place: str, query: str, *shape: object) -> None:
        """Let a view show a query. One that is there already is kept, if its columns have the same shape."""
        if self._views.get(place.lower()) != (query, *shape):
            self.replace_view(place, query)
            self._views[place.lower()] = (query, *shape)

    def replace_view(self, place: str, query: str, columns: str = "") -> None:
        """Let a view show a query, in columns of these names."""
        self._views.pop(place.lower(), None)
        self.connection.execute(f"CREATE OR REPLACE VIEW {place}{columns} AS {query}")

    def register(self, tables: Mapping[str, pa.Table]) -> None:
        """Arrow tables, by names that views and queries use."""
        for name, table in tables.items():
            self.connection.register(name, table)
            self._registered[name] = table

    def set_variables(self, variables: Mapping[str, Variable]) -> None:
        """Let this statement read variables."""
        for name, (rows, type) in variables.items():
            self.connection.register(_VALUE, rows)
            # Arrow has no 128-bit numbers.
            value = "value" if type == "NULL" else f"CAST(value AS {type})"
            query = f"SELECT {value} FROM {quoted(_VALUE)}"
            self.connection.execute(f"SET VARIABLE {quoted(name)} = ({query})")
            self.connection.unregister(_VALUE)
        self._variables = dict(variables)

    def keep_temporary(self, name: str) -> None:
        """Remember that a statement makes a temporary table."""
        self._temporary.append(name)

    def add_list(self, name: str, values: Sequence[str]) -> None:
        """A list of strings with a name, for this statement, as PIVOT takes it."""
        listed = ", ".join(map(text, values))
        self.connection.execute(f"CREATE OR REPLACE TEMP TYPE {quoted(name)} AS ENUM ({listed})")
        self._lists.append(name)

    def add_macro(self, place: str, statement: str, *, is_table: bool) -> None:
        """Let this statement call a macro. Others may not: nobody looks up the names of functions."""
        self.connection.execute(statement)
        self._macros.append(f"DROP MACRO {'TABLE ' if is_table else ''}IF EXISTS {place}")

    def execute(self, sql: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> None:
        """Run a statement; its result is that of the connection."""
        self.connection.execute(sql, params) if params else self.connection.execute(sql)

    def described(self, sql: str, params: Sequence[Any] | Mapping[str, Any] | None) -> Described:
        """The names of the columns of a query and DuckDB's types of them."""
        if params:
            description = self.connection.execute(sql, params).description
        else:
            relation: Any = self.connection.sql(sql)
            description = relation.description
        return [(str(column[0]), str(column[1])) for column in description or []]

    def release(self) -> None:
        """Let go of the rows that the last statement needed. Views stay, and nobody names them by chance."""
        for name in self._temporary:
            self.connection.execute(f"DROP TABLE IF EXISTS temp.main.{quoted(name)}")
        for name in self._lists:
            self.connection.execute(f"DROP TYPE IF EXISTS temp.main.{quoted(name)}")
        for drop in self._macros:
            self.connection.execute(drop)
        self._macros.clear()
        for name in self._registered:
            self.connection.unregister(name)
        for name in self._variables:
            self.connection.execute(f"RESET VARIABLE {quoted(name)}")
        self._variables.clear()
        self._lists.clear()
        self._temporary.clear()
        self._registered.clear()

    def close(self) -> None:
        """Let go of it."""
        self.connection.close()


class Workbenches:
    """Those of a lake: idle ones are kept for the next statement."""

    def __init__(self, storage: Storage, threads: int | None = None) -> None:
        """Nothing is opened yet."""
        self._storage = storage
        self._threads = threads
        self._idle: list[Workbench] = []
        self._is_closed = False
        self._lock = threading.Lock()

    def take(self, folders: frozenset[str], owner: object, memory: int | None = None) -> Workbench:
        """One for statements of a catalog, which reaches the files of the lake and these folders, no more."""
        wanted = folders | {_folder(self._storage.data_path), f"{Path(empty_file()).parent}/"}
        with self._lock:
            for at, workbench in enumerate(self._idle):
                if (workbench.folders, workbench.owner, workbench.memory) == (wanted, owner, memory):
                    return self._idle.pop(at)
        return Workbench(self._storage, wanted, owner, self._threads, memory)

    def give_back(self, workbench: Workbench) -> None:
        """When a statement is done with it. The one that was not used for longest makes room."""
        try:
            workbench.release()
        except duckdb.Error:
            # An interrupted statement may leave it in a state that nobody needs to understand.
            workbench.close()
            return
        with self._lock:
            self._idle.insert(0, workbench)
            gone = self._idle.pop() if self._is_closed or len(self._idle) > _MOST_IDLE else None
        if gone is not None:
            gone.close()

    @contextmanager
    def one(self, folders: frozenset[str], owner: object, memory: int | None = None) -> Generator[Workbench]:
        """One for the time of a block."""
        workbench = self.take(folders, owner, memory)
        try:
            yield workbench
        finally:
            self.give_back(workbench)

    def close(self) -> None:
        """Let go of all that are idle."""
        with self._lock:
            idle, self._idle, self._is_closed = self._idle, [], True
        for workbench in idle:
            workbench.close()


def _folder(path: str) -> str:
    return path if path.endswith("/") else path + "/"
