"""Tables with nested columns: changed, versioned, tagged, and refused when they cannot be."""

from __future__ import annotations

import pyarrow as pa
import pytest

import forklake
from forklake.errors import (
    ColumnExists,
    ColumnNotFound,
    DuplicateColumn,
    InvalidArgument,
    InvalidName,
    InvalidSchemaChange,
    SchemaNotFound,
    TableExists,
    TableNotFound,
    UnknownType,
    ViewExists,
)
from tests.contract.entities.shapes import DDL, shape


def test_columns_have_stable_ids_at_every_level(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", DDL)
    assert shape(table) == [
        (1, "id", "int64"),
        (2, "at", "timestamptz"),
        (3, "price", "decimal(10,2)"),
        (4, "tags", "struct"),
        (5, "a", "int32"),
        (6, "b", "list"),
        (7, "element", "varchar"),
    ]
    at, price = table.columns[1:3]
    assert (at.default.value, at.default.kind, at.initial_default) == ("now()", "expression", None)
    assert (price.default.value, price.default.kind, price.initial_default) == ("1.50", "literal", "1.50")
    assert [column.nullable for column in table.columns] == [False, True, True, True]


def test_a_table_evolves_and_every_old_snapshot_shows_it_as_it_was(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", DDL)
    steps = [
        lambda: table.add_column("note", "varchar", default="'it''s'"),
        lambda: table.add_column("tags.c", "int"),
        lambda: table.rename_column("tags.a", "first"),
        lambda: table.alter_type("tags.first", "bigint"),
        lambda: table.drop_column("price"),
        lambda: table.rename_column("id", "key"),
        lambda: table.reorder(["note", "key"]),
        lambda: table.set_default("note", "'later'"),
        lambda: table.set_nullable("key", True),
        lambda: table.drop_default("at"),
        lambda: table.add_column("price", "double"),
        lambda: table.rename("renamed"),
    ]
    seen = {catalog.snapshot: (table.name, table.columns)}
    for step in steps:
        before = catalog.snapshot
        step()
        assert catalog.snapshot > before
        seen[catalog.snapshot] = (table.name, table.columns)
    for snapshot, (name, columns) in seen.items():
        past = catalog.table(name, at=snapshot)
        assert past.id == table.id
        assert past.columns == columns
    assert shape(table) == [
        (8, "note", "varchar"),
        (1, "key", "int64"),
        (2, "at", "timestamptz"),
        (4, "tags", "struct"),
        (5, "first", "int64"),
        (6, "b", "list"),
        (7, "element", "varchar"),
        (9, "c", "int32"),
        (10, "price", "float64"),
    ]
    note = table.columns[0]
    assert (note.initial_default, note.default.value) == ("it's", "later")
    with pytest.raises(TableNotFound):
        catalog.table("t")


def test_an_id_of_a_dropped_column_is_not_used_again(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "a INT, b INT")
    table.drop_column("b")
    table.add_column("b", "int")
    with catalog.transaction() as tx:
        tx.table("t").drop_column("b")
        tx.table("t").add_column("b", "int")
        tx.table("t").drop_column("b")
        tx.table("t").add_column("c", "int")
    assert shape(table) == [(1, "a", "int32"), (5, "c", "int32")]


def test_only_rows_that_changed_are_written_again(catalog: forklake.Catalog, raw) -> None:
    table = catalog.create_table("t", "a INT, b INT, c INT")
    table.rename_column("b", "bb")
    table.rename("u")
    table.comment("x")
    rows = raw("SELECT column_id, begin_snapshot, end_snapshot FROM ducklake_column ORDER BY 1, 2")
    assert [tuple(row) for row in rows] == [(1, 2, None), (2, 2, 3), (2, 3, None), (3, 2, None)]
    rows = raw("SELECT table_name, begin_snapshot, end_snapshot FROM ducklake_table ORDER BY 2")
    assert [tuple(row) for row in rows] == [("t", 2, 4), ("u", 4, None)]
    rows = raw("SELECT schema_version, begin_snapshot FROM ducklake_schema_versions ORDER BY 2")
    assert [tuple(row) for row in rows] == [(1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda t: t.add_column("a", "int"), ColumnExists),
        (lambda t: t.add_column("A", "int"), ColumnExists),
        (lambda t: t.add_column("", "int"), InvalidName),
        (lambda t: t.add_column("x" * 10_000, "int"), InvalidName),
        (lambda t: t.add_column("n", "integre"), UnknownType),
        (lambda t: t.add_column("n", "int", nullable=False), InvalidSchemaChange),
        (lambda t: t.add_column("n", "int", default="'abc'"), InvalidSchemaChange),
        (lambda t: t.add_column("n", "int", default="now()"), InvalidSchemaChange),
        (lambda t: t.add_column("a.b", "int"), InvalidSchemaChange),
        (lambda t: t.add_column("missing.b", "int"), ColumnNotFound),
        (lambda t: t.drop_column("missing"), ColumnNotFound),
        (lambda t: t.drop_column("l.element"), InvalidSchemaChange),
        (lambda t: t.drop_column("s.only"), InvalidSchemaChange),
        (lambda t: t.rename_column("a", "s"), ColumnExists),
        (lambda t: t.rename_column("m.key", "k"), InvalidSchemaChange),
        (lambda t: t.rename_column("a", ""), InvalidName),
        (lambda t: t.alter_type("a", "smallint"), InvalidSchemaChange),
        (lambda t: t.alter_type("a", "varchar"), InvalidSchemaChange),
        (lambda t: t.alter_type("s", "int"), InvalidSchemaChange),
        (lambda t: t.alter_type("a", "int[]"), InvalidSchemaChange),
        (lambda t: t.set_default("a", "b + 1"), InvalidSchemaChange),
        (lambda t: t.set_default("s.only", "1"), InvalidSchemaChange),
        (lambda t: t.set_nullable("missing", False), ColumnNotFound),
        (lambda t: t.reorder(["a", "a"]), InvalidSchemaChange),
        (lambda t: t.reorder(["missing"]), ColumnNotFound),
        (lambda t: t.reorder(None), InvalidArgument),
        (lambda t: t.reorder("a"), InvalidArgument),
        (lambda t: t.drop_column(None), InvalidName),
        (lambda t: t.drop_column([1]), InvalidName),
        (lambda t: t.set_nullable("a", "false"), InvalidArgument),
        (lambda t: t.set_default("a", [5]), InvalidSchemaChange),
        (lambda t: t.tags(column=5), InvalidName),
        (lambda t: t.rename("taken"), TableExists),
        (lambda t: t.rename("a_view"), ViewExists),
        (lambda t: t.rename("missing.t"), SchemaNotFound),
        (lambda t: t.rename(""), InvalidName),
        (lambda t: t.comment("nul\0"), InvalidArgument),
        (lambda t: t.comment("c", column="missing"), ColumnNotFound),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_leaves_nothing(
    lake, catalog: forklake.Catalog, change, error
) -> None:
    table = catalog.create_table("t", "a INT, l INT[], s STRUCT(only INT), m MAP(VARCHAR, INT)")
    catalog.create_table("taken", "a INT")
    catalog.create_view("a_view", "SELECT 1")
    before = (shape(table), table.name, lake.snapshots())
    with pytest.raises(error) as refusal:
        change(table)
    assert "\n" not in str(refusal.value)
    assert (shape(table), table.name, lake.snapshots()) == before


def test_the_last_column_cannot_be_dropped(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "a INT")
    with pytest.raises(InvalidSchemaChange, match="only column"):
        table.drop_column("a")


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ("", InvalidSchemaChange),
        ("id", UnknownType),
        ("id NOPE", UnknownType),
        ("id INT, ID INT", DuplicateColumn),
        ([("", "int")], InvalidName),
        ([("a\0", "int")], InvalidName),
        ([], InvalidSchemaChange),
        (pa.schema([pa.field("", pa.int32())]), InvalidName),
        (pa.schema([pa.field("x", pa.null())]), UnknownType),
        (None, InvalidSchemaChange),
    ],
)
def test_a_table_that_cannot_be_is_refused(lake, catalog: forklake.Catalog, columns, error) -> None:
    before = lake.snapshots()
    with pytest.raises(error) as refusal:
        catalog.create_table("t", columns)
    assert "\n" not in str(refusal.value)
    assert lake.snapshots() == before


def test_tags_are_versioned_and_end_with_their_column(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "a INT, b INT")
    table.comment("one")
    first = catalog.snapshot
    table.comment("two")
    table.set_tag("owner", "me")
    table.comment("on b", column="b")
    assert table.tags() == {"comment": "two", "owner": "me"}
    table.comment(None)
    table.drop_column("b")
    table.add_column("b", "int")
    assert table.tags() == {"owner": "me"}
    assert table.tags(column="b") == {}
    assert catalog.table("t", at=first).tags() == {"comment": "one"}


def test_a_table_is_made_from_an_arrow_schema_and_shows_one(catalog: forklake.Catalog) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("at", pa.timestamp("us", "UTC")),
            pa.field(
                "tags", pa.list_(pa.struct([pa.field("k", pa.string()), pa.field("v", pa.decimal128(12, 3))]))
            ),
            pa.field("by_name", pa.map_(pa.string(), pa.float64())),
            pa.field("uuid", pa.uuid()),
        ]
    )
    table = catalog.create_table("t", schema)
    again = catalog.create_table("u", table.arrow_schema)
    assert table.arrow_schema.names == schema.names
    assert [field.type for field in again.arrow_schema] == [field.type for field in table.arrow_schema]
    assert [field.nullable for field in again.arrow_schema] == [False, True, True, True, True]
    for field in ("id", "at", "by_name", "uuid"):
        assert table.arrow_schema.field(field).type == schema.field(field).type


def test_a_handle_follows_its_table_through_renames(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INT")
    other = catalog.table("t")
    other.rename("u")
    assert (table.name, table.full_name) == ("u", "main.u")
    catalog.create_table("t", "other INT")
    assert [column.name for column in table.columns] == ["id"]
    other.drop()
    with pytest.raises(TableNotFound):
        table.add_column("c", "int")
