"""What a schema file makes: tables, keys, indexes and views, read from each database in one form."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import duckdb
import psycopg

from forklake.store.statements import Dialect

DIALECTS: tuple[Dialect, ...] = ("sqlite", "duckdb", "postgresql")

# SQLite has neither uuids nor times: both are text there.
SQLITE_KINDS = {"uuid": "text", "time": "text"}

# Without sequences, numbers come from a table.
ONLY_WITHOUT_SEQUENCES = {"ducklake_counter"}
SEQUENCES = {"ducklake_next_catalog_id", "ducklake_next_file_id", "ducklake_next_snapshot_id"}

FOLDED = re.compile(r'lower\((\w+)::text COLLATE "C"\)\Z')

KINDS = {
    "bigint": "int",
    "varchar": "text",
    "character varying": "text",
    "uuid": "uuid",
    "boolean": "bool",
    "timestamp with time zone": "time",
}


@dataclass(frozen=True)
class Column:
    name: str
    kind: str
    required: bool


@dataclass(frozen=True)
class Index:
    table: str
    columns: tuple[str, ...]
    unique: bool
    predicate: str | None


@dataclass(frozen=True)
class Structure:
    """What a schema file makes, in words that fit every database."""

    tables: dict[str, tuple[Column, ...]]
    keys: dict[str, tuple[str, ...]]
    indexes: dict[str, Index]
    views: dict[str, tuple[str, ...]]
    others: set[str]
    """Anything else: other constraints, defaults, triggers, functions, types."""
    sequences: set[str]


def schema_text(dialect: Dialect) -> str:
    return files("forklake.store").joinpath("sql", f"{dialect}.sql").read_text(encoding="utf-8")


def sqlite_structure(connection: sqlite3.Connection) -> Structure:
    made = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    described = {
        name: connection.execute(f"PRAGMA table_info({name})").fetchall()
        for kind, name, _, _ in made
        if kind in ("table", "view")
    }
    tables = [name for kind, name, _, _ in made if kind == "table"]
    indexes = {
        name: Index(
            table,
            tuple(
                folded(row[2]) if row[4] == "NOCASE" else row[2]
                for row in connection.execute(f"PRAGMA index_xinfo({name})")
                if row[5]
            ),
            text.startswith("CREATE UNIQUE"),
            predicate(text.partition(" WHERE ")[2]),
        )
        for kind, name, table, text in made
        if kind == "index" and text is not None
    }
    foreign = {
        table for table in tables if connection.execute(f"PRAGMA foreign_key_list({table})").fetchall()
    }
    # SQLite keeps keys and unique constraints as indexes without a text of their own.
    unique = {
        table
        for table in tables
        for row in connection.execute(f"PRAGMA index_list({table})")
        if row[3] == "u"
    }
    checks = {name for kind, name, _, text in made if kind == "table" and re.search(r"\bCHECK\b", text, re.I)}
    defaults = {table for table in tables for row in described[table] if row[4] is not None}
    return Structure(
        tables={
            table: tuple(Column(row[1], KINDS[row[2].lower()], bool(row[3])) for row in described[table])
            for table in tables
        },
        keys={
            table: tuple(row[1] for row in sorted(described[table], key=lambda row: row[5]) if row[5])
            for table in tables
        },
        indexes=indexes,
        views={name: tuple(row[1] for row in described[name]) for kind, name, _, _ in made if kind == "view"},
        others=foreign | unique | checks | defaults | {name for kind, name, *_ in made if kind == "trigger"},
        sequences=set(),
    )


def duckdb_structure(connection: duckdb.DuckDBPyConnection) -> Structure:
    def rows(text: str) -> list[tuple[Any, ...]]:
        return connection.execute(text).fetchall()

    views = {name for (name,) in rows("SELECT view_name FROM duckdb_views() WHERE NOT internal")}
    described: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows(
        "SELECT table_name, column_name, data_type, is_nullable, column_default FROM duckdb_columns() "
        "WHERE schema_name = 'ducklake' ORDER BY table_name, column_index"
    ):
        described.setdefault(row[0], []).append(row)
    keys = {name: () for name in described if name not in views}
    constraints = rows(
        "SELECT table_name, constraint_type, constraint_column_names FROM duckdb_constraints()"
    )
    keys |= {table: tuple(columns) for table, kind, columns in constraints if kind == "PRIMARY KEY"}
    indexes = {
        name: Index(table, tuple(re.findall(r"\w+", columns)), unique, None)
        for name, table, unique, columns in rows(
            "SELECT index_name, table_name, is_unique, expressions FROM duckdb_indexes()"
        )
    }
    return Structure(
        tables={
            name: tuple(Column(row[1], KINDS[row[2].lower()], not row[3]) for row in columns)
            for name, columns in described.items()
            if name not in views
        },
        keys=keys,
        indexes=indexes,
        views={
            name: tuple(row[1] for row in columns) for name, columns in described.items() if name in views
        },
        others={table for table, kind, _ in constraints if kind not in ("PRIMARY KEY", "NOT NULL")}
        | {name for name, columns in described.items() for row in columns if row[4] is not None},
        sequences={name for (name,) in rows("SELECT sequence_name FROM duckdb_sequences()")},
    )


def postgres_structure(connection: psycopg.Connection[Any]) -> Structure:
    def rows(text: str) -> list[tuple[Any, ...]]:
        return connection.execute(text).fetchall()

    relations = dict(
        rows("SELECT relname, relkind::text FROM pg_class WHERE relnamespace = 'structures'::regnamespace")
    )
    described: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows(
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef "
        "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = 'structures'::regnamespace AND c.relkind IN ('r', 'v') AND a.attnum > 0 "
        "ORDER BY c.relname, a.attnum"
    ):
        described.setdefault(row[0], []).append(row)
    keys = {name: () for name, kind in relations.items() if kind == "r"}
    indexes = {}
    for name, table, unique, primary, columns, condition in rows(
        "SELECT c.relname, t.relname, i.indisunique, i.indisprimary, "
        "ARRAY(SELECT trim(pg_get_indexdef(i.indexrelid, k.place, true), '\"') "
        "FROM generate_series(1, i.indnkeyatts) k(place) ORDER BY k.place), "
        "pg_get_expr(i.indpred, i.indrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "JOIN pg_class t ON t.oid = i.indrelid WHERE c.relnamespace = 'structures'::regnamespace"
    ):
        if primary:
            keys[table] = tuple(columns)
        else:
            named = tuple(FOLDED.sub(lambda match: folded(match[1]), column) for column in columns)
            indexes[name] = Index(table, named, unique, predicate(condition or ""))
    return Structure(
        tables={
            name: tuple(Column(row[1], KINDS[row[2]], row[3]) for row in columns)
            for name, columns in described.items()
            if relations[name] == "r"
        },
        keys=keys,
        indexes=indexes,
        views={
            name: tuple(row[1] for row in columns)
            for name, columns in described.items()
            if relations[name] == "v"
        },
        others={
            table
            for table, kind in rows(
                "SELECT conrelid::regclass::text, contype::text FROM pg_constraint "
                "WHERE connamespace = 'structures'::regnamespace"
            )
            if kind not in ("p", "n")
        }
        | {name for name, columns in described.items() for row in columns if row[4]}
        | {
            name
            for (name,) in rows("SELECT proname FROM pg_proc WHERE pronamespace = 'structures'::regnamespace")
        }
        | {name for name, kind in relations.items() if kind not in "rviS"},
        sequences={name for name, kind in relations.items() if kind == "S"},
    )


def folded(column: str) -> str:
    """A column of an index in which names are alike that differ only in case."""
    return f"folded {column}"


def predicate(text: str) -> str | None:
    """A condition without what PostgreSQL adds when it stores one."""
    return re.sub(r"::\w+|[()]", "", text).strip() or None


def common(structure: Structure) -> dict[str, tuple[Column, ...]]:
    return {name: cols for name, cols in structure.tables.items() if name not in ONLY_WITHOUT_SEQUENCES}
