"""Schemas, tables with nested columns, views, macros, tags: changed, versioned, read back (C3, D13, D14)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forklake
from forklake.errors import (
    ColumnExists,
    ColumnNotFound,
    DuplicateColumn,
    InvalidArgument,
    InvalidName,
    InvalidSchemaChange,
    MacroExists,
    MacroNotFound,
    SchemaExists,
    SchemaNotEmpty,
    SchemaNotFound,
    TableExists,
    TableNotFound,
    UnknownType,
    ViewExists,
    ViewNotFound,
)
from forklake.model.entities import MacroImpl, MacroParameter
from forklake.model.names import quoted

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
DDL = """
id BIGINT NOT NULL, at TIMESTAMPTZ DEFAULT now(), price DECIMAL(10,2) DEFAULT 1.5,
tags STRUCT(a INT, b VARCHAR[])
"""


def shape(table: forklake.Table) -> list[tuple[int, str, str]]:
    """Ids, names and types of all columns, nested fields included."""
    return [(c.id, c.name, c.type) for column in table.columns for c in column.walk()]


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


def test_views_are_versioned(catalog: forklake.Catalog) -> None:
    catalog.create_schema("s")
    catalog.create_view("v", "SELECT 1", columns=["a", 'b"c'])
    first = catalog.snapshot
    catalog.create_view("v", "SELECT 2", or_replace=True)
    catalog.rename_view("v", "s.w")
    (view,) = catalog.views()
    assert (view.schema, view.name, view.sql, view.column_aliases) == ("s", "w", "SELECT 2", ())
    (old,) = catalog.views(at=first)
    assert (old.schema, old.name, old.sql, old.column_aliases) == ("main", "v", "SELECT 1", ("a", 'b"c'))
    assert old.id == view.id
    catalog.drop_view("s.w")
    assert catalog.views() == []


def test_macros_have_overloads_and_versions(catalog: forklake.Catalog) -> None:
    overloads = (
        MacroImpl("a + 1", (MacroParameter("a"),)),
        MacroImpl("a + b", (MacroParameter("a", "int32"), MacroParameter("b", default="5"))),
        MacroImpl("SELECT a", (MacroParameter("a"),), "table"),
    )
    catalog.create_macro("m", overloads=overloads)
    first = catalog.snapshot
    catalog.create_macro("m", ["a"], "a - 1", or_replace=True)
    catalog.rename_macro("m", "n")
    (macro,) = catalog.macros()
    assert (macro.name, macro.implementations) == ("n", (MacroImpl("a - 1", (MacroParameter("a"),)),))
    (old,) = catalog.macros(at=first)
    assert (old.name, old.implementations) == ("m", overloads)
    assert old.id != macro.id


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


QUERIES = [
    "SELECT 1",
    "SELECT 1;",
    "  SELECT a -- of all\n  FROM later /* not there yet */",
    "VALUES (1), (2)",
    "FROM t",
    "FROM t SELECT a",
    "TABLE t",
    "(SELECT 1)",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT * FROM r",
    "SELECT 1 UNION ALL BY NAME SELECT 2",
    "SELECT ';' AS semicolon",
    "SELECT * EXCLUDE (a) FROM t ASOF JOIN u USING (b) QUALIFY row_number() OVER () = 1",
    "UNPIVOT t ON a, b",
]
NO_QUERIES = {
    "": "empty",
    "   \n": "empty",
    "-- only a comment": "empty",
    "/* a */ ;": "empty",
    "anything": r'not a query: syntax error at or near "anything" \(line 1, column 1\)',
    "SELECT a\nFROM t\n WHERE é = x y": r'near "y" \(line 3, column 14\)',
    "SELECT 1 +": r"(end of input|near \"\+\") \(line 1, column 1[01]\)",
    "SELECT 'open": r"unterminated.*\(line 1, column 8\)",
    "SELECT 1; SELECT 2": "2 statements",
    "SELECT 1; DROP TABLE t": "2 statements",
    "INSERT INTO t VALUES (1)": r'near "INSERT" \(line 1, column 1\)',
    "UPDATE t SET a = 1": "UPDATE",
    "DELETE FROM t": "DELETE",
    "CREATE TABLE t AS SELECT 1": "CREATE",
    "DROP TABLE t": "DROP",
    "COPY t TO 'file'": "COPY",
    "ATTACH 'file'": "ATTACH",
    "PRAGMA version": "PRAGMA",
    "DESCRIBE t": "DESCRIBE",
    "-- é\nDESCRIBE t": "DESCRIBE",
    "SHOW TABLES": "SHOW",
    "SUMMARIZE t": "SUMMARIZE",
    "EXPLAIN SELECT 1": "EXPLAIN",
    "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a": "not a query",
    "SELECT (WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT 1 FROM a)": "not a query",
    "SELECT 1 UNION ALL (WITH a AS (UPDATE t SET a = 1 RETURNING *) FROM a)": "not a query",
    "WITH a AS (COPY t TO 'file') SELECT 1": "not a query",
    "SELECT $1": r"parameters \(\$1\)",
    "SELECT * FROM t WHERE a = ?": "parameters",
}


def test_a_view_is_a_query_that_can_be_parsed(catalog: forklake.Catalog) -> None:
    with catalog.transaction() as tx:
        for number, query in enumerate(QUERIES):
            tx.create_view(f"v{number:02}", query)
            tx.create_macro(f"m{number:02}", ["x"], query, table=True)
    assert [view.sql for view in catalog.views()] == QUERIES
    assert [macro.implementations[0].sql for macro in catalog.macros()] == QUERIES


@pytest.mark.parametrize(("text", "said"), NO_QUERIES.items(), ids=NO_QUERIES)
def test_what_is_no_query_is_refused_as_a_view_and_as_a_table_macro(
    catalog: forklake.Catalog, text: str, said: str
) -> None:
    with pytest.raises(InvalidArgument, match=rf'the SQL of view "main\.v" .*{said}') as refused:
        catalog.create_view("v", text)
    assert "\n" not in str(refused.value)
    with pytest.raises(InvalidArgument, match=rf'the SQL of macro "main\.m" .*{said}'):
        catalog.create_macro("m", ["x"], text, table=True)
    with pytest.raises(InvalidArgument), catalog.transaction() as tx:
        tx.create_view("v", text, or_replace=True)
    assert (catalog.views(), catalog.macros(), catalog.snapshot) == ([], [], 1)


@pytest.mark.parametrize(
    "text", ["x", "x + 1 -- one more", "(x, 2)", "(SELECT max(a) FROM t)", "CASE WHEN x THEN 1 END"]
)
def test_a_macro_is_an_expression_that_can_be_parsed(catalog: forklake.Catalog, text: str) -> None:
    catalog.create_macro("m", ["x"], text)
    assert catalog.macros()[0].implementations[0].sql == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(WITH a AS (DELETE FROM t RETURNING *) SELECT 1 FROM a)",
        "-- x",
        "x +",
        "x; x",
        "SELECT x",
        "x) + (x",
        "1), () AS (2",
        "1, () AS 2",
        "x AS y",
        "1, 2",
        "TABLE SELECT 1",
        "$1",
    ],
)
def test_what_is_no_expression_is_refused_as_a_macro(catalog: forklake.Catalog, text: str) -> None:
    with pytest.raises(InvalidArgument, match=r'the SQL of macro "main\.m"'):
        catalog.create_macro("m", ["x"], text)
    with pytest.raises(InvalidArgument, match=r'the SQL of macro "main\.m"'):
        catalog.create_macro("m", overloads=[MacroImpl("1"), MacroImpl(text)])
    assert catalog.macros() == []


def test_sql_of_another_dialect_is_kept_as_it_is(catalog: forklake.Catalog) -> None:
    catalog.create_macro("m", overloads=[MacroImpl("a <=> b LATERAL", dialect="spark")])
    assert catalog.macros()[0].implementations[0].sql == "a <=> b LATERAL"


def test_views_that_were_stored_before_anybody_parsed_them_stay_readable(
    lake: forklake.Lake, catalog: forklake.Catalog, raw
) -> None:
    catalog.create_view("v", "SELECT 1")
    raw("UPDATE ducklake_view SET sql = 'any text; at all'")
    fork = lake.fork("main_catalog", "fork")
    fork.rename_view("v", "w")
    lake.merge("fork", "main_catalog")
    assert [(view.name, view.sql) for view in catalog.views()] == [("w", "any text; at all")]
    catalog.create_view("w", "SELECT 2", or_replace=True)
    assert [view.sql for view in catalog.views()] == ["SELECT 2"]
