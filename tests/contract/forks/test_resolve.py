"""Conflicts of rows: shown, decided for one side, merged table by table, or taken back."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.errors import InvalidArgument, MergeConflict, TableNotFound
from tests.contract.forks.two_tables import ROWS, base, fresh, two_tables, values

LARGE = 120
"""More rows than stay inline."""


@pytest.fixture
def parent(lake: forklake.Lake) -> forklake.Catalog:
    return two_tables(lake)


def both_change(lake: forklake.Lake, ours: Any, theirs: Any) -> tuple[forklake.Catalog, forklake.Catalog]:
    """Two forks; the second was merged into the parent already."""
    one, other = lake.fork_many("p", ["one", "other"])
    ours(one.table("t"))
    theirs(other.table("t"))
    lake.merge("other", into="p")
    return one, other


def set_to(value: int, where: str) -> Any:
    return lambda table: table.update({"v": str(value)}, where)


def gone(where: str) -> Any:
    return lambda table: table.delete(where)


@pytest.mark.parametrize("size", [3, LARGE])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (set_to(1, "id < {}"), set_to(2, "id >= {} - 2 AND id < 2 * {} - 2")),
        (set_to(1, "id < {}"), gone("id >= {} - 2 AND id < 2 * {} - 2")),
        (gone("id < {}"), set_to(2, "id >= {} - 2 AND id < 2 * {} - 2")),
    ],
    ids=["both update", "they delete", "we delete"],
)
def test_a_preferred_side_decides_of_single_rows_and_all_others_come_together(
    lake: forklake.Lake, parent: forklake.Catalog, ours: Any, theirs: Any, size: int
) -> None:
    one, other = lake.fork_many("p", ["one", "other"])

    def change(verb: Any, catalog: forklake.Catalog) -> None:
        class Sized:
            def __getattr__(self, name: str) -> Any:
                table = catalog.table("t")
                if name == "update":
                    return lambda to, where: table.update(to, where.replace("{}", str(size)))
                return lambda where: table.delete(where.replace("{}", str(size)))

        verb(Sized())

    change(ours, one)
    change(theirs, other)
    mine, yours = values(one), values(other)
    lake.merge("other", into="p")
    lake.fork_many("p", ["for source", "for target"])
    with pytest.raises(MergeConflict, match="merge with prefer source or target") as refused:
        lake.merge("one", into="p")
    (conflict,) = refused.value.conflicts
    assert conflict.row_count == 2
    both = {size - 2, size - 1}
    assert {(row.base or {})["id"] for row in conflict.rows()} == both
    for row in conflict.rows():
        key = (row.base or {})["id"]
        assert (row.ours or {}).get("v") == mine.get(key)
        assert (row.theirs or {}).get("v") == yours.get(key)
    for prefer, side in (("source", mine), ("target", yours)):
        name = f"for {prefer}"
        result = lake.merge("one", into=name, prefer=prefer)
        expected = {
            key: side.get(key) if key in both else mine.get(key) if key < size else yours.get(key)
            for key in range(ROWS)
        }
        assert values(lake.catalog(name)) == {key: v for key, v in expected.items() if v is not None}
        assert result.snapshot is not None
        assert lake.merge("one", into=name).snapshot is None
        lake.catalog(name).compact()
        assert values(lake.catalog(name)) == {key: v for key, v in expected.items() if v is not None}


def test_what_was_decided_comes_to_whoever_has_seen_one_side_only(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    both_change(lake, set_to(1, "id < 10"), set_to(2, "id >= 5 AND id < 15"))
    late = lake.fork("p", "late", at=parent.snapshots()[-2].id)
    lake.merge("one", into="p", prefer="source")
    expected = base(**{f"_{at}": 1 for at in range(10)}, **{f"_{at}": 2 for at in range(10, 15)})
    assert values(parent) == expected
    for name in ("one", "other", "late"):
        lake.merge("p", into=name)
        assert values(lake.catalog(name)) == expected
        assert lake.catalog(name).diff("p").is_empty
    assert late.table("t").count() == ROWS


def test_two_catalogs_that_decided_otherwise_collide_again(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    both_change(lake, set_to(1, "id < 10"), set_to(2, "id >= 5 AND id < 15"))
    q = lake.fork("p", "q")
    lake.merge("one", into="p", prefer="source")
    lake.merge("one", into="q", prefer="target")
    assert values(parent) != values(q)
    with pytest.raises(MergeConflict, match="both changed the same rows: 5"):
        lake.merge("q", into="p")
    lake.merge("q", into="p", prefer="source")
    assert values(parent) == values(q)
    lake.merge("p", into="q")
    assert values(parent) == values(q)
    assert parent.diff("q").is_empty
    assert q.diff("p").is_empty


def test_tables_are_merged_one_by_one_and_the_rest_later(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    with fork.transaction() as tx:
        tx.table("t").update({"v": "1"}, "id < 5")
        tx.table("u").delete("id < 7")
        tx.create_schema("s")
        tx.create_table("s.n", "a INT").append([{"a": 1}])
        tx.create_view("w", "SELECT 1")
    first = lake.merge("f", into="p", tables=["u"])
    assert [table.name for table in first.tables] == ["main.u"]
    assert (parent.table("u").count(), values(parent) == base()) == (ROWS - 7, True)
    assert lake.merge("f", into="p", tables=["main.u"]).snapshot is None
    fork.table("u").append([{"id": 1000, "v": 9}])
    through = lake.fork("p", "g")
    second = lake.merge("f", into="g", tables=["s.n", "u"])
    assert sorted(table.name for table in second.tables) == ["main.u", "s.n"]
    lake.merge("g", into="p")
    assert parent.table("s.n").scan().to_pylist() == [{"a": 1}]
    assert parent.table("u").count() == through.table("u").count() == ROWS - 6
    rest = lake.merge("f", into="p")
    assert [table.name for table in rest.tables] == ["main.t"]
    assert [view.name for view in parent.views()] == ["w"]
    assert values(parent) == values(fork)
    assert values(parent, "u") == values(fork, "u")
    assert parent.table("s.n").count() == 1
    assert lake.merge("f", into="p").snapshot is None
    assert fork.diff("p").is_empty


def test_bad_ways_to_resolve_are_refused_before_anything_is_done(
    lake: forklake.Lake, parent: forklake.Catalog, unchanged: Any
) -> None:
    lake.fork("p", "f").table("t").delete("id = 1")
    cases: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"prefer": "ours"}, InvalidArgument, 'prefers "source" or "target"'),
        ({"tables": []}, InvalidArgument, "names at least one"),
        ({"tables": "t"}, InvalidArgument, "given as a list"),
        ({"tables": ["nobody"]}, TableNotFound, "nobody"),
    )
    for options, kind, words in cases:
        with unchanged(), pytest.raises(kind, match=words):
            lake.merge("f", into="p", **options)


def test_definitions_that_were_taken_back_stand_in_nobodys_way(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    fork.table("t").append(fresh(5, 1000))
    parent.table("t").add_column("extra", "INT")
    with pytest.raises(MergeConflict, match="old definition"):
        lake.merge("f", into="p")
    parent.table("t").drop_column("extra")
    lake.merge("f", into="p")
    assert parent.table("t").count() == ROWS + 5


def test_ids_of_columns_that_files_remember_are_no_other_columns(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    fork.table("t").add_column("ours", "INT", default=7)
    parent.table("t").add_column("theirs", "INT")
    parent.table("t").append(pa.table({"id": range(1000, 1200), "theirs": [5] * 200}))
    parent.table("t").drop_column("theirs")
    with pytest.raises(MergeConflict, match="both change its definition"):
        lake.merge("f", into="p")
    parent.table("t").delete("id >= 1000")
    parent.table("t").append(fresh(200, 2000))
    lake.merge("f", into="p")
    assert parent.table("t").scan("ours = 7").count() == ROWS + 200
    assert parent.table("t").scan("ours = 5 OR ours IS NULL").count() == 0


def test_rows_that_one_side_moved_and_the_other_changed_are_found_by_their_ids(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    parent.table("t").append(fresh(ROWS, 1000))
    forks = lake.fork_many("p", ["moved", "changed", "both"])
    forks[0].compact()
    forks[1].table("t").delete("id = 3 OR id >= 1000 AND id < 1150")
    forks[1].table("t").update({"v": "1"}, "id = 4")
    forks[2].table("t").update({"v": "2"}, "id = 5 OR id = 1200")
    forks[2].table("t").append(fresh(ROWS, 2000))
    forks[2].compact()
    forks[2].table("t").delete("id = 6")
    expected = {
        **{key: 0 for start in (0, 1000, 2000) for key in range(start, start + ROWS)},
        4: 1,
        5: 2,
        1200: 2,
    }
    for key in (3, 6, *range(1000, 1150)):
        del expected[key]
    lake.fork("p", "other order")
    for name in ("moved", "changed", "both"):
        lake.merge(name, into="p")
    for name in ("both", "changed", "moved"):
        lake.merge(name, into="other order")
    for catalog in (parent, lake.catalog("other order")):
        assert values(catalog) == expected
        catalog.compact()
        assert values(catalog) == expected
    assert lake.merge("p", into="other order").tables == ()


def test_what_was_restored_on_one_side_stands_in_nobodys_way(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    one, other = lake.fork_many("p", ["one", "other"])
    start = one.snapshot
    for fork, value in ((one, 1), (other, 2)):
        fork.table("t").update({"v": str(value)}, f"id < {LARGE}")
        fork.table("u").add_column(f"c{value}", "INT")
    lake.merge("other", into="p")
    with pytest.raises(MergeConflict):
        lake.merge("one", into="p")
    one.table("t").restore(start)
    one.table("u").restore(start)
    one.table("t").append(fresh(1, 5000))
    lake.merge("one", into="p")
    assert values(parent) == base(**{f"_{at}": 2 for at in range(LARGE)}) | {5000: 0}
    assert [column.name for column in parent.table("u").columns][-1] == "c2"
    # The other way round: the target has taken back what it did.
    two = lake.fork("p", "two")
    seen = parent.snapshot
    two.table("t").delete("id < 50")
    parent.table("t").update({"v": "9"}, "id < 60")
    with pytest.raises(MergeConflict):
        lake.merge("two", into="p")
    parent.restore(seen)
    lake.merge("two", into="p")
    assert parent.table("t").count() == ROWS + 1 - 50
    assert parent.table("t").scan("v = 9").count() == 0


@pytest.mark.parametrize("limit", [0, 100])
@pytest.mark.parametrize(
    "change", [None, set_to(5, "id = 1"), gone("id = 1")], ids=["none", "update", "delete"]
)
def test_a_table_that_was_dropped_and_is_back_brings_no_row_twice(
    lake: forklake.Lake, parent: forklake.Catalog, change: Any, limit: int
) -> None:
    parent.table("t").set_option("data_inlining_row_limit", limit)
    parent.table("t").append(fresh(3, 1000).to_pylist())
    fork = lake.fork("p", "f")
    if change is not None:
        change(fork.table("t"))
    expected = values(fork)
    parent.drop_table("t")
    parent.undrop_table("t")
    lake.merge("p", into="f")
    assert values(fork) == expected
    lake.merge("f", into="p")
    assert values(parent) == expected


@pytest.mark.parametrize(
    "mark",
    [
        lambda table: table.comment("mine", column="v"),
        lambda table: table.create_index("mine", kind="hash", columns=["id"]),
    ],
    ids=["comment", "index"],
)
def test_columns_that_one_side_left_alone_can_be_commented_and_indexed_by_the_other(
    lake: forklake.Lake, parent: forklake.Catalog, mark: Any
) -> None:
    fork, gone = lake.fork_many("p", ["f", "gone"])
    for catalog in (fork, gone):
        mark(catalog.table("t"))
        catalog.table("t").append(fresh(1, 1000))
    parent.table("t").add_column("more", "INT", default=7)
    before = lake.fork("p", "before")
    with pytest.raises(MergeConflict, match='Merge "p" into "f" first'):
        lake.merge("f", into="p")
    assert lake.replay("f", onto="before").refused == ()
    lake.merge("p", into="f")
    lake.merge("f", into="p")
    lake.merge("f", into="before")
    for catalog in (fork, parent, before):
        table = catalog.table("t")
        assert table.scan("more = 7").count() == ROWS + 1
        assert [table.scan(f"id = {key}").count() for key in (1, 1000)] == [1, 1]
        assert table.tags(column="v") or table.indexes()


def test_columns_that_one_side_dropped_are_not_commented_or_indexed_by_the_other(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    fork.table("t").comment("mine", column="v")
    fork.table("u").create_index("mine", kind="hash", columns=["v"])
    for name in ("t", "u"):
        parent.table(name).drop_column("v")
    for source, into, rules in (
        ("f", "p", {"its columns were altered"}),
        ("p", "f", {"a comment was set on its columns", "an index was created on its columns"}),
    ):
        found = lake.merge(source, into, dry_run=True).conflicts
        assert ({c.ours.name for c in found}, {c.rule for c in found}) == ({"t", "u"}, rules)


def test_only_the_rows_that_a_merge_decided_of_count_as_decided(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    parent.table("t").update({"v": "1"}, "id = 10")
    fork.table("t").update({"v": "2"}, "id = 10")
    parent.compact()
    fork.compact()
    lake.merge("p", into="f", prefer="target")
    parent.table("t").delete("id = 3")
    lake.merge("f", into="p")
    expected = base(_10=2)
    del expected[3]
    assert values(parent) == expected


def test_what_was_restored_is_no_difference_and_nothing_to_merge(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    start = fork.snapshot
    fork.table("t").update({"v": "1"}, f"id < {LARGE}")
    fork.table("t").restore(start)
    assert fork.diff().is_empty
    assert lake.merge("f", into="p").tables == ()


def test_a_conflict_can_be_pickled_and_says_where_its_rows_are(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    both_change(lake, set_to(1, "id = 1"), set_to(2, "id = 1"))
    with pytest.raises(MergeConflict) as refused:
        lake.merge("one", into="p")
    copied = pickle.loads(pickle.dumps(refused.value))  # noqa: S301 - our own
    assert (str(copied), copied.conflicts) == (str(refused.value), refused.value.conflicts)
    assert copied.conflicts[0].theirs.schema == copied.conflicts[0].ours.schema == "main"
    with pytest.raises(InvalidArgument, match="in the process that merged"):
        copied.conflicts[0].rows()
