"""Forking by reference: a few rows, whatever the parent holds, and everything is there (F1, F3, F5, F6)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import forklake
from tests.contract.forks.seen import CHANGES, look, look_back, some_past
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered

DEPTH = 20


def test_a_fork_is_what_its_parent_is(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    points, told = some_past(parent), parent.snapshots()
    now, past = look(parent), look_back(parent, points)
    then = {s.time: (look(parent.at(s.time)), look(parent.at(s.id))) for s in told[9:10]}
    child = lake.fork("parent", "child")
    assert look(child) == now
    assert child.snapshots()[:-1] == told
    assert look_back(child, points) == past
    for time, (by_time, by_number) in then.items():
        assert look(child.at(time)) == by_time == by_number


def test_making_a_fork_takes_as_much_for_a_large_parent_as_for_a_small_one(
    lake: forklake.Lake, counted, row_counts
) -> None:
    def cost(name: str) -> tuple[list[str], dict[str, int]]:
        before = row_counts()
        with counted() as statements:
            lake.fork(name, f"fork of {name}")
        after = row_counts()
        return statements, {table: after[table] - before[table] for table in after}

    lake.create_catalog("empty")
    large = lake.create_catalog("large")
    with large.transaction() as tx:
        for number in range(30):
            table = tx.create_table(f"t{number}", "id BIGINT, v VARCHAR", partition_by=["bucket(8, id)"])
            table.append(many())
            table.append(numbered(1000))
            table.comment("one of many")
    large.table("t0").delete("id < 20")
    assert len(large.table("t0").files()) > 8
    statements, rows = cost("empty")
    assert cost("large") == (statements, rows)
    assert {table: count for table, count in rows.items() if count} == {
        "ducklake_snapshot": 1,
        "ducklake_snapshot_changes": 1,
        "ducklake_catalog": 1,
        "ducklake_catalog_head": 1,
        "ducklake_catalog_lineage": 2,
    }
    assert len(statements) < 15


def test_a_fork_is_listed_with_where_it_comes_from(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    point = catalog.snapshot
    before = datetime.now(UTC)
    child = lake.fork("main_catalog", "child", author="me", message="try", extra={"run": 7})
    grandchild = lake.fork("child", "grandchild")
    listed = {info.name: info for info in lake.catalogs()}
    assert (listed["child"].parent, listed["child"].fork_snapshot, listed["child"].depth) == (
        "main_catalog",
        point,
        1,
    )
    assert (listed["grandchild"].parent, listed["grandchild"].depth) == ("child", 2)
    assert listed["grandchild"].fork_snapshot == child.snapshot == point + 1
    assert (listed["child"].id, listed["child"].expires_at) == (child.id, None)
    assert before <= listed["child"].created_at <= listed["grandchild"].created_at
    assert len({info.uuid for info in listed.values()}) == 3
    said = child.snapshots()[-1]
    assert (said.id, said.catalog, said.author, said.message, said.extra) == (
        child.snapshot,
        "child",
        "me",
        "try",
        {"run": 7},
    )
    assert said.changes == f"forked_from:{catalog.id}"
    assert [info.name for info in lake.catalogs(at=child.snapshot)] == ["child", "main_catalog"]
    assert grandchild.snapshots()[:-1] == child.snapshots()


def test_a_parent_that_was_dropped_is_told_from_one_of_its_name(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    for mode in ("reference", "copy"):
        lake.fork("main_catalog", f"of old {mode}", mode=mode)
    then = lake.snapshots()[-1].id
    lake.drop_catalog("main_catalog")
    lake.create_catalog("main_catalog")
    lake.fork("main_catalog", "of new")

    def told(**at: int) -> dict[str, tuple[str | None, bool | None]]:
        return {info.name: (info.parent, info.parent_dropped) for info in lake.catalogs(**at)}

    old = {f"of old {mode}": ("main_catalog", True) for mode in ("reference", "copy")}
    assert told() == {**old, "main_catalog": (None, None), "of new": ("main_catalog", False)}
    assert told(at=then) == {**dict.fromkeys(old, ("main_catalog", False)), "main_catalog": (None, None)}


def test_forking_is_retry_safe(lake: forklake.Lake, catalog: forklake.Catalog, unchanged) -> None:
    child = lake.fork("main_catalog", "child", if_not_exists=True)
    child.create_table("t", "a INT")
    with unchanged():
        again = lake.fork("main_catalog", "child", if_not_exists=True)
    assert (again.id, [info.name for info in again.tables()]) == (child.id, ["t"])
    # Another catalog of that name is not what was asked for.
    lake.create_catalog("root")
    lake.fork("child", "grandchild")
    for taken in ("root", "grandchild", "main_catalog"):
        with unchanged(), pytest.raises(forklake.CatalogExists):
            lake.fork("main_catalog", taken, if_not_exists=True)


def test_a_chain_of_forks_reads_like_its_root(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    chain, expected = [parent], [content(parent.table("s.t"))]
    for level in range(1, DEPTH + 1):
        fork = lake.fork(chain[-1].name, f"level {level}")
        table = fork.table("s.t")
        assert content(table) == expected[-1]
        # Every level adds, deletes and changes something that it did not make.
        with fork.transaction() as tx:
            tx.table("s.t").append([{"id": 10_000 + level, "v": "deep"}])
            tx.table("s.t").delete(f"id = {20 + level} OR id = {9_999 + level}")
            tx.table("s.t").update({"v": f"'level {level}'"}, f"id = {60 + level - level % 3}")
            tx.create_view("v", f"SELECT {level}", or_replace=True)
            tx.table("s.t").comment(f"level {level}")
        chain.append(fork)
        expected.append(content(table))
    assert [content(fork.table("s.t")) for fork in chain] == expected
    assert [fork.views()[0].sql for fork in chain] == [f"SELECT {level or 1}" for level in range(DEPTH + 1)]
    last = chain[-1].table("s.t")
    gone = {*range(6), 1001, *range(21, 21 + DEPTH)}
    assert ids(last) == [*(i for i in (*range(MANY), 1000, 1002) if i not in gone), 10_000 + DEPTH]
    assert last.count() == len(ids(last)) == last.stats().record_count
    # Each level's snapshots are still there for those below.
    middle = chain[DEPTH // 2]
    assert look(chain[-1].at(middle.snapshot)) == look(middle)
    assert [info.depth for info in lake.catalogs() if info.name == chain[-1].name] == [DEPTH]


@pytest.mark.parametrize("fate", ["dropped", "renamed", "emptied", "replaced"])
def test_forks_outlive_what_becomes_of_their_parents(
    lake: forklake.Lake, parent: forklake.Catalog, fate: str
) -> None:
    seen, point = content(parent.table("s.t")), parent.snapshot
    child = lake.fork("parent", "child")
    CHANGES["update"](child)
    after = look(child)
    grandchild = lake.fork("child", "grandchild")
    if fate == "renamed":
        lake.rename_catalog("parent", "other")
        lake.rename_catalog("child", "another")
    elif fate == "emptied":
        for each in (parent, child):
            for info in each.tables():
                each.drop_table((info.schema, info.name))
    else:
        lake.drop_catalog("parent")
        lake.drop_catalog("child")
        if fate == "replaced":
            lake.create_catalog("parent").create_table("t", "a INT")
            lake.fork("parent", "child")
    assert look(grandchild) == after
    assert content(grandchild.table("s.t"), at=point) == seen
    for name in ("append many", "delete many", "rename table", "replace view"):
        CHANGES[name](grandchild)
    youngest = lake.fork("grandchild", "youngest")
    rows = content(grandchild.table("t2"))
    assert content(youngest.table("t2")) == rows
    assert youngest.table("t2").count() == len(rows)


def test_who_takes_a_name_again_meets_nobody(lake: forklake.Lake, stored) -> None:
    first = lake.create_catalog("x")
    first.create_table("t", "id BIGINT, v VARCHAR").append(many())
    lake.rename_catalog("x", "y")
    second = lake.fork("y", "x")
    lake.drop_catalog("x")
    third = lake.fork("y", "x")
    lake.rename_catalog("x", "z")
    fourth = lake.fork("z", "x")
    handles = {each.id: lake.catalog(name) for name, each in (("y", first), ("z", third), ("x", fourth))}
    assert second.id not in handles
    new: list[int] = []
    folders: list[str] = []
    for turn in range(2):
        for each in handles.values():
            known = {row[0] for row in content(each.table("t"))}
            files = set(stored())
            each.table("t").append(many(1000 * turn))
            each.table("t").append(numbered(turn))
            new += {row[0] for row in content(each.table("t"))} - known
            folders += {path.split("/")[0] for path in set(stored()) - files}
    assert len(new) == len(set(new)) == 6 * (MANY + 1)
    assert folders[:3] == folders[3:]
    assert len(set(folders)) == 3
    assert [each.table("t").count() for each in handles.values()] == [3 * MANY + 2] * 3


def test_a_fork_works_wherever_its_files_are(anywhere: forklake.Lake) -> None:
    catalog = anywhere.create_catalog("parent")
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.append(many())
    table.delete("id < 100")
    child = anywhere.fork("parent", "child")
    other = child.table("t")
    other.append(many(1000))
    other.delete("id < 1101 AND id <> 120")
    table.delete("id = 120")
    other.update({"v": "'u'"}, "id = 120")
    assert ids(other) == [120, *range(1101, 1000 + MANY)]
    assert ids(table) == [at for at in range(100, MANY) if at != 120]
    assert child.flush_inlined() == 1
    grandchild = anywhere.fork("child", "grandchild")
    assert content(grandchild.table("t")) == content(other)
    assert feed(grandchild.table("t"), 1) == feed(other, 1)
