"""A whole catalog as it was: what was dropped is back, what was created is gone, names go back."""

from __future__ import annotations

from typing import Any

import pytest

import forklake
from forklake.errors import CommitConflict


def state(catalog: forklake.Catalog | forklake.Transaction) -> dict[str, Any]:
    """All that a catalog shows."""
    tables = {}
    for info in catalog.tables():
        table = catalog.table((info.schema, info.name))
        found = table.scan(row_ids=True).to_arrow().to_pylist()
        tables[info.schema, info.name, info.id] = (
            table.columns,
            sorted(found, key=lambda row: row["row_id"]),
            table.partitioning,
            table.sort_order,
            table.tags(),
            [table.tags(column=[column.name]) for column in table.columns],
            table.stats().record_count,
        )
    schemas = [(schema.id, schema.name, catalog.tags("schema", schema.name)) for schema in catalog.schemas()]
    views = [(view, catalog.tags("view", (view.schema, view.name))) for view in catalog.views()]
    macros = [(macro, catalog.tags("macro", (macro.schema, macro.name))) for macro in catalog.macros()]
    return {"tables": tables, "schemas": schemas, "views": views, "macros": macros}


def fill(catalog: forklake.Catalog) -> None:
    catalog.create_schema("s")
    catalog.comment("schema", "s", "a schema")
    for name in ("s.a", "b", "c"):
        table = catalog.create_table(
            name, "id BIGINT, v VARCHAR", partition_by=["bucket(2, id)"], sorted_by=["id"], comment=name
        )
        table.comment("key", column="id")
        table.set_option("data_inlining_row_limit", 0 if name == "b" else 10)
        table.append([{"id": n, "v": name} for n in range(4)])
        table.delete("id = 0")
    catalog.create_view("w", "SELECT 1", columns=["x"])
    catalog.comment("view", "w", "a view")
    catalog.create_macro("m", ["x"], "x + 1")
    catalog.comment("macro", "m", "a macro")
    catalog.create_macro("n", ["x"], "x + 2")


def change_everything(catalog: forklake.Catalog) -> None:
    catalog.table("b").update({"v": "'u'"}, "id = 1")
    catalog.table("b").rename("d")
    catalog.drop_table("c")
    catalog.create_table("c", "other INTEGER").append([{"other": 5}])
    catalog.rename_schema("s", "r")
    catalog.comment("schema", "r", None)
    catalog.table("r.a").append([{"id": 9, "v": "x"}])
    catalog.table("r.a").add_column("more", "INTEGER", default="1")
    catalog.table("r.a").rename("main.moved")
    catalog.create_schema("s")
    catalog.create_view("s.w", "SELECT 2")
    catalog.create_view("w", "SELECT 3", or_replace=True)
    catalog.comment("view", "w", None)
    catalog.drop_macro("m")
    catalog.create_macro("m", ["x"], "x + 5")
    catalog.rename_macro("n", "k")
    catalog.compact()
    catalog.flush_inlined()


def test_everything_is_as_it_was(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    fill(catalog)
    then, before = catalog.snapshot, state(catalog)
    change_everything(catalog)
    now, after = catalog.snapshot, state(catalog)
    assert before != after
    catalog.restore(then, author="me", message="back", extra={"why": "x"})
    assert state(catalog) == before
    last = catalog.snapshots()[-1]
    assert (last.author, last.message, last.extra) == ("me", "back", {"why": "x"})
    assert f"restored_catalog:{catalog.id}" in last.changes
    assert len(catalog.snapshots()) == len(catalog.at(now).snapshots())  # The listing is that of the present.
    assert state(catalog.at(now)) == after
    assert state(catalog.at(then)) == before
    catalog.restore(now)
    assert state(catalog) == after
    catalog.restore(then)
    assert state(catalog) == before
    catalog.restore(then)
    change_everything(catalog)
    assert [table[:2] for table in state(catalog)["tables"]] == [table[:2] for table in after["tables"]]


def test_a_catalog_that_has_not_changed_gets_no_snapshot(catalog: forklake.Catalog) -> None:
    fill(catalog)
    at = catalog.snapshot
    catalog.restore(at)
    assert catalog.snapshot == at


def test_what_was_dropped_with_its_schema_comes_back_with_it(catalog: forklake.Catalog) -> None:
    fill(catalog)
    then, before = catalog.snapshot, state(catalog)
    catalog.drop_schema("s", cascade=True)
    catalog.restore(then)
    assert state(catalog) == before


def test_in_a_transaction_what_it_did_before_is_forgotten(catalog: forklake.Catalog) -> None:
    fill(catalog)
    then, before = catalog.snapshot, state(catalog)
    change_everything(catalog)
    with catalog.transaction() as tx:
        tx.create_schema("new")
        tx.create_table("new.t", "id BIGINT").append([{"id": 1}])
        tx.drop_schema("r", cascade=True)
        tx.drop_table("d")
        tx.drop_view("w")
        tx.drop_macro("k")
        tx.table("c").append([{"other": 7}])
        tx.restore(then)
        assert state(tx)["views"] == before["views"]
        tx.table("b").append([{"id": 77, "v": "after"}])
    assert catalog.table("b").scan("id = 77").count() == 1
    catalog.table("b").delete("id = 77")
    assert {k: v for k, v in state(catalog).items() if k != "tables"} == {
        k: v for k, v in before.items() if k != "tables"
    }
    assert [columns[:2] for columns in state(catalog)["tables"].values()] == [
        columns[:2] for columns in before["tables"].values()
    ]


def test_dropped_and_restored_in_one_transaction_is_as_if_nothing_had_been(catalog: forklake.Catalog) -> None:
    fill(catalog)
    at, before = catalog.snapshot, state(catalog)
    with catalog.transaction() as tx:
        tx.drop_schema("s", cascade=True)
        tx.drop_table("b")
        tx.drop_view("w")
        tx.drop_macro("m")
        tx.restore(at)
    assert catalog.snapshot == at
    with catalog.transaction() as tx:
        tx.drop_table("b")
        tx.restore_table("b", at)
        tx.table("b").rename("e")
    catalog.table("e").rename("b")
    assert state(catalog) == before


def test_anything_that_others_did_stands_in_the_way(catalog: forklake.Catalog) -> None:
    fill(catalog)
    then = catalog.snapshot
    catalog.drop_table("b")
    tx = catalog.transaction()
    tx.restore(then)
    catalog.create_table("other", "id BIGINT")
    with pytest.raises(CommitConflict, match="as it was before"):
        tx.commit()


def test_forks_and_parents_keep_to_themselves(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    fill(catalog)
    early, first = catalog.snapshot, state(catalog)
    catalog.table("b").append([{"id": 20, "v": "p"}])
    fork = lake.fork(catalog, "fork")
    point, forked = catalog.snapshot, state(fork)
    change_everything(fork)
    changed = state(fork)
    grandchild = lake.fork(fork, "grandchild")
    catalog.table("c").delete("id = 2")
    parents = state(catalog)

    fork.restore(point)
    assert state(fork) == forked
    assert (state(catalog), state(grandchild)) == (parents, changed)
    # To before the fork point.
    fork.restore(early)
    assert state(fork) == first
    assert (state(catalog), state(grandchild)) == (parents, changed)
    grandchild.restore(early)
    assert state(grandchild) == first
    # The parent's own restore does not reach its forks.
    catalog.restore(early)
    assert state(catalog) == first
    fork.restore(fork.snapshots()[-2].id)
    assert state(fork) == forked
    grandchild.materialize()
    assert state(grandchild) == first
    grandchild.restore(point)
    assert state(grandchild) == forked


def test_a_fork_that_took_its_changes_back_can_be_merged(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    fill(catalog)
    fork = lake.fork(catalog, "fork")
    point = fork.snapshot
    fork.table("b").delete("id = 1")
    fork.table("s.a").append([{"id": 40, "v": "f"}])
    fork.table("c").comment("changed")
    fork.restore(point)
    fork.table("c").append([{"id": 41, "v": "kept"}])
    catalog.table("s.a").append([{"id": 42, "v": "parents"}])
    expected = state(catalog)
    lake.merge(fork, catalog)
    merged = state(catalog)
    assert catalog.table("c").scan("id = 41").count() == 1
    catalog.table("c").delete("id = 41")
    for key, value in expected["tables"].items():
        assert merged["tables"][key][0] == value[0]
        if key[1] != "c":
            assert merged["tables"][key][1] == value[1]


def test_a_restore_of_a_fork_comes_to_its_parent_by_a_merge(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    fill(catalog)
    early = catalog.snapshot
    before = catalog.table("b").scan(row_ids=True).to_arrow().to_pylist()
    catalog.table("b").delete("id = 1")
    catalog.table("b").append([{"id": 30, "v": "x"}])
    fork = lake.fork(catalog, "fork")
    fork.table("b").restore(early)
    now = catalog.snapshot
    lake.merge(fork, catalog)
    found = catalog.table("b").scan(row_ids=True).to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["row_id"]) == sorted(before, key=lambda row: row["row_id"])
    kinds = [
        (row["change_type"], row["id"]) for row in catalog.table("b").changes(now).to_arrow().to_pylist()
    ]
    assert sorted(kinds) == [("delete", 30), ("insert", 1)]
    assert catalog.table("b").stats().record_count == len(before)
