"""Rows that a catalog inherits: seen through the lineage, ended by a mask, never touched (ARCHITECTURE §3).

Forking will have its own verbs; here a fork is what it is in the store: a catalog with lineage rows.
"""

from __future__ import annotations

import pytest

import forklake


def look(catalog: forklake.Catalog) -> dict[str, object]:
    return {
        "schemas": [schema.name for schema in catalog.schemas()],
        "tables": [
            (info.schema, info.name, catalog.table((info.schema, info.name)).columns)
            for info in catalog.tables()
        ],
        "views": [(view.schema, view.name, view.sql) for view in catalog.views()],
        "macros": [(macro.schema, macro.name, macro.implementations) for macro in catalog.macros()],
        "tags": [catalog.tags("table", (info.schema, info.name)) for info in catalog.tables()],
    }


@pytest.fixture
def parent(lake: forklake.Lake) -> forklake.Catalog:
    catalog = lake.create_catalog("parent")
    catalog.create_schema("s")
    catalog.create_table("s.t", "a INT, b STRUCT(c INT, d INT)", comment="parent's")
    catalog.create_table("u", "a INT")
    catalog.create_view("v", "SELECT 1")
    catalog.create_macro("m", ["x"], "x + 1")
    return catalog


def change_everything(catalog: forklake.Catalog) -> None:
    table = catalog.table("s.t")
    table.add_column("e", "int")
    table.drop_column("b.c")
    table.rename_column("a", "aa")
    table.comment("changed")
    table.rename("main.t2")
    catalog.drop_table("u")
    catalog.create_view("v", "SELECT 2", or_replace=True)
    catalog.create_macro("m", ["x"], "x + 2", or_replace=True)
    catalog.rename_schema("s", "s2")
    catalog.create_table("s2.new", "z INT")


def test_a_child_sees_its_parent_as_of_the_fork_point(fork, parent: forklake.Catalog) -> None:
    before = look(parent)
    child = fork(parent, "child")
    assert look(child) == before
    change_everything(parent)
    assert look(child) == before
    assert look(parent) != before


def test_a_child_changes_what_it_inherits_without_touching_it(fork, parent: forklake.Catalog, raw) -> None:
    before = look(parent)
    child = fork(parent, "child")
    stored = "SELECT * FROM ducklake_{0} WHERE catalog_id = {1} ORDER BY 1, 2, 3, 4"
    kinds = ("schema", "table", "column", "view", "macro", "macro_impl", "tag", "inherited_end")
    rows = {kind: raw(stored.format(kind, parent.id)) for kind in kinds}
    change_everything(child)
    assert look(parent) == before
    assert {kind: raw(stored.format(kind, parent.id)) for kind in kinds} == rows
    assert [info.name for info in child.tables()] == ["t2", "new"]
    assert [column.name for column in child.table("t2").columns] == ["aa", "b", "e"]
    assert child.tags("table", "t2") == {"comment": "changed"}
    assert child.views()[0].sql == "SELECT 2"
    assert child.macros()[0].implementations[0].sql == "x + 2"
    masked = raw(
        f"SELECT DISTINCT entity FROM ducklake_inherited_end WHERE catalog_id = {child.id} ORDER BY 1"
    )
    assert {row[0] for row in masked} == {"column", "macro", "schema", "table", "tag", "view"}


def test_siblings_and_grandchildren_see_only_their_own_line(fork, parent: forklake.Catalog) -> None:
    original = look(parent)
    child, sibling = fork(parent, "child"), fork(parent, "sibling")
    change_everything(child)
    grandchild = fork(child, "grandchild")
    changed = look(child)
    assert look(grandchild) == changed
    grandchild.drop_table("t2")
    child.table("t2").add_column("late", "int")
    assert look(sibling) == look(parent) == original
    assert [info.name for info in grandchild.tables()] == ["new"]
    assert "late" in [column.name for column in child.table("t2").columns]
    change_everything(sibling)
    assert look(sibling) == changed


def test_history_before_the_fork_point_stays_readable_in_the_child(fork, parent: forklake.Catalog) -> None:
    states = {snapshot.id: look(parent.at(snapshot.id)) for snapshot in parent.snapshots()}
    child = fork(parent, "child")
    change_everything(child)
    change_everything(parent)
    for snapshot, state in states.items():
        assert look(child.at(snapshot)) == state
        assert look(parent.at(snapshot)) == state
    assert {s.id for s in child.snapshots()} & {s.id for s in parent.snapshots()} == set(states)


def test_column_ids_of_an_inherited_table_count_on(fork, parent: forklake.Catalog) -> None:
    parent.table("s.t").add_column("gone", "int")
    parent.table("s.t").drop_column("gone")
    child = fork(parent, "child")
    child.table("s.t").add_column("mine", "int")
    assert child.table("s.t").columns[-1].id == 6


def test_a_dropped_schema_of_a_parent_ends_only_for_the_child(fork, parent: forklake.Catalog) -> None:
    child = fork(parent, "child")
    child.drop_schema("s", cascade=True)
    assert [schema.name for schema in child.schemas()] == ["main"]
    assert [(info.schema, info.name) for info in child.tables()] == [("main", "u")]
    assert [(info.schema, info.name) for info in parent.tables()] == [("main", "u"), ("s", "t")]
