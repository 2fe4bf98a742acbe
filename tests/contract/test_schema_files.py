"""The three schema files make one lake, with the tables of the seed and of DuckLake; also by hand."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import duckdb
import psycopg
import pytest

import forklake
from forklake import localpg
from forklake.errors import DataPathMismatch, ForklakeError, MetadataNotFound
from forklake.store.statements import Dialect, schema_script
from forklake.store.tables import TABLES
from tests.extensions import load

DIALECTS: tuple[Dialect, ...] = ("sqlite", "duckdb", "postgresql")

# ---- What the files may differ in, and what they may not -------------------------------------------------

# SQLite has neither uuids nor times: both are text there.
SQLITE_KINDS = {"uuid": "text", "time": "text"}

# Without sequences, numbers come from a table.
ONLY_WITHOUT_SEQUENCES = {"ducklake_counter"}
SEQUENCES = {"ducklake_next_catalog_id", "ducklake_next_file_id", "ducklake_next_snapshot_id"}

# Tables of the whole lake; every other one belongs to catalogs.
GLOBAL_TABLES = {
    "ducklake_metadata": (),
    "ducklake_snapshot": ("snapshot_id",),
    "ducklake_snapshot_changes": ("snapshot_id", "catalog_id"),
    "ducklake_counter": ("name",),
}

# Seed 001, "Composite Primary Keys on Entity Tables" and "Full Schema", with the corrections of SPEC C3.
SEED_KEYS = {
    "ducklake_metadata": (),
    "ducklake_snapshot": ("snapshot_id",),
    # One commit makes many forks, and each of them has it in its history.
    "ducklake_snapshot_changes": ("snapshot_id", "catalog_id"),
    "ducklake_catalog": ("catalog_id", "begin_snapshot"),
    # A schema that is renamed has a second row, like a table: so its key needs begin_snapshot too.
    "ducklake_schema": ("catalog_id", "schema_id", "begin_snapshot"),
    "ducklake_table": ("catalog_id", "table_id", "begin_snapshot"),
    "ducklake_view": ("catalog_id", "view_id", "begin_snapshot"),
    "ducklake_table_stats": ("catalog_id", "table_id"),
    "ducklake_partition_info": ("catalog_id", "partition_id"),
    "ducklake_schema_versions": ("catalog_id", "table_id", "begin_snapshot"),
    "ducklake_macro": ("catalog_id", "macro_id", "begin_snapshot"),
    "ducklake_data_file": ("catalog_id", "data_file_id"),
    "ducklake_delete_file": ("catalog_id", "delete_file_id"),
    "ducklake_column": ("catalog_id", "table_id", "column_id", "begin_snapshot"),
    "ducklake_file_column_stats": ("catalog_id", "data_file_id", "column_id"),
    "ducklake_table_column_stats": ("catalog_id", "table_id", "column_id"),
    "ducklake_partition_column": ("catalog_id", "partition_id", "partition_key_index"),
    "ducklake_file_partition_value": ("catalog_id", "data_file_id", "partition_key_index"),
    "ducklake_column_mapping": ("catalog_id", "mapping_id"),
    "ducklake_name_mapping": ("catalog_id", "mapping_id", "column_id"),
    "ducklake_tag": ("catalog_id", "object_id", "key", "begin_snapshot"),
    "ducklake_column_tag": ("catalog_id", "table_id", "column_id", "key", "begin_snapshot"),
    "ducklake_inlined_data_tables": ("catalog_id", "table_id", "schema_version"),
    "ducklake_macro_impl": ("catalog_id", "macro_id", "impl_id"),
    "ducklake_macro_parameters": ("catalog_id", "macro_id", "impl_id", "column_id"),
}

# Seed 001, "Full Schema": the tables that it spells out, column by column.
SEED_COLUMNS = {
    "ducklake_metadata": "key:text value:text scope:text scope_id:int",
    "ducklake_snapshot": (
        "snapshot_id:int snapshot_time:time schema_version:int next_catalog_id:int next_file_id:int"
    ),
    "ducklake_snapshot_changes": (
        "snapshot_id:int catalog_id:int changes_made:text author:text commit_message:text "
        "commit_extra_info:text"
    ),
    "ducklake_catalog": (
        "catalog_id:int catalog_uuid:uuid catalog_name:text begin_snapshot:int end_snapshot:int"
    ),
    "ducklake_schema": (
        "catalog_id:int schema_id:int schema_uuid:uuid begin_snapshot:int end_snapshot:int "
        "schema_name:text path:text path_is_relative:bool"
    ),
    "ducklake_table": (
        "catalog_id:int table_id:int table_uuid:uuid begin_snapshot:int end_snapshot:int schema_id:int "
        "table_name:text path:text path_is_relative:bool"
    ),
    "ducklake_data_file": (
        "catalog_id:int data_file_id:int table_id:int begin_snapshot:int end_snapshot:int file_order:int "
        "path:text path_is_relative:bool file_format:text record_count:int file_size_bytes:int "
        "footer_size:int row_id_start:int partition_id:int encryption_key:text partial_file_info:text "
        "mapping_id:int"
    ),
}

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


@pytest.fixture(scope="session")
def structures(postgres_server: str) -> dict[str, Structure]:
    """Each schema file, run as a whole on its own database, and what stands there afterwards."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema_text("sqlite"))
        on_sqlite = sqlite_structure(connection)
    with duckdb.connect() as connection:
        connection.execute(schema_text("duckdb"))
        on_duckdb = duckdb_structure(connection)
    # Rolled back at the end: several test processes may share a server.
    with psycopg.connect(postgres_server) as connection:
        connection.execute("CREATE SCHEMA structures")
        connection.execute("SET LOCAL search_path TO structures")
        connection.execute(schema_script("postgresql").encode())
        on_postgres = postgres_structure(connection)
        connection.rollback()
    return {"sqlite": on_sqlite, "duckdb": on_duckdb, "postgresql": on_postgres}


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
            tuple(row[2] for row in connection.execute(f"PRAGMA index_info({name})")),
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
        "ARRAY(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY k(number, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place), "
        "pg_get_expr(i.indpred, i.indrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "JOIN pg_class t ON t.oid = i.indrelid WHERE c.relnamespace = 'structures'::regnamespace"
    ):
        if primary:
            keys[table] = tuple(columns)
        else:
            indexes[name] = Index(table, tuple(columns), unique, predicate(condition or ""))
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


def predicate(text: str) -> str | None:
    """A condition without what PostgreSQL adds when it stores one."""
    return re.sub(r"::\w+|[()]", "", text).strip() or None


def common(structure: Structure) -> dict[str, tuple[Column, ...]]:
    return {name: cols for name, cols in structure.tables.items() if name not in ONLY_WITHOUT_SEQUENCES}


# ---- Alike ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_schema_files_make_the_same_tables_but_for_the_counters(
    structures: dict[str, Structure], dialect: str
) -> None:
    assert len(structures["postgresql"].tables) >= 30
    assert common(structures[dialect]).keys() == structures["postgresql"].tables.keys()
    assert (
        structures[dialect].tables.keys() - structures["postgresql"].tables.keys() == ONLY_WITHOUT_SEQUENCES
    )
    assert structures[dialect].sequences == set()
    assert structures["postgresql"].sequences == SEQUENCES


def test_columns_stand_in_the_same_order_with_the_same_types_and_nulls_on_duckdb_and_postgresql(
    structures: dict[str, Structure],
) -> None:
    assert common(structures["duckdb"]) == structures["postgresql"].tables


def test_columns_stand_in_the_same_order_with_the_same_nulls_on_sqlite_where_uuids_and_times_are_text(
    structures: dict[str, Structure],
) -> None:
    expected = {
        name: tuple(Column(c.name, SQLITE_KINDS.get(c.kind, c.kind), c.required) for c in columns)
        for name, columns in structures["postgresql"].tables.items()
    }
    assert common(structures["sqlite"]) == expected


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_primary_keys_have_the_same_columns_in_the_same_order(
    structures: dict[str, Structure], dialect: str
) -> None:
    keys = structures[dialect].keys
    assert {name: keys[name] for name in keys.keys() - ONLY_WITHOUT_SEQUENCES} == structures[
        "postgresql"
    ].keys
    assert keys["ducklake_counter"] == ("name",)


def test_indexes_are_the_same_on_sqlite_and_postgresql(structures: dict[str, Structure]) -> None:
    assert structures["sqlite"].indexes == structures["postgresql"].indexes
    partial = [index for index in structures["postgresql"].indexes.values() if index.predicate]
    assert {index.predicate for index in partial} >= {"end_snapshot IS NULL", "swept_at IS NULL"}


def test_indexes_on_duckdb_differ_only_by_not_being_partial_and_so_not_unique(
    structures: dict[str, Structure],
) -> None:
    expected = {
        name: Index(index.table, index.columns, index.unique and index.predicate is None, None)
        for name, index in structures["postgresql"].indexes.items()
    }
    assert structures["duckdb"].indexes == expected


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_views_have_the_same_columns_in_the_same_order(
    structures: dict[str, Structure], dialect: str
) -> None:
    assert structures[dialect].views == structures["postgresql"].views


@pytest.mark.parametrize("dialect", DIALECTS)
def test_schema_files_make_nothing_but_tables_keys_indexes_and_views(
    structures: dict[str, Structure], dialect: str
) -> None:
    assert structures[dialect].others == set()


# ---- Complete -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_table_of_a_catalog_has_the_catalog_first_in_its_key(
    structures: dict[str, Structure], dialect: str
) -> None:
    structure = structures[dialect]
    for table, key in structure.keys.items():
        if table in GLOBAL_TABLES:
            assert key == GLOBAL_TABLES[table], table
        else:
            assert key[:1] == ("catalog_id",), table
            assert Column("catalog_id", "int", True) in structure.tables[table], table


@pytest.mark.parametrize("dialect", DIALECTS)
def test_key_columns_are_never_null(structures: dict[str, Structure], dialect: str) -> None:
    structure = structures[dialect]
    nullable = {
        (table, column.name)
        for table, columns in structure.tables.items()
        for column in columns
        if column.name in structure.keys[table] and not column.required
    }
    assert nullable == set()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_versioned_entity_has_a_view_that_shows_each_column_and_where_it_comes_from(
    structures: dict[str, Structure], dialect: str
) -> None:
    structure = structures[dialect]
    kept_by_the_lake = {"catalog", "catalog_head", "catalog_lineage", "catalog_merge", "inherited_end"}
    kept_by_the_lake |= {"snapshot_reservation", "commit_once", "files_scheduled_for_deletion"}
    for table, columns in structure.tables.items():
        entity = table.removeprefix("ducklake_")
        if table in GLOBAL_TABLES or entity in kept_by_the_lake:
            continue
        shown = structure.views[f"visible_{entity}"]
        assert shown[:2] == ("catalog_id", "source_catalog_id"), entity
        assert set(shown) == {column.name for column in columns} | {"source_catalog_id"}, entity


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tables_and_keys_of_the_seed_are_there_with_the_corrections_of_the_specification(
    structures: dict[str, Structure], dialect: str
) -> None:
    found = {table: structures[dialect].keys.get(table) for table in SEED_KEYS}
    assert found == SEED_KEYS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_columns_that_the_seed_spells_out_come_first_and_in_its_order(
    structures: dict[str, Structure], dialect: str
) -> None:
    kinds = SQLITE_KINDS if dialect == "sqlite" else {}
    for table, described in SEED_COLUMNS.items():
        expected = [tuple(column.split(":")) for column in described.split()]
        found = [(column.name, column.kind) for column in structures[dialect].tables[table]]
        assert found[: len(expected)] == [(name, kinds.get(kind, kind)) for name, kind in expected], table


@pytest.fixture(scope="module")
def stock_ducklake(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Tables, columns and types that the stock DuckLake extension makes."""
    folder = tmp_path_factory.mktemp("stock")
    with duckdb.connect() as connection:
        load(connection, "ducklake")
        connection.execute(
            f"ATTACH 'ducklake:{folder / 'stock.db'}' AS stock (DATA_PATH '{folder / 'data'}')"
        )
    with duckdb.connect(str(folder / "stock.db")) as connection:
        version = connection.execute("SELECT value FROM ducklake_metadata WHERE key = 'version'").fetchall()
        assert version == [("1.0",)]
        found: dict[str, dict[str, str]] = {}
        for table, column, kind in connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
        ).fetchall():
            found.setdefault(table, {})[column] = KINDS[kind.lower()]
        return found


def test_every_table_and_column_of_ducklake_is_there_with_its_type(
    structures: dict[str, Structure], stock_ducklake: dict[str, dict[str, str]]
) -> None:
    assert len(stock_ducklake) >= 25
    for table, columns in stock_ducklake.items():
        ours = {column.name: column.kind for column in structures["duckdb"].tables[table]}
        assert columns.items() <= ours.items(), table


def test_the_columns_that_writers_know_are_the_real_ones(structures: dict[str, Structure]) -> None:
    real = {
        name: {column.name: column.kind for column in columns}
        for name, columns in structures["postgresql"].tables.items()
    }
    assert real == TABLES
    assert {name: list(columns) for name, columns in TABLES.items()} == {
        name: list(columns) for name, columns in real.items()
    }


# ---- The empty lake -------------------------------------------------------------------------------------


def test_an_empty_lake_has_its_version_and_snapshot_zero(
    lake: forklake.Lake, raw: Callable[..., Any]
) -> None:
    assert raw("SELECT value, scope, scope_id FROM ducklake_metadata WHERE key = 'version'") == [
        ("0.5-dev2", None, None)
    ]
    numbers = "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot"
    assert raw(numbers) == [(0, 0, 0, 0)]
    assert [snapshot.id for snapshot in lake.snapshots()] == [0]
    assert lake.catalogs() == []


def test_the_first_catalog_is_snapshot_one_and_user_work_starts_at_two(
    lake: forklake.Lake, raw: Callable[..., Any]
) -> None:
    catalog = lake.create_catalog("first")
    assert (catalog.id, catalog.snapshot) == (0, 1)
    catalog.create_schema("sales")
    assert catalog.snapshot == 2
    assert raw("SELECT max(snapshot_id), max(next_catalog_id), max(next_file_id) FROM ducklake_snapshot") == [
        (2, 3, 0)
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_version_is_the_last_thing_that_a_schema_file_writes(dialect: Dialect) -> None:
    last = schema_script(dialect).strip().splitlines()[-1]
    assert last == "INSERT INTO ducklake_metadata (key, value) VALUES ('version', '0.5-dev2');"


# ---- Made by hand ---------------------------------------------------------------------------------------


def make_by_hand(url: str) -> None:
    """Run a schema file's whole text, as its first lines tell people to."""
    address = urlsplit(url)
    path = address.path.removeprefix("/")
    match address.scheme:
        case "sqlite":
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript(schema_text("sqlite"))
        case "duckdb":
            with duckdb.connect(path) as connection:
                connection.execute(schema_text("duckdb"))
        case _:
            psql(url)


def psql(url: str) -> None:
    script = files("forklake.store").joinpath("sql", "postgresql.sql")
    command = [find_psql(), url, "-X", "-v", "ON_ERROR_STOP=1", "-f", str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240)
    if ran.returncode:
        raise RuntimeError(ran.stderr)


def find_psql() -> str:
    installed = shutil.which("psql")
    return installed or str(localpg.find_programs() / "psql")


@pytest.fixture(params=DIALECTS)
def made_by_hand(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a lake that a schema file has made."""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_database")
    else:
        url = f"{request.param}:///{tmp_path / 'by_hand.db'}"
    make_by_hand(url)
    return url


def test_a_lake_made_by_hand_opens_and_works(made_by_hand: str, tmp_path: Path) -> None:
    with forklake.connect(made_by_hand, data_path=tmp_path / "files") as lake:
        catalog = lake.create_catalog("first")
        catalog.create_table("t", "id BIGINT")
        assert (catalog.id, catalog.snapshot) == (0, 2)
    with forklake.connect(made_by_hand) as lake:
        assert lake.data_path == f"{tmp_path / 'files'}/"
        assert [table.name for table in lake.catalog("first").tables()] == ["t"]


def test_a_lake_made_by_hand_asks_once_where_its_files_are(made_by_hand: str, tmp_path: Path) -> None:
    with pytest.raises(MetadataNotFound, match="where its files are"):
        forklake.connect(made_by_hand)
    forklake.connect(made_by_hand, data_path=tmp_path / "files").close()
    with pytest.raises(DataPathMismatch):
        forklake.connect(made_by_hand, data_path=tmp_path / "elsewhere")


def test_a_lake_made_by_hand_keeps_the_first_path_when_many_say_one_at_once(
    made_by_hand: str,
    tmp_path: Path,
    in_threads: Callable[..., list[Any]],
    sql_on: Callable[[str], Callable[..., Any]],
) -> None:
    def connect(number: int) -> str | None:
        try:
            with forklake.connect(made_by_hand, data_path=tmp_path / f"files{number}") as lake:
                return lake.data_path
        except DataPathMismatch:
            return None

    everybody = [lambda number=number: connect(number) for number in range(8)]
    if made_by_hand.startswith("postgresql"):
        # Here others may look before one has written: let all of them look before any of them writes.
        with psycopg.connect(made_by_hand) as connection:
            connection.execute("LOCK TABLE ducklake.ducklake_metadata IN SHARE ROW EXCLUSIVE MODE")
            _, *given = in_threads(lambda: (time.sleep(1), connection.commit()), *everybody)
    else:
        given = in_threads(*everybody)
    stored = sql_on(made_by_hand)("SELECT value FROM ducklake_metadata WHERE key = 'data_path'")
    assert stored == [(path,) for path in given if path is not None]


def test_a_schema_file_run_twice_fails_and_leaves_the_lake_alone(made_by_hand: str, tmp_path: Path) -> None:
    with forklake.connect(made_by_hand, data_path=tmp_path / "files") as lake:
        lake.create_catalog("first")
    with pytest.raises((RuntimeError, sqlite3.Error, duckdb.Error, psycopg.Error), match="already exists"):
        make_by_hand(made_by_hand)
    with forklake.connect(made_by_hand) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["first"]


def test_a_lake_made_by_hand_is_the_same_as_one_that_forklake_makes(
    made_by_hand: str, tmp_path: Path, sql_on: Callable[[str], Callable[..., Any]], postgres_server: str
) -> None:
    if made_by_hand.startswith("postgresql"):
        other = made_by_hand + "?metadata_schema=by_forklake"
        objects = "SELECT relname, relkind FROM pg_class WHERE relnamespace = '{}'::regnamespace ORDER BY 1"
        texts = (objects.format("ducklake"), objects.format("by_forklake"))
    else:
        other = made_by_hand.replace("by_hand", "by_forklake")
        texts = ("SELECT type, name, tbl_name FROM sqlite_master ORDER BY 2, 1",) * 2
    forklake.connect(other, data_path=tmp_path / "files", create=True).close()
    by_hand, by_forklake = sql_on(made_by_hand)(texts[0]), sql_on(other)(texts[1])
    assert len(by_hand) > 60
    assert by_hand == by_forklake


# ---- Several lakes in one database ----------------------------------------------------------------------

ODD_SCHEMA = "we\"ird; sch'ema.µ ✓ %s $1 --"


@pytest.fixture(params=["duckdb", "postgresql"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database that can hold several lakes."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_database")
    return f"duckdb:///{tmp_path / 'shared.db'}"


@pytest.fixture
def open_in(shared_url: str, tmp_path: Path) -> Iterator[Callable[..., forklake.Lake]]:
    """Opens, or with create=True makes, the lake in a metadata schema of one shared database."""
    opened: list[forklake.Lake] = []

    def connect(schema: str, **options: Any) -> forklake.Lake:
        url = f"{shared_url}?metadata_schema={quote(schema, safe='')}"
        opened.append(forklake.connect(url, data_path=tmp_path / "files", **options))
        return opened[-1]

    yield connect
    for lake in opened:
        lake.close()


# The name of a DuckDB file without its ending is also the name of a catalog, which `USE` could mean as well.
@pytest.mark.parametrize("schema", [ODD_SCHEMA, "two words", "select", "shared", "temp", "Ünïcode", "7"])
def test_lakes_in_schemas_of_one_database_do_not_see_each_other(
    open_in: Callable[..., forklake.Lake], schema: str
) -> None:
    plain = open_in("plain", create=True)
    odd = open_in(schema, create=True)
    plain.create_catalog("a").create_table("only_in_plain", "id BIGINT")
    odd.create_catalog("a").create_schema("only_in_odd")
    odd.create_catalog("b")

    for lake in (open_in("plain"), plain):
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]
        assert [table.name for table in lake.catalog("a").tables()] == ["only_in_plain"]
        assert [snapshot.id for snapshot in lake.snapshots()] == [0, 1, 2]
    for lake in (open_in(schema), odd):
        assert [catalog.name for catalog in lake.catalogs()] == ["a", "b"]
        assert lake.catalog("a").tables() == []
        assert [schema.name for schema in lake.catalog("a").schemas()] == ["main", "only_in_odd"]
        assert [snapshot.id for snapshot in lake.snapshots()] == [0, 1, 2, 3]


def test_views_read_the_lake_they_belong_to_wherever_the_connection_stands(
    shared_url: str, open_in: Callable[..., forklake.Lake], sql_on: Callable[[str], Callable[..., Any]]
) -> None:
    open_in("first", create=True).create_catalog("a").create_schema("of_first")
    open_in("second", create=True).create_catalog("a").create_schema("of_second")
    text = "SELECT schema_name FROM {}.visible_schema WHERE schema_name <> 'main'"
    standing_in_first = sql_on(f"{shared_url}?metadata_schema=first")
    assert standing_in_first(text.format("first")) == [("of_first",)]
    assert standing_in_first(text.format("second")) == [("of_second",)]


def test_a_schema_without_a_lake_is_not_found_beside_one_that_has_a_lake(
    open_in: Callable[..., forklake.Lake],
) -> None:
    open_in("here", create=True)
    with pytest.raises(MetadataNotFound):
        open_in("elsewhere")


def test_two_long_schema_names_never_mean_one_lake(open_in: Callable[..., forklake.Lake]) -> None:
    # PostgreSQL cuts names after 63 bytes.
    first, second = "n" * 63 + "_first", "n" * 63 + "_second"
    try:
        open_in(first, create=True).create_catalog("of_first")
        lake = open_in(second, create=True)
    except ForklakeError as error:
        assert "63" in str(error)
    else:
        assert lake.catalogs() == []


def test_names_of_schemas_are_told_apart_as_the_database_does(open_in: Callable[..., forklake.Lake]) -> None:
    open_in("lake", create=True).create_catalog("of_lower")
    # DuckDB takes both names for one schema, PostgreSQL does not; in neither do two lakes mix.
    try:
        upper = open_in("LAKE", create=True)
    except ForklakeError as error:
        assert "\n" not in str(error)
    else:
        upper.create_catalog("of_upper")
    assert [catalog.name for catalog in open_in("lake").catalogs()][:1] == ["of_lower"]
