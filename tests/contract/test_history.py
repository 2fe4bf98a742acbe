"""History in words: what commits did, with the names that things had then."""

from __future__ import annotations

import forklake
from forklake.store.backend import Database


def last(catalog: forklake.Catalog) -> str:
    return catalog.snapshots()[-1].summary


def test_a_summary_has_names_where_the_notation_has_ids(lake: forklake.Lake) -> None:
    shop = lake.create_catalog("shop")
    said = [last(shop)]

    def did(change: object) -> None:
        said.append(last(shop))

    did(shop.create_schema("sales"))
    table = shop.create_table("sales.orders", "id INT, n INT")
    did(table)
    did(table.append([{"id": n} for n in range(30)]))
    did(table.update({"n": "3"}, "id < 5"))
    did(table.delete("id = 1"))
    did(table.rename("bought"))
    did(table.comment("what was bought"))
    did(table.set_tag("owner", "ada", column="n"))
    did(table.set_nullable("id", False))
    did(shop.flush_inlined())
    table.append([{"id": n} for n in range(30, 60)])
    shop.flush_inlined()
    did(table.compact())
    did(shop.create_view("v", "SELECT 1"))
    did(shop.rename_view("v", "w"))
    did(shop.create_macro('"odd name"', ["a"], "a"))
    did(shop.rename_schema("sales", "shopping"))
    did(shop.drop_schema("shopping", cascade=True))
    assert said == [
        "created catalog shop, created schema main",
        "created schema sales",
        "created table sales.orders",
        "inserted into sales.orders",
        "updated sales.orders",
        "deleted from sales.orders",
        "renamed a table to sales.bought",
        "commented table bought",
        "tagged table bought",
        "altered table sales.bought",
        "flushed inlined rows of sales.bought",
        "compacted sales.bought",
        "created view main.v",
        "renamed a view to main.w",
        'created macro main."odd name"',
        "renamed a schema to shopping",
        "dropped schema shopping, dropped table shopping.bought",
    ]
    with shop.transaction() as tx:
        one, two = tx.create_table("a", "id INT"), tx.create_table("b", "id INT")
        one.append([{"id": 1}])
        two.append([{"id": 1}])
    assert set(last(shop).split(", ")) == {
        "created table main.a",
        "created table main.b",
        "inserted into main.a",
        "inserted into main.b",
    }


def test_forks_and_merges_are_told_by_the_names_that_catalogs_had_then(lake: forklake.Lake) -> None:
    shop = lake.create_catalog("shop")
    shop.create_table("t", "id INT")
    fork = shop.fork("agent")
    fork.table("t").append([{"id": 1}])
    fork.merge_into(shop)
    assert (last(fork), last(shop)) == ("inserted into main.t", "merged agent, inserted into main.t")
    lake.rename_catalog("agent", "robot")
    lake.rename_catalog("shop", "store")
    lake.catalog("robot").materialize()
    assert [snapshot.summary for snapshot in fork.snapshots() if snapshot.catalog in ("agent", "robot")] == [
        "forked from shop",
        "inserted into main.t",
        "renamed a catalog to robot",
        "materialized catalog robot",
    ]
    assert last(lake.catalog("store").fork("late")) == "forked from store"
    assert [snapshot.summary for snapshot in lake.snapshots()][-1] == "forked from store"
    assert [snapshot.summary for snapshot in shop.table("t").history()] == [
        "created table main.t",
        "merged agent, inserted into main.t",
    ]


def test_history_takes_as_many_queries_however_long_it_is(
    lake: forklake.Lake, catalog: forklake.Catalog, database: Database, monkeypatch
) -> None:
    asked: list[str] = []
    rows = type(database).rows

    def counted(self: Database, statement: str, /, **params: object) -> object:
        asked.append(statement)
        return rows(self, statement, **params)

    monkeypatch.setattr(type(database), "rows", counted)

    def queries() -> int:
        asked.clear()
        assert all(snapshot.summary for snapshot in lake.snapshots()[1:])
        return len(asked)

    table = catalog.create_table("t", "id INT")
    catalog.fork("f0")
    few = queries()
    for number in range(1, 6):
        table.append([{"id": number}])
        lake.catalog("f0").fork(f"f{number}").table("t").append([{"id": 7}])
        lake.merge(f"f{number}", "f0")
    assert queries() == few, asked


def test_what_something_else_wrote_is_shown_in_its_own_notation(catalog: forklake.Catalog, raw) -> None:
    table = catalog.create_table("t", "id INT")
    table.append([{"id": 1}])
    at = catalog.snapshot
    raw(f"UPDATE ducklake_snapshot_changes SET footprint = NULL WHERE snapshot_id = {at}")
    assert last(catalog) == f"inlined_insert:{table.id}" == catalog.snapshots()[-1].changes
    assert "_footprint" not in repr(catalog.snapshots()[-1])
