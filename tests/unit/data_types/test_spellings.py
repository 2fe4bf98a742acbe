"""Spellings of data types, as DuckDB, DuckLake and Spark have them."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings

from forklake.errors import DuplicateColumn, InvalidName, UnknownType
from forklake.model.types.arrow import from_arrow, to_arrow
from forklake.model.types.data_types import (
    MAX_DEPTH,
    SCALARS,
    DataType,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    from_ducklake_name,
    parse,
    to_ducklake_name,
    to_spark,
    to_sql,
)
from tests.unit.data_types.drawn import INT, NAMES, TEXT, leaves, types


def typeof(duck: duckdb.DuckDBPyConnection, spelling: str) -> str:
    row = duck.execute(f"SELECT typeof(NULL::{spelling})").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("bigint", Scalar("int64")),
        (" BIGINT ", Scalar("int64")),
        ("int8", Scalar("int64")),
        ("uint8", Scalar("uint8")),
        ("timestamp with time zone", Scalar("timestamptz")),
        ("Timestamp\n WITHOUT  time zone", Scalar("timestamp")),
        ("double precision", Scalar("float64")),
        ("character varying(10)", TEXT),
        ("varchar(3)", TEXT),
        ("decimal", Decimal(18, 3)),
        ("numeric(5)", Decimal(5, 0)),
        ("DEC( 10 , 2 )", Decimal(10, 2)),
        ("INT[]", List(INT)),
        ("GEOMETRY('OGC:CRS84')[]", List(Scalar("geometry"))),
        ("INT[][]", List(List(INT))),
        ("DECIMAL(4,1)[]", List(Decimal(4, 1))),
        ("STRUCT(a INT, b VARCHAR[])", Struct((("a", INT), ("b", List(TEXT))))),
        ("struct(a int)[]", List(Struct((("a", INT),)))),
        ("row(a int)", Struct((("a", INT),))),
        ("MAP(VARCHAR, INT)", Map(TEXT, INT)),
        ("MAP(VARCHAR, MAP(INT, INT[]))", Map(TEXT, Map(INT, List(INT)))),
        ("ARRAY<INT>", List(INT)),
        ("array<array<int>>", List(List(INT))),
        ("STRUCT<a: INT, `b c`: ARRAY<STRING>>", Struct((("a", INT), ("b c", List(TEXT))))),
        ("STRUCT<a INT>", Struct((("a", INT),))),
        ("MAP<STRING, BIGINT>", Map(TEXT, Scalar("int64"))),
        ('STRUCT("A b" INT, "it""s" INT)', Struct((("A b", INT), ('it"s', INT)))),
        ("STRUCT(date INT, int INT, list INT[])", Struct((("date", INT), ("int", INT), ("list", List(INT))))),
        ('STRUCT("decimal(10,2)" INT, "INT[]" INT)', Struct((("decimal(10,2)", INT), ("INT[]", INT)))),
        ("STRUCT(größe INT, 名 VARCHAR)", Struct((("größe", INT), ("名", TEXT)))),
    ],
)  # fmt: skip
def test_a_type_is_read_from_its_spelling(text: str, type: DataType) -> None:
    assert parse(text) == type


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "(", ")", "[]", "int;drop", "int; drop table x", "int drop", "INT[]garbage", "INT[][",
        "INT]", "ünt", "x" * 10_000, "enum('a', 'b')", "union(a int)", "bit", "bignum", "null",
        "list", "map", "struct", "array", "MAP(INT)", "MAP(INT, INT, INT)", "MAP()", "ARRAY<>", "ARRAY<INT",
        "ARRAY<INT)", "STRUCT(a INT", "STRUCT(a INT NOT NULL)", "STRUCT(a: )", "STRUCT(a foo)",
        "DECIMAL(50,2)", "DECIMAL(5,9)", "DECIMAL(0,0)", "DECIMAL(10,-2)", "DECIMAL(10,2,3)",
        "DECIMAL(1e1)", "DECIMAL(a,b)", "DECIMAL()", "DECIMAL(10", "DECIMAL(99999999999999999999)",
        "DECIMAL(\uff11)", "TIMESTAMP(3)", "INT(4)", "JSON(x)", "INT[3]", "INT[x]", "'INT'", '"INT"',
        "$$INT$$", "E'INT'", '"unterminated', "int\0", "\ud800", "INT[]" + "[]" * MAX_DEPTH,
        "STRUCT(a " * 2_000, "ARRAY<" * 2_000, "MAP(INT, " * 2_000, "MAP(" * 2_000, "(" * 10_000, "now()",
        "1", "a.b",
    ],
)  # fmt: skip
def test_text_that_is_no_type_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(UnknownType) as refusal:
        parse(text)
    message = str(refusal.value)
    assert "BIGINT" in message or "precision must lie" in message
    assert len(message) < 800


def test_the_refusal_names_the_word_that_is_no_type() -> None:
    with pytest.raises(UnknownType, match=r"'STRUCT\(a foo\)': no type is called 'foo'"):
        parse("STRUCT(a foo)")


def test_geometries_have_the_reference_system_of_files_that_name_none() -> None:
    with pytest.raises(UnknownType, match="has the reference system OGC:CRS84"):
        parse("GEOMETRY('EPSG:4326')")


@pytest.mark.parametrize(
    ("before", "after"), [("", "[]"), ("STRUCT(a ", ")"), ("MAP(INT, ", ")"), ("LIST<", ">")]
)
def test_types_may_nest_as_deep_as_arrow_allows(before: str, after: str) -> None:
    deepest = parse(before * MAX_DEPTH + "INT" + after * MAX_DEPTH)
    assert from_arrow(to_arrow(deepest)) == deepest


def test_a_deeper_arrow_type_is_refused() -> None:
    with pytest.raises(UnknownType, match="deep"):
        from_arrow(pa.list_(to_arrow(parse("INT" + "[]" * MAX_DEPTH))))


@pytest.mark.parametrize(
    "text", ["STRUCT(a INT, A INT)", 'STRUCT("Ä" INT, "ä" INT)', "MAP(STRUCT(b INT, b INT), INT)"]
)
def test_two_fields_of_one_name_are_refused_whatever_their_case(text: str) -> None:
    with pytest.raises(DuplicateColumn):
        parse(text)


@pytest.mark.parametrize(
    "text",
    ['STRUCT("" INT)', 'STRUCT("  " INT)', "STRUCT(INT)", "STRUCT(INT[])", "STRUCT(DECIMAL(1,0))",
     "STRUCT(a INT,)", "STRUCT()", "STRUCT(5 INT)", "STRUCT('a' INT)", 'STRUCT("a\0" INT)',
     f'STRUCT("{"x" * 256}" INT)'],
)  # fmt: skip
def test_a_field_without_a_proper_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        parse(text)


def test_a_value_of_the_model_cannot_be_wrong() -> None:
    with pytest.raises(UnknownType):
        Scalar("BIGINT")
    with pytest.raises(UnknownType):
        Decimal(39, 0)
    with pytest.raises(UnknownType):
        Struct(())
    with pytest.raises(DuplicateColumn):
        Struct((("a", INT), ("A", INT)))


@given(types)
def test_every_type_reads_back_from_its_sql(type: DataType) -> None:
    assert parse(to_sql(type)) == type


@given(leaves)
def test_every_leaf_reads_back_from_its_ducklake_name(type: DataType) -> None:
    assert from_ducklake_name(to_ducklake_name(type)) == type


@pytest.mark.parametrize(
    "name", ["list", "struct", "map", "INT", "decimal", "decimal(40,1)", "decimal(5,2)[]", "", "int"]
)
def test_a_ducklake_name_is_a_leaf_of_the_table(name: str) -> None:
    with pytest.raises(UnknownType):
        from_ducklake_name(name)


def test_nested_types_keep_their_kind_as_ducklake_name() -> None:
    types = ["INT[]", "STRUCT(a INT)", "MAP(INT, INT)"]
    assert [to_ducklake_name(parse(text)) for text in types] == ["list", "struct", "map"]


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_spells_every_scalar_as_the_table_does(name: str, duck: duckdb.DuckDBPyConnection) -> None:
    assert typeof(duck, to_sql(Scalar(name))) == to_sql(Scalar(name))


@settings(deadline=None)
@given(type=types)
def test_duckdb_takes_every_type_and_gives_it_back(type: DataType, duck: duckdb.DuckDBPyConnection) -> None:
    assert parse(typeof(duck, to_sql(type))) == type


def test_an_alias_means_what_it_means_in_duckdb(duck: duckdb.DuckDBPyConnection) -> None:
    unknown_to_duckdb: set[str] = set()
    for row in SCALARS:
        for spelling in row.sql.split("|"):
            try:
                theirs = typeof(duck, spelling)
            except duckdb.CatalogException:
                unknown_to_duckdb.add(spelling)
            else:
                assert parse(theirs) == parse(spelling) == Scalar(row.name)
    assert unknown_to_duckdb == {"BYTE", "FLOAT32", "FLOAT64", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "UINT"}


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("INT8", "BIGINT"),
        ("TIMESTAMP", "TIMESTAMP_NTZ"),
        ("TIMESTAMPTZ", "TIMESTAMP"),
        ("UBIGINT", "DECIMAL(20,0)"),
        ("HUGEINT", "DECIMAL(38,0)"),
        ("BLOB", "BINARY"),
        ("DECIMAL(10,2)", "DECIMAL(10,2)"),
        ('STRUCT("a`b" INT, c VARCHAR[])', "STRUCT<`a``b`: INT, `c`: ARRAY<STRING>>"),
        ("MAP(VARCHAR, UINTEGER)", "MAP<STRING, BIGINT>"),
    ],
)
def test_spark_has_its_own_spelling(text: str, spark: str) -> None:
    assert to_spark(parse(text)) == spark


@pytest.mark.parametrize(
    "text", ["TIMETZ", "INTERVAL", "INTERVAL[]", "STRUCT(a TIMETZ)", "MAP(INT, INTERVAL)"]
)
def test_a_type_that_spark_has_not_is_refused(text: str) -> None:
    with pytest.raises(UnknownType, match=r"Spark has no type for (TIME WITH TIME ZONE|INTERVAL)"):
        to_spark(parse(text))
