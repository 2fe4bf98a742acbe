"""Names and texts of entities: read back as written, refused when taken or missing."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forklake
from forklake.errors import (
    InvalidArgument,
    InvalidName,
    MacroExists,
    MacroNotFound,
    SchemaExists,
    SchemaNotEmpty,
    SchemaNotFound,
    TableExists,
    TableNotFound,
    ViewExists,
    ViewNotFound,
)
from forklake.model.entities import MacroParameter
from forklake.model.names import quoted
from tests.contract.entities.shapes import DDL

ODD = [
    'a"b',
    "x'; DROP TABLE ducklake_table; --",
    "..",
    "../../etc/passwd",
    "a.b",
    "é表🙂",
    "%s $1 :x ?",
    " pad ",
    "[red]x",
]
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).filter(str.strip)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_stored_and_read_back_as_they_are(lake: forklake.Lake, name: str, raw) -> None:
    catalog = lake.create_catalog(name)
    catalog.create_schema(name)
    table = catalog.create_table((name, name), [(name, "int"), ("plain", "int")])
    table.comment(name)
    table.comment(name, column=[name])
    catalog.create_view((name, name + " view"), f"SELECT {quoted(name)}")
    catalog.create_macro((name, name), [name], quoted(name))
    again = lake.catalog(name)
    assert [schema.name for schema in again.schemas()] == ["main", name]
    assert [(info.schema, info.name) for info in again.tables()] == [(name, name)]
    assert [column.name for column in again.table((name, name)).columns] == [name, "plain"]
    assert again.table((name, name)).tags() == {"comment": name}
    assert again.table((name, name)).tags(column=[name]) == {"comment": name}
    assert [(view.schema, view.name, view.sql) for view in again.views()] == [
        (name, name + " view", f"SELECT {quoted(name)}")
    ]
    assert [(macro.name, macro.implementations[0].sql) for macro in again.macros()] == [(name, quoted(name))]
    paths = [row[0] for row in raw("SELECT path FROM ducklake_schema UNION SELECT path FROM ducklake_table")]
    assert all(".." not in path and not path.startswith("/") for path in paths)


def test_any_name_and_text_reads_back_as_it_was_written(lake: forklake.Lake) -> None:
    numbers = iter(range(10**6))

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(NAMES, NAMES, NAMES, TEXTS, TEXTS)
    def check(schema: str, name: str, column: str, text: str, value: str) -> None:
        catalog = lake.create_catalog(f"c{next(numbers)}")
        with catalog.transaction(author=text, message=value, extra={text: value}) as tx:
            tx.create_schema(schema, if_not_exists=True)
            tx.create_table((schema, name), [(column, "int")])
            tx.table((schema, name)).comment(text)
            tx.table((schema, name)).set_tag(column, value, column=[column])
            tx.create_view((schema, name + "v"), "SELECT '" + text.replace("'", "''") + "'")
        assert catalog.table((schema, name)).columns[0].name == column
        assert catalog.table((schema, name)).tags() == {"comment": text}
        assert catalog.table((schema, name)).tags(column=[column]) == {column: value}
        assert catalog.views()[0].sql == "SELECT '" + text.replace("'", "''") + "'"
        last = catalog.snapshots()[-1]
        assert (last.author, last.message, last.extra) == (text, value, {text: value})

    check()


def test_names_that_are_taken_or_missing_are_refused(lake, catalog: forklake.Catalog) -> None:
    catalog.create_schema("s")
    catalog.create_table("s.t", "id INT")
    catalog.create_view("s.v", "SELECT 1")
    catalog.create_macro("s.m", ["x"], "x")
    before = lake.snapshots()
    for error, use in [
        (SchemaExists, lambda: catalog.create_schema("s")),
        (SchemaExists, lambda: catalog.rename_schema("main", "s")),
        (SchemaNotFound, lambda: catalog.drop_schema("none")),
        (SchemaNotFound, lambda: catalog.create_table("none.t", "id INT")),
        (SchemaNotEmpty, lambda: catalog.drop_schema("s")),
        (TableExists, lambda: catalog.create_table("s.t", "id INT")),
        (ViewExists, lambda: catalog.create_table("s.v", "id INT")),
        (TableExists, lambda: catalog.create_view("s.t", "SELECT 1")),
        (TableExists, lambda: catalog.create_view("s.t", "SELECT 1", or_replace=True)),
        (ViewExists, lambda: catalog.create_view("s.v", "SELECT 1")),
        (TableNotFound, lambda: catalog.table("s.none")),
        (TableNotFound, lambda: catalog.table("t")),
        (TableNotFound, lambda: catalog.drop_table("s.v")),
        (ViewNotFound, lambda: catalog.drop_view("s.t")),
        (MacroExists, lambda: catalog.create_macro("s.m", ["x"], "x")),
        (MacroNotFound, lambda: catalog.drop_macro("s.none")),
        (InvalidName, lambda: catalog.create_schema("")),
        (InvalidName, lambda: catalog.table("a.b.c")),
        (InvalidArgument, lambda: catalog.create_macro("m")),
        (InvalidArgument, lambda: catalog.create_macro("m", None, "x")),
        (InvalidArgument, lambda: catalog.create_macro("m", [5], "x")),
        (InvalidArgument, lambda: catalog.create_macro("m", overloads=[None])),
        (InvalidArgument, lambda: catalog.create_macro("m", [MacroParameter("a", "\ud800")], "x")),
        (InvalidArgument, lambda: catalog.create_view("w", "SELECT 1", columns=None)),
        (InvalidArgument, lambda: catalog.create_macro("m", ["x", "X"], "x")),
        (InvalidArgument, lambda: catalog.create_view("w", "nul\0")),
        (InvalidArgument, lambda: catalog.tags("index", "x")),
    ]:
        with pytest.raises(error) as refusal:
            use()
        assert "\n" not in str(refusal.value)
    assert lake.snapshots() == before


def test_if_exists_and_if_not_exists_make_no_fuss(lake, catalog: forklake.Catalog) -> None:
    catalog.create_schema("s")
    table = catalog.create_table("t", "id INT")
    before = lake.snapshots()
    catalog.create_schema("s", if_not_exists=True)
    assert catalog.create_table("t", "other INT", if_not_exists=True).id == table.id
    catalog.drop_schema("none", if_exists=True)
    catalog.drop_table("none", if_exists=True)
    catalog.drop_table("none.none", if_exists=True)
    catalog.drop_view("none", if_exists=True)
    catalog.drop_macro("none", if_exists=True)
    assert lake.snapshots() == before


def test_a_schema_dropped_with_all_in_it_leaves_nothing_live(catalog: forklake.Catalog, raw) -> None:
    catalog.create_schema("s")
    catalog.comment("schema", "s", "about s")
    for name in ("t", "u"):
        table = catalog.create_table(f"s.{name}", DDL, comment="c")
        table.comment("column", column="id")
    catalog.create_view("s.v", "SELECT 1")
    catalog.comment("view", "s.v", "about v")
    catalog.create_macro("s.m", ["x"], "x")
    catalog.create_table("stays", "id INT", comment="stays")
    kept = catalog.snapshot
    with catalog.transaction() as tx:
        tx.table("s.u").rename("main.moved")
        tx.table("stays").rename("s.went")
        tx.drop_schema("s", cascade=True)
    assert [(info.schema, info.name) for info in catalog.tables()] == [("main", "moved")]
    assert catalog.table("moved").tags() == {"comment": "c"}
    assert catalog.table("moved").tags(column="id") == {"comment": "column"}
    assert (catalog.views(), catalog.macros()) == ([], [])
    live = {
        table: raw(f"SELECT count(*) FROM ducklake_{table} WHERE end_snapshot IS NULL")[0][0]
        for table in ("schema", "table", "column", "view", "macro", "tag", "column_tag")
    }
    assert live == {"schema": 1, "table": 1, "column": 7, "view": 0, "macro": 0, "tag": 1, "column_tag": 1}
    assert [info.name for info in catalog.tables(at=kept)] == ["stays", "t", "u"]
    assert catalog.at(kept).tags("schema", "s") == {"comment": "about s"}


def test_a_renamed_schema_takes_its_tables_along(catalog: forklake.Catalog) -> None:
    catalog.create_schema("old")
    table = catalog.create_table("old.t", "id INT")
    before = catalog.snapshot
    with catalog.transaction() as tx:
        tx.rename_schema("old", "new")
        assert [info.schema for info in tx.tables()] == ["new"]
    assert catalog.table("new.t").id == table.id
    assert table.schema_name == "new"
    assert catalog.table("old.t", at=before).schema_name == "old"
