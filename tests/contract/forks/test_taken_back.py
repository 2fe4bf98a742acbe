"""What was taken back comes to others as what was done does, whoever has seen which of both.

`f` does something that comes to `p` by way of `z`, and takes it back. `g` gets both from `f` at once, so that
nothing changes there, and brings them to `p`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import forklake

Change = Callable[[forklake.Catalog], Any]
ROWS = 300
LARGE = "id >= 10 AND id < 200"
"""More rows than stay inline."""
TAKEN_BACK: dict[str, Callable[[forklake.Catalog, int, int], None]] = {
    "undo": lambda catalog, before, done: catalog.undo(done),
    "restore": lambda catalog, before, done: catalog.restore(before),
}


@pytest.fixture
def parent(lake: forklake.Lake) -> forklake.Catalog:
    parent = lake.create_catalog("p")
    parent.create_table("t", "id BIGINT, v BIGINT").append([{"id": at, "v": 0} for at in range(ROWS)])
    return parent


def values(catalog: forklake.Catalog, table: str = "t") -> dict[int, int]:
    found = catalog.table(table).scan(row_ids=True).to_pylist()
    assert len({row["row_id"] for row in found}) == len(found) == catalog.table(table).count()
    return {row["id"]: row["v"] for row in found}


MARKS: dict[str, Callable[[forklake.Table], object]] = {
    "comment": lambda table: table.comment("mine"),
    "comment on a column": lambda table: table.comment("mine", column="id"),
    "partitioning": lambda table: table.set_partitioning(["id"]),
    "sort order": lambda table: table.set_sort_order(["id"]),
    "index": lambda table: table.create_index("mine", kind="hash", columns=["id"]),
}


def marks(table: forklake.Table) -> Any:
    comments = table.tags(), table.tags(column="id")
    return comments, table.partitioning, table.sort_order, [index.name for index in table.indexes()]


@pytest.mark.parametrize("way", TAKEN_BACK)
@pytest.mark.parametrize("where", ["id IN (49, 50, 51)", LARGE], ids=["few", "many"])
@pytest.mark.parametrize("verb", ["delete", "update"])
def test_rows_that_were_brought_back_come_by_way_of_one_who_never_missed_them(
    lake: forklake.Lake, parent: forklake.Catalog, verb: str, where: str, way: str
) -> None:
    f, z, g = lake.fork_many("p", ["f", "z", "g"])
    all_rows, before = values(f), f.snapshot
    if verb == "delete":
        f.table("t").delete(where)
    else:
        f.table("t").update({"v": "7"}, where)
    done = f.snapshot
    f.merge_into(z)
    z.merge_into(parent)
    parent.table("t").delete("id = 5")
    TAKEN_BACK[way](f, before, done)
    assert f.merge_into(g).tables == ()
    assert f.diff("g").is_empty
    assert values(g) == all_rows
    g.merge_into(parent)
    del all_rows[5]
    assert values(parent) == all_rows
    parent.merge_into(z)
    assert values(z) == all_rows
    assert parent.diff("z").is_empty


def test_two_mistakes_in_one_file_that_were_undone_leave_every_row_where_it_was(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    """Each takes the whole file away and brings it back, one of them without knowing of the other."""
    names = ["f", "g", "both", "into f"]
    f, g, both, _ = lake.fork_many("p", names)
    all_rows = values(parent)
    f.table("t").delete("id IN (49, 50, 51)")
    first = f.snapshot
    f.merge_into(parent)
    knew = lake.fork("p", "knew the first")
    g.table("t").delete("id = 5")
    g.undo(g.snapshot)
    f.undo(first)
    f.merge_into("into f")
    for source in (g, f):
        source.merge_into(both)
    g.merge_into(parent)
    for other in ("f", "into f"):
        late = lake.fork(other, f"late {other}")
        parent.merge_into(late)
        assert values(late) == all_rows
    both.merge_into(knew)
    assert values(knew) == all_rows
    f.merge_into(parent)
    assert values(parent) == all_rows


def test_definitions_that_were_taken_back_come_by_way_of_one_who_never_had_them(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    parent.create_schema("s")
    parent.create_view("w", "SELECT 1")
    parent.create_view("seen", "SELECT 2")
    for name in ("d", "r"):
        parent.create_table(name, "id BIGINT, v BIGINT").append([{"id": 1, "v": 1}])

    def shown(catalog: forklake.Catalog) -> Any:
        tables = {table.name: catalog.table(table.name) for table in catalog.tables()}
        return (
            {name: [column.name for column in table.columns] for name, table in tables.items()},
            {name: table.scan().to_pylist() for name, table in tables.items() if name != "t"},
            sorted((view.name, view.sql) for view in catalog.views()),
            sorted(schema.name for schema in catalog.schemas()),
            marks(tables["t"]),
        )

    f, z, g = lake.fork_many("p", ["f", "z", "g"])
    start = shown(f)
    with f.transaction() as tx:
        tx.table("t").add_column("extra", "INT", default="5")
        tx.table("t").rename_column("v", "w")
        tx.table("r").rename("renamed")
        tx.drop_table("d")
        tx.drop_view("w")
        tx.rename_view("seen", "watched")
        tx.rename_schema("s", "other")
        for mark in MARKS.values():
            mark(tx.table("t"))
    done = f.snapshot
    f.merge_into(z)
    z.merge_into(parent)
    assert shown(parent) == shown(f) != start
    f.undo(done)
    f.merge_into(g)
    g.merge_into(parent)
    assert shown(parent) == shown(g) == shown(f) == start


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_what_is_no_column_and_was_taken_back_does_not_touch_what_the_parent_has(
    lake: forklake.Lake, parent: forklake.Catalog, mark: Callable[[forklake.Table], object]
) -> None:
    forks = lake.fork_many("p", TAKEN_BACK)
    for fork, take_back in zip(forks, TAKEN_BACK.values(), strict=True):
        before = fork.snapshot
        mark(fork.table("t"))
        take_back(fork, before, fork.snapshot)
        assert fork.diff().is_empty
    mark(parent.table("t"))
    seen = marks(parent.table("t"))
    for fork in forks:
        assert fork.diff("p").is_empty
        fork.merge_into(parent)
        assert marks(parent.table("t")) == seen
        parent.merge_into(fork)
        assert marks(fork.table("t")) == seen


@pytest.mark.parametrize("brought", ["view", "comment"])
@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_what_was_taken_back_after_a_merge_does_not_touch_what_the_parent_has(
    lake: forklake.Lake,
    parent: forklake.Catalog,
    mark: Callable[[forklake.Table], object],
    brought: str,
) -> None:
    """The merge brought definitions of something else, of the same table too."""
    f, x, y, z = lake.fork_many("p", ["f", "x", "y", "z"])
    if brought == "view":
        x.create_view("w", "SELECT 1")
    else:
        x.table("t").comment("of another column", column="v")
    x.merge_into(f)
    mark(f.table("t"))
    f.undo(f.snapshot)
    mark(parent.table("t"))
    seen = marks(parent.table("t"))
    f.merge_into(parent)
    assert marks(parent.table("t")) == seen
    # What came by the merge itself is taken back where it came another way.
    mark(y.table("t"))
    y.merge_into(z)
    before = marks(f.table("t"))
    f.table("t").append([{"id": 1000, "v": 0}])
    y.merge_into(f)
    f.table("t").restore(f.snapshots()[-3].id)
    f.merge_into(z)
    assert marks(z.table("t")) == marks(f.table("t")) == before


@pytest.mark.parametrize("order", [("f", "p"), ("p", "f"), ("f", "g")], ids="-".join)
@pytest.mark.parametrize("limit", [0, 1000])
def test_a_table_that_both_dropped_and_brought_back_has_each_row_once(
    lake: forklake.Lake, parent: forklake.Catalog, order: tuple[str, str], limit: int
) -> None:
    parent.create_table("u", "id BIGINT, v BIGINT").set_option("data_inlining_row_limit", limit)
    parent.table("u").append([{"id": at, "v": 0} for at in range(9)])
    lake.fork_many("p", ["f", "g"])
    sides = [lake.catalog(name) for name in order]
    for at, (catalog, take_back) in enumerate(zip(sides, TAKEN_BACK.values(), strict=True)):
        before = catalog.snapshot
        catalog.drop_table("u")
        take_back(catalog, before, catalog.snapshot)
        catalog.table("u").update({"v": 5}, f"id = {at}")
        catalog.table("u").delete(f"id = {at + 3}")
    for one, other in (sides, sides[::-1]):
        one.merge_into(other)
        assert values(other, "u") == {0: 5, 1: 5, 2: 0, 5: 0, 6: 0, 7: 0, 8: 0}
    assert sides[0].diff(sides[1].name).is_empty


@pytest.mark.parametrize("way", [*TAKEN_BACK, "undrop"])
@pytest.mark.parametrize("who", ["the fork", "the parent"])
def test_a_dropped_table_that_is_back_comes_back_where_the_drop_was_merged(
    lake: forklake.Lake, parent: forklake.Catalog, who: str, way: str
) -> None:
    parent.create_table("inlined", "id BIGINT, v BIGINT").append([{"id": 1, "v": 1}])
    parent.table("t").delete("id < 5")
    fork = lake.fork("p", "f")
    one, other = (fork, parent) if who == "the fork" else (parent, fork)
    before, past = one.snapshot, values(one)
    with one.transaction() as tx:
        tx.drop_table("t")
        tx.drop_table("inlined")
    done = one.snapshot
    one.merge_into(other)
    assert not other.tables()
    if way == "undrop":
        one.undrop_table("t")
        one.undrop_table("inlined")
    else:
        TAKEN_BACK[way](one, before, done)
    result = one.merge_into(other)
    assert {(table.name, table.rows_added, table.rows_removed) for table in result.tables} == {
        ("main.t", ROWS - 5, 0),
        ("main.inlined", 1, 0),
    }
    for catalog in (one, other):
        assert values(catalog) == past
        assert values(catalog, "inlined") == {1: 1}
        catalog.compact()
        assert values(catalog) == past
    assert other.merge_into(one).tables == ()


def test_a_fork_that_was_replayed_is_merged_although_its_parent_went_on(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    """What it has decided of, its parent has in files that it never had itself."""
    fork = lake.fork("p", "f")
    parent.table("t").update({"v": "1"}, "id < 3")
    fork.table("t").delete("id < 5")
    (conflict,) = fork.replay().refused
    assert conflict.row_count == 3
    parent.table("t").delete("id = 200")
    fork.merge_into(parent)
    expected = dict.fromkeys((at for at in range(ROWS) if at not in (3, 4, 200)), 0) | {0: 1, 1: 1, 2: 1}
    assert values(parent) == expected
    parent.merge_into(fork)
    assert values(fork) == expected


def _taken_after_all(catalog: forklake.Catalog, before: int, done: int) -> None:
    """What went is brought back, in another file, and goes for good from there."""
    catalog.table("t").delete("id = 7")
    catalog.table("t").restore(done)
    catalog.table("t").delete("id = 5")


TAKING: dict[str, Callable[[forklake.Catalog, int, int], Any]] = {
    **TAKEN_BACK,
    "restore of the table": lambda catalog, before, done: catalog.table("t").restore(before),
    "delete after a restore": _taken_after_all,
}


@pytest.mark.parametrize("is_cleaned", [False, True], ids=["", "cleaned"])
@pytest.mark.parametrize("way", TAKING)
@pytest.mark.parametrize("limit", [0, 100], ids=["files", "inlined"])
def test_a_row_that_went_with_what_was_taken_back_is_a_conflict_for_who_updated_it(
    lake: forklake.Lake, limit: int, way: str, is_cleaned: bool
) -> None:
    parent = lake.create_catalog("p")
    table = parent.create_table("t", "id BIGINT, v BIGINT")
    table.set_option("data_inlining_row_limit", limit)
    before = parent.snapshot
    table.append([{"id": id, "v": 0} for id in (5, 6)])
    fork = lake.fork("p", "f")
    TAKING[way](parent, before, parent.snapshot)
    fork.table("t").update({"v": "1"}, "id = 5")
    if is_cleaned:
        lake.expire(older_than=timedelta(0))
        lake.collect_garbage(older_than=timedelta(0))
    for source, target in ((parent, fork), (fork, parent)):
        with pytest.raises(forklake.MergeConflict) as refused:
            source.merge_into(target)
        assert sum(conflict.row_count or 0 for conflict in refused.value.conflicts) == 1


def _move(catalog: forklake.Catalog) -> None:
    catalog.flush_inlined()
    catalog.compact()


def _clean(lake: forklake.Lake) -> None:
    lake.expire(older_than=timedelta(0))
    lake.collect_garbage(older_than=timedelta(0))


@pytest.mark.parametrize(
    ("way", "are_all_moved", "is_cleaned"),
    [("undo", False, True), ("restore", True, False)],
)
def test_a_row_that_is_back_stays_although_who_moved_it_knows_only_that_it_went(
    lake: forklake.Lake, way: str, are_all_moved: bool, is_cleaned: bool
) -> None:
    """`x` moved rows, and heard later that they had gone from where they were; `p` has them back."""
    p = lake.create_catalog("p")
    tables = ["deleted", "deleted and updated later", "updated"]
    for name, limit in zip(tables, (0, 100, 0), strict=True):
        p.create_table(name, "id BIGINT, v BIGINT").set_option("data_inlining_row_limit", limit)
    for first in (0, 3):
        with p.transaction() as tx:
            for name in tables:
                tx.table(name).append([{"id": at, "v": 0} for at in range(first, first + 3)])
    x = lake.fork("p", "x")
    _move(x)
    before = p.snapshot
    with p.transaction() as tx:
        for name in tables[:2]:
            tx.table(name).delete("id = 1")
        tx.table(tables[2]).update({"v": "1"}, "id = 1")
    y = lake.fork("p", "y")
    TAKEN_BACK[way](p, before, p.snapshot)
    p.table(tables[1]).update({"v": "2"}, "id = 1")
    if are_all_moved:
        _move(y)
        _move(p)
    y.merge_into(x)
    if are_all_moved:
        _move(x)
    w = lake.fork("p", "w")
    if is_cleaned:
        _clean(lake)
    for source, target in ((x, w), (p, x)):
        source.merge_into(target)
        for name in tables:
            expected = dict.fromkeys(range(6), 0) | ({1: 2} if name == tables[1] else {})
            assert values(target, name) == expected


@pytest.mark.parametrize("ways", [("x", "p"), ("p", "x")], ids="-".join)
def test_a_row_that_went_from_a_file_that_is_gone_stays_deleted_although_the_other_side_has_another_copy(
    lake: forklake.Lake, ways: tuple[str, str]
) -> None:
    p = lake.create_catalog("p")
    table = p.create_table("t", "id BIGINT, v BIGINT")
    table.set_option("data_inlining_row_limit", 0)
    for first in (0, 3):
        table.append([{"id": at, "v": 0} for at in range(first, first + 3)])
    x = lake.fork("p", "x")
    _move(x)
    x.table("t").delete("id = 1")
    x.table("t").rewrite_deletes(0)
    table.delete("id = 1")
    p.undo(p.snapshot)
    _clean(lake)
    for source, target in (ways, ways[::-1]):
        lake.merge(source, target)
        assert values(lake.catalog(target)) == dict.fromkeys((0, 2, 3, 4, 5), 0)


@pytest.mark.parametrize(("ways", "is_cleaned"), [(("x", "w"), True), (("w", "x"), False)])
def test_a_row_that_both_moved_and_both_heard_was_deleted_is_back_where_one_restored_it(
    lake: forklake.Lake, ways: tuple[str, str], is_cleaned: bool
) -> None:
    p = lake.create_catalog("p")
    tables = ["restored", "restored and updated"]
    for name in tables:
        p.create_table(name, "id BIGINT, v BIGINT").append([{"id": at, "v": 0} for at in range(6)])
    x, w, y = lake.fork_many("p", ["x", "w", "y"])
    for name in tables:
        y.table(name).delete("id = 1")
    for side in (x, w):
        _move(side)
    before = w.snapshot
    for side in (x, w):
        y.merge_into(side)
    w.restore(before)
    w.table(tables[1]).update({"v": "2"}, "id = 1")
    if is_cleaned:
        _clean(lake)
    for source, target in (ways, ways[::-1]):
        lake.merge(source, target)
        for at, name in enumerate(tables):
            assert values(lake.catalog(target), name) == dict.fromkeys(range(6), 0) | {1: 2 * at}


@pytest.mark.parametrize(
    ("done", "taken_back", "otherwise"),
    [
        (
            lambda table: table.comment("b"),
            lambda f: f.table("t").comment("a"),
            lambda g: g.table("t").comment("c"),
        ),
        (
            lambda table: table.rename("u"),
            lambda f: f.table("u").rename("t"),
            lambda g: g.table("u").rename("w"),
        ),
        (
            lambda table: table.set_partitioning(["id"]),
            lambda f: f.table("t").set_partitioning([]),
            lambda g: g.table("t").set_partitioning(["v"]),
        ),
        (
            lambda table: table.set_default("v", 1),
            lambda f: f.table("t").set_default("v", None),
            lambda g: g.table("t").set_default("v", 2),
        ),
        (lambda table: table.delete("id < 10"), lambda f: f.undo(f.snapshot), lambda g: g.drop_table("t")),
    ],
    ids=["comment", "name", "partitioning", "default", "rows"],
)
def test_what_both_got_and_one_took_back_is_a_conflict_with_what_the_other_made_of_it(
    lake: forklake.Lake,
    parent: forklake.Catalog,
    done: Callable[[forklake.Table], object],
    taken_back: Callable[[forklake.Catalog], object],
    otherwise: Callable[[forklake.Catalog], object],
) -> None:
    """`f` is as it was before, but not as `g` knows it."""
    parent.table("t").comment("a")
    f, g, x = lake.fork_many("p", ["f", "g", "x"])
    done(x.table("t"))
    x.merge_into(f)
    x.merge_into(g)
    taken_back(f)
    otherwise(g)
    for one, other in ((f, g), (g, f)):
        with pytest.raises(forklake.MergeConflict):
            one.merge_into(other)
