"""Forks that do not depend on their ancestors: copied when made, or later in place (F2)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import forklake
from tests.contract.forks.seen import CHANGES, look, look_back, some_past
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered

LIVE_ANCESTORS = (
    "SELECT source_catalog_id FROM ducklake_catalog_lineage "
    "WHERE catalog_id = {0} AND source_catalog_id <> {0} AND max_snapshot >= 0"
)
MASKS = "SELECT * FROM ducklake_inherited_end WHERE catalog_id = {}"


def family(lake: forklake.Lake) -> dict[str, forklake.Catalog]:
    """A fork of the parent that changed something, one of its own that did, and one from its past."""
    child = lake.fork("parent", "child")
    for name in ("delete many", "update", "append many", "rename schema", "replace view"):
        CHANGES[name](child)
    grandchild = lake.fork("child", "grandchild")
    grandchild.table("s2.t").update({"v": "'g'"}, "id < 40")
    CHANGES["drop macro"](grandchild)
    earlier = lake.fork("child", "earlier", at=child.snapshots()[-3].id)
    earlier.table("s.t").delete("id = 60")
    CHANGES["merge"](child)
    return {"child": child, "grandchild": grandchild, "earlier": earlier}


def test_materializing_changes_nothing_that_anyone_sees(
    lake: forklake.Lake, parent: forklake.Catalog, raw
) -> None:
    catalogs = {"parent": parent, **family(lake)}
    child = catalogs["child"]
    points = {name: some_past(catalogs[name])[-3:] for name in ("child", "earlier")}
    now = {name: look(each) for name, each in catalogs.items()}
    past = {name: look_back(catalogs[name], points[name]) for name in points}
    told = {name: each.snapshots() for name, each in catalogs.items()}
    listed = lake.catalogs()
    head = child.snapshot
    stored = f"SELECT * FROM {{}} WHERE catalog_id = {parent.id}"
    kinds = ("schema", "table", "column", "data_file", "delete_file", "inlined_delete", "catalog_lineage")
    rows = {kind: sorted(map(repr, raw(stored.format(f"ducklake_{kind}")))) for kind in kinds}

    child.materialize()

    assert {name: look(each) for name, each in catalogs.items()} == now
    assert {name: look_back(catalogs[name], points[name]) for name in points} == past
    assert lake.catalogs() == listed
    assert child.snapshots()[:-1] == told.pop("child")
    assert child.snapshots()[-1].id == child.snapshot > head
    assert {name: catalogs[name].snapshots() for name in told} == told
    assert look(child.at(head)) == look(child) == now["child"]
    # It stands alone, and so do its forks beside it.
    assert raw(LIVE_ANCESTORS.format(child.id)) == raw(MASKS.format(child.id)) == []
    for name in ("grandchild", "earlier"):
        assert raw(LIVE_ANCESTORS.format(catalogs[name].id)) == [(child.id,)]
    assert {kind: sorted(map(repr, raw(stored.format(f"ducklake_{kind}")))) for kind in kinds} == rows


def test_a_second_time_there_is_nothing_to_copy(
    lake: forklake.Lake, parent: forklake.Catalog, unchanged
) -> None:
    child = lake.fork("parent", "child")
    child.materialize()
    for each in (child, parent, lake.fork("parent", "copy", mode="copy")):
        with unchanged():
            each.materialize()


@pytest.mark.parametrize("at", ["present", "past"])
def test_a_copy_is_what_its_parent_is(lake: forklake.Lake, parent: forklake.Catalog, raw, at: str) -> None:
    source = family(lake)["child"]
    points = some_past(source)[-3:-1]
    point = source.snapshots()[-3].id if at == "past" else source.snapshot
    seen, history = look(source.at(point)), [s for s in source.snapshots() if s.id <= point]
    past = look_back(source.at(point), points)
    before, told = look(source), source.snapshots()
    copy = lake.fork("child", "copy", mode="copy", at=point)
    assert raw(LIVE_ANCESTORS.format(copy.id)) == raw(MASKS.format(copy.id)) == []
    assert look(copy) == seen
    assert look_back(copy, points) == past
    assert copy.snapshots()[:-1] == history
    info = next(info for info in lake.catalogs() if info.name == "copy")
    assert (info.parent, info.fork_snapshot, info.depth) == ("child", point, 2)
    assert (look(source), source.snapshots()) == (before, told)


def test_copies_go_on_as_other_catalogs_do(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    before = look(parent)
    reference, copy, late = (
        lake.fork("parent", "reference"),
        lake.fork("parent", "copy", mode="copy"),
        lake.fork("parent", "late"),
    )
    CHANGES["delete inline"](late)
    late.materialize()
    late.table("s.t").append([{"id": 7, "v": "x"}])
    last = ("replace view", "replace macro", "replace table", "rename schema")
    first = [name for name in CHANGES if not name.startswith(("drop", "rename", "replace"))]
    for name in (*first, *last):
        for each in (reference, copy):
            CHANGES[name](each)
    assert shape(reference) == shape(copy)
    assert look(parent) == look(reference.at(parent.snapshot)) == look(copy.at(parent.snapshot)) == before
    new = content(late.table("s.t"))[-1]
    assert new[1:] == (7, "x", 7)
    # Its rows are still numbered apart from the parent's.
    parent.table("s.t").append([{"id": 7, "v": "x"}])
    assert content(parent.table("s.t"))[-1][0] != new[0]


def shape(catalog: forklake.Catalog) -> Any:
    """What two catalogs have in common that did the same."""
    return (
        [(info.schema, info.name) for info in catalog.tables()],
        [
            (
                sorted(row[1:] for row in content(table)),
                table.count(),
                [(column.id, column.name, column.type) for column in table.columns],
                (table.tags(), table.options(), table.partitioning, table.sort_order),
                [file.record_count for file in table.files()],
            )
            for table in (catalog.table((info.schema, info.name)) for info in catalog.tables())
        ],
        [(view.schema, view.name, view.sql) for view in catalog.views()],
        [(macro.schema, macro.name, macro.implementations) for macro in catalog.macros()],
        [schema.name for schema in catalog.schemas()],
    )


BEGUN = (
    "append many",
    "delete many",
    "delete inlined rows",
    "update",
    "flush",
    "rename column",
    "replace table",
    "remove tag",
    "partition",
    "replace view",
    "replace macro",
    "rename schema",
)
"""What adds rows and what ends rows of every kind."""


def test_commits_that_were_begun_before_still_succeed(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    for name in BEGUN:
        change = CHANGES[name]
        child, other = lake.fork_many("parent", [f"{name} 1", f"{name} 2"])
        change(other)
        tx = child.transaction()
        change(tx)
        child.materialize()
        tx.commit()
        assert shape(child) == shape(other), name
        use_names_again(child)


def test_a_handle_that_saw_ancestors_rows_can_change_the_copies(
    lake: forklake.Lake, parent: forklake.Catalog, reopen
) -> None:
    for name in ("drop table", "replace view", "rename schema"):
        child, other = lake.fork_many("parent", [f"{name} 1", f"{name} 2"])
        elsewhere = reopen().catalog(child.name)
        assert look(elsewhere) == look(child) == look(other)
        child.materialize()
        CHANGES[name](other)
        CHANGES[name](elsewhere)
        assert shape(elsewhere) == shape(child) == shape(other), name
        use_names_again(child)


def use_names_again(catalog: forklake.Catalog) -> None:
    """What was ended is gone for good, so that names are free."""
    for info in catalog.tables():
        catalog.drop_table((info.schema, info.name))
        catalog.create_table((info.schema, info.name), "id BIGINT")
    catalog.create_view("v", "SELECT 3", or_replace=True)
    catalog.create_macro("m", ["x"], "x + 3", or_replace=True)
    catalog.drop_schema("s", cascade=True, if_exists=True)
    catalog.create_schema("s")


def test_forks_of_a_catalog_that_is_being_copied_see_each_row_once(
    lake: forklake.Lake, catalog: forklake.Catalog, reopen, in_threads
) -> None:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.append(many())
    table.append(numbered(1000, 1001))
    table.delete("id < 10")
    source = catalog
    for round_ in range(3):
        middle = lake.fork(source.name, f"middle {round_}")
        middle.table("t").delete(f"id = {20 + round_}")
        expected = content(middle.table("t"))
        done = threading.Event()

        def copy(middle: forklake.Catalog = middle, done: threading.Event = done) -> None:
            try:
                middle.materialize()
            finally:
                done.set()

        def fork(number: int, name: str = middle.name, done: threading.Event = done) -> list[str]:
            mine = reopen()
            made: list[str] = []
            while not done.is_set() or not made:
                made.append(f"{name} {number} {len(made)}")
                mode = "copy" if len(made) % 3 == 2 else "reference"
                mine.fork(name, made[-1], mode=mode)
            return made

        _, *names = in_threads(copy, lambda: fork(1), lambda: fork(2))
        for name in (middle.name, *(name for each in names for name in each)):
            assert content(lake.catalog(name).table("t")) == expected
            assert lake.catalog(name).table("t").count() == len(expected)
        source = middle
    assert len(ids(source.table("t"))) == MANY - 10 + 2 - 3


def test_a_child_and_its_parent_can_be_copied_at_once(
    lake: forklake.Lake, catalog: forklake.Catalog, raw, in_threads
) -> None:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.append(many())
    chain = [catalog]
    for level in range(1, 5):
        chain.append(lake.fork(chain[-1].name, f"level {level}"))
        chain[-1].table("t").delete(f"id = {level}")
        chain[-1].table("t").append(numbered(1000 + level))
    expected = [content(each.table("t")) for each in chain]
    told = [feed(each.table("t"), table.history()[0].id) for each in chain]
    in_threads(*(each.materialize for each in chain))
    assert [content(each.table("t")) for each in chain] == expected
    assert [feed(each.table("t"), table.history()[0].id) for each in chain] == told
    assert [raw(LIVE_ANCESTORS.format(each.id)) for each in chain] == [[]] * 5
    for each, rows in zip(chain, expected, strict=True):
        each.table("t").delete("id = 100")
        assert each.table("t").count() == len(rows) - 1
