"""Rows belong to the store: nobody else names a statement, and all SQL that is built is looked at."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest
import sqlglot
from psycopg import pq
from sqlglot import exp

import forklake
from forklake.store import row_sets
from forklake.store.built_statements import (
    ADOPTED,
    COPIED,
    RETURNED,
    Dialect,
    end_text,
    insert_text,
    insert_values_text,
    update_text,
)
from forklake.store.duckdb import filled
from forklake.store.libpq import PreparedQuery
from forklake.store.row_sets import ENDED, INSERTED, UPDATED, RowSet
from forklake.store.statements import schema_script, statements
from forklake.store.tables import TABLES

DIALECTS: tuple[Dialect, ...] = ("sqlite", "duckdb", "postgresql")
SOURCE = Path(forklake.__file__).parent
# What the names of statements, tables and columns are for.
INSIDE = {f"forklake.store.{name}" for name in ("row_sets", "built_statements", "statements", "tables")}
# A Database or a Session runs statements by these; cursors of the engine have the last one too.
RUNNERS = {"rows", "ask", "execute"}
BESIDE = {"engine", "sql", "dbapi", "spark", "sqlalchemy", "cli"}
"""Where statements of users are run, on DuckDB or as SQL of a catalog: never on the metadata."""


def modules(*, of_store: bool) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        if (place.parts[0] == "store") is of_store:
            yield place, ast.parse(path.read_text(encoding="utf-8"))


# ---- Nobody else ----------------------------------------------------------------------------------------


def named_outside(place: Path, tree: ast.Module) -> Iterator[str]:
    """Where a module outside of the store names a statement, a table, or what these are made of."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        where = f"{place}:{getattr(node, 'lineno', 0)}"
        match node:
            case ast.Call(func=ast.Attribute(attr=runner), args=[first, *_]) if runner in RUNNERS:
                known = isinstance(first, ast.Constant) and first.value in statements("postgresql")
                if known or runner != "execute" or place.parts[0] not in BESIDE:
                    yield f"{where} runs {ast.unparse(first)}"
            case ast.Constant(value=str() as text) if id(node) not in docs:
                if re.match(r"(ducklake|visible)_\w+$", text):
                    yield f"{where} names {text}"
            case ast.ImportFrom(module=str() as module) if module in INSIDE:
                yield f"{where} imports {module}"
            case ast.ImportFrom(module="forklake.store", names=names):
                yield from (
                    f"{where} imports {name.name}"
                    for name in names
                    if f"forklake.store.{name.name}" in INSIDE
                )
            case _:
                pass


def test_only_the_store_names_statements_and_tables() -> None:
    found = [said for place, tree in modules(of_store=False) for said in named_outside(place, tree)]
    assert not found, (
        "statements, tables and columns are named in forklake/store only: write a function there that "
        f"returns values, and call that from {'; '.join(found)}"
    )


@pytest.mark.parametrize(
    "text",
    [
        'database.rows("head", catalog=1)',
        'session.execute(f"copy_{table}", catalog=1)',
        "draft.state.database.ask(statement, catalog=1)",
        'SETS = ("ducklake_table", ("table_id",))',
        "from forklake.store.row_sets import RowSet",
        "from forklake.store import statements",
    ],
)
def test_a_module_that_names_a_statement_or_a_table_is_found(text: str) -> None:
    assert list(named_outside(Path("commit/some.py"), ast.parse(text)))


def test_the_engine_runs_statements_of_its_own_only() -> None:
    place = Path("engine/some.py")
    assert not list(named_outside(place, ast.parse("cursor.execute(sql)")))
    assert list(named_outside(place, ast.parse('session.execute("move_head", catalog=1)')))


# ---- Everything that is built is declared ---------------------------------------------------------------


def test_every_set_of_rows_is_declared_where_it_can_be_looked_at() -> None:
    declared = {*INSERTED, *UPDATED, *ENDED}
    named = {value for value in vars(row_sets).values() if isinstance(value, RowSet)}
    named |= {*row_sets.ENTITIES.values(), *row_sets.ENDS.values()}
    assert named == declared
    made = [
        f"{place}:{node.lineno}"
        for place, tree in modules(of_store=True)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "RowSet"
        if place.name != "row_sets.py"
    ]
    assert made == []


def test_columns_that_a_table_does_not_have_are_refused() -> None:
    for columns in (("catalog_id", "no_such"), ("catalog_id", "path = 1; --")):
        with pytest.raises(KeyError):
            RowSet("ducklake_schema", columns)
    with pytest.raises(KeyError):
        RowSet("ducklake_schema; --", ("catalog_id",))


def test_rows_say_whose_they_are() -> None:
    for rows in INSERTED:
        assert len(set(rows.columns)) == len(rows.columns)
        assert ("catalog_id" in TABLES[rows.table]) == ("catalog_id" in rows.columns), rows
    assert [rows.table for rows in INSERTED if "catalog_id" not in rows.columns] == [
        "ducklake_metadata",
        "ducklake_snapshot",
    ]
    for rows in UPDATED:
        assert rows.keys[0] == "catalog_id"
        assert rows.values
        assert not {"catalog_id", "begin_snapshot"} & set(rows.values)
    for rows in ENDED:
        # A row that ends is named by its begin too, and its catalog is bound beside it.
        assert rows.keys == rows.columns
        assert rows.keys[-1] == "begin_snapshot"
        assert {"catalog_id", "end_snapshot"} <= TABLES[rows.table].keys() - set(rows.keys)


def built(dialect: Dialect) -> Iterator[tuple[RowSet, str]]:
    """All SQL that can be built from sets of rows."""
    for rows in INSERTED:
        yield rows, insert_text(dialect, rows)
        if dialect == "duckdb":
            yield rows, f"{insert_values_text(rows)}{written_out(rows)}"
    for rows in UPDATED:
        yield rows, update_text(dialect, rows)
    for rows in ENDED:
        yield rows, end_text(dialect, rows)


def written_out(rows: RowSet) -> str:
    return "(" + ", ".join("NULL" for _ in rows.columns) + ")"


def parsed(dialect: Dialect, text: str) -> exp.Expression:
    text = text.replace("VALUES $rows", "VALUES (NULL)")
    return sqlglot.parse_one(text, read="postgres" if dialect == "postgresql" else dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_built_writes_to_one_table_and_reads_no_other(dialect: Dialect) -> None:
    seen = 0
    for rows, text in built(dialect):
        assert set(re.findall(r"\b(?:ducklake|visible)_\w+", text)) == {rows.table}, text
        assert ";" not in text
        tree = parsed(dialect, text)
        assert isinstance(tree, exp.Insert | exp.Update)
        target = tree.find(exp.Table)
        assert target is not None
        assert target.name == rows.table
        seen += 1
    assert seen >= len(INSERTED) + len(UPDATED) + len(ENDED)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_values_of_what_is_built_are_bound(dialect: Dialect) -> None:
    for rows, text in built(dialect):
        literals = [found.this for found in parsed(dialect, text).find_all(exp.Literal)]
        if dialect == "duckdb" and literals:
            # It is told the types of what comes as JSON.
            (shape,) = literals
            assert json.loads(shape).keys() == set(rows.columns)
        else:
            assert literals == []
        if dialect == "sqlite":
            ends = rows in ENDED and "end_snapshot" in text
            assert text.count("?") == len(rows.columns) + (2 if ends else 0)
        elif dialect == "postgresql":
            given = set(PreparedQuery(text, "lake").names)
            assert given - {"catalog", "end"} == set(rows.columns)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_updates_and_ends_are_kept_to_one_catalog(dialect: Dialect) -> None:
    for rows in UPDATED:
        where = parsed(dialect, update_text(dialect, rows)).args["where"].sql("duckdb")
        for key in rows.keys:
            assert f"{key} = ?" in where or f"e.{key} = n.{key}" in where, where
    for rows in ENDED:
        text = end_text(dialect, rows)
        where = parsed(dialect, text).args["where"].sql("duckdb")
        assert "catalog_id = ?" in where or "e.catalog_id = $catalog" in where, where
        assert "end_snapshot IS NULL" in where
        for key in rows.keys:
            assert f"{key} = ?" in where or f"e.{key} = ended.{key}" in where, where


# ---- Copies inside the database -------------------------------------------------------------------------

COPIES = {
    **{f"copy_{table}": (table, "catalog") for table in COPIED},
    **{f"adopt_{table}": (table, "source") for table in ADOPTED},
    **{f"return_{table}": (table, "catalog") for table in RETURNED},
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_copies_take_what_one_catalog_sees_for_one_catalog(dialect: Dialect) -> None:
    for name, (table, source) in COPIES.items():
        text = statements(dialect)[name]
        view = table.replace("ducklake_", "visible_")
        assert set(re.findall(r"\b(?:ducklake|visible)_\w+", text)) == {table, view}, name
        columns, values = re.findall(r"\((catalog_id, [^)]*)\) SELECT (.*?) FROM", text)[0]
        assert columns.split(", ") == ["catalog_id", *(c for c in TABLES[table] if c != "catalog_id")]
        owner = values.split(", ")[0]
        assert owner in ("CAST($catalog AS BIGINT)", "v.catalog_id"), name
        # What is read is kept to the catalog that is read from, and each row comes from its view once.
        assert len(re.findall(rf"\bv\.catalog_id = \${source}\b", text)) == 1, name
        assert text.count(" AS v ") == 1
        if owner == "v.catalog_id":
            assert source == "catalog"
            assert "v.source_catalog_id <> $catalog" in text


def test_copies_are_given_their_parameters() -> None:
    checked: set[str] = set()
    for place, tree in modules(of_store=True):
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(attr="execute"), args=[ast.JoinedStr(values=[first, _])]):
                    assert isinstance(first, ast.Constant)
                    given = {keyword.arg for keyword in node.keywords}
                    kind = {name for name in COPIES if name.startswith(str(first.value))}
                    if not kind:
                        continue
                    wanted = {name: set(re.findall(r"\$(\w+)", statements("sqlite")[name])) for name in kind}
                    # Not every table has what differs between its copies, such as a begin.
                    assert given == set().union(*wanted.values()), place
                    assert all("catalog" in names for names in wanted.values())
                    checked |= kind
                case _:
                    pass
    assert checked == COPIES.keys()


# ---- Valid on the real databases ------------------------------------------------------------------------


def test_what_is_built_is_valid_on_sqlite() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema_script("sqlite"))
        for _, text in built("sqlite"):
            assert connection.execute(f"EXPLAIN {text}", [None] * text.count("?")).fetchall(), text


def test_what_is_built_is_valid_on_duckdb() -> None:
    with duckdb.connect() as connection:
        connection.execute(schema_script("duckdb"))
        for rows, text in built("duckdb"):
            written = text.replace("VALUES $rows", f"VALUES {written_out(rows)}")
            given = filled(written, {"rows": "{}", "catalog": 1, "end": 2})
            assert connection.execute(f"EXPLAIN {given}").fetchall(), text


def test_what_is_built_is_valid_on_postgresql(postgres_connection: psycopg.Connection) -> None:
    schema = postgres_connection.execute("SELECT current_schema()").fetchall()[0][0]
    for place, (_, text) in enumerate(built("postgresql")):
        result = postgres_connection.pgconn.prepare(b"built_%d" % place, PreparedQuery(text, schema).text)
        assert result.status == pq.ExecStatus.COMMAND_OK, f"{text}: {result.error_message.decode()}"
