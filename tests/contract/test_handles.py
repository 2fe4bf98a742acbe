"""What handles do beside the verbs: shortcuts, `in`, iteration, and how they look."""

from __future__ import annotations

import pyarrow as pa
import pytest

import forklake
from forklake import QualifiedName
from tests.contract.conftest import Reopen

ROWS = [{"id": n, "name": f"n{n}"} for n in range(20)]


@pytest.fixture
def shop(lake: forklake.Lake) -> forklake.Catalog:
    shop = lake.create_catalog("shop")
    shop.create_schema("sales")
    shop.create_table("sales.orders", "id INT NOT NULL, name VARCHAR").append(ROWS)
    shop.create_view("recent", "SELECT 1")
    return shop


def test_a_catalog_forks_itself(lake: forklake.Lake, shop: forklake.Catalog) -> None:
    before = shop.snapshot
    shop.table("sales.orders").delete("id < 5")
    fork = shop.fork("agent", message="try")
    past = shop.at(before).fork("past")
    assert (fork.table("sales.orders").count(), past.table("sales.orders").count()) == (15, 20)
    assert shop.fork("agent", if_not_exists=True).id == fork.id
    assert fork.snapshots()[-1].message == "try"
    with pytest.raises(forklake.CatalogExists):
        shop.fork("agent")
    signed = shop.with_commit_info(author="ada").fork("signed")
    assert signed.snapshots()[-1].author == "ada"


def test_a_catalog_merges_into_another(lake: forklake.Lake, shop: forklake.Catalog) -> None:
    fork = shop.fork("agent")
    fork.table("sales.orders").append([{"id": 99}])
    assert fork.merge_into(shop, dry_run=True).snapshot is None
    assert shop.table("sales.orders").count() == 20
    assert fork.parent is not None
    result = fork.with_commit_info(author="ada").merge_into(fork.parent, message="done")
    assert result.snapshot == shop.snapshot
    assert (shop.snapshots()[-1].author, shop.snapshots()[-1].message) == ("ada", "done")
    assert shop.table("sales.orders").count() == 21


def test_the_parent_is_a_handle_also_when_it_was_renamed_or_dropped(
    lake: forklake.Lake, shop: forklake.Catalog
) -> None:
    fork = shop.fork("agent")
    copied = shop.fork("copied", mode="copy")
    assert shop.parent is None
    assert fork.parent is not None and copied.parent is not None
    assert (fork.parent.name, fork.parent.id, copied.parent.id) == ("shop", shop.id, shop.id)
    assert fork.parent.table("sales.orders").count() == 20
    lake.rename_catalog("shop", "store")
    assert fork.parent.name == "store"
    lake.drop_catalog("store")
    lake.create_catalog("store")
    assert (fork.parent.name, fork.parent.id) == ("store", shop.id)
    assert repr(fork.parent) == "<Catalog 'store'>"
    with pytest.raises(forklake.CatalogNotFound, match="dropped"):
        fork.parent.tables()
    with pytest.raises(forklake.CatalogNotFound, match="dropped"):
        fork.merge_into(fork.parent)


def test_a_table_is_read_without_a_scan(shop: forklake.Catalog) -> None:
    table = shop.table("sales.orders")
    assert table.head().num_rows == 5
    assert table.head(3).column_names == ["id", "name"]
    assert table.head(100).num_rows == 20
    assert table.to_arrow().sort_by("id").to_pylist() == ROWS
    assert sorted(table.to_pylist(), key=lambda row: row["id"]) == ROWS
    assert len(table.to_pandas()) == table.to_polars().height == 20
    assert table.to_reader().schema == pa.table(table).schema == table.to_arrow().schema
    assert sum(batch.num_rows for batch in table.to_batches()) == 20
    with pytest.raises(forklake.InvalidArgument):
        table.head(-1)
    with shop.transaction() as tx:
        tx.table("sales.orders").delete("id > 2")
        assert tx.table("sales.orders").to_arrow().num_rows == 3


def test_a_table_can_be_appended_to_another_and_to_itself(shop: forklake.Catalog) -> None:
    table = shop.table("sales.orders")
    other = shop.create_table("copy", table.schema)
    assert other.append(table) == 20
    assert other.append(other) == 20
    assert other.count() == 40


def test_the_schema_of_a_table_is_its_structure(shop: forklake.Catalog) -> None:
    table = shop.table("sales.orders")
    assert table.schema == table.arrow_schema == table.scan().schema
    assert table.schema.names == ["id", "name"]
    assert not table.schema.field("id").nullable
    assert (table.schema_name, table.full_name) == ("sales", "sales.orders")
    # Listings are values, and name things.
    (listed,) = shop.tables()
    assert (listed.schema, listed.name) == ("sales", "orders")


def test_in_finds_tables_and_views(shop: forklake.Catalog) -> None:
    for known in (
        "sales.orders",
        ("sales", "orders"),
        QualifiedName("sales", "orders"),
        "recent",
        "main.recent",
    ):
        assert known in shop, known
    for unknown in (
        "orders",
        "sales",
        "no.where",
        "a.b.c",
        '"',
        "",
        "x\0",
        5,
        None,
        ("sales",),
        ("sales", 5),
    ):
        assert unknown not in shop, unknown
    assert list(shop) == ["main.recent", "sales.orders"]
    with shop.transaction() as tx:
        tx.create_table('"odd.name"', "id INT")
        assert '"odd.name"' in tx and list(tx) == ['main."odd.name"', "main.recent", "sales.orders"]
        assert '"odd.name"' not in shop
    assert all(name in shop for name in shop)
    shop.drop_view("recent")
    assert "recent" not in shop


def test_in_finds_catalogs(lake: forklake.Lake, shop: forklake.Catalog, reopen) -> None:
    fork = shop.fork("agent")
    assert "shop" in lake and fork in lake
    assert list(lake) == ["agent", "shop"]
    for unknown in ("sho", "", "x\0", 5, None):
        assert unknown not in lake, unknown
    lake.drop_catalog(fork)
    assert "agent" not in lake and fork not in lake
    assert shop not in reopen()


def test_handles_say_catalog_and_snapshot(lake: forklake.Lake, shop: forklake.Catalog) -> None:
    at = shop.snapshot
    table = shop.table("sales.orders")
    assert repr(lake) == f"<Lake {lake.url} at snapshot {at}>"
    assert repr(shop) == f"<Catalog 'shop' at snapshot {at}>"
    assert repr(shop.at(1)) == "<Catalog 'shop' at snapshot 1>"
    assert repr(table) == f"<Table sales.orders of catalog 'shop' at snapshot {at}>"
    assert repr(table.scan()) == f"<Scan of all rows of sales.orders of catalog 'shop' at snapshot {at}>"
    assert "<Scan of some rows of sales.orders" in repr(table.scan("id = 1"))
    tx = shop.transaction()
    assert repr(tx) == f"<Transaction on catalog 'shop' at snapshot {at}>"
    inside = tx.table("sales.orders")
    inside.append([{"id": 1}])
    assert repr(inside) == f"<Table sales.orders of catalog 'shop' at snapshot {at}>"
    made = tx.commit()
    assert repr(tx) == f"<Transaction on catalog 'shop' at snapshot {at}, committed as snapshot {made}>"
    assert repr(inside) == f"<Table with id {table.id} of catalog 'shop'>"
    shop.drop_table("sales.orders")
    assert repr(table) == f"<Table with id {table.id} of catalog 'shop'>"


def test_a_handle_on_a_closed_lake_still_has_a_repr(lake: forklake.Lake, shop: forklake.Catalog) -> None:
    table = shop.table("sales.orders")
    lake.close()
    assert repr(lake).startswith(f"<Lake {lake.url}")
    assert repr(shop).startswith("<Catalog 'shop'")
    assert repr(table).startswith("<Table ")


def test_both_orders_of_rewriting_deletes(shop: forklake.Catalog) -> None:
    table = shop.table("sales.orders")
    shop.flush_inlined()
    table.delete("id < 10")
    for found in (
        shop.rewrite_deletes("sales.orders", 0.1, dry_run=True),
        shop.rewrite_deletes("sales.orders", threshold=0.1, dry_run=True),
        shop.rewrite_deletes(table="sales.orders", threshold=0, dry_run=True),
        shop.rewrite_deletes(threshold=0.1, dry_run=True),
        shop.rewrite_deletes(0.1, dry_run=True),
        shop.rewrite_deletes(0.1, "sales.orders", dry_run=True),
    ):
        assert found.files_in == 1
    assert shop.rewrite_deletes("sales.orders", dry_run=True).files_in == 0
    with pytest.raises(forklake.InvalidArgument):
        shop.rewrite_deletes("sales.orders", 5)


def test_a_lake_that_was_opened_read_only_refuses_every_change(
    lake_url: str, lake: forklake.Lake, catalog: forklake.Catalog, reopen: Reopen
) -> None:
    catalog.create_table("t", "id INT").append([{"id": 1}])
    reader = reopen(lake_url, read_only=True)
    seen = reader.catalog(catalog.name)
    assert seen.sql("FROM t").to_rows() == [(1,)]
    for change in (
        lambda: seen.sql("INSERT INTO t VALUES (2)"),
        lambda: seen.table("t").append([{"id": 2}]),
        lambda: reader.fork(catalog.name, "agent"),
        lambda: reader.set_option("keep_last_snapshots", 3),
        reader.collect_garbage,
    ):
        with pytest.raises(forklake.ReadOnlyStore, match="opened read-only"):
            change()
    for option in ("create", "moved", "upgrade"):
        with pytest.raises(forklake.InvalidArgument, match="read_only"):
            forklake.connect(lake_url, read_only=True, **{option: True})
    assert lake.catalog(catalog.name).snapshot == catalog.snapshot
    with pytest.raises(forklake.MetadataNotFound):
        forklake.connect("sqlite:////nowhere/at/all.db", read_only=True)
