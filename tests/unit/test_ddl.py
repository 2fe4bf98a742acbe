"""Column definitions and defaults, compared with what real DuckDB makes of the same text."""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from collections.abc import Iterator
from random import Random

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forklake.errors import DuplicateColumn, ForklakeError, InvalidName, InvalidSchemaChange, UnknownType
from forklake.model.names import quoted
from forklake.model.sql.constants import NULL, check_expression, literal
from forklake.model.sql.ddl import ColumnSpec, columns_of
from forklake.model.types.data_types import Decimal, List, Map, Scalar, Struct, parse, to_sql

INT = Scalar("int32")
TEXT = Scalar("varchar")


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def as_duckdb_shows(duck: duckdb.DuckDBPyConnection, text: str, type: str) -> str | None:
    row = duck.execute(f"SELECT CAST(CAST(({text}) AS {type}) AS VARCHAR)").fetchone()
    assert row is not None
    return row[0]


def test_a_table_is_read_from_its_ddl() -> None:
    assert columns_of(
        "id BIGINT NOT NULL, name VARCHAR DEFAULT 'x', tags STRUCT(a INT, b VARCHAR[]), "
        "ts TIMESTAMPTZ DEFAULT now()"
    ) == (
        ColumnSpec("id", Scalar("int64"), nullable=False),
        ColumnSpec("name", TEXT, default="'x'"),
        ColumnSpec("tags", Struct((("a", INT), ("b", List(TEXT))))),
        ColumnSpec("ts", Scalar("timestamptz"), default="now()"),
    )


@pytest.mark.parametrize(
    ("ddl", "column"),
    [
        ("a INT NULL", ColumnSpec("a", INT)),
        ("a INT COMMENT 'it''s' NOT NULL", ColumnSpec("a", INT, nullable=False, comment="it's")),
        ("a INT DEFAULT 1 NOT NULL", ColumnSpec("a", INT, nullable=False, default="1")),
        ("a INT NOT NULL DEFAULT -1 COMMENT 'c'", ColumnSpec("a", INT, False, "-1", "c")),
        ("a INT DEFAULT NULL", ColumnSpec("a", INT, default="NULL")),
        ("a INT DEFAULT NULL NULL", ColumnSpec("a", INT, default="NULL")),
        ("a VARCHAR DEFAULT 'a,b); --'", ColumnSpec("a", TEXT, default="'a,b); --'")),
        ("a VARCHAR DEFAULT 'NOT NULL'", ColumnSpec("a", TEXT, default="'NOT NULL'")),
        ("a BOOLEAN DEFAULT 1 IS NOT NULL", ColumnSpec("a", Scalar("boolean"), default="1 IS NOT NULL")),
        ("a BOOLEAN DEFAULT 1 < 2 NOT NULL", ColumnSpec("a", Scalar("boolean"), False, "1 < 2")),
        ("a INT DEFAULT CASE WHEN true THEN NULL END NOT NULL",
         ColumnSpec("a", INT, nullable=False, default="CASE WHEN true THEN NULL END")),
        ("a INT[] DEFAULT [1, 2] NOT NULL", ColumnSpec("a", List(INT), nullable=False, default="[1, 2]")),
        ("a STRUCT(b INT) DEFAULT {'b': 1}", ColumnSpec("a", Struct((("b", INT),)), default="{'b': 1}")),
        ("a INT DEFAULT abs( -1 ) + 2", ColumnSpec("a", INT, default="abs( -1 ) + 2")),
        ("a TIMESTAMP WITH TIME ZONE NOT NULL", ColumnSpec("a", Scalar("timestamptz"), nullable=False)),
        ("a MAP<STRING, ARRAY<INT>> NOT NULL", ColumnSpec("a", Map(TEXT, List(INT)), nullable=False)),
        ('"a""b, c" INT', ColumnSpec('a"b, c', INT)),
        ("`a b` INT", ColumnSpec("a b", INT)),
        ("größe INT", ColumnSpec("größe", INT)),
        ("call INT", ColumnSpec("call", INT)),
        ("check INT", ColumnSpec("check", INT)),
        ("timestamp TIMESTAMP", ColumnSpec("timestamp", Scalar("timestamp"))),
        ("a INT -- the key\n", ColumnSpec("a", INT)),
    ],
)  # fmt: skip
def test_a_column_has_what_its_definition_says(ddl: str, column: ColumnSpec) -> None:
    assert columns_of(ddl) == (column,)
    after = ColumnSpec("z", INT, nullable=False)
    assert columns_of(f"{ddl}, z INT NOT NULL") == (column, after)


@pytest.mark.parametrize(
    ("ddl", "word"),
    [
        ("a INT PRIMARY KEY", "PRIMARY KEY"),
        ("a INT NOT NULL UNIQUE", "UNIQUE"),
        ("a INT CHECK (a > 0)", "CHECK"),
        ("a INT REFERENCES t (a)", "REFERENCES"),
        ("a INT DEFAULT 1 PRIMARY KEY", "PRIMARY KEY"),
        ("a INT, PRIMARY KEY (a)", "PRIMARY KEY"),
        ("a INT, UNIQUE (a)", "UNIQUE"),
        ("CHECK (a > 0), a INT", "CHECK"),
        ("a INT, FOREIGN KEY (a) REFERENCES t (a)", "FOREIGN KEY"),
        ("a INT, CONSTRAINT k PRIMARY KEY (a)", "CONSTRAINT"),
        ("a INT GENERATED ALWAYS AS (1)", "GENERATED"),
        ("a INT AS (1)", "AS"),
        ("a VARCHAR COLLATE nocase", "COLLATE"),
    ],
)
def test_a_constraint_that_nobody_would_check_is_refused_by_name(ddl: str, word: str) -> None:
    with pytest.raises(InvalidSchemaChange, match=f"{word} is not supported"):
        columns_of(ddl)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("", InvalidSchemaChange),
        (" \n ", InvalidSchemaChange),
        ([], InvalidSchemaChange),
        (pa.schema([]), InvalidSchemaChange),
        ("a INT,", InvalidName),
        (", a INT", InvalidName),
        ('"" INT', InvalidName),
        ('"  " INT', InvalidName),
        ("5 INT", InvalidName),
        ("'a' INT", InvalidName),
        ("(a INT)", InvalidName),
        ("a\0b INT", InvalidName),
        ('"a\nb" INT', InvalidName),
        ("\ud800 INT", InvalidName),
        (f"{'x' * 256} INT", InvalidName),
        ([("", "int")], InvalidName),
        ([("x" * 256, "int")], InvalidName),
        (pa.schema([("", pa.int32())]), InvalidName),
        ("a INT, b INT, A INT", DuplicateColumn),
        ('"Ä" INT, "ä" INT', DuplicateColumn),
        ([("a", "int"), ("A", "int")], DuplicateColumn),
        (pa.schema([("a", pa.int32()), ("A", pa.int32())]), DuplicateColumn),
        ("a", UnknownType),
        ("a INT, b", UnknownType),
        ("a.b INT", UnknownType),
        ("a foo", UnknownType),
        ("a INT[3]", UnknownType),
        ("a NOT NULL", UnknownType),
        ('a INT DEFAULT "', UnknownType),
        ([("a", "foo")], UnknownType),
        (pa.schema([("a", pa.null())]), UnknownType),
        ("a INT b", InvalidSchemaChange),
        ("a INT 'x'", InvalidSchemaChange),
        ("a INT; DROP TABLE t", InvalidSchemaChange),
        ("a INT) AS SELECT 1", InvalidSchemaChange),
        ("a INT NOT", InvalidSchemaChange),
        ("a INT NOT NULL NULL", InvalidSchemaChange),
        ("a INT NULL NOT NULL", InvalidSchemaChange),
        ("a INT DEFAULT 1 DEFAULT 2", InvalidSchemaChange),
        ("a INT COMMENT 'x' COMMENT 'y'", InvalidSchemaChange),
        ("a INT COMMENT x", InvalidSchemaChange),
        ("a INT COMMENT", InvalidSchemaChange),
        ("a INT DEFAULT", InvalidSchemaChange),
        ("a INT DEFAULT, b INT", InvalidSchemaChange),
        ("a INT DEFAULT NOT NULL", InvalidSchemaChange),
        ("a INT DEFAULT 1), b INT", InvalidSchemaChange),
        ("a INT DEFAULT 1; DROP TABLE t", InvalidSchemaChange),
        ("a INT DEFAULT (SELECT 1)", InvalidSchemaChange),
        ("a INT DEFAULT b, b INT", InvalidSchemaChange),
        ("a TINYINT DEFAULT 300", InvalidSchemaChange),
        ([ColumnSpec("a", INT, default="'x'")], InvalidSchemaChange),
        ([ColumnSpec("a", INT, comment="\0")], InvalidSchemaChange),
        (["a INT"], InvalidSchemaChange),
        ([("a", "int", "c")], InvalidSchemaChange),
        ([(5, "int")], InvalidSchemaChange),
        ({"a": int}, UnknownType),
        ([("a", int)], UnknownType),
        ({5: "int"}, InvalidSchemaChange),
        (b"a INT", InvalidSchemaChange),
        (5, InvalidSchemaChange),
        (None, InvalidSchemaChange),
        (pa.int32(), InvalidSchemaChange),
    ],
)
def test_definitions_that_make_no_table_are_refused(source: object, error: type[ForklakeError]) -> None:
    with pytest.raises(ForklakeError) as refusal:
        columns_of(source)  # pyright: ignore[reportArgumentType]
    assert type(refusal.value) is error
    assert "\n" not in str(refusal.value)


def test_an_arrow_schema_keeps_nullability_and_comments() -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("name", pa.large_string(), metadata={"comment": "größe"}),
            pa.field("shape", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"}),
        ]
    )
    expected = (
        ColumnSpec("id", Scalar("int64"), nullable=False),
        ColumnSpec("name", TEXT, comment="größe"),
        ColumnSpec("shape", Scalar("geometry")),
    )
    assert columns_of(schema) == expected

    class Shown:
        def __arrow_c_schema__(self) -> object:
            return schema.__arrow_c_schema__()

    assert columns_of(Shown()) == expected


def test_specs_and_pairs_may_be_mixed_in_any_iterable() -> None:
    spec = ColumnSpec("c", INT, nullable=False, default="1", comment="x")
    source = (item for item in [("a", "DECIMAL(10,2)"), ("b", List(INT)), spec])
    assert columns_of(source) == (ColumnSpec("a", Decimal(10, 2)), ColumnSpec("b", List(INT)), spec)


names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20).filter(str.strip)
specs = st.builds(
    ColumnSpec,
    names,
    st.sampled_from(["INT", "VARCHAR", "DECIMAL(10,2)", "MAP(INT, VARCHAR)[]", "STRUCT(a DATE)"]).map(parse),
    st.booleans(),
    st.sampled_from([None, "NULL", "now()", "CAST(NULL AS INT)", "(1 NOT IN (2, 3))", "f('a, NOT NULL')"]),
    st.none() | st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20),
)  # fmt: skip


@given(st.lists(specs, min_size=1, max_size=5, unique_by=lambda spec: spec.name.lower()), st.randoms())
def test_any_columns_survive_being_written_as_ddl(columns: list[ColumnSpec], order: Random) -> None:
    def written(spec: ColumnSpec) -> str:
        parts = ["NULL" if spec.nullable else "NOT NULL"]
        if spec.default is not None:
            parts.append(f"DEFAULT {spec.default}")
        if spec.comment is not None:
            parts.append("COMMENT '" + spec.comment.replace("'", "''") + "'")
        order.shuffle(parts)
        return " ".join([quoted(spec.name), to_sql(spec.type), *parts])

    assert columns_of(", ".join(map(written, columns))) == tuple(columns)


@pytest.mark.parametrize(
    ("text", "type", "value"),
    [
        ("'it''s'", "VARCHAR", "it's"),
        ("''", "VARCHAR", ""),
        ("'NULL'", "VARCHAR", "NULL"),
        ("$$it's$$", "VARCHAR", "it's"),
        ("42", "VARCHAR", "42"),
        ("007", "VARCHAR", "7"),
        ("TRUE", "VARCHAR", "true"),
        ("1.5", "DECIMAL(10,2)", "1.50"),
        ("-0.0", "DECIMAL(10,2)", "0.00"),
        ("'1.5'", "DECIMAL(3,1)", "1.5"),
        ("1e2", "DECIMAL(3,0)", "100"),
        ("TRUE", "BOOLEAN", "true"),
        ("false", "BOOLEAN", "false"),
        ("'T'", "BOOLEAN", "true"),
        ("0", "BOOLEAN", "false"),
        ("42", "INT", "42"),
        ("'42'", "INT", "42"),
        ("-128", "TINYINT", "-128"),
        ("- 5", "INT", "-5"),
        ("-(5)", "INT", "-5"),
        ("(5)", "INT", "5"),
        ("+5", "INT", "5"),
        ("1_000", "INT", "1000"),
        ("2.0", "INT", "2"),
        ("1e3", "BIGINT", "1000"),
        (f"-{'9' * 38}", "HUGEINT", f"-{'9' * 38}"),
        ("9" * 38, "UHUGEINT", "9" * 38),
        ("1.5", "FLOAT", "1.5"),
        (".5", "DOUBLE", "0.5"),
        ("1e10", "DOUBLE", "10000000000.0"),
        ("1e300", "DOUBLE", "1e+300"),
        ("'nan'", "DOUBLE", "nan"),
        ("'-Infinity'", "DOUBLE", "-inf"),
        ("DATE '2024-01-02'", "DATE", "2024-01-02"),
        ("' 2024-01-02 '", "DATE", "2024-01-02"),
        ("DATE '2024-01-02'", "TIMESTAMP", "2024-01-02 00:00:00"),
        ("'2024-01-02T03:04:05.600'", "TIMESTAMP", "2024-01-02 03:04:05.6"),
        ("TIMESTAMP '2024-01-02 03:04:05'", "TIMESTAMP_S", "2024-01-02 03:04:05"),
        ("'2024-01-02 03:04:05.6'", "TIMESTAMP_MS", "2024-01-02 03:04:05.6"),
        ("'2024-01-02 03:04:05.123456789'", "TIMESTAMP_NS", "2024-01-02 03:04:05.123456789"),
        ("'2024-01-02 03:04:05+02'", "TIMESTAMPTZ", "2024-01-02 01:04:05+00"),
        ("'2024-01-02 03:04:05.5Z'", "TIMESTAMPTZ", "2024-01-02 03:04:05.5+00"),
        ("'2024-01-02 03:04:05.000'", "TIMESTAMP_S", "2024-01-02 03:04:05"),
        ("'12:34:56.7890'", "TIME", "12:34:56.789"),
        ("TIME '12:34:00'", "TIME", "12:34:00"),
        ("'12:00:00+02'", "TIMETZ", "12:00:00+02"),
        ("'12:00:00.5-05:30'", "TIMETZ", "12:00:00.5-05:30"),
        ("'1 year 2 months 3 days 04:05:06'", "INTERVAL", "1 year 2 months 3 days 04:05:06"),
        ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "UUID", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("""'{"a": 1}'""", "JSON", '{"a": 1}'),
        ("""JSON '[]'""", "JSON", "[]"),
        (r"'\xAA\x00abc'", "BLOB", r"\xAA\x00abc"),
        ("CAST('7' AS INT)", "BIGINT", "7"),
        ("7::SMALLINT::INT", "INT", "7"),
        ("CAST(1.50 AS DECIMAL(5,2))", "VARCHAR", "1.50"),
        ("CAST(5 AS DOUBLE)", "VARCHAR", "5.0"),
    ],
)
def test_a_constant_becomes_the_text_that_duckdb_shows(
    text: str, type: str, value: str, duck: duckdb.DuckDBPyConnection
) -> None:
    assert literal(text, parse(type)) == value
    assert as_duckdb_shows(duck, text, type) == value
    # DuckLake gives the text back to the engine, which casts it.
    assert as_duckdb_shows(duck, "'" + value.replace("'", "''") + "'", type) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("INTERVAL 3 DAY", "3 day"),
        ("INTERVAL '3' DAYS", "3 days"),
        ("INTERVAL '1 year 2 months'", "1 year 2 months"),
    ],
)
def test_an_interval_keeps_its_words(text: str, value: str, duck: duckdb.DuckDBPyConnection) -> None:
    got = literal(text, Scalar("interval"))
    assert isinstance(got, str)
    assert got.lower() == value
    assert as_duckdb_shows(duck, f"'{got}'", "INTERVAL") == as_duckdb_shows(duck, text, "INTERVAL")


@pytest.mark.parametrize("type", ["INT", "VARCHAR", "INT[]", "STRUCT(a INT)", "GEOMETRY", "VARIANT"])
@pytest.mark.parametrize("text", ["NULL", "null", "(NULL)", "CAST(NULL AS INT)", "NULL::VARCHAR"])
def test_null_is_told_apart_from_every_text_and_from_expressions(text: str, type: str) -> None:
    assert literal(text, parse(type)) is NULL
    assert literal("'NULL'", TEXT) == "NULL"
    assert literal("'NULL'", TEXT) is not NULL
    assert literal("now()", TEXT) is None


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("now()", "TIMESTAMPTZ"), ("CURRENT_TIMESTAMP", "TIMESTAMPTZ"), ("uuid()", "UUID"),
        ("1 + 1", "INT"), ("'a' || 'b'", "VARCHAR"), ("TRY_CAST('x' AS INT)", "INT"), ("[1, 2]", "INT[]"),
        ("{'a': 1}", "STRUCT(a INT)"), ("MAP {'a': 1}", "MAP(VARCHAR, INT)"), ("E'a\\nb'", "VARCHAR"),
        ("NOT TRUE", "BOOLEAN"), ("-'5'", "INT"), ("DATE '2024-01-01' + INTERVAL 1 DAY", "DATE"),
        ("list_transform([1], x -> x + 1)", "INT[]"), ("CAST(now() AS DATE)", "DATE"),
        ("random()", "DOUBLE"), ("CASE WHEN true THEN 1 END", "INT"),
        ("json('{}')", "JSON"), ("- - 5", "INT"),
    ],
)  # fmt: skip
def test_an_expression_has_no_constant(text: str, type: str) -> None:
    assert literal(text, parse(type)) is None
    assert check_expression(text) == text


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("'abc'", "INT"), ("''", "INT"), ("300", "TINYINT"), ("-129", "TINYINT"), ("-1", "UTINYINT"),
        ("1.6", "INT"), ("1e99", "BIGINT"), ("1e999999", "BIGINT"), ("1e-999999", "BIGINT"),
        ("9" * 5_000, "BIGINT"), ("TRUE", "INT"), ("-TRUE", "INT"), ("'\u0661'", "INT"),
        ("DATE '2024-01-01'", "INT"), ("1.555", "DECIMAL(10,2)"), ("100", "DECIMAL(2,0)"),
        ("1e999999", "DECIMAL(38,0)"), ("1e-999999", "DECIMAL(38,38)"), ("1", "DECIMAL(2,2)"),
        ("1e400", "DOUBLE"), ("1e39", "FLOAT"), ("'abc'", "DOUBLE"), ("2", "BOOLEAN"), ("'yes'", "BOOLEAN"),
        ("1.5", "VARCHAR"), ("1e5", "VARCHAR"), ("'2024-13-45'", "DATE"), ("'2023-02-29'", "DATE"),
        ("20240101", "DATE"), ("'2024-01-02 03:04:05'", "DATE"), ("'abc'", "TIMESTAMP"),
        ("'2024-01-02 25:00:00'", "TIMESTAMP"), ("'2024-01-02 03:04:05+02'", "TIMESTAMP"),
        ("'2024-01-02 03:04:05.1234567'", "TIMESTAMP"), ("'2024-01-02 03:04:05.5'", "TIMESTAMP_S"),
        ("'2024-01-02 03:04:05.1234'", "TIMESTAMP_MS"), ("'1500-01-01 00:00:00'", "TIMESTAMP_NS"),
        ("'2024-01-02 03:04:05'", "TIMESTAMPTZ"), ("'0001-01-01 00:00:00+15'", "TIMESTAMPTZ"),
        ("'25:00:00'", "TIME"), ("'12:00:00+02'", "TIME"), ("'x'", "TIME"), ("'12:00:00'", "TIMETZ"),
        ("'12:00:00+99'", "TIMETZ"), ("'abc'", "INTERVAL"), ("''", "INTERVAL"), ("5", "INTERVAL"),
        ("'abc'", "UUID"), ("'{'", "JSON"), ("'NaN'", "JSON"), ("'" + "[" * 100_000 + "'", "JSON"),
        ("'ä'", "BLOB"), (r"'\xZZ'", "BLOB"), ("5", "BLOB"), ("'[1]'", "INT[]"), ("1", "STRUCT(a INT)"),
        ("'POINT(1 2)'", "GEOMETRY"), ("42", "VARIANT"), ("CAST(300 AS TINYINT)", "INT"),
        ("CAST('x' AS foo)", "INT"), ("CAST(1 AS INT[3])", "INT"),
    ],
)  # fmt: skip
def test_a_literal_that_does_not_fit_is_refused(text: str, type: str) -> None:
    with pytest.raises(InvalidSchemaChange) as refusal:
        literal(text, parse(type))
    assert len(str(refusal.value)) < 1_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "one SQL expression"), ("   ", "one SQL expression"), ("1, 2", "one SQL expression"),
        ("1;", "cannot be read"), ("1; DROP TABLE t", "cannot be read"),
        ("1) FROM t WHERE (true", "one SQL expression"), ("1) + (2", "one SQL"),
        ("1), (2", "one SQL expression"), (")", "cannot be read"), ("(", "cannot be read"),
        ("1 +", "cannot be read"),
        ("1 2", "cannot be read"), ("'unterminated", "cannot be read"), ("DROP TABLE t", "cannot be read"),
        ("SELECT 1", "a query"), ("(SELECT 1)", "a query"), ("1 IN (SELECT 2)", "a query"),
        ("EXISTS (SELECT 1)", "a query"), ("FROM t", "a query"), ("VALUES (1)", "a query"),
        ("x", "a column"), ("t.x", "a column"), ('"x"', "a column"), ("x + 1", "a column"),
        ("f(x)", "a column"), ("*", "a star"), ("COLUMNS('x')", "COLUMNS"), ("#1", "a column"),
        ("[a for a in [1] if b]", "a column"), ("$1", "a parameter"), ("?", "a parameter"),
        ("1 AS x", "an alias"), ("count(*)", "a"), ("sum(1)", "an aggregate"),
        ("row_number() OVER ()", "a window"), ("unnest([1])", "a table function"), ("1 -- c", "a comment"),
        ("1 /* c */", "a comment"), ("/* c */ 1", "a comment"), ("'a\0b'", "cannot be stored"),
        ("'\ud800'", "cannot be stored"), ("(" * 5_000 + "1" + ")" * 5_000, "nested too deep"),
        ("nextval('s')", "session"), ("current_setting('threads')", "session"),
        ("getvariable('x')", "session"),
        ("product(1)", "aggregate"), ("generate_subscripts([1], 1)", "table function"),
        ("current_user", "session"),
    ],
)  # fmt: skip
def test_a_default_must_be_one_expression_that_needs_no_row(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaChange, match=reason):
        check_expression(text)
    with pytest.raises(InvalidSchemaChange):
        literal(text, INT)


texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30)


@given(texts)
def test_any_text_is_its_own_value(text: str) -> None:
    assert literal("'" + text.replace("'", "''") + "'", TEXT) == text


@settings(deadline=None)
@given(
    value=st.decimals(allow_nan=False, allow_infinity=False, places=3),
    precision=st.integers(1, 38),
    scale=st.integers(0, 38),
)
def test_a_decimal_fits_exactly_or_not_at_all(
    value: decimal.Decimal, precision: int, scale: int, duck: duckdb.DuckDBPyConnection
) -> None:
    assume(scale <= precision)
    text, type = f"'{value:f}'", Decimal(precision, scale)
    try:
        got = literal(text, type)
    except InvalidSchemaChange:
        with decimal.localcontext(prec=100):
            scaled = value.scaleb(scale)
            assert scaled != scaled.to_integral_value() or abs(scaled) >= 10**precision
    else:
        assert isinstance(got, str)
        assert decimal.Decimal(got) == value
        assert as_duckdb_shows(duck, f"'{got}'", to_sql(type)) == as_duckdb_shows(duck, text, to_sql(type))


@settings(deadline=None)
@given(
    value=st.integers(-(2**129), 2**129),
    name=st.sampled_from([f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64, 128)]),
)
def test_an_integer_fits_where_duckdb_takes_it(
    value: int, name: str, duck: duckdb.DuckDBPyConnection
) -> None:
    bits = int(name.split("int")[1])
    value = value >> (128 - bits)
    try:
        theirs = as_duckdb_shows(duck, f"'{value}'", to_sql(Scalar(name)))
    except duckdb.Error:
        with pytest.raises(InvalidSchemaChange):
            literal(str(value), Scalar(name))
    else:
        assert literal(str(value), Scalar(name)) == theirs == str(value)


@settings(deadline=None)
@given(value=st.floats())
def test_a_double_reads_back_as_the_same_bits(value: float, duck: duckdb.DuckDBPyConnection) -> None:
    got = literal(f"'{value!r}'", Scalar("float64"))
    assert isinstance(got, str)
    row = duck.execute("SELECT CAST($1 AS DOUBLE)", [got]).fetchone()
    assert row is not None
    assert row[0] != row[0] if value != value else struct.pack("d", row[0]) == struct.pack("d", value)


@settings(deadline=None)
@given(
    timestamp=st.datetimes(dt.datetime(1, 1, 2)),
    name=st.sampled_from(["timestamp", "timestamp_ms", "timestamp_s", "timestamptz", "date", "time"]),
)
def test_a_moment_reads_as_duckdb_shows_it(
    timestamp: dt.datetime, name: str, duck: duckdb.DuckDBPyConnection
) -> None:
    keep = {"timestamp_ms": timestamp.microsecond // 1000 * 1000, "timestamp_s": 0}
    timestamp = timestamp.replace(microsecond=keep.get(name, timestamp.microsecond))
    text = {"date": timestamp.date(), "time": timestamp.time()}.get(name, timestamp).isoformat()
    text = f"'{text}+00'" if name == "timestamptz" else f"'{text}'"
    assert literal(text, Scalar(name)) == as_duckdb_shows(duck, text, to_sql(Scalar(name)))
