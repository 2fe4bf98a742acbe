"""Who competes: forklake, plain INSERTs of the same rows, and the stock DuckLake extension.

Every commit changes one table, by turns: CREATE TABLE with three columns, then ADD COLUMN on that table.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

import forklake
from benchmarks.harness import Change, Writer

COLUMNS = "id BIGINT NOT NULL, name VARCHAR, seen TIMESTAMPTZ"
ADDED = ("note", "VARCHAR")
_EXTENSIONS = {"duckdb_extension_ducklake": "ducklake", "duckdb_extension_postgres_scanner": "postgres_scanner"}


class Alternating:
    """CREATE TABLE, ADD COLUMN, CREATE TABLE, …; what failed is tried again."""

    def __init__(self, create: Callable[[str], None], alter: Callable[[str], None]) -> None:
        """Say how each is done."""
        self._create = create
        self._alter = alter
        self._names = (f"measured_{number:06}" for number in count())
        self._open: str | None = None
        self._next = next(self._names)

    def __call__(self) -> None:
        """Make one commit."""
        if self._open is None:
            self._create(self._next)
            self._open, self._next = self._next, next(self._names)
        else:
            self._alter(self._open)
            self._open = None


# ---- forklake ---


def lake_url(server: str, schema: str) -> str:
    """The address of a lake in a schema of its own."""
    return f"{server}?metadata_schema={schema}"


@dataclass(frozen=True, slots=True)
class Forklake:
    """A writer in a catalog of its own."""

    url: str
    catalog: str

    @contextmanager
    def open(self) -> Iterator[Change]:
        """Through the public interface, like any user."""
        with forklake.connect(self.url) as lake:
            yield forklake_changes(lake.catalog(self.catalog))


def forklake_changes(catalog: forklake.Catalog) -> Change:
    """Commits of ours in one catalog."""
    tables: dict[str, forklake.Table] = {}

    def create(name: str) -> None:
        tables[name] = catalog.create_table(name, COLUMNS)

    def alter(name: str) -> None:
        tables[name].add_column(*ADDED)
        del tables[name]

    return Alternating(create, alter)


def make_forklake(server: str, schema: str, folder: Path, writers: int) -> list[Writer]:
    """A new lake with a catalog for each writer."""
    url = lake_url(server, schema)
    with forklake.connect(url, data_path=folder, create=True) as lake:
        for place in range(writers):
            lake.create_catalog(f"writer_{place}")
    return [Forklake(url, f"writer_{place}") for place in range(writers)]


# ---- The physical limit ---


@dataclass(frozen=True, slots=True)
class Written:
    """Rows that one commit put into one table."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def statement(self) -> sql.Composed:
        """One INSERT of them all."""
        row = sql.SQL("({})").format(sql.SQL(", ").join([sql.Placeholder()] * len(self.columns)))
        return sql.SQL("INSERT INTO {} ({}) VALUES {}").format(
            sql.Identifier(self.table),
            sql.SQL(", ").join(map(sql.Identifier, self.columns)),
            sql.SQL(", ").join([row] * len(self.rows)),
        )

    def parameters(self, number: int, catalog: int, name: str, moment: datetime) -> list[Any]:
        """The same values, but for numbers and names that must be new."""
        fresh: dict[str, Any] = {
            "snapshot_id": number,
            "begin_snapshot": number,
            "table_id": number,
            # The head of a catalog is one row that moves; here it is a row of its own each time.
            "catalog_id": number if self.table == "ducklake_catalog_head" else catalog,
            "table_name": name,
            "table_uuid": uuid4(),
            "snapshot_time": moment,
        }
        return [
            fresh.get(column, value) for row in self.rows for column, value in zip(self.columns, row, strict=True)
        ]


Commit = tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Inserts:
    """A writer of plain INSERT transactions: no reads, no locks, no logic."""

    server: str
    schema: str
    place: int
    pipeline: bool
    commits: tuple[Commit, Commit]

    @contextmanager
    def open(self) -> Iterator[Change]:
        """One connection with prepared statements. In pipeline mode a commit is one trip to the server."""
        options = f"-c search_path={self.schema}"
        with psycopg.connect(self.server, options=options) as connection:
            kinds = [[(part, part.statement().as_string(connection)) for part in commit] for commit in self.commits]
            turns = count()

            def change() -> None:
                turn = next(turns)
                # Numbers rise over all writers, like those of a sequence.
                number = (turn + 1) * 64 + self.place
                moment = datetime.now(UTC)
                for part, text in kinds[turn % 2]:
                    values = part.parameters(number, self.place, f"measured_{number:06}", moment)
                    connection.execute(text, values, prepare=True)  # pyright: ignore
                connection.commit()

            if self.pipeline:
                with connection.pipeline():
                    yield change
            else:
                yield change


def make_inserts(server: str, schema: str, folder: Path, writers: int, *, pipeline: bool) -> list[Writer]:
    """Tables with the columns, keys and indexes of a lake's, and the rows that two commits of ours put into them."""
    model = f"{schema}_model"
    commits = _observed(server, model, folder)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        for table in sorted({part.table for commit in commits for part in commit}):
            connection.execute(
                sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(
                    sql.Identifier(schema, table), sql.Identifier(model, table)
                )
            )
        # LIKE takes everything but this.
        heads = sql.Identifier(schema, "ducklake_catalog_head")
        connection.execute(sql.SQL("ALTER TABLE {} SET (fillfactor = 50)").format(heads))
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(model)))
    return [Inserts(server, schema, place, pipeline, commits) for place in range(writers)]


def _observed(server: str, schema: str, folder: Path) -> tuple[Commit, Commit]:
    """Commit twice and read back what each database transaction wrote, whichever tables that were."""
    (writer,) = make_forklake(server, schema, folder, 1)
    seen: list[Commit] = []
    with writer.open() as change, psycopg.connect(server, autocommit=True) as connection:
        snapshots = sql.Identifier(schema, "ducklake_snapshot")
        for _ in range(2):
            change()
            newest = sql.SQL("SELECT xmin::text FROM {} ORDER BY snapshot_id DESC LIMIT 1").format(snapshots)
            (transaction,) = connection.execute(newest).fetchone() or ("",)
            seen.append(tuple(_written_by(connection, schema, transaction)))
    return seen[0], seen[1]


def _written_by(connection: psycopg.Connection[Any], schema: str, transaction: str) -> Iterator[Written]:
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1", [schema])
    for (table,) in tables.fetchall():
        query = sql.SQL("SELECT * FROM {} WHERE xmin::text = %s").format(sql.Identifier(schema, table))
        found = connection.execute(query, [transaction])
        rows = tuple(found.fetchall())
        if rows:
            yield Written(table, tuple(column.name for column in found.description or ()), rows)


# ---- The stock DuckLake extension ---


@dataclass(frozen=True, slots=True)
class DuckLake:
    """A writer of DuckDB's own extension, in a schema of its own."""

    server: str
    metadata_schema: str
    folder: str
    schema: str
    settings: tuple[str, ...] = ()

    @contextmanager
    def open(self) -> Iterator[Change]:
        """A DuckDB of its own, attached to the lake."""
        with attached(self.server, self.metadata_schema, self.folder) as connection:
            for setting in self.settings:
                connection.execute(setting)
            connection.execute(f"USE lake.{self.schema}")

            def create(name: str) -> None:
                connection.execute(f"CREATE TABLE {name} ({COLUMNS})")

            def alter(name: str) -> None:
                connection.execute(f"ALTER TABLE {name} ADD COLUMN {' '.join(ADDED)}")

            yield Alternating(create, alter)


@contextmanager
def attached(server: str, metadata_schema: str, folder: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB with a DuckLake attached as `lake`, loaded without network."""
    parts = conninfo_to_dict(server)
    address = " ".join(f"{key}={parts[key]}" for key in ("host", "port", "user", "dbname"))
    # Without inlining, it does not create a PostgreSQL table for each of ours: that is faster here.
    options = f"DATA_PATH '{folder}', METADATA_SCHEMA '{metadata_schema}', DATA_INLINING_ROW_LIMIT 0"
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        for package, name in _EXTENSIONS.items():
            file = importlib.resources.files(package) / f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"
            connection.execute(f"LOAD '{file}'")
        connection.execute(f"ATTACH 'ducklake:postgres:{address}' AS lake ({options})")
        yield connection


def make_ducklake(
    server: str, schema: str, folder: Path, writers: int, *, shared: bool, settings: tuple[str, ...] = ()
) -> list[Writer]:
    """One DuckLake with a schema for each writer, or a DuckLake for each."""
    places = [f"{schema}_{0 if shared else place}" for place in range(writers)]
    with psycopg.connect(server, autocommit=True) as connection:
        for place in dict.fromkeys(places):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(place)))
    made: list[Writer] = []
    for place in dict.fromkeys(places):
        data = str(folder / place)
        names = [f"writer_{number}" for number, home in enumerate(places) if home == place]
        with attached(server, place, data) as connection:
            for name in names:
                connection.execute(f"CREATE SCHEMA lake.{name}")
        made += [DuckLake(server, place, data, name, settings) for name in names]
    return made
