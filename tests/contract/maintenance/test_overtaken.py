"""Reading the present while others commit, expire what was the present, and collect: it is never refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import forklake
from forklake.context.catalog_scope import CatalogScope
from forklake.store.cache import StateCache
from tests.contract.maintenance.cleaned import NOW, clean, rows

Overtake = Callable[[Callable[[forklake.Catalog], None]], None]


@pytest.fixture
def shop(lake: forklake.Lake) -> forklake.Catalog:
    """A catalog with a table whose rows are in two files, a view and a macro."""
    shop = lake.create_catalog("shop")
    shop.create_schema("s")
    table = shop.create_table("s.t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    table.append(rows(0, 3))
    table.append(rows(3, 6))
    shop.create_view("s.w", "SELECT id FROM s.t")
    shop.create_macro("s.plus", ["a"], "a + 1")
    return shop


@pytest.fixture
def overtake(lake: forklake.Lake, reopen: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Overtake]:
    """Let another client change the catalog, expire and collect, when one has just looked where it stands."""
    done: list[bool] = []

    def prepare(change: Callable[[forklake.Catalog], None]) -> None:
        head, other = CatalogScope.head, reopen()

        def overtaken(scope: CatalogScope) -> Any:
            found = head(scope)
            if not done and scope.context.database is lake._database:
                done.append(True)
                # What was remembered of the state would hide that it is gone.
                scope.context.states = StateCache(scope.context.database)
                change(other.catalog("shop"))
                clean(other)
            return found

        monkeypatch.setattr(CatalogScope, "head", overtaken)

    yield prepare
    assert done == [True]


def changed(shop: forklake.Catalog) -> None:
    """Everything gets other rows in the metadata."""
    shop.rename_schema("s", "r")
    table = shop.table("r.t")
    table.overwrite(rows(10, 14))
    shop.rename_view("r.w", "w2")
    shop.rename_macro("r.plus", "plus2")
    table.set_partitioning(["id"])
    table.set_sort_order(["v"])
    table.comment("other")


def other_rows(shop: forklake.Catalog) -> None:
    """The rows are replaced."""
    shop.table("s.t").overwrite(rows(10, 14))


IDS = [10, 11, 12, 13]
READS: dict[str, tuple[Callable[[forklake.Table], Any], Any]] = {
    "to_pylist": (lambda table: sorted(row["id"] for row in table.to_pylist()), IDS),
    "to_batches": (lambda table: sorted(v for b in table.to_batches() for v in b["id"].to_pylist()), IDS),
    "to_reader": (lambda table: sorted(table.to_reader().read_all()["id"].to_pylist()), IDS),
    "head": (lambda table: sorted(table.head(9)["id"].to_pylist()), IDS),
    "count": (lambda table: table.count(), 4),
    "scan": (lambda table: table.scan("id < 12").count(), 2),
    "files": (lambda table: sum(file.record_count for file in table.files()), 4),
    "stats": (lambda table: table.stats().record_count, 4),
    "locate": (lambda table: table.locate(0), None),
}


@pytest.mark.parametrize("how", READS)
def test_rows_of_the_present_are_those_of_the_next_one(
    shop: forklake.Catalog, overtake: Overtake, how: str
) -> None:
    read, expected = READS[how]
    table = shop.table("s.t")
    if how == "scan":
        # A scan is of the snapshot that it was made at: what is overtaken is finding out what that is.
        overtake(changed)
    else:
        overtake(other_rows)
    assert read(table) == expected


LISTS: dict[str, tuple[Callable[[forklake.Catalog], Any], Any]] = {
    "tables": (lambda shop: [(found.schema, found.name) for found in shop.tables()], [("r", "t")]),
    "tables of a schema": (lambda shop: len(shop.tables(schema="r")), 1),
    "schemas": (lambda shop: [schema.name for schema in shop.schemas()], ["main", "r"]),
    "views": (lambda shop: [(view.schema, view.name) for view in shop.views()], [("r", "w2")]),
    "macros": (lambda shop: [(macro.schema, macro.name) for macro in shop.macros()], [("r", "plus2")]),
    "names": (list, ["r.t", "r.w2"]),
    "in": (lambda shop: "r.t" in shop, True),
    "table": (lambda shop: shop.table("r.t").count(), 4),
}


@pytest.mark.parametrize("what", LISTS)
def test_lists_of_the_present_are_those_of_the_next_one(
    shop: forklake.Catalog, overtake: Overtake, what: str
) -> None:
    read, expected = LISTS[what]
    overtake(changed)
    assert read(shop) == expected


FACTS: dict[str, tuple[Callable[[forklake.Table], Any], Any]] = {
    "name": (lambda table: table.full_name, "r.t"),
    "schema": (lambda table: table.schema_name, "r"),
    "columns": (lambda table: [column.name for column in table.columns], ["id", "v"]),
    "partitioning": (lambda table: table.partitioning, ("id",)),
    "sort order": (lambda table: table.sort_order, ("v ASC NULLS LAST",)),
    "tags": (lambda table: table.tags(), {"comment": "other"}),
    "options": (lambda table: table.options().data_inlining_row_limit, 0),
}


@pytest.mark.parametrize("what", FACTS)
def test_what_is_known_of_a_table_is_of_the_next_one(
    shop: forklake.Catalog, overtake: Overtake, what: str
) -> None:
    read, expected = FACTS[what]
    table = shop.table("s.t")
    overtake(changed)
    assert read(table) == expected


@pytest.mark.parametrize(
    "sql", ["SELECT count(*) FROM s.t", "SELECT count(*) FROM s.w", "SELECT s.plus(count(*) - 1) FROM s.t"]
)
def test_queries_of_the_present_are_of_the_next_one(
    shop: forklake.Catalog, overtake: Overtake, sql: str
) -> None:
    def change(shop: forklake.Catalog) -> None:
        other_rows(shop)
        for name in ("w", "plus"):
            # A definition that is replaced ends, and goes.
            if name == "w":
                shop.create_view("s.w", "SELECT id FROM s.t WHERE id > 0", or_replace=True)
            else:
                shop.create_macro("s.plus", ["a"], "a + 1", or_replace=True)

    overtake(change)
    assert shop.sql(sql).to_rows() == [(4,)]


def test_a_past_state_that_is_expired_meanwhile_is_refused(
    lake: forklake.Lake, shop: forklake.Catalog, reopen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = shop.at(shop.snapshot)
    other = reopen()
    get = StateCache.get

    def overtaken(states: StateCache, head: Any) -> Any:
        if states is lake._context.states:
            monkeypatch.undo()
            lake._context.states = states = StateCache(lake._database)
            changed(other.catalog("shop"))
            clean(other)
        return get(states, head)

    monkeypatch.setattr(StateCache, "get", overtaken)
    with pytest.raises(forklake.SnapshotNotFound, match="expired"):
        past.tables()


def test_a_name_that_is_not_there_is_refused_at_once(shop: forklake.Catalog) -> None:
    with pytest.raises(forklake.TableNotFound):
        shop.table("s.nothing")
    with pytest.raises(forklake.TableNotFound):
        shop.sql("SELECT * FROM s.nothing")
    shop.table("s.t").overwrite(rows(1, 2))
    shop.expire(older_than=NOW)
    with pytest.raises(forklake.SnapshotNotFound, match="expired"):
        shop.table("s.t").scan(at=shop.snapshot - 1)
