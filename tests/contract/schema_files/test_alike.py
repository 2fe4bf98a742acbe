"""The three schema files make one lake: the same tables, columns, keys, indexes and views."""

from __future__ import annotations

import pytest

from tests.contract.schema_files.structures import (
    DIALECTS,
    ONLY_WITHOUT_SEQUENCES,
    SEQUENCES,
    SQLITE_KINDS,
    Column,
    Index,
    Structure,
    common,
)


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


def test_indexes_on_duckdb_are_not_partial_and_so_not_unique_and_none_folds_names(
    structures: dict[str, Structure],
) -> None:
    folding = {"ducklake_catalog_by_name", "ducklake_table_by_name", "ducklake_view_by_name"}
    expected = {
        name: Index(index.table, index.columns, index.unique and index.predicate is None, None)
        for name, index in structures["postgresql"].indexes.items()
        if name not in folding
    }
    assert {i for i, index in structures["postgresql"].indexes.items() if "folded" in str(index)} == folding
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
