"""Rows that a catalog inherits: it changes them for itself alone, and its new rows never meet others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import forklake
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered

Verb = Callable[[forklake.Catalog], object]


@pytest.fixture
def parent(catalog: forklake.Catalog, table: forklake.Table) -> forklake.Catalog:
    """150 rows in a file without 0 to 4 (a delete file) and 5 (inline), 1000 to 1002 inlined without 1001."""
    table.set_option("data_inlining_row_limit", 3)
    table.append(many())
    table.append(numbered(1000, 1001, 1002))
    table.delete("id < 5")
    table.delete("id IN (5, 1001)")
    return catalog


START = [*range(6, MANY), 1000, 1002]

VERBS: dict[str, Verb] = {
    "append": lambda c: c.table("t").append(numbered(2000)),
    "append many": lambda c: c.table("t").append(many(3000)),
    "delete from a file": lambda c: c.table("t").delete("id = 7"),
    "delete more from a file": lambda c: c.table("t").delete("id < 20"),
    "delete inlined rows": lambda c: c.table("t").delete("id = 1000"),
    "delete all": lambda c: c.table("t").delete(),
    "update": lambda c: c.table("t").update({"v": "'u'"}, "id IN (8, 1002)"),
    "update all": lambda c: c.table("t").update({"v": "'u'"}),
    "merge": lambda c: c.table("t").merge(numbered(9, 4000, v="m"), "id"),
    "overwrite": lambda c: c.table("t").overwrite(numbered(5000)),
    "flush": lambda c: c.flush_inlined(),
    "evolve": lambda c: (
        c.table("t").add_column("n", "INT", default="7"),
        c.table("t").append(numbered(6000)),
    ),
    "partition": lambda c: (c.table("t").set_partitioning(["v"]), c.table("t").append(many(7000))),
    "drop": lambda c: c.drop_table("t"),
}


PARENT_VERBS = (
    "append",
    "update",
    "delete more from a file",
    "evolve",
    "flush",
    "partition",
    "merge",
    "drop",
)


def look(catalog: forklake.Catalog) -> Any:
    if not catalog.tables():
        return None
    table = catalog.table("t")
    return (
        content(table),
        table.count(),
        table.files(),
        feed(table, 3, None),
        table.partitioning,
        [table.locate(row) for row in (8, 152)],
        content(table, at=6),
    )


def test_nobody_notices_what_a_fork_does(parent: forklake.Catalog, fork, raw) -> None:
    before = look(parent)
    forks = {name: fork(parent, name) for name in (*VERBS, "still")}
    stored = "SELECT * FROM ducklake_{} WHERE catalog_id = {} ORDER BY 1, 2, 3, 4"
    kinds = ("data_file", "delete_file", "inlined_delete", "inlined_file", "table_stats", "inherited_end")
    rows = {kind: raw(stored.format(kind, parent.id)) for kind in kinds}
    after: dict[str, object] = {}
    for name, verb in VERBS.items():
        verb(forks[name])
        after[name] = look(forks[name])
        assert after[name] != before, name
    assert look(parent) == look(forks["still"]) == before
    assert {kind: raw(stored.format(kind, parent.id)) for kind in kinds} == rows
    # Nor do forks notice what the parent does.
    for verb in PARENT_VERBS:
        VERBS[verb](parent)
        assert content(forks["still"].table("t")) == before[0], verb
    for name in (*VERBS, "still"):
        assert look(forks[name]) == after.get(name, before), name


@pytest.mark.parametrize("name", ["append many", "merge", "flush"])
def test_a_grandchild_sees_its_own_line_only(parent: forklake.Catalog, fork, name: str) -> None:
    child = fork(parent, "child")
    VERBS[name](child)
    seen = look(child)
    grandchild = fork(child, "grandchild")
    assert look(grandchild) == seen
    for verb in ("delete more from a file", "update", "append", "flush"):
        VERBS[verb](grandchild)
    assert look(child) == seen
    after = look(grandchild)
    for verb in ("append many", "update all", "flush", "delete all"):
        VERBS[verb](child)
        VERBS[verb](parent)
    assert look(grandchild) == after
    assert child.table("t").count() == parent.table("t").count() == 0


def test_row_ids_of_catalogs_never_meet(parent: forklake.Catalog, fork) -> None:
    child, sibling = fork(parent, "child"), fork(parent, "sibling")
    inherited = {row[0] for row in content(parent.table("t"))}
    for turn in range(2):
        for each in (child, parent, sibling):
            each.table("t").append(numbered(2000 + turn))
            each.table("t").append(many(3000 + 1000 * turn))
            each.table("t").update({"v": "'u'"}, "id IN (8, 2000)")
        if not turn:
            grandchild = fork(child, "grandchild")
            grandchild.table("t").append(many(9000))
            shared = {row[0] for row in content(child.table("t"))}
    line = {each.name: {row[0] for row in content(each.table("t"))} for each in (parent, child, sibling)}
    new = {name: found - inherited for name, found in line.items()}
    new["grandchild"] = {row[0] for row in content(grandchild.table("t"))} - shared
    assert [len(found) for found in new.values()] == [2 * MANY + 2] * 3 + [MANY]
    everything = [row for found in new.values() for row in found]
    assert len(everything) == len(set(everything))
    assert min(line["child"] & inherited) == 6
    assert all(row >= 2**48 for name in ("child", "sibling", "grandchild") for row in new[name])


def test_a_fork_tells_and_travels_as_if_it_had_always_been_there(parent: forklake.Catalog, fork) -> None:
    told = feed(parent.table("t"), 3)
    states = {s.id: content(parent.table("t"), at=s.id) for s in parent.table("t").history()}
    point = parent.snapshot
    child = fork(parent, "child")
    table = child.table("t")
    table.delete("id IN (7, 1000)")
    table.update({"v": "'u'"}, "id = 8")
    child.flush_inlined()
    parent.table("t").delete()
    assert feed(table, 3, point) == told
    assert {at: content(table, at=at) for at in states} == states
    since = feed(table, point)
    assert [(change[0], change[3], change[4]) for change in since] == [
        ("delete", 7, "x"),
        ("delete", 1000, "x"),
        ("update_preimage", 8, "x"),
        ("update_postimage", 8, "u"),
    ]
    assert since[0][1] < since[2][1]
    assert ids(table) == [at for at in START if at not in (7, 1000)]
    assert table.scan().min("id") == 6


def test_files_of_a_fork_lie_in_its_own_folder(parent: forklake.Catalog, fork, stored) -> None:
    files = set(stored())
    child = fork(parent, "child")
    child.table("t").append(many(2000))
    child.table("t").delete("id < 100")
    child.flush_inlined()
    new = set(stored()) - files
    assert len(new) == 3
    assert {path.split("/")[0] for path in new} == {"child"}
    assert {path.split("/")[0] for path in files} == {"main_catalog"}


def test_statistics_of_a_fork_count_what_it_inherited_too(parent: forklake.Catalog, fork, raw) -> None:
    child = fork(parent, "child")
    table = child.table("t")
    statistics = f"SELECT record_count FROM visible_table_stats WHERE catalog_id = {child.id}"
    assert raw(statistics) == [(len(START),)]
    table.append(many(2000))
    assert raw(statistics) == [(len(START) + MANY,)] == [(table.count(),)]
    table.delete("id < 100")
    table.delete("id >= 1000 AND id < 2000")
    assert raw(statistics) == [(table.count(),)] == [(50 + MANY,)]
    # Two that begin at once count once.
    other = fork(parent, "other")
    first, second = other.transaction(), other.transaction()
    first.table("t").append(numbered(1))
    second.table("t").append(numbered(2))
    first.commit()
    second.commit()
    assert raw(statistics.replace(str(child.id), str(other.id))) == [(len(START) + 2,)]
    found = content(other.table("t"))
    assert len({row[0] for row in found}) == len(found) == len(START) + 2
