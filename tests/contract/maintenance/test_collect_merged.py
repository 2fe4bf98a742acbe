"""Collecting garbage of catalogs that were merged: later merges find what they need, and the rest goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import forklake
from tests.contract.maintenance.cleaned import clean, files, ids, left_behind, rows


@pytest.fixture
def table(lake: forklake.Lake) -> forklake.Table:
    """A table whose rows are in files."""
    table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    return table


def test_merges_give_what_they_would_have_given(lake: forklake.Lake, table: forklake.Table) -> None:
    table.append(rows(0, 10))
    fork = lake.fork("shop", "fork")
    fork.table("t").update({"v": "'fork'"}, where="id = 3")
    fork.table("t").delete("id = 4")
    fork.table("t").append(rows(100, 105))
    table.update({"v": "'shop'"}, where="id = 5")
    lake.catalog("shop").compact()
    fork.compact()
    clean(lake)
    lake.merge("fork", "shop")
    found = {row["id"]: row["v"] for row in table.to_pylist()}
    assert found[3] == "fork" and found[5] == "shop"
    assert sorted(found) == [0, 1, 2, 3, 5, 6, 7, 8, 9, *range(100, 105)]
    clean(lake)
    table.update({"v": "'again'"}, where="id = 3")
    lake.merge("shop", "fork")
    assert {row["id"]: row["v"] for row in fork.table("t").to_pylist()} == {**found, 3: "again"}


def test_what_a_forgotten_catalog_changed_is_a_change_for_merges(
    lake: forklake.Lake, table: forklake.Table
) -> None:
    table.append(rows(0, 10))
    middle = lake.fork("shop", "middle")
    middle.table("t").delete("id = 3")
    last = lake.fork("middle", "last")
    lake.drop_catalog("middle")
    clean(lake)
    with pytest.raises(forklake.CatalogNotFound):
        lake.undrop_catalog("middle")
    table.update({"v": "'shop'"}, where="id = 3")
    with pytest.raises(forklake.MergeConflict):
        lake.merge("last", "shop")
    table.update({"v": "'v3'"}, where="id = 3")
    assert ids(last) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_catalogs_that_were_merged_with_each_other_go_together(
    lake: forklake.Lake, table: forklake.Table, raw: Any, tmp_path: Path
) -> None:
    names = ("one", "two", "three")
    for number, name in enumerate(names):
        lake.fork("shop", name).table("t").append(rows(10 * number, 10 * number + 5))
    for target in names:
        for source in names:
            if source != target:
                lake.merge(source, target)
    lake.drop_catalogs([*names, "shop"])
    for _ in range(2):
        clean(lake)
    assert left_behind(raw) == {}
    assert not files(tmp_path)


def test_a_catalog_of_which_some_tables_were_merged_goes_too(
    lake: forklake.Lake, table: forklake.Table
) -> None:
    table.append(rows(0, 5))
    fork = lake.fork("shop", "fork")
    fork.table("t").append(rows(5, 9))
    fork.create_table("other", "id INT")
    lake.merge("fork", "shop", tables=["t"])
    lake.drop_catalog("fork")
    for _ in range(2):
        clean(lake)
    assert [node.name for node in lake.tree(dropped=True).nodes] == ["shop"]
    assert ids(lake.catalog("shop")) == list(range(9))


def test_a_row_that_a_merge_brought_and_that_was_deleted_stays_deleted(
    lake: forklake.Lake, table: forklake.Table
) -> None:
    fork = lake.fork("shop", "fork")
    table.append(rows(0, 1))
    lake.merge("shop", "fork")
    fork.table("t").update({"v": "'other'"}, "id = 0")
    fork.table("t").overwrite(rows(5, 6))
    clean(lake)
    lake.merge("fork", "shop")
    assert ids(lake.catalog("shop")) == ids(fork) == [5]


@pytest.mark.parametrize("how", ["copied", "materialized", "copied twice"])
def test_merges_of_copies_find_rows_that_were_moved_on_both_sides(
    lake: forklake.Lake, table: forklake.Table, raw: Any, tmp_path: Path, how: str
) -> None:
    table.append(rows(0, 5))
    table.append(rows(5, 10))
    copy = lake.fork("shop", "copy", mode="reference" if how == "materialized" else "copy")
    copy.materialize()
    other = lake.catalog("shop")
    if how == "copied twice":
        other = lake.fork("shop", "other", mode="copy")
        table.append(rows(200, 201))
        lake.drop_catalog("shop")
    # Rows move to other files, and those that they were in go.
    for catalog in (copy, other):
        catalog.compact()
        clean(lake)
    copy.table("t").update({"v": "'copy'"}, where="id = 3")
    other.table("t").delete("id = 8")
    clean(lake)
    lake.merge(copy, other)
    assert ids(other) == [0, 1, 2, 3, 4, 5, 6, 7, 9]
    clean(lake)
    lake.merge(other, copy)
    assert ids(copy) == ids(other)
    assert {row["v"] for row in copy.table("t").to_pylist() if row["id"] == 3} == {"copy"}
    lake.drop_catalogs([catalog.name for catalog in lake.catalogs()])
    for _ in range(2):
        clean(lake)
    assert left_behind(raw) == {} and not files(tmp_path)


def test_a_merge_that_everyone_had_left_before_is_forgotten(lake: forklake.Lake, raw: Any) -> None:
    """A fork that began before there was a table keeps nothing of what later forks did among themselves."""
    shop = lake.create_catalog("shop")
    beginning = shop.snapshot
    shop.create_table("t", "id INT, v VARCHAR").set_option("data_inlining_row_limit", 0)
    early = lake.fork("shop", "early", at=beginning)
    lake.fork("shop", "later")
    child = lake.fork("later", "child")
    child.table("t").append(rows(0, 5))
    lake.merge("child", "later")
    lake.drop_catalogs(["shop", "later", "child"])
    clean(lake)
    clean(lake)
    assert lake.check().is_clean
    for table in ("data_file", "table", "catalog_merge"):
        assert raw(f"SELECT count(*) FROM ducklake_{table}") == [(0,)]
    assert {name for (name,) in raw("SELECT catalog_name FROM ducklake_catalog")} == {"shop", "early"}
    assert early.tables() == []


@pytest.mark.parametrize("by", ["the parent", "another fork", "a fork of that"])
def test_a_merge_tells_later_ones_what_a_catalog_did_that_is_gone_since(
    lake: forklake.Lake, table: forklake.Table, raw: Any, tmp_path: Path, by: str
) -> None:
    table.append(rows(0, 5))
    behind = lake.fork("shop", "behind")
    target = lake.catalog("shop") if by == "the parent" else lake.fork("shop", "target")
    agent = lake.fork(target, "agent")
    agent.table("t").append(rows(10, 15))
    agent.table("t").delete("id = 2")
    lake.merge(agent, target)
    source = lake.fork(target, "later") if by == "a fork of that" else target
    lake.drop_catalog(agent)
    for _ in range(2):
        clean(lake)
    with pytest.raises(forklake.CatalogNotFound):
        lake.undrop_catalog("agent")
    target.compact()
    clean(lake)
    lake.merge(source, behind)
    assert ids(behind) == [0, 1, 3, 4, *range(10, 15)]
    # When one has it and everyone else has seen that, it is forgotten.
    if by != "the parent":
        lake.drop_catalogs({target.name, source.name})
        lake.merge(behind, "shop")
    lake.drop_catalog(behind)
    for _ in range(2):
        clean(lake)
    assert raw(f"SELECT count(*) FROM ducklake_catalog_lineage WHERE catalog_id = {agent.id}") == [(0,)]
    lake.drop_catalogs([catalog.name for catalog in lake.catalogs()])
    for _ in range(2):
        clean(lake)
    assert left_behind(raw) == {} and not files(tmp_path)
