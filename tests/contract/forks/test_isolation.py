"""Parent and forks never see, hinder or delay each other (F1, F6, C5)."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

import forklake
from tests.contract.forks.seen import CHANGES, look
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered

THREADS = 8


def test_nobody_notices_what_a_fork_does(lake: forklake.Lake, parent: forklake.Catalog, raw) -> None:
    before = look(parent)
    stored = f"SELECT * FROM {{}} WHERE catalog_id = {parent.id}"
    kinds = ("table", "column", "data_file", "delete_file", "inlined_delete", "table_stats", "tag", "view")
    rows = {kind: sorted(map(repr, raw(stored.format(f"ducklake_{kind}")))) for kind in kinds}
    forks = dict(zip([*CHANGES, "still"], lake.fork_many("parent", [*CHANGES, "still"]), strict=True))
    for name, change in CHANGES.items():
        change(forks[name])
        assert forks[name].snapshot > forks["still"].snapshot, name
    assert look(parent) == look(forks["still"]) == before
    assert {kind: sorted(map(repr, raw(stored.format(f"ducklake_{kind}")))) for kind in kinds} == rows


PARENTS_CHANGES = (
    "append many",
    "delete many",
    "delete inlined rows",
    "update",
    "merge",
    "flush",
    "delete imported",
    "add column",
    "rename column",
    "partition",
    "unsort",
    "option",
    "comment",
    "remove tag",
    "replace view",
    "drop macro",
    "drop schema",
)
"""In an order that lets each come to something."""


def test_no_fork_notices_what_its_parent_does(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    before, point = look(parent), parent.snapshot
    still, busy = lake.fork("parent", "still"), lake.fork("parent", "busy")
    CHANGES["update"](busy)
    after, told = look(busy), feed(busy.table("s.t"), point)
    grandchild = lake.fork("busy", "grandchild")
    for name in PARENTS_CHANGES:
        CHANGES[name](parent)
        assert content(still.table("s.t")) == before["tables"]["s", "t"]["rows"], name
    assert look(still) == look(still.at(parent.snapshot)) == before
    assert look(busy) == look(grandchild) == after
    assert feed(busy.table("s.t"), point) == feed(grandchild.table("s.t"), point) == told
    assert look(parent.at(point)) == look(grandchild.at(point)) == before


def test_transactions_of_parent_and_fork_on_one_table_never_meet(
    lake: forklake.Lake, catalog: forklake.Catalog, counted
) -> None:
    catalog.create_table("t", "id BIGINT, v VARCHAR").append(many())
    child = lake.fork("main_catalog", "child")
    grandchild = lake.fork("child", "grandchild")
    open_ones = [each.transaction() for each in (catalog, child, grandchild)]
    with counted() as statements:
        for number, tx in enumerate(open_ones):
            # All of these would conflict within one catalog.
            tx.table("t").update({"v": f"'{number}'"}, "id < 120")
            tx.table("t").delete("id = 130")
            tx.table("t").add_column(f"c{number}", "INT")
            tx.table("t").rename(f"t{number}")
            tx.create_table("new", "a INT")
        for tx in reversed(open_ones):
            tx.commit()
    # Nobody had to look at what others did.
    assert "footprints_since" not in statements
    for number, each in enumerate((catalog, child, grandchild)):
        table = each.table(f"t{number}")
        assert table.count() == MANY - 1
        assert {row[2] for row in content(table) if row[1] < 120} == {str(number)}
        assert [info.name for info in each.tables()] == ["new", f"t{number}"]
        assert [column.name for column in table.columns] == ["id", "v", f"c{number}"]


def test_forks_commit_at_the_same_time(lake: forklake.Lake, catalog: forklake.Catalog, in_threads) -> None:
    catalog.create_table("t", "id BIGINT, v VARCHAR").append(many())
    forks = lake.fork_many("main_catalog", [f"f{number}" for number in range(THREADS)])

    def work(number: int) -> list[int]:
        fork = forks[number]
        made = []
        for turn in range(5):
            with fork.transaction() as tx:
                tx.table("t").append(numbered(1000 + turn, v=fork.name))
                tx.table("t").delete(f"id = {10 * number + turn}")
            made.append(fork.snapshot)
        return made

    made = in_threads(*(lambda n=number: work(n) for number in range(THREADS)))
    assert all(numbers == sorted(numbers) for numbers in made)
    assert len({snapshot for numbers in made for snapshot in numbers}) == 5 * THREADS
    new: list[int] = []
    for number, fork in enumerate(forks):
        table = fork.table("t")
        left = [at for at in range(MANY) if not 10 * number <= at < 10 * number + 5]
        assert ids(table) == [*left, *range(1000, 1005)]
        assert table.count() == MANY
        found = content(table)
        new += [row[0] for row in found if row[1] >= 1000]
        assert {row[2] for row in found if row[1] >= 1000} == {fork.name}
    assert len(new) == len(set(new)) == 5 * THREADS
    assert ids(catalog.table("t")) == list(range(MANY))


def test_a_first_change_costs_what_it_touches(
    lake: forklake.Lake, catalog: forklake.Catalog, row_counts
) -> None:
    files = 500
    table = catalog.create_table("t", "id BIGINT, v VARCHAR", partition_by=["id"])
    table.set_option("data_inlining_row_limit", 1)
    table.append(pa.table({"id": pa.array(range(files), pa.int64()), "v": ["x"] * files}))
    table.set_option("data_inlining_row_limit", 100)
    assert len(table.files()) == files
    first_changes: dict[str, Callable[[forklake.Table], object]] = {
        "append": lambda t: t.append(numbered(1000)),
        "delete": lambda t: t.delete("id = 7"),
        "update": lambda t: t.update({"v": "'u'"}, "id = 7"),
        "rename": lambda t: t.rename("other"),
        "comment": lambda t: t.comment("mine"),
        "add column": lambda t: t.add_column("n", "INT", default="7"),
        "drop": lambda t: t.drop(),
    }
    for name, change in first_changes.items():
        child = lake.fork("main_catalog", name).table("t")
        before = row_counts()
        change(child)
        after = row_counts()
        added = {kind: after[kind] - before[kind] for kind in after if after[kind] != before[kind]}
        assert sum(added.values()) <= 12, (name, added)
        if name != "drop":
            assert child.count() == files + {"append": 1, "delete": -1}.get(name, 0)
    assert table.count() == files
