"""Names are found whatever their case and kept as written; two that differ only in case are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import forklake
from forklake.api.scoped import scope_of
from forklake.commit.draft import Draft
from forklake.errors import (
    AmbiguousName,
    CatalogNotFound,
    ColumnExists,
    ColumnNotFound,
    CommitConflict,
    DuplicateColumn,
    InvalidArgument,
    MacroExists,
    MacroNotFound,
    MergeConflict,
    SchemaExists,
    SchemaNotFound,
    TableExists,
    TableNotFound,
    ViewExists,
    ViewNotFound,
)
from forklake.model.names import QualifiedName
from forklake.store.backend import Database
from forklake.store.catalog_state import CatalogState
from forklake.store.catalogs import name_as_written

Two = Callable[[str, str], None]


@pytest.fixture
def two(catalog: forklake.Catalog, raw: Callable[..., Any]) -> Two:
    """Gives a table another name in the metadata, as lakes may have them from times when that was allowed."""

    def rename(old: str, new: str) -> None:
        raw(f"UPDATE ducklake_table SET table_name = '{new}' WHERE table_name = '{old}'")

    return rename


def test_everything_is_found_in_any_case_and_shown_as_it_was_written(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    catalog.create_schema("Sales")
    orders = catalog.create_table("sales.Orders", 'Id INT, "Place" STRUCT("City" VARCHAR)')
    catalog.create_view("SALES.Recent", "SELECT 1")
    catalog.create_macro("sales.Twice", ["x"], "x * 2")
    assert catalog.table("SALES.orders").full_name == "Sales.Orders"
    assert "SALES.ORDERS" in catalog
    assert "sales.RECENT" in catalog
    assert list(catalog) == ["Sales.Orders", "Sales.Recent"]
    assert [info.name for info in catalog.tables(schema="SALES")] == ["Orders"]
    table = catalog.table("sales.orders")
    table.append([{"ID": 1, "place": {"CITY": "Rome"}}])
    assert table.scan(
        where="iD = 1 AND PLACE.city = 'Rome'", columns=["id", "place"]
    ).to_arrow().to_pylist() == [{"Id": 1, "Place": {"City": "Rome"}}]
    assert table.update({"ID": "id + 1"}, where="ID = 1") == 1
    table.rename_column("place.CITY", "Town")
    table.set_partitioning(["bucket(2, ID)"])
    table.set_sort_order(["ID"])
    assert table.merge([{"iD": 2, "PLACE": {"town": "Oslo"}}], on="id").updated == 1
    assert table.scan().to_arrow().to_pylist() == [{"Id": 2, "Place": {"Town": "Oslo"}}]
    catalog.comment("view", "sales.recent", "v")
    assert catalog.tags("view", "SALES.RECENT") == {"comment": "v"}
    catalog.create_view("sales.RECENT", "SELECT 2", or_replace=True)
    assert [(view.name, view.sql) for view in catalog.views()] == [("RECENT", "SELECT 2")]
    catalog.create_macro("sales.TWICE", ["x"], "x * 2", or_replace=True)
    assert [macro.name for macro in catalog.macros()] == ["TWICE"]
    before = catalog.snapshot
    catalog.create_schema("SALES", if_not_exists=True)
    assert catalog.create_table("SALES.ORDERS", "x INT", if_not_exists=True).id == orders.id
    assert catalog.snapshot == before
    fork = lake.fork("MAIN_CATALOG", "Fork")
    assert lake.catalog("FORK").name == "Fork"
    assert "fORK" in lake
    assert fork.diff().is_empty
    fork.table("sales.orders").delete()
    assert lake.merge("fork", into="Main_Catalog").snapshot is not None
    assert catalog.diff("FORK").is_empty
    lake.rename_catalog("FORK", "fork")
    lake.drop_catalogs(["Fork"])
    assert list(lake) == ["main_catalog"]
    catalog.drop_view("Sales.recent")
    catalog.drop_macro("SALES.twice")
    catalog.drop_table("sales.ORDERS")
    assert catalog.undrop_table("SALES.orders").full_name == "Sales.Orders"
    catalog.drop_schema("SALES", cascade=True)
    assert [schema.name for schema in catalog.schemas()] == ["main"]


def test_a_name_that_differs_only_in_case_is_taken(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.create_schema("s")
    table = catalog.create_table("s.T", "a INT, r STRUCT(x INT)")
    catalog.create_view("s.V", "SELECT 1")
    catalog.create_view("s.W", "SELECT 1")
    catalog.create_macro("s.M", ["x"], "x")
    catalog.create_macro("s.N", ["x"], "x")
    catalog.create_table("s.U", "a INT")
    before = lake.snapshots()
    for error, use in [
        (SchemaExists, lambda: catalog.create_schema("S")),
        (SchemaExists, lambda: catalog.rename_schema("s", "MAIN")),
        (TableExists, lambda: catalog.create_table("s.t", "a INT")),
        (ViewExists, lambda: catalog.create_table("s.v", "a INT")),
        (TableExists, lambda: catalog.create_view("s.t", "SELECT 1")),
        (TableExists, lambda: catalog.create_view("s.t", "SELECT 1", or_replace=True)),
        (ViewExists, lambda: catalog.create_view("s.v", "SELECT 1")),
        (ViewExists, lambda: catalog.rename_view("s.W", "v")),
        (TableExists, lambda: catalog.table("s.U").rename("s.t")),
        (MacroExists, lambda: catalog.create_macro("s.m", ["x"], "x")),
        (MacroExists, lambda: catalog.rename_macro("s.N", "m")),
        (ColumnExists, lambda: table.add_column("A", "INT")),
        (ColumnExists, lambda: table.add_column("r.X", "INT")),
        (ColumnExists, lambda: table.rename_column("r", "A")),
        (DuplicateColumn, lambda: catalog.create_table("n", "a INT, A INT")),
        (DuplicateColumn, lambda: catalog.create_table("n", "a STRUCT(b INT, B INT)")),
    ]:
        with pytest.raises(error, match=r"case makes no difference|exists"):
            use()
    with pytest.raises(TableExists, match=r'"s\.T" exists: .*; case makes no difference'):
        catalog.create_table("s.t", "a INT")
    with pytest.raises(InvalidArgument, match="itself"):
        lake.merge("MAIN_CATALOG", into="main_catalog")
    assert lake.snapshots() == before
    # What is renamed may change its own case, and what makes room makes room for every case.
    with catalog.transaction() as tx:
        tx.rename_schema("s", "S")
        tx.table("s.t").rename("S.t")
        tx.rename_view("s.v", "v")
        tx.rename_macro("s.m", "m")
        tx.drop_table("s.u")
        tx.create_view("s.u", "SELECT 1")
        with pytest.raises(ViewExists):
            tx.create_table("s.U", "a INT")
    assert list(catalog) == ["S.W", "S.t", "S.u", "S.v"]


def test_only_letters_of_ascii_have_a_case_outside_of_tables_as_in_duckdb(catalog: forklake.Catalog) -> None:
    catalog.create_table("Ä", "a INT")
    other = catalog.create_table("ä", "a INT")
    assert catalog.table("ä").id == other.id
    assert catalog.create_table("Straße", "a INT").id == catalog.table("STRAßE").id
    with pytest.raises(TableNotFound):
        catalog.table("STRASSE")
    with pytest.raises(DuplicateColumn):
        catalog.create_table("t", '"Ä" INT, "ä" INT')


def test_lakes_that_hold_two_names_go_on_with_both(
    lake: forklake.Lake, catalog: forklake.Catalog, reopen: Any, two: Two
) -> None:
    for name in ("first", "second"):
        catalog.create_table(name, "a INT").append([{"a": len(name)}])
    two("first", "T")
    two("second", "t")
    again = reopen().catalog("main_catalog")
    assert again.table("T").scan().to_arrow().to_pylist() == [{"a": 5}]
    assert again.table("t").scan().to_arrow().to_pylist() == [{"a": 6}]
    with pytest.raises(TableExists):
        again.create_table("T", "a INT")
    again.table("t").append([{"a": 7}])
    again.table("t").rename("Long")
    assert again.table("T").id == again.table("t").id
    with pytest.raises(TableExists):
        again.table("long").rename("t")
    again.restore(catalog.snapshots()[-1].id - 1)
    assert [info.name for info in again.tables()] == ["T", "t"]
    two("T", "Two")
    two("t", "TWO")
    third = reopen().catalog("main_catalog")
    with pytest.raises(AmbiguousName, match='table "two" may be "TWO" and "Two"'):
        third.table("two")
    with pytest.raises(AmbiguousName):
        third.drop_table("two", if_exists=True)
    assert third.table("Two").scan().count() == 1
    lake.create_catalog("Main_Catalog")
    assert lake.catalog("Main_Catalog").name == "Main_Catalog"
    with pytest.raises(AmbiguousName, match='"Main_Catalog" and "main_catalog"'):
        lake.catalog("MAIN_CATALOG")


@pytest.mark.parametrize("kind", ["schema", "table", "view", "macro"])
def test_the_second_of_two_commits_is_refused_if_its_name_differs_only_in_case(
    catalog: forklake.Catalog, kind: str
) -> None:
    def create(tx: Any, name: str) -> None:
        match kind:
            case "schema":
                tx.create_schema(name)
            case "table":
                tx.create_table(name, "a INT")
            case "view":
                tx.create_view(name, "SELECT 1")
            case _:
                tx.create_macro(name, ["x"], "x")

    first, second = catalog.transaction(), catalog.transaction()
    create(first, "Name")
    create(second, "NAME")
    first.commit()
    with pytest.raises(CommitConflict, match="the name is taken"):
        second.commit()


def test_forks_that_made_names_that_differ_only_in_case_are_not_merged(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    fork = lake.fork(catalog, "fork")
    catalog.create_table("T", "a INT")
    fork.create_view("t", "SELECT 1")
    fork.create_table("other", "a INT")
    with pytest.raises(MergeConflict, match="the name is taken"):
        lake.merge("fork", into="main_catalog")
    assert lake.merge("fork", into="main_catalog", tables=["OTHER"]).snapshot is not None
    catalog.table("t").rename("elsewhere")
    assert lake.merge("fork", into="main_catalog").snapshot is not None
    assert list(catalog) == ["main.elsewhere", "main.other", "main.t"]


@pytest.mark.parametrize("name", ["t", "T"])
def test_a_merge_of_one_table_does_not_take_the_name_of_another(
    lake: forklake.Lake, catalog: forklake.Catalog, name: str
) -> None:
    catalog.create_table("t", "a INT")
    fork = lake.fork(catalog, "fork")
    fork.table("t").rename("old")
    fork.create_table(name, "a INT")
    with pytest.raises(MergeConflict, match=r'table "t" was created .*the name is taken'):
        lake.merge("fork", into="main_catalog", tables=[name])
    assert lake.merge("fork", into="main_catalog").snapshot is not None
    assert list(catalog) == sorted(["main.old", f"main.{name}"])


def test_what_comes_back_does_not_take_a_name_in_another_case(catalog: forklake.Catalog) -> None:
    catalog.create_table("T", "a INT")
    before = catalog.snapshot
    catalog.drop_table("T")
    dropped = catalog.snapshot
    catalog.create_table("t", "b INT")
    with pytest.raises(TableExists, match=r'"main\.t" is another table'):
        catalog.undrop_table("T")
    with pytest.raises(TableExists):
        catalog.restore_table("T", before)
    with pytest.raises(CommitConflict, match="the name is taken"):
        catalog.undo(dropped)
    assert catalog.undrop_table("T", as_name="back").full_name == "main.back"
    catalog.restore(before)
    assert list(catalog) == ["main.T"]


def test_an_error_for_an_unknown_name_says_the_nearest_one(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    catalog.create_schema("sales")
    table = catalog.create_table("sales.orders", "amount INT, place STRUCT(city VARCHAR)")
    catalog.create_view("sales.recent", "SELECT 1")
    catalog.create_macro("sales.twice", ["x"], "x")
    unknown: list[tuple[type[Exception], Callable[[], Any], str]] = [
        (TableNotFound, lambda: catalog.table("sales.ordesr"), "sales.orders"),
        (TableNotFound, lambda: catalog.table("orders"), "sales.orders"),
        (SchemaNotFound, lambda: catalog.table("sale.orders"), "sales"),
        (ViewNotFound, lambda: catalog.drop_view("sales.recnt"), "sales.recent"),
        (MacroNotFound, lambda: catalog.drop_macro("sales.twise"), "sales.twice"),
        (CatalogNotFound, lambda: lake.catalog("man_catalog"), "main_catalog"),
        (CatalogNotFound, lambda: lake.fork("man_catalog", "f"), "main_catalog"),
        (CatalogNotFound, lambda: lake.drop_catalog("man_catalog"), "main_catalog"),
        (ColumnNotFound, lambda: table.drop_column("amuont"), "amount"),
        (ColumnNotFound, lambda: table.drop_column("place.ctiy"), "city"),
        (forklake.InvalidPredicate, lambda: table.scan(where="amuont = 1"), "amount"),
        (forklake.InvalidData, lambda: table.append([{"amuont": 1}]), "amount"),
    ]
    for error, use, name in unknown:
        with pytest.raises(error, match=rf'did you mean "{name}"\?$'):
            use()
    with pytest.raises(ColumnNotFound, match=r'there are "amount", "place"$'):
        table.drop_column("xyz")


def test_finding_a_table_takes_as_many_statements_as_it_would_in_its_own_case(
    catalog: forklake.Catalog, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table("Orders", "a INT")
    asked: list[str] = []
    rows = type(database).rows

    def counted(self: Database, statement: str, /, **params: object) -> Any:
        asked.append(statement)
        return rows(self, statement, **params)

    monkeypatch.setattr(type(database), "rows", counted)
    told: list[list[str]] = []
    for name in ("Orders", "ORDERS"):
        asked.clear()
        draft = Draft(CatalogState(database, scope_of(catalog).head()))
        assert draft.table_named(QualifiedName("MAIN", name)).name == "Orders"
        told.append(list(asked))
    assert told == [["head", "schemas", "table_by_name", "columns_of_table"]] * 2


def test_sql_finds_what_it_means_by_a_name(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.create_view("V", "SELECT 1")
    catalog.create_table("T", "a INT")
    draft = scope_of(catalog).read()
    for name in ("T", "V"):
        found = draft.find_relation(QualifiedName("MAIN", name.lower()))
        assert found is not None
        assert found.name == name
    assert draft.find_relation(QualifiedName("main", "w")) is None
    assert name_as_written(draft.state.database, "MAIN_CATALOG") == "main_catalog"
