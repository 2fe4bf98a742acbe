"""The type system against real DuckDB and Arrow."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forklake.errors import DuplicateColumn, InvalidName, UnknownType
from forklake.model.types.arrow import from_arrow, from_arrow_field, to_arrow
from forklake.model.types.data_types import (
    MAX_DEPTH,
    SCALARS,
    DataType,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    can_widen,
    from_ducklake_name,
    parse,
    to_ducklake_name,
    to_spark,
    to_sql,
)

INT = Scalar("int32")
TEXT = Scalar("varchar")
NAMES = [row.name for row in SCALARS]
# What Arrow cannot say, or says as something else.
NOT_IN_ARROW = ("timetz", "variant")
ONE_WAY = {"int128": Decimal(38, 0), "uint128": Decimal(38, 0), "geometry": Scalar("blob")}

decimals = st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p)))
field_names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=8).filter(
    str.strip
)


def nested(leaves: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    def structs(children: st.SearchStrategy[DataType]) -> st.SearchStrategy[Struct]:
        fields = st.lists(
            st.tuples(field_names, children), min_size=1, max_size=4, unique_by=lambda f: f[0].lower()
        )
        return fields.map(lambda pairs: Struct(tuple(pairs)))

    return st.recursive(
        leaves,
        lambda children: st.one_of(children.map(List), structs(children), st.builds(Map, children, children)),
        max_leaves=6,
    )


leaves = st.one_of(st.sampled_from(NAMES).map(Scalar), decimals)
types = nested(leaves)
arrow_types = nested(
    st.one_of(
        st.sampled_from([n for n in NAMES if n not in NOT_IN_ARROW and n not in ONE_WAY]).map(Scalar),
        decimals,
    )
)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


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


@given(arrow_types)
def test_every_type_that_arrow_holds_comes_back(type: DataType) -> None:
    assert from_arrow(to_arrow(type)) == type
    assert from_arrow_field(pa.field("c", to_arrow(type))) == type


@pytest.mark.parametrize("name", NAMES)
def test_arrow_shows_a_scalar_as_itself_or_as_the_table_of_exceptions_says(name: str) -> None:
    if name in NOT_IN_ARROW:
        with pytest.raises(UnknownType, match="Arrow has no type"):
            to_arrow(List(Scalar(name)))
    else:
        assert from_arrow(to_arrow(Scalar(name))) == ONE_WAY.get(name, Scalar(name))


@settings(deadline=None)
@given(type=arrow_types)
def test_duckdb_scans_an_empty_arrow_table_of_any_type(
    type: DataType, duck: duckdb.DuckDBPyConnection
) -> None:
    # pyarrow builds no arrays of extensions inside lists, but DuckDB reads them.
    empty = pa.Table.from_batches([], pa.schema([("c", to_arrow(type))]))
    assert duck.from_arrow(empty).columns == ["c"]
    assert parse(str(duck.from_arrow(empty).types[0])) == type


def test_an_extension_is_recognised_by_the_metadata_of_its_field() -> None:
    wkb = pa.field("g", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
    assert from_arrow_field(wkb) == Scalar("geometry")
    assert from_arrow(pa.list_(wkb)) == List(Scalar("geometry"))
    assert from_arrow(pa.struct([wkb])) == Struct((("g", Scalar("geometry")),))


class Celsius(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.float32(), "test.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("arrow", "type"),
    [
        (pa.large_string(), TEXT),
        (pa.string_view(), TEXT),
        (pa.dictionary(pa.int8(), pa.large_string()), TEXT),
        (pa.run_end_encoded(pa.int32(), pa.string()), TEXT),
        (pa.large_binary(), Scalar("blob")),
        (pa.binary_view(), Scalar("blob")),
        (pa.binary(16), Scalar("blob")),
        (pa.uuid(), Scalar("uuid")),
        (pa.json_(), Scalar("json")),
        (pa.json_(pa.large_string()), Scalar("json")),
        (pa.bool8(), Scalar("boolean")),
        (Celsius(), Scalar("float32")),
        (pa.float16(), Scalar("float32")),
        (pa.date64(), Scalar("date")),
        (pa.time32("s"), Scalar("time")),
        (pa.time32("ms"), Scalar("time")),
        (pa.time64("ns"), Scalar("time_ns")),
        (pa.timestamp("s"), Scalar("timestamp_s")),
        (pa.timestamp("ns"), Scalar("timestamp_ns")),
        (pa.timestamp("s", "Europe/Berlin"), Scalar("timestamptz")),
        (pa.timestamp("ns", "+05:30"), Scalar("timestamptz")),
        (pa.duration("ns"), Scalar("interval")),
        (pa.decimal32(5, 2), Decimal(5, 2)),
        (pa.decimal64(10, 2), Decimal(10, 2)),
        (pa.decimal256(30, 4), Decimal(30, 4)),
        (pa.large_list(pa.int32()), List(INT)),
        (pa.list_(pa.int32(), 3), List(INT)),
        (pa.list_view(pa.int32()), List(INT)),
        (pa.large_list_view(pa.int32()), List(INT)),
        (pa.map_(pa.string_view(), pa.list_(pa.int32(), 2)), Map(TEXT, List(INT))),
        (pa.struct([pa.field("a", pa.dictionary(pa.int8(), pa.int32()))]), Struct((("a", INT),))),
    ],
)
def test_the_layout_of_arrow_values_makes_no_difference(arrow: pa.DataType, type: DataType) -> None:
    assert from_arrow(arrow) == type


@pytest.mark.parametrize(
    ("arrow", "reason"),
    [
        (pa.null(), "null type says nothing"),
        (pa.list_(pa.null()), "null type says nothing"),
        (pa.decimal256(40, 2), "precision"),
        (pa.decimal128(5, -2), "scale"),
        (pa.struct([]), "at least one field"),
        (pa.dense_union([pa.field("a", pa.int32())]), "union"),
        (pa.opaque(pa.binary(16), "hugeint", "DuckDB"), "hugeint"),
    ],
)
def test_an_arrow_type_that_says_too_little_or_too_much_is_refused(arrow: pa.DataType, reason: str) -> None:
    with pytest.raises(UnknownType, match=reason):
        from_arrow(arrow)


def test_arrow_fields_follow_the_same_naming_rules() -> None:
    with pytest.raises(InvalidName):
        from_arrow(pa.struct([pa.field("", pa.int32())]))
    with pytest.raises(DuplicateColumn):
        from_arrow(pa.struct([pa.field("a", pa.int32()), pa.field("A", pa.int32())]))


# Boundary values of each type that can widen. Python compares int, float and Decimal exactly.
BOUNDARIES: dict[str, list[object]] = {
    **{f"int{n}": [-(2 ** (n - 1)), -1, 0, 1, 2 ** (n - 1) - 1] for n in (8, 16, 32, 64)},
    **{f"uint{n}": [0, 1, 2 ** (n - 1), 2**n - 1] for n in (8, 16)},
    "float32": [-3.4028234663852886e38, 1.401298464324817e-45, 0.1, 16777217.0, float("inf")],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
    "timestamp_s": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)],
    "timestamp_ms": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999000)],
    "decimal(5,2)": [decimal.Decimal("-999.99"), decimal.Decimal("0.01"), decimal.Decimal("999.99")],
    "decimal(18,0)": [decimal.Decimal(10**18 - 1)],
    "decimal(30,10)": [decimal.Decimal("9" * 20 + "." + "9" * 10)],
}
TARGETS: list[DataType] = [
    *map(Scalar, NAMES),
    *(
        Decimal(p, s)
        for p, s in [(6, 2), (7, 3), (10, 0), (12, 2), (18, 3), (20, 0), (22, 2), (38, 5), (38, 18)]
    ),
]
WIDENINGS = [
    (from_ducklake_name(old), new)
    for old in BOUNDARIES
    for new in TARGETS
    if from_ducklake_name(old) != new and can_widen(from_ducklake_name(old), new)
]


@pytest.mark.parametrize(("old", "new"), WIDENINGS, ids=lambda type: to_ducklake_name(type))
def test_a_widened_column_reads_every_old_value_exactly(
    old: Scalar | Decimal, new: DataType, tmp_path: Path, duck: duckdb.DuckDBPyConnection
) -> None:
    values = pa.array(BOUNDARIES[to_ducklake_name(old)], to_arrow(old))
    lists = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)
    fields = [pa.field("x", values.type, metadata={"PARQUET:field_id": "1"})]
    fields.append(
        pa.field(
            "y",
            pa.list_(pa.field("element", values.type, metadata={"PARQUET:field_id": "3"})),
            metadata={"PARQUET:field_id": "2"},
        )
    )
    pq.write_table(
        pa.Table.from_arrays([values, lists.cast(fields[1].type)], schema=pa.schema(fields)),
        tmp_path / "old.parquet",
    )
    rows = duck.execute(
        f"""SELECT c, l[1], typeof(c), typeof(l) FROM read_parquet('{tmp_path}/old.parquet', schema = MAP {{
            1: {{name: 'c', type: '{to_sql(new)}', default_value: NULL}},
            2: {{name: 'l', type: '{to_sql(List(new))}', default_value: NULL}}}})"""
    ).fetchall()
    assert {parse(row[2]) for row in rows} == {new}
    assert {parse(row[3]) for row in rows} == {List(new)}
    expected = values.to_pylist()
    if old == Scalar("date"):
        expected = [dt.datetime.combine(day, dt.time()) for day in expected]
    assert [row[0] for row in rows] == expected
    assert [row[1] for row in rows] == expected


def test_the_widenings_are_these() -> None:
    into: dict[str, set[str]] = {}
    for old, new in WIDENINGS:
        into.setdefault(to_ducklake_name(old), set()).add(to_ducklake_name(new))
    integers = {"decimal(10,0)", "decimal(12,2)", "decimal(18,3)", "decimal(20,0)", "decimal(22,2)",
                "decimal(38,5)", "decimal(38,18)", "int128"}  # fmt: skip
    assert into == {
        "int8": integers | {"int16", "int32", "int64", "float64"},
        "int16": integers | {"int32", "int64", "float64"},
        "int32": integers | {"int64", "float64"},
        "int64": {"int128", "decimal(20,0)", "decimal(22,2)", "decimal(38,5)", "decimal(38,18)"},
        "uint8": {"uint16", "uint32", "float64"},
        "uint16": {"uint32", "float64"},
        "float32": {"float64"},
        "date": {"timestamp"},
        "timestamp_s": {"timestamp_ms", "timestamp"},
        "timestamp_ms": {"timestamp"},
        "decimal(5,2)": {"decimal(6,2)", "decimal(7,3)", "decimal(12,2)", "decimal(18,3)", "decimal(22,2)",
                         "decimal(38,5)", "decimal(38,18)"},
        "decimal(18,0)": {"decimal(20,0)", "decimal(22,2)", "decimal(38,5)", "decimal(38,18)"},
        "decimal(30,10)": {"decimal(38,18)"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BIGINT", "INT"), ("BIGINT", "DOUBLE"), ("INT", "FLOAT"), ("DOUBLE", "FLOAT"),
        ("INT", "DECIMAL(9,0)"), ("BIGINT", "DECIMAL(19,0)"), ("DECIMAL(10,2)", "DECIMAL(10,3)"),
        ("DECIMAL(10,2)", "DECIMAL(11,1)"), ("TIMESTAMP", "DATE"), ("TIMESTAMP", "TIMESTAMPTZ"),
        ("TIMESTAMP", "TIMESTAMP_NS"), ("DATE", "TIMESTAMPTZ"), ("INT", "VARCHAR"), ("VARCHAR", "INT"),
        ("VARCHAR", "BLOB"), ("JSON", "VARCHAR"), ("BOOLEAN", "INT"),
        # Spark reads the first as -1 and fails on the others.
        ("UINTEGER", "DOUBLE"), ("UINTEGER", "UBIGINT"), ("UTINYINT", "DECIMAL(10,0)"),
        ("UBIGINT", "DECIMAL(22,2)"), ("INT", "INT[]"), ("INT[]", "INT"),
        ("STRUCT(a INT)", "STRUCT(b INT)"), ("STRUCT(a INT)", "STRUCT(a INT, b INT)"),
        ("STRUCT(a INT, b INT)", "STRUCT(b INT, a INT)"), ("MAP(INT, BIGINT)", "MAP(INT, INT)"),
        ("BIGINT[]", "INT[]"),
    ],
)  # fmt: skip
def test_what_could_lose_a_value_or_a_reader_is_no_widening(old: str, new: str) -> None:
    assert not can_widen(parse(old), parse(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INT[]", "BIGINT[]"),
        ("STRUCT(a INT, b FLOAT)", "STRUCT(a BIGINT, b DOUBLE)"),
        ("MAP(INT, STRUCT(a INT))", "MAP(BIGINT, STRUCT(a DECIMAL(10,0)))"),
    ],
)
def test_a_nested_type_widens_part_by_part(old: str, new: str) -> None:
    assert can_widen(parse(old), parse(new))
    assert not can_widen(parse(new), parse(old))


# Few names and leaves, so that types that widen into each other come up often.
wideners = st.one_of(
    st.sampled_from([*BOUNDARIES, "int128", "float64", "uint32", "timestamp"]).map(from_ducklake_name),
    decimals,
)
related = st.one_of(
    wideners,
    wideners.map(List),
    st.builds(lambda a, b: Struct((("a", a), ("b", b))), wideners, wideners),
    st.builds(Map, wideners, wideners),
)


@given(related)
def test_every_type_widens_to_itself(type: DataType) -> None:
    assert can_widen(type, type)


@given(related, related)
def test_no_two_types_widen_into_each_other(a: DataType, b: DataType) -> None:
    assert a == b or not (can_widen(a, b) and can_widen(b, a))


@given(wideners, wideners, wideners)
def test_widening_twice_is_a_widening(a: DataType, b: DataType, c: DataType) -> None:
    if can_widen(a, b) and can_widen(b, c):
        assert can_widen(a, c)


def test_widening_twice_is_a_widening_for_every_triple_of_the_table() -> None:
    every = [
        *map(Scalar, NAMES),
        *(Decimal(p, s) for p in (1, 5, 9, 10, 12, 20, 38) for s in (0, 2, 9) if s <= p),
    ]
    chains = [(a, b, c) for a in every for b in every if can_widen(a, b) for c in every if can_widen(b, c)]
    assert len({chain for chain in chains if len(set(chain)) == 3}) > 50
    assert [chain for chain in chains if not can_widen(chain[0], chain[2])] == []
