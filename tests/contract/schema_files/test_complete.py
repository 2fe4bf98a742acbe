"""The schema files hold the tables and columns of the seed and of DuckLake, and what writers know."""

from __future__ import annotations

import duckdb
import pytest

from forklake.store.tables import TABLES
from tests.contract.schema_files.structures import DIALECTS, KINDS, SQLITE_KINDS, Column, Structure
from tests.extensions import load

# Tables of the whole lake; every other one belongs to catalogs.
GLOBAL_TABLES = {
    "ducklake_reach": (),
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
    "ducklake_index_column": ("catalog_id", "index_id", "ordinal"),
    "ducklake_index_coverage": ("catalog_id", "index_file_id", "ordinal"),
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
    kept_by_the_lake |= {"expired_snapshot"}
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
