"""Every read and write is kept to one catalog, unless it is about the whole lake."""

from __future__ import annotations

import re

import pytest
import sqlglot
from sqlglot import exp

from forklake.store.statements import Dialect, statements
from forklake.store.tables import TABLES
from tests.unit.statements.named import CONNECTING, DIALECTS, POSTGRESQL_ONLY_READS, WRITES, parameters, reads

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
    "ducklake_expired_snapshot",
    "ducklake_reach",
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
    "catalogs_alike",
    "catalogs_at",
    "catalogs_beside",
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
    "files_in_catalogs",
    "origins_of_files",
    "unswept_reservations",
}
LAKE_WIDE_READS |= CONNECTING
LAKE_WIDE_WRITES = {"allocate", "add_snapshot", "remove_setting", "share_lineages", "hold_lineages"}
LAKE_WIDE_WRITES |= {"lock_heads", "lock_expired", "close_heads", "end_catalogs", "expire_reservations"}
LAKE_WIDE_WRITES |= {"move_files", "announce_snapshot"}

# What belongs to something that has a view: it may be read of the catalog that the view, or a lineage, names.
PARTS = {
    "ducklake_file_column_stats",
    "ducklake_file_partition_value",
    "ducklake_inlined_file",
    "ducklake_index_column",
    "ducklake_index_coverage",
    "ducklake_partition_column",
    "ducklake_sort_expression",
}
# What a catalog has counted itself; nobody inherits that.
OWN_READS = {"table_statistics": {"ducklake_table_stats", "ducklake_table_column_stats"}}
# Where and when something was first done, whoever has it from there, or whether anything was done: it tells
# nothing of what it holds.
_ORIGIN_READS = ("files_in_catalogs", "origins_of_files", "some_files", "others_files")
ORIGINS = {name: {"ducklake_data_file"} for name in _ORIGIN_READS}
ORIGINS["others_files"] = {"ducklake_data_file", "ducklake_index_file"}
# Ends of rows that a catalog has inherited, and has copied.
LAKE_TABLES_OF_FORKS = {"ducklake_inherited_end"}
# Rows that a merge adds beside those that it takes over.
ADOPTIONS = {"adopt_columns", "adopt_default"}
# Rows of entities that end without being named one by one.
OWN_ENDS = {
    "end_data_files": "ducklake_data_file",
    "end_delete_files": "ducklake_delete_file",
    "end_index_files": "ducklake_index_file",
}
SEQUENCES = {"ducklake_next_snapshot_id", "ducklake_next_catalog_id", "ducklake_next_file_id"}


def relations(text: str) -> set[str]:
    return set(re.findall(r"\b(?:ducklake|visible)_\w+", text))


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
