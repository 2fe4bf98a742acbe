"""The `.sql` files: read rightly, valid on every database, all used, and every read kept to one catalog."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import duckdb
import psycopg
import pytest
import sqlglot
from psycopg import pq
from sqlglot import exp

import forklake
from forklake.store.built_statements import ADOPTED, COPIED, RETURNED, not_masked
from forklake.store.duckdb import filled
from forklake.store.libpq import PreparedQuery
from forklake.store.statements import Dialect, parse, schema_script, statements
from forklake.store.tables import TABLES
from tests.unit.conftest import empty_lake

DIALECTS: tuple[Dialect, ...] = ("sqlite", "duckdb", "postgresql")
SOURCE = Path(forklake.__file__).parent
SQL_FILES = sorted((SOURCE / "store" / "sql").glob("*.sql"))
STATEMENT_FILES = [path for path in SQL_FILES if path.stem not in DIALECTS]

# Tables of the whole lake: what they hold is not a catalog's content, so no view stands before them.
LAKE_TABLES = {
    "ducklake_metadata",
    "ducklake_snapshot",
    "ducklake_snapshot_changes",
    "ducklake_catalog",
    "ducklake_catalog_head",
    "ducklake_catalog_lineage",
    "ducklake_catalog_merge",
    "ducklake_snapshot_reservation",
    "ducklake_commit_once",
    "ducklake_files_scheduled_for_deletion",
    "ducklake_counter",
}

# Reads that are about the whole lake, and so about no catalog in particular.
LAKE_WIDE_READS = {
    "metadata_exists",
    "setting",
    "settings",
    "catalog_by_name",
    "catalog_by_name_at",
    "dropped_catalog",
    "catalogs_at",
    "catalogs_by_names",
    "count_catalogs",
    "first_catalogs",
    "fork_tree",
    "fork_tree_nodes",
    "lineage_by_name",
    "lineages",
    "own_data_paths",
    "home",
    "some_files",
    "names_of_catalogs",
    "expired_catalogs",
    "snapshots",
    "snapshot_exists",
    "latest_snapshot",
    "catalog_by_name_at_time",
    "catalogs_at_time",
    "time_is_known",
    # What catalogs know of each other is told by their lineages, merges and commits.
    "merges_in_spans",
    "merges_of_sources",
    "merged_up_to",
    "footprints_in_spans",
    "definitions_in_spans",
    "file_histories",
    "delete_histories",
    "inlined_delete_histories",
    "origins_of_files",
    "unswept_reservations",
}
LAKE_WIDE_WRITES = {"allocate", "add_snapshot", "remove_setting", "share_lineages", "hold_lineages"}
LAKE_WIDE_WRITES |= {"lock_heads", "lock_expired", "close_heads", "end_catalogs", "expire_reservations"}
LAKE_WIDE_WRITES |= {"move_files", "announce_snapshot"}

# What belongs to something that has a view: it may be read of the catalog that the view, or a lineage, names.
PARTS = {
    "ducklake_file_column_stats",
    "ducklake_file_partition_value",
    "ducklake_inlined_file",
    "ducklake_partition_column",
    "ducklake_sort_expression",
}
# What a catalog has counted itself; nobody inherits that.
OWN_READS = {"table_statistics": {"ducklake_table_stats", "ducklake_table_column_stats"}}
# Where and when something was first done, whoever has it from there: it tells nothing of what it holds.
ORIGINS = {"origins_of_files": {"ducklake_data_file"}, "some_files": {"ducklake_data_file"}}
# Rows of entities that end without being named one by one.
# Ends of rows that a catalog has inherited, and has copied.
LAKE_TABLES_OF_FORKS = {"ducklake_inherited_end"}
# Rows that a merge adds beside those that it takes over.
ADOPTIONS = {"adopt_columns", "adopt_default"}
OWN_ENDS = {"end_data_files": "ducklake_data_file", "end_delete_files": "ducklake_delete_file"}

# Asks for what came and what went, so that it looks at masks by itself.
LISTING_MASKS = {"files_changed_in_tables"}

# PostgreSQL does in one statement what takes embedded databases several.
EMBEDDED_ONLY = {"lock_head", "add_snapshot", "add_changes"}
POSTGRESQL_ONLY = {"lock_and_allocate", "record_snapshot"}
# An embedded database has the clock of its process, and nobody commits beside another.
POSTGRESQL_ONLY_READS = {"clock", "home", "last_announced", "open_commits"}
# What a connection needs to know of a pooler, or to tell it.
CONNECTING = {"set_for_session", "set_for_transaction", "prepared_under"}
POSTGRESQL_ONLY_READS |= CONNECTING
LAKE_WIDE_READS |= CONNECTING
POSTGRESQL_ONLY |= POSTGRESQL_ONLY_READS
SEQUENCES = {"ducklake_next_snapshot_id", "ducklake_next_catalog_id", "ducklake_next_file_id"}


def parameters(text: str) -> set[str]:
    return set(re.findall(r"\$(\w+)", text))


def relations(text: str) -> set[str]:
    return set(re.findall(r"\b(?:ducklake|visible)_\w+", text))


def named_in(prefix: str) -> set[str]:
    return {
        name for path in STATEMENT_FILES if path.name.startswith(prefix) for name in parse(path.read_text())
    }


# What a copy of a catalog, a merge or a restore takes is built from the names of tables and columns.
COPIES = {f"copy_{table}" for table in COPIED} | {f"adopt_{table}" for table in ADOPTED}
COPIES |= {f"return_{table}" for table in RETURNED}
READS, WRITES = named_in("read") | named_in("files"), named_in("write")


def reads(dialect: Dialect) -> set[str]:
    return READS if dialect == "postgresql" else READS - POSTGRESQL_ONLY_READS


# ---- The loader -----------------------------------------------------------------------------------------


def test_a_file_is_split_into_its_statements_without_comments() -> None:
    text = """-- What stands before the first name belongs to nobody.
SELECT 'nobody';

-- name: first
-- Says something.
SELECT a
  -- in the middle
  FROM t
 WHERE b = '-- not a comment' AND c = $c;

-- name: second
DELETE FROM t;
"""
    assert parse(text) == {
        "first": "SELECT a\n  FROM t\n WHERE b = '-- not a comment' AND c = $c",
        "second": "DELETE FROM t",
    }


def test_a_file_without_names_holds_no_statements() -> None:
    assert parse("-- only\n-- comments\n") == {}


@pytest.mark.parametrize("path", STATEMENT_FILES, ids=lambda path: path.name)
def test_every_file_names_each_statement_once(path: Path) -> None:
    names = re.findall(r"^-- name: (.*)$", path.read_text(), re.MULTILINE)
    assert names
    assert len(names) == len(set(names)) == len(parse(path.read_text()))


@pytest.mark.parametrize("path", STATEMENT_FILES, ids=lambda path: path.name)
def test_every_name_stands_before_one_statement(path: Path) -> None:
    for name, text in parse(path.read_text()).items():
        assert text, name
        assert ";" not in text, name
        assert not text.startswith("--"), name


def test_no_name_stands_in_two_kinds_of_files() -> None:
    kinds = [named_in(kind) for kind in ("read", "files", "write")]
    assert sum(map(len, kinds)) == len(READS | WRITES)
    assert all(path.name.split(".")[0] in ("read", "files", "write") for path in STATEMENT_FILES)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_database_has_every_statement(dialect: Dialect) -> None:
    foreign = EMBEDDED_ONLY if dialect == "postgresql" else POSTGRESQL_ONLY
    assert set(statements(dialect)) == ((READS | WRITES) - foreign) | COPIES


def test_a_database_has_its_own_form_of_a_statement_where_one_is_given() -> None:
    for dialect in DIALECTS:
        for kind in ("read", "files", "write"):
            path = SOURCE / "store" / "sql" / f"{kind}.{dialect}.sql"
            own = parse(path.read_text()) if path.exists() else {}
            common = parse((SOURCE / "store" / "sql" / f"{kind}.sql").read_text())
            for name in own.keys() | common.keys():
                text = own.get(name) or common[name]
                # Only sets of numbers and of texts are written otherwise on each of them, and masks on all.
                parts = re.split(
                    r"(\bIN (?:ids|texts)\(\$\w+\)|\btexts\(\$\w+\) AS k\(value\)|\bspans\(\$\w+\))",
                    spelled_out(text, dialect),
                )
                pattern = "".join(
                    f"[^;]*{re.escape('$' + parameters(part).pop())}[^;]*" if at % 2 else re.escape(part)
                    for at, part in enumerate(parts)
                )
                assert re.fullmatch(pattern, statements(dialect)[name]), (dialect, name)
                assert not re.search(r"\b(ids|texts|masked|spans|copies)\(", statements(dialect)[name])
    assert "nextval" in statements("postgresql")["allocate"]
    assert "ducklake_counter" in statements("sqlite")["allocate"]


def spelled_out(text: str, dialect: Dialect) -> str:
    def unmasked(match: re.Match[str]) -> str:
        of, entity, files = match.groups()
        return not_masked(entity, of=of or "", among=files, as_array=dialect == "postgresql")

    return re.sub(r"NOT masked\((\w+\.)?(\w+)(?:, (\w+))?\)", unmasked, text)


def test_files_that_are_read_without_masks_are_asked_whether_they_are_masked() -> None:
    asked = 0
    for name in READS - POSTGRESQL_ONLY - LISTING_MASKS:
        text = parse_all()[name]
        for entity in ("data_file", "delete_file"):
            without = len(re.findall(rf"\bvisible_{entity}_unmasked\b", text))
            assert without == len(re.findall(rf"NOT masked\((\w+\.)?{entity}\b", text)), name
            asked += without
    assert asked > 5


def parse_all() -> dict[str, str]:
    return {name: text for path in STATEMENT_FILES for name, text in parse(path.read_text()).items()}


def test_a_statement_takes_the_same_parameters_on_every_database() -> None:
    # DuckDB alone has to be told in which schema to look.
    for name in (READS | WRITES) - {"metadata_exists"} - EMBEDDED_ONLY - POSTGRESQL_ONLY:
        assert len({frozenset(parameters(statements(dialect)[name])) for dialect in DIALECTS}) == 1, name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_schema_script_is_what_stands_between_the_marks(dialect: Dialect) -> None:
    text = files("forklake.store").joinpath("sql", f"{dialect}.sql").read_text(encoding="utf-8")
    script = schema_script(dialect)
    assert script in text
    before, after = text.split(script)
    assert before.rstrip().splitlines()[-1].startswith("-- forklake:body")
    assert after.splitlines() == ["-- forklake:end", "COMMIT;"]
    assert "BEGIN;" in before
    # The script runs inside a transaction and a schema that are there already.
    assert not re.search(r"^\s*(BEGIN;|COMMIT;|(USE|SET|CREATE SCHEMA)\b)", script, re.MULTILINE)


# ---- Valid on the real databases ------------------------------------------------------------------------


def test_every_statement_is_valid_on_sqlite() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema_script("sqlite"))
        for name, text in statements("sqlite").items():
            plan = connection.execute(f"EXPLAIN {text}", dict.fromkeys(parameters(text)))
            assert plan.fetchall(), name


def test_every_statement_is_valid_on_duckdb() -> None:
    with duckdb.connect() as connection:
        connection.execute(schema_script("duckdb"))
        for name, text in statements("duckdb").items():
            plan = connection.execute(f"EXPLAIN {text}", dict.fromkeys(parameters(text)) or None)
            assert plan.fetchall(), name


def test_every_statement_is_valid_on_postgresql(postgres_connection: psycopg.Connection) -> None:
    for name, text in statements("postgresql").items():
        places = {parameter: place for place, parameter in enumerate(sorted(parameters(text)), 1)}
        numbered = re.sub(r"\$(\w+)", lambda match, places=places: f"${places[match[1]]}", text)
        result = postgres_connection.pgconn.prepare(name.encode(), numbered.encode())
        assert result.status == pq.ExecStatus.COMMAND_OK, f"{name}: {result.error_message.decode()}"


@pytest.mark.parametrize("schema", ["lake", 'my $at lake\'s "data" \\ ducklake_table'])
def test_every_statement_finds_its_tables_whatever_the_search_path_is(
    postgres_database: str, schema: str
) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        empty_lake(connection, schema)
        connection.execute("RESET search_path")
        for name, text in statements("postgresql").items():
            query = PreparedQuery(text, schema)
            result = connection.pgconn.prepare(name.encode(), query.text)
            assert result.status == pq.ExecStatus.COMMAND_OK, f"{name}: {result.error_message.decode()}"
            assert set(query.names) == parameters(text)
            assert b"current_schema" not in query.text


# ---- Used, and used rightly -----------------------------------------------------------------------------

METHODS = {"rows", "ask", "execute", "_rows", "_run", "_rows_once"}
# What the helper of a module adds to what its callers give.
GIVEN = {"store/catalog_state.py": {"catalog", "at"}, "store/files.py": {"catalog", "table", "at"}}


def calls() -> Iterator[tuple[str, str, str, set[str] | None]]:
    """Every place that runs a named statement: where, how, which, with what (None: cannot be seen)."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
            match node:
                case ast.Call(func=ast.Attribute(attr="_of"), args=[ast.Constant(value=str() as name), _]):
                    # FileReader._of reads what is about all files of a table, or about some that it names.
                    yield where, "_rows", name, set()
                    yield where, "_rows", f"{name}_of", {"files"}
                case ast.For(target=ast.Name(id=variable), iter=ast.Tuple(elts=names), body=body):
                    yield from (
                        (where, call.func.attr, name.value, {str(keyword.arg) for keyword in call.keywords})
                        for statement in body
                        for call in ast.walk(statement)
                        if isinstance(call, ast.Call)
                        and isinstance(call.func, ast.Attribute)
                        and call.func.attr in METHODS
                        and isinstance(call.args[0], ast.Name)
                        and call.args[0].id == variable
                        for name in names
                        if isinstance(name, ast.Constant)
                    )
                case ast.Call(
                    func=ast.Attribute(attr=method), args=[ast.Constant(value=str() as name), *others]
                ) if method in METHODS and re.fullmatch(r"[a-z]\w*", name):
                    keywords = {keyword.arg for keyword in node.keywords}
                    known = None if others or None in keywords else {str(keyword) for keyword in keywords}
                    yield where, method, name, known
                case ast.Subscript(
                    value=ast.Attribute(attr="statements") | ast.Name(id="statements"),
                    slice=ast.Constant(value=str() as name),
                ):
                    yield where, "statements", name, None
                case _:
                    pass


def test_every_statement_that_is_run_exists() -> None:
    unknown = [(where, name) for where, _, name, _ in calls() if name not in READS | WRITES]
    assert unknown == []


def test_every_statement_that_exists_is_run() -> None:
    assert {name for _, _, name, _ in calls()} == READS | WRITES


def test_every_statement_is_given_exactly_its_parameters() -> None:
    checked = 0
    for where, method, name, given in calls():
        if given is not None and name != "metadata_exists":
            known = statements("postgresql" if name in POSTGRESQL_ONLY else "sqlite")
            expected = parameters(known[name])
            added = GIVEN[where.partition(":")[0]] if method == "_rows" else set()
            assert given | added == expected, (where, name)
            checked += 1
    assert checked > 50


def test_no_statement_text_stands_in_the_source() -> None:
    """SQL on the lake's tables lives in the files, or is built from declared names: see test_row_sets."""
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(r"\b(SELECT|INSERT|UPDATE|DELETE)\b.*\b(ducklake|visible)_\w+", node.value, re.DOTALL)
    ]
    assert found == []


# ---- One catalog ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reads_of_entities_go_through_the_views(dialect: Dialect) -> None:
    entities = TABLES.keys() - LAKE_TABLES
    assert len(entities) >= 20
    assert entities > PARTS
    for name in reads(dialect) - OWN_READS.keys():
        direct = relations(statements(dialect)[name]) & entities - PARTS - ORIGINS.get(name, set())
        assert not direct, f"{name} reads {direct}: use visible_*"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statistics_are_read_of_the_catalog_alone(dialect: Dialect) -> None:
    for name, tables in OWN_READS.items():
        tree = sqlglot.parse_one(statements(dialect)[name], read="duckdb")
        assert {table.name for table in _tables(tree)} == tables == relations(statements(dialect)[name])
        first, *others = [table.alias_or_name for table in _tables(tree)]
        assert re.search(rf"\b{first}\.catalog_id = \$catalog\b", tree.args["where"].sql("duckdb")), name
        joined = {join.this.alias_or_name: join.args["on"].sql("duckdb") for join in _joins(tree)}
        for other in others:
            assert f"{other}.catalog_id = {first}.catalog_id" in joined[other], name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_parts_are_read_of_the_catalog_that_a_view_or_the_lineage_names(dialect: Dialect) -> None:
    looked: set[str] = set()
    for name in reads(dialect):
        tree = sqlglot.parse_one(statements(dialect)[name], read="duckdb")
        for select in tree.find_all(exp.Select):
            tables = {table.alias_or_name: table.name for table in _tables(select)}
            joins = {join.this.alias_or_name: join.args["on"].sql("duckdb") for join in _joins(select)}
            where = select.args["where"].sql("duckdb") if select.args.get("where") else ""
            for alias in (alias for alias, table in tables.items() if table in PARTS):
                # Never the first of a select: it is joined to what says whose it is.
                found = re.search(rf"\b{alias}\.catalog_id = (\w+)\.source_catalog_id\b", joins[alias])
                assert found, f"{name}: {joins[alias]}"
                owner = found[1]
                assert re.search(rf"\b{owner}\.catalog_id = \$catalog\b", where), f"{name}: {where}"
                if tables[owner] == "ducklake_catalog_lineage":
                    # A line of catalogs holds more than one sees of it: a view has to have the last word.
                    assert _is_narrowed(select, alias), name
                else:
                    assert tables[owner].startswith("visible_"), name
                looked.add(tables[alias])
    assert looked == PARTS


def _is_narrowed(select: exp.Select, alias: str) -> bool:
    """Whether rows count only if a view shows them, in the select itself or wherever it is used by name."""
    cte = select.parent
    if isinstance(cte, exp.CTE):
        users = [
            (user, table.alias_or_name)
            for user in cte.root().find_all(exp.Select)
            for table in _tables(user)
            # Which masks are looked for says nothing of who sees the rows.
            if table.name == cte.alias and not _is_within_masks(user)
        ]
        return bool(users) and all(_is_narrowed(user, name) for user, name in users)
    narrowed = rf"\.source_catalog_id = {alias}\.catalog_id\b"
    return any(
        join.this.name.startswith("visible_") and re.search(narrowed, join.args["on"].sql("duckdb"))
        for join in _joins(select)
    )


def _is_within_masks(select: exp.Select) -> bool:
    outer = select.find_ancestor(exp.Select)
    return outer is not None and [table.name for table in _tables(outer)] == ["visible_mask"]


def _joins(select: exp.Select) -> list[exp.Join]:
    return [join for join in select.args.get("joins") or [] if isinstance(join.this, exp.Table)]


def _tables(select: exp.Select) -> list[exp.Table]:
    first = select.args.get("from_") or select.args.get("from")
    sources = [first.this] if first else []
    return [table for table in (*sources, *(j.this for j in _joins(select))) if isinstance(table, exp.Table)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reads_name_their_catalog_unless_they_are_about_the_whole_lake(dialect: Dialect) -> None:
    without = {name for name in reads(dialect) if "catalog" not in parameters(statements(dialect)[name])}
    extra = POSTGRESQL_ONLY_READS if dialect == "postgresql" else set[str]()
    assert without == (LAKE_WIDE_READS & reads(dialect)) | extra


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_part_of_a_read_that_looks_into_a_view_is_kept_to_the_catalog(dialect: Dialect) -> None:
    looked = 0
    for name in reads(dialect):
        # Parameters are written as DuckDB has them, on all three.
        tree = sqlglot.parse_one(statements(dialect)[name], read="duckdb")
        for select in tree.find_all(exp.Select):
            first = select.args.get("from_") or select.args.get("from")
            sources = [first.this] if first else []
            joins = select.args.get("joins") or []
            visible = [s for s in sources if isinstance(s, exp.Table) and s.name.startswith("visible_")]
            joined = [
                j for j in joins if isinstance(j.this, exp.Table) and j.this.name.startswith("visible_")
            ]
            if visible:
                where = select.args["where"].sql("duckdb")
                assert re.search(r"\bcatalog_id = \$catalog\b", where), f"{name}: {where}"
                looked += 1
            for join in joined:
                on = join.args["on"].sql("duckdb")
                assert re.search(r"\bcatalog_id = (\w+\.catalog_id|\$catalog)\b", on), f"{name}: {on}"
                looked += 1
    assert looked > 50


@pytest.mark.parametrize("dialect", DIALECTS)
def test_files_of_dropped_tables_end_once_and_in_one_catalog(dialect: Dialect) -> None:
    for name, table in OWN_ENDS.items():
        text = statements(dialect)[name]
        assert relations(text) == {table}
        assert re.match(
            r"UPDATE \w+\s+SET end_snapshot = \$snapshot\s+WHERE catalog_id = \$catalog AND ", text
        )
        assert text.endswith("end_snapshot IS NULL")


def test_a_setting_is_removed_for_the_whole_lake_only() -> None:
    text = statements("sqlite")["remove_setting"]
    assert relations(text) == {"ducklake_metadata"}
    assert "scope IS NULL" in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_writes_touch_one_catalog_and_only_tables_of_the_lake(dialect: Dialect) -> None:
    # Rows of entities are written in sets, by Session.insert and Session.end_rows, which take the catalog.
    for name in WRITES & statements(dialect).keys() - LAKE_WIDE_WRITES - OWN_ENDS.keys() - ADOPTIONS:
        text = statements(dialect)[name]
        assert relations(text) <= LAKE_TABLES | SEQUENCES | LAKE_TABLES_OF_FORKS, name
        assert "catalog" in parameters(text), name
        if not text.startswith("INSERT"):
            assert re.search(r"\bcatalog_id = \$catalog\b", text), name


HOSTILE = ["it's", "$a", "'$b", "a\0b", "\0", "'\0'", "$a$b", "\\", "' || chr(0) || '", "--", "ids($a)"]


def test_values_in_statements_of_duckdb_are_never_read_as_sql() -> None:
    with duckdb.connect() as connection:
        for one in HOSTILE:
            for other in HOSTILE:
                text = filled("SELECT $a, $b, $a = $b, $a || $b, CAST($b AS VARCHAR)", {"a": one, "b": other})
                expected = (one, other, one == other, one + other, other)
                assert connection.execute(text).fetchone() == expected
    with pytest.raises(KeyError):
        filled("SELECT $a", {})
