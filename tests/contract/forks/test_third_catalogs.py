"""Merges after which something came through a third catalog: nobody forgets it, whatever way it took.

Catalogs are named by the part that they play. `p` is the one that all descend from, `f` a fork of it that
knows what `p` knew then; `x`, `y`, `z` and `w` are the others that things come through.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

import forklake

Change = Callable[[forklake.Catalog], Any]
ROWS = 300
LARGE = 120
"""More than what stays in the metadata."""


def append(first: int, number: int = 1) -> Change:
    return lambda c: c.table("t").append([{"id": at, "v": 0} for at in range(first, first + number)])


def delete(first: int, number: int = 1) -> Change:
    return lambda c: c.table("t").delete(f"id >= {first} AND id < {first + number}")


def update(first: int, number: int = 1) -> Change:
    return lambda c: c.table("t").update({"v": "v + 1"}, f"id >= {first} AND id < {first + number}")


def define(c: forklake.Catalog) -> None:
    c.table("t").add_column("extra", "INT", default="5")


def view(c: forklake.Catalog) -> None:
    c.create_view(f"of_{c.name}", "SELECT 1")


FIRST: dict[str, Change] = {
    "append": append(1000),
    "large append": append(1000, LARGE),
    "delete": delete(0),
    "large delete": delete(0, LARGE),
    "update": update(0),
    "large update": update(0, LARGE),
    "definition": define,
    "view": view,
}
"""What comes first, by way of a third catalog."""
OWN: dict[str, Change] = {
    "append": append(2000),
    "delete": delete(290),
    "large delete": delete(170, LARGE),
    "update": update(290),
    "large update": update(170, LARGE),
}
"""What the fork does: rows that nobody else touches."""


@pytest.fixture
def parent(lake: forklake.Lake) -> forklake.Catalog:
    parent = lake.create_catalog("p")
    parent.create_table("t", "id BIGINT, v BIGINT").append([{"id": at, "v": 0} for at in range(ROWS)])
    return parent


def shown(catalog: forklake.Catalog) -> Any:
    """All rows with their ids, counted in every way, and the names of views."""
    table = catalog.table("t")
    found = table.scan(row_ids=True).to_pylist()
    assert table.count() == table.stats().record_count == len(found)
    assert len({row["row_id"] for row in found}) == len(found)
    return sorted(tuple(row.items()) for row in found), sorted(each.name for each in catalog.views())


def settle(lake: forklake.Lake, one: str, other: str) -> Any:
    """Merge both ways; then both show the same, and go on doing so when files are rewritten. Gives that."""
    for source, into in ((one, other), (other, one)):
        catalog, into_catalog = lake.catalog(source), lake.catalog(into)
        catalog.diff(into)
        dry = lake.merge(source, into, dry_run=True)
        result = lake.merge(source, into)
        assert (dry.conflicts, dry.changes, dry.tables) == ((), result.changes, result.tables)
        assert catalog.diff(into).is_empty
        assert lake.merge(source, into).changes == ()
        shown(into_catalog)
    found = shown(lake.catalog(one))
    assert shown(lake.catalog(other)) == found
    for name in (one, other):
        catalog = lake.catalog(name)
        catalog.flush_inlined()
        catalog.compact()
        catalog.rewrite_deletes(0)
        assert shown(catalog) == found
    return found


def merge_through(lake: forklake.Lake, *names: str) -> None:
    """The first into the second, that into the third, and so on."""
    for source, into in pairwise(names):
        lake.merge(source, into=into)


# ---- A fork of a merged fork is merged ---


@pytest.mark.parametrize("first", FIRST)
def test_a_fork_of_a_merged_fork_can_be_merged(
    lake: forklake.Lake, parent: forklake.Catalog, first: str
) -> None:
    x = lake.fork("p", "x")
    FIRST[first](x)
    lake.merge("x", into="p")
    f = lake.fork("p", "f")
    append(3000)(lake.fork("x", "y"))
    lake.merge("y", into="p")
    assert not parent.diff("f").is_empty
    assert f.diff("p").is_empty
    delete(170, LARGE)(f)
    settle(lake, "f", "p")
    assert lake.merge("x", into="f").changes == lake.merge("y", into="f").changes == ()


@pytest.mark.parametrize("mode", ["reference", "copy"])
@pytest.mark.parametrize("dropped", [(), ("x", "y")])
def test_forks_of_merged_forks_are_known_however_deep_and_however_they_are_stored(
    lake: forklake.Lake, parent: forklake.Catalog, mode: Any, dropped: tuple[str, ...]
) -> None:
    """Each is a fork of the one before, and is merged into the parent, past the one that it is of."""
    append(1000)(lake.fork("p", "x"))
    lake.merge("x", into="p")
    f = lake.fork("p", "f", mode=mode)
    for number, (of, name) in enumerate((("x", "y"), ("y", "z"), ("z", "w"))):
        append(3000 + number)(lake.fork(of, name, mode=mode))
        lake.merge(name, into="p")
    lake.drop_catalogs(dropped)
    delete(0)(f)
    rows, _ = settle(lake, "f", "p")
    assert len(rows) == ROWS + 4 - 1


def test_a_fork_of_a_merged_forks_past_can_be_merged(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    x = lake.fork("p", "x")
    append(1000)(x)
    past = x.snapshot
    append(1001)(x)
    lake.merge("x", into="p")
    f = lake.fork("p", "f")
    append(3000)(lake.fork("x", "y", at=past))
    lake.merge("y", into="p")
    delete(0)(f)
    rows, _ = settle(lake, "f", "p")
    assert len(rows) == ROWS + 3 - 1


def test_a_fork_of_a_merged_fork_is_known_between_siblings_too(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    append(1000)(lake.fork("p", "x"))
    lake.merge("x", into="p")
    f, g = lake.fork_many("p", ["f", "g"])
    append(3000)(lake.fork("x", "y"))
    lake.merge("y", into="g")
    delete(0)(f)
    delete(1)(g)
    settle(lake, "f", "g")
    settle(lake, "p", "f")
    assert parent.table("t").count() == ROWS + 2 - 2


# ---- Both know what came through a third catalog ---


PAIRS = [(first, "delete") for first in FIRST] + [("delete", own) for own in OWN if own != "delete"]


@pytest.mark.parametrize("ways", [("f", "p"), ("p", "f")], ids=["f into p", "p into f"])
@pytest.mark.parametrize(("first", "own"), [*PAIRS, ("large delete", "large update")])
def test_what_both_know_through_a_third_catalog_is_no_news(
    lake: forklake.Lake, parent: forklake.Catalog, first: str, own: str, ways: tuple[str, str]
) -> None:
    """Only the fork did anything, so nothing can stand in the way, and nothing else is merged."""
    _, z, w = lake.fork_many("p", ["x", "z", "w"])
    FIRST[first](z)
    merge_through(lake, "z", "x", "p")
    f = lake.fork("p", "f")
    view(w)
    merge_through(lake, "w", "z", "p")
    lake.merge("w", into="f")
    assert shown(f) == shown(parent)
    assert f.diff("p").is_empty
    assert parent.diff("f").is_empty
    OWN[own](f)
    after = shown(f)
    assert parent.diff("f").is_empty
    assert lake.merge("p", into="f", dry_run=True).tables == ()
    assert settle(lake, *ways) == after


def test_a_count_stays_right_after_a_merge_of_what_both_know(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    """Two rows were deleted, one here and one by way of others: none of them counts twice."""
    _, z, w = lake.fork_many("p", ["x", "z", "w"])
    delete(1)(z)
    merge_through(lake, "z", "x", "p")
    f = lake.fork("p", "f")
    view(w)
    merge_through(lake, "w", "z", "p")
    lake.merge("w", into="f")
    delete(299)(f)
    lake.merge("p", into="f")
    table = f.table("t")
    for _ in range(2):
        assert table.count() == table.stats().record_count == len(table.scan().to_pylist()) == 298
        table.compact()


@pytest.mark.parametrize("size", [1, LARGE])
def test_each_side_may_take_other_rows_of_one_file_though_both_know_the_third(
    lake: forklake.Lake, parent: forklake.Catalog, size: int
) -> None:
    """The third catalog takes rows as well, and one that it brings along."""
    _, z, w = lake.fork_many("p", ["x", "z", "w"])
    delete(0, 2)(z)
    merge_through(lake, "z", "x", "p")
    f = lake.fork("p", "f")
    delete(10, 3)(w)
    merge_through(lake, "w", "z", "p")
    lake.merge("w", into="f")
    delete(20, size)(f)
    update(150, size)(parent)
    rows, _ = settle(lake, "f", "p")
    assert len(rows) == ROWS - 2 - 3 - size
    assert sum(dict(row)["v"] for row in rows) == size


# ---- Large deletes and updates of one file ---


@pytest.mark.parametrize("other", ["delete", "large delete", "update", "large update"])
@pytest.mark.parametrize("one", ["delete", "large delete", "update", "large update"])
def test_different_rows_of_one_file_merge_whatever_their_number(
    lake: forklake.Lake, parent: forklake.Catalog, one: str, other: str
) -> None:
    f, g = lake.fork_many("p", ["f", "g"])
    FIRST[one](f)
    OWN[other](g)
    merge_through(lake, "f", "p")
    merge_through(lake, "g", "p")
    rows = shown(parent)
    sizes = {"delete": 1, "large delete": LARGE, "update": 0, "large update": 0}
    assert parent.table("t").count() == ROWS - sizes[one] - sizes[other]
    assert settle(lake, "f", "g") == rows == settle(lake, "p", "f")


@pytest.mark.parametrize("size", [1, LARGE])
@pytest.mark.parametrize("verbs", [(delete, delete), (delete, update), (update, delete), (update, update)])
def test_one_row_that_both_changed_is_a_conflict_whatever_their_number(
    lake: forklake.Lake, parent: forklake.Catalog, verbs: tuple[Any, Any], size: int
) -> None:
    f, g = lake.fork_many("p", ["f", "g"])
    verbs[0](0, size)(f)
    verbs[1](size - 1, size)(g)
    lake.merge("f", into="p")
    before = shown(parent)
    assert lake.merge("g", into="p", dry_run=True).conflicts
    with pytest.raises(forklake.MergeConflict):
        lake.merge("g", into="p")
    assert shown(parent) == before


@pytest.mark.parametrize("limit", [0, 100])
def test_a_row_whose_file_only_others_had_was_deleted_here_by_a_merge_and_does_not_come_back(
    lake: forklake.Lake, parent: forklake.Catalog, limit: int
) -> None:
    parent.table("t").set_option("data_inlining_row_limit", limit)
    behind = lake.fork("p", "f")
    append(1000)(parent)
    x = lake.fork("p", "x")
    delete(1000)(x)
    lake.merge(x, behind)
    update(1000)(parent)
    with pytest.raises(forklake.MergeConflict, match="changed the same rows: 1"):
        lake.merge(parent, behind)
    assert 1000 not in {row["id"] for row in behind.table("t").to_pylist()}


@pytest.mark.parametrize(
    ("inlined", "move"), [(2, "flush_inlined"), (0, "compact")], ids=["flush", "compact"]
)
@pytest.mark.parametrize("cleaned", [False, True], ids=["", "cleaned"])
def test_rows_that_are_known_to_be_deleted_do_not_come_back_with_a_file_to_which_they_were_moved(
    lake: forklake.Lake, inlined: int, move: str, cleaned: bool
) -> None:
    p = lake.create_catalog("p")
    t = p.create_table("t", "id INT")
    t.set_option("data_inlining_row_limit", inlined)
    empty = p.snapshot
    t.append([{"id": 1}])
    t.append([{"id": 2}, {"id": 3}])
    x, y = lake.fork("p", "x"), lake.fork("p", "y", at=empty)
    z = lake.fork("y", "z")
    x.table("t").delete("id < 3")
    getattr(t, move)()
    # One has the file that the rows were moved to, and the other knows that they were there and are gone.
    lake.merge("p", "y")
    lake.merge("x", "z")
    if cleaned:
        lake.expire(older_than=timedelta(0))
        lake.collect_garbage(older_than=timedelta(0))
    lake.merge("y", "z")
    assert [row["id"] for row in z.table("t").to_pylist()] == [3]
    lake.merge("z", "y")
    assert [row["id"] for row in y.table("t").to_pylist()] == [3]


# ---- Rows are moved by who does not know what became of them elsewhere ---


def moved_before_and_after(lake: forklake.Lake) -> tuple[forklake.Catalog, forklake.Catalog]:
    """One updated rows; the other moved these before it heard of that, and again afterwards."""
    x, f = lake.fork_many("p", ["x", "f"])
    update(0, 5)(x)
    for first in (1000, 2000):
        append(first, LARGE)(f)
        f.compact()
        lake.merge("x", into="f")
    return x, f


@pytest.mark.parametrize("change", [delete(2), update(2), delete(0, 5)], ids=["delete", "update", "all"])
def test_a_row_that_was_moved_before_and_after_an_update_came_is_as_the_update_left_it(
    lake: forklake.Lake, parent: forklake.Catalog, change: Change
) -> None:
    x, f = moved_before_and_after(lake)
    change(x)
    rows = x.table("t").count()
    settle(lake, "f", "x")
    assert f.table("t").count() == rows + 2 * LARGE


def test_a_conflict_shows_what_both_knew_last(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    x, f = moved_before_and_after(lake)
    update(2, 2)(x)
    delete(3, 2)(f)
    for source, into in (("x", "f"), ("f", "x")):
        (conflict,) = lake.merge(source, into, dry_run=True).conflicts
        (row,) = conflict.rows()
        versions = {row.base["v"], *(side["v"] for side in (row.ours, row.theirs) if side is not None)}
        assert (row.base["id"], row.base["v"], versions) == (3, 1, {1, 2})


def test_a_row_whose_file_neither_side_ever_had_is_in_conflict_all_the_same(lake: forklake.Lake) -> None:
    parent = lake.create_catalog("p")
    parent.create_table("t", "id BIGINT, v BIGINT")
    lake.fork_many("p", ["f", "x"])
    append(0)(parent)
    y, z = lake.fork_many("p", ["y", "z"])
    delete(0)(y)
    merge_through(lake, "y", "f")
    append(1000)(z)
    z.compact()
    update(0)(z)
    merge_through(lake, "z", "x")
    for source, into in (("x", "f"), ("f", "x")):
        (conflict,) = lake.merge(source, into, dry_run=True).conflicts
        assert [row.row_id for row in conflict.rows()] == [0]


@pytest.mark.parametrize(
    ("change", "limit", "is_late"),
    [
        (delete(4), 0, False),
        (delete(3, 3), 0, False),
        (lambda c: None, 100, True),
        (update(4), 100, True),
        (delete(0), 100, True),
    ],
    ids=["delete beside", "all beside", "moved again", "update beside, moved again", "delete, moved again"],
)
def test_rows_that_were_moved_to_two_places_are_in_nobodys_way_and_stay(
    lake: forklake.Lake, change: Change, limit: int, *, is_late: bool
) -> None:
    """`p` and `f` know of both moves, and each has kept the copy that it had when it heard of the other."""
    parent = lake.create_catalog("p")
    parent.create_table("t", "id BIGINT, v BIGINT").set_option("data_inlining_row_limit", limit)
    append(0, 2)(parent)
    append(2)(parent)
    x = lake.fork("p", "x")
    update(1)(parent)
    f, y = lake.fork_many("p", ["f", "y"])
    append(3, 3)(parent)
    parent.compact()
    lake.fork("p", "w")
    for moved in (x, y):
        moved.flush_inlined()
        moved.compact()
    for source, into in (("y", "p"), ("y", "f"), ("w", "f"), *([("x", "p")] if is_late else [])):
        lake.merge(source, into)
    change(f)
    rows = f.table("t").scan(row_ids=True).to_arrow().sort_by("row_id")
    settle(lake, "f", "p")
    assert parent.table("t").scan(row_ids=True).to_arrow().sort_by("row_id") == rows
