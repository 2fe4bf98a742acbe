"""The types of columns, their spellings in each system, and which may widen into which. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar, NamedTuple

from forklake.errors import DuplicateColumn, InvalidName, UnknownType
from forklake.lazy.arrow import pa
from forklake.lazy.sqlglot import sqlglot, sqlglot_errors
from forklake.model.names import check_name, quoted

MAX_PRECISION = 38
LARGEST = 10**MAX_PRECISION - 1
"""What a HUGEINT or UHUGEINT may be: Arrow, Parquet and Spark hold it as a decimal of so many digits."""
MAX_DEPTH = 64
"""How deep types may nest; Arrow's own interface stops here too."""


class Row(NamedTuple):
    """One scalar type in every system."""

    name: str
    """DuckLake's name."""
    sql: str
    """SQL spellings, separated by bars; the first is DuckDB's own."""
    arrow: Callable[[], pa.DataType] | None
    """Makes the type: Arrow is not loaded before one is needed."""
    spark: str | None


# SQL's INT8 is a BIGINT (8 bytes), DuckLake's int8 is a TINYINT (8 bits): each column has its own meaning.
# Arrow and Spark hold 38 of the 39 digits that 128 bits can have. Spark cuts nanoseconds. A geometry is WKB.
# fmt: off
SCALARS: tuple[Row, ...] = (
    #   DuckLake        SQL                              Arrow                              Spark
    Row("boolean",      "BOOLEAN|BOOL|LOGICAL",          lambda: pa.bool_(),                "BOOLEAN"),
    Row("int8",         "TINYINT|INT1|BYTE",             lambda: pa.int8(),                 "TINYINT"),
    Row("int16",        "SMALLINT|INT2|INT16|SHORT",     lambda: pa.int16(),                "SMALLINT"),
    Row("int32",        "INTEGER|INT|INT4|INT32|SIGNED", lambda: pa.int32(),                "INT"),
    Row("int64",        "BIGINT|INT8|INT64|LONG",        lambda: pa.int64(),                "BIGINT"),
    Row("int128",       "HUGEINT|INT128",                lambda: pa.decimal128(38, 0),      "DECIMAL(38,0)"),
    Row("uint8",        "UTINYINT|UINT8",                lambda: pa.uint8(),                "SMALLINT"),
    Row("uint16",       "USMALLINT|UINT16",              lambda: pa.uint16(),               "INT"),
    Row("uint32",       "UINTEGER|UINT|UINT32",          lambda: pa.uint32(),               "BIGINT"),
    Row("uint64",       "UBIGINT|UINT64",                lambda: pa.uint64(),               "DECIMAL(20,0)"),
    Row("uint128",      "UHUGEINT|UINT128",              lambda: pa.decimal128(38, 0),      "DECIMAL(38,0)"),
    Row("float32",      "FLOAT|REAL|FLOAT4|FLOAT32",     lambda: pa.float32(),              "FLOAT"),
    Row("float64",      "DOUBLE|DOUBLE PRECISION|"
                        "FLOAT8|FLOAT64",                lambda: pa.float64(),              "DOUBLE"),
    Row("date",         "DATE",                          lambda: pa.date32(),               "DATE"),
    Row("time",         "TIME|TIME WITHOUT TIME ZONE",   lambda: pa.time64("us"),           "TIME"),
    Row("time_ns",      "TIME_NS",                       lambda: pa.time64("ns"),           None),
    Row("timetz",       "TIME WITH TIME ZONE|TIMETZ",    None,                              None),
    Row("timestamp",    "TIMESTAMP|DATETIME|"
                        "TIMESTAMP WITHOUT TIME ZONE|"
                        "TIMESTAMP_US|TIMESTAMP_NTZ",    lambda: pa.timestamp("us"),        "TIMESTAMP_NTZ"),
    Row("timestamp_s",  "TIMESTAMP_S",                   lambda: pa.timestamp("s"),         "TIMESTAMP_NTZ"),
    Row("timestamp_ms", "TIMESTAMP_MS",                  lambda: pa.timestamp("ms"),        "TIMESTAMP_NTZ"),
    Row("timestamp_ns", "TIMESTAMP_NS",                  lambda: pa.timestamp("ns"),        "TIMESTAMP_NTZ"),
    Row("timestamptz",  "TIMESTAMP WITH TIME ZONE|"
                        "TIMESTAMPTZ|TIMESTAMP_LTZ",     lambda: pa.timestamp("us", "UTC"), "TIMESTAMP"),
    Row("interval",     "INTERVAL",                      lambda: pa.month_day_nano_interval(), None),
    Row("varchar",      "VARCHAR|TEXT|STRING|CHAR|"
                        "BPCHAR|CHARACTER|"
                        "CHARACTER VARYING",             lambda: pa.string(),               "STRING"),
    Row("blob",         "BLOB|BYTEA|BINARY|VARBINARY",   lambda: pa.binary(),               "BINARY"),
    Row("json",         "JSON",                          lambda: pa.json_(),                "STRING"),
    Row("uuid",         "UUID",                          lambda: pa.uuid(),                 "STRING"),
    Row("geometry",     "GEOMETRY",                      lambda: pa.binary(),               "BINARY"),
    Row("variant",      "VARIANT",                       None,                              "VARIANT"),
)
# fmt: on

_ROWS = {row.name: row for row in SCALARS}
_SPELLINGS = {spelling: row.name for row in SCALARS for spelling in row.sql.split("|")}
_DECIMAL_SPELLINGS = ("DECIMAL", "NUMERIC", "DEC")
# A length promises nothing in DuckDB, and nothing here.
_WITH_LENGTH = ("varchar",)
_REFERENCE_SYSTEM = "OGC:CRS84"
"""That of geometries in Parquet files which do not name one."""
_MOST_WORDS = max(len(spelling.split()) for spelling in _SPELLINGS)
_HINT = (
    "known types are "
    + ", ".join(row.sql.split("|")[0] for row in SCALARS)
    + ", DECIMAL(precision, scale), T[], STRUCT(name T, …) and MAP(K, V)"
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts, by DuckLake's name."""

    name: str

    def __post_init__(self) -> None:
        """Only the names of the table exist."""
        if self.name not in _ROWS:
            raise UnknownType(f"unknown type {_short(self.name)}: {_HINT}")


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        """Arrow, DuckDB and Spark agree on 38 digits."""
        if not (1 <= self.precision <= MAX_PRECISION and 0 <= self.scale <= self.precision):
            raise UnknownType(
                f"unknown type DECIMAL({self.precision},{self.scale}): the precision must lie between 1 and "
                f"{MAX_PRECISION}, and the scale between 0 and the precision"
            )


@dataclass(frozen=True, slots=True)
class List:
    """Any number of values of one type."""

    element: DataType


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields, in order."""

    fields: tuple[tuple[str, DataType], ...]

    def __post_init__(self) -> None:
        """Fields have names, and every engine ignores their case."""
        if not self.fields:
            raise UnknownType("a struct needs at least one field, as in STRUCT(name VARCHAR)")
        seen: set[str] = set()
        for name, _ in self.fields:
            if check_name(name, "field").lower() in seen:
                raise DuplicateColumn(f"a struct has two fields named {name!r}; case makes no difference")
            seen.add(name.lower())


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key."""

    key: DataType
    value: DataType


DataType = Scalar | Decimal | List | Struct | Map


def _short(text: object) -> str:
    """A piece of somebody's text, small enough for a message."""
    shown = str(text)
    return repr(shown if len(shown) <= 80 else shown[:80] + "…")


def to_sql(type: DataType) -> str:
    """The type as DuckDB spells it; field names are always quoted."""
    match type:
        case Scalar(name):
            return _ROWS[name].sql.split("|")[0]
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case List(element):
            return f"{to_sql(element)}[]"
        case Struct(fields):
            return "STRUCT(" + ", ".join(f"{quoted(name)} {to_sql(child)}" for name, child in fields) + ")"
        case Map(key, value):
            return f"MAP({to_sql(key)}, {to_sql(value)})"


def to_spark(type: DataType) -> str:
    """The type in Spark's DDL, or `UnknownType` where Spark has nothing that holds it."""
    match type:
        case Scalar(name):
            spark = _ROWS[name].spark
            if spark is None:
                raise UnknownType(f"Spark has no type for {to_sql(type)}: cast the column first")
            return spark
        case Decimal():
            return to_sql(type)
        case List(element):
            return f"ARRAY<{to_spark(element)}>"
        case Struct(fields):
            inner = ", ".join(f"`{name.replace('`', '``')}`: {to_spark(child)}" for name, child in fields)
            return f"STRUCT<{inner}>"
        case Map(key, value):
            return f"MAP<{to_spark(key)}, {to_spark(value)}>"


def to_ducklake_name(type: DataType) -> str:
    """What DuckLake keeps in `column_type`; the parts of a nested type are columns of their own."""
    match type:
        case Scalar(name):
            return name
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case List():
            return "list"
        case Struct():
            return "struct"
        case Map():
            return "map"


def from_ducklake_name(name: str) -> Scalar | Decimal:
    """The type of a column that has no parts, from DuckLake's `column_type`."""
    if name.startswith("decimal("):
        type = parse(name)
        if isinstance(type, Decimal):
            return type
    return Scalar(name)


@lru_cache(1024)
def parse(text: str) -> DataType:
    """Read a type as SQL spells it: DuckDB's way, or Spark's `ARRAY<INT>` and `STRUCT<a: INT>`.

    A word means what it means in DuckDB: `INT8` has eight bytes and `TIMESTAMP` no zone. `INT[3]` is refused,
    because nothing would keep the size.
    """
    reader = SqlReader(text)
    type = reader.type()
    if reader.at < len(reader.tokens):
        raise reader.unknown(f"{_short(reader.tokens[reader.at].text)} was not expected")
    return type


@cache
def _tokenizer() -> type[sqlglot.Tokenizer]:
    """DuckDB's tokens and Spark's backticks; no word starts a command here."""
    from sqlglot.dialects.duckdb import DuckDB

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        COMMANDS: ClassVar[set[sqlglot.TokenType]] = set()

    return Tokenizer


class SqlReader:
    """Walks over the tokens of a piece of SQL and reads types and names from it.

    sqlglot splits the text; its own parser of types is too forgiving: it reads `INT[][`, drops what follows
    `INT[]`, and takes a field named "decimal(1,0)" for a type.
    """

    def __init__(self, text: str) -> None:
        """Split the text; what cannot be split is no type."""
        self.text = text
        self.at = 0
        try:
            self.tokens = _tokenizer()(dialect="duckdb").tokenize(text)
        except sqlglot_errors.SqlglotError:
            raise self.unknown("it cannot be read as SQL") from None

    def unknown(self, reason: str) -> UnknownType:
        """The error to raise, with the whole text."""
        return UnknownType(f"unknown type {_short(self.text)}: {reason}; {_HINT}")

    def word(self, ahead: int = 0) -> str:
        """An unquoted token in capitals; nothing at a quoted one and at the end."""
        at = self.at + ahead
        return "" if at >= len(self.tokens) or self._quotes(at) else self.tokens[at].text.upper()

    def _quotes(self, at: int) -> str:
        """The sign that ends a quoted token."""
        end = self.text[self.tokens[at].end]
        return end if end in "\"`'" or self.tokens[at].token_type == sqlglot.TokenType.HEREDOC_STRING else ""

    def take(self, *words: str) -> str:
        """Step over one of these words, and say which."""
        word = self.word()
        if not word or word not in words:
            return ""
        self.at += 1
        return word

    def name(self, what: str) -> str:
        """Step over a quoted name or a plain word."""
        at = self.at
        if at >= len(self.tokens):
            raise InvalidName(f"a {what} of {_short(self.text)} has no name: the text ends")
        text = self.tokens[at].text
        plain = not self._quotes(at) and text.replace("$", "_").isidentifier()
        if not plain and self.tokens[at].token_type != sqlglot.TokenType.IDENTIFIER:
            raise InvalidName(f"a {what} of {_short(self.text)} has no name: {_short(text)} is none")
        self.at += 1
        return check_name(text, what)

    def type(self, depth: int = 0) -> DataType:
        """Step over a type."""
        if depth > MAX_DEPTH:
            raise self.unknown(f"it is nested more than {MAX_DEPTH} deep")
        type = self._nested(depth) or self._decimal() or self._scalar()
        while self.take("["):
            if not self.take("]"):
                raise self.unknown("a list has no fixed size, write T[]")
            depth += 1
            if depth > MAX_DEPTH:
                raise self.unknown(f"it is nested more than {MAX_DEPTH} deep")
            type = List(type)
        return type

    def _nested(self, depth: int) -> DataType | None:
        if self.word(1) not in ("(", "<"):
            return None
        kind = self.take("LIST", "ARRAY", "MAP", "STRUCT", "ROW")
        if not kind:
            return None
        close = {"(": ")", "<": ">"}[self.take("(", "<")]
        if kind in ("STRUCT", "ROW"):
            fields = [self._field(depth)]
            while self.take(","):
                fields.append(self._field(depth))
            type = Struct(tuple(fields))
        elif kind == "MAP":
            key = self.type(depth + 1)
            if not self.take(","):
                raise self.unknown("a map has a key and a value, as in MAP(VARCHAR, INTEGER)")
            type = Map(key, self.type(depth + 1))
        else:
            type = List(self.type(depth + 1))
        if not self.take(close):
            raise self.unknown(f"{_short(close)} is missing")
        return type

    def _field(self, depth: int) -> tuple[str, DataType]:
        name = self.name("field")
        if self.word() in (",", ")", ">", "(", "[", "<"):
            raise InvalidName(f"a field of {_short(self.text)} has no name: write STRUCT(name {name})")
        self.take(":")
        return name, self.type(depth + 1)

    def _decimal(self) -> Decimal | None:
        if not self.take(*_DECIMAL_SPELLINGS):
            return None
        match self._numbers():
            case []:
                return Decimal(18, 3)  # DuckDB's default.
            case [precision]:
                return Decimal(precision, 0)
            case [precision, scale]:
                return Decimal(precision, scale)
            case _:
                raise self.unknown("a decimal has a precision and a scale, as in DECIMAL(10,2)")

    def _scalar(self) -> Scalar:
        for count in range(_MOST_WORDS, 0, -1):
            spelling = " ".join(self.word(ahead) for ahead in range(count))
            if spelling in _SPELLINGS:
                self.at += count
                type = Scalar(_SPELLINGS[spelling])
                if type.name == "geometry":
                    self._reference_system()
                if self.word() == "(" and (type.name not in _WITH_LENGTH or len(self._numbers()) != 1):
                    raise self.unknown(f"{spelling} takes no parameters")
                return type
        if self.at >= len(self.tokens):
            raise self.unknown("it ends where a type is expected")
        raise self.unknown(f"no type is called {_short(self.tokens[self.at].text)}")

    def _reference_system(self) -> None:
        """Step over what DuckDB says of the geometries of a Parquet file that says nothing itself."""
        at = self.at + 1
        if self.word() != "(" or self.word(2) != ")" or self._quotes(at) != "'":
            return
        if self.tokens[at].text.upper() != _REFERENCE_SYSTEM:
            raise self.unknown(
                f"a geometry has the reference system {_REFERENCE_SYSTEM}, which files need not name: "
                "CAST to GEOMETRY leaves another one out"
            )
        self.at += 3

    def _numbers(self) -> list[int]:
        numbers: list[int] = []
        if not self.take("("):
            return numbers
        while True:
            digits = self.word()
            if not (digits.isascii() and digits.isdecimal() and len(digits) < 10):
                raise self.unknown("a whole number is expected between the parentheses")
            numbers.append(int(digits))
            self.at += 1
            if self.take(")"):
                return numbers
            if not self.take(","):
                raise self.unknown("')' is missing")


# What a column may become without rewriting its files: every pair is read exactly by DuckDB and by Spark's
# vectorised reader. The relation is transitive, because the oldest file is read as the newest type. So an
# unsigned integer does not become a signed one: Spark could not read it as the decimal that may come next.
_WIDER: dict[str, tuple[str, ...]] = {
    "int8": ("int16", "int32", "int64", "int128", "float64"),
    "int16": ("int32", "int64", "int128", "float64"),
    "int32": ("int64", "int128", "float64"),
    "int64": ("int128",),
    "uint8": ("uint16", "uint32", "float64"),
    "uint16": ("uint32", "float64"),
    "float32": ("float64",),
    "date": ("timestamp",),
    "timestamp_s": ("timestamp_ms", "timestamp"),
    "timestamp_ms": ("timestamp",),
}
# What a column may become beyond that: DuckDB reads it exactly, also after several such steps, and reads
# these files for Spark. A timestamp without a zone is taken for one in UTC.
_PROMOTED: dict[str, tuple[str, ...]] = {
    "int8": ("float32",),
    "int16": ("float32",),
    "uint8": ("uint64", "uint128", "int16", "int32", "int64", "int128", "float32"),
    "uint16": ("uint64", "uint128", "int32", "int64", "int128", "float32"),
    "uint32": ("uint64", "uint128", "int64", "int128", "float64"),
    "uint64": ("uint128", "int128"),
    "date": ("timestamptz",),
    "timestamp_s": ("timestamptz",),
    "timestamp_ms": ("timestamptz",),
    "timestamp": ("timestamptz",),
}
# Digits before the point that a decimal needs to take an integer; Spark counts by Parquet's 32 and 64 bits.
_DIGITS = {"int8": 10, "int16": 10, "int32": 10, "int64": 20}


def can_promote(old: DataType, new: DataType) -> bool:
    """Whether a column may get the type: DuckDB reads files of the old one as the new one without loss."""
    match old, new:
        case Scalar(a), Scalar(b) if b in _PROMOTED.get(a, ()):
            return True
        case _:
            return can_widen(old, new)


def can_widen(old: DataType, new: DataType) -> bool:
    """Whether files of the old type read as the new one without loss; a type widens to itself."""
    match old, new:
        case Scalar(a), Scalar(b):
            return a == b or b in _WIDER.get(a, ())
        case Scalar(a), Decimal(precision, scale):
            return a in _DIGITS and precision - scale >= _DIGITS[a]
        case Decimal(p, s), Decimal(precision, scale):
            return scale >= s and precision - scale >= p - s
        case List(a), List(b):
            return can_widen(a, b)
        case Map(), Map():
            return can_widen(old.key, new.key) and can_widen(old.value, new.value)
        case Struct(before), Struct(after):
            same_names = [name for name, _ in before] == [name for name, _ in after]
            return same_names and all(can_widen(a, b) for (_, a), (_, b) in zip(before, after, strict=True))
        case _:
            return False
