"""Queries in DuckDB's dialect, written in Spark's. Pure.

What both engines understand alike is translated, node by node; the rest is refused rather than guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from forklake.errors import InvalidSql
from forklake.lazy.sqlglot import exp, sqlglot, sqlglot_errors
from forklake.spark.sql.selects import without_qualify
from forklake.spark.sql.shapes import is_known, unknown_argument
from forklake.spark.sql_text import text

_TYPES: Mapping[str, str] = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INT", "BIGINT": "BIGINT",
    "UTINYINT": "SMALLINT", "USMALLINT": "INT", "UINT": "BIGINT", "UBIGINT": "DECIMAL(20, 0)",
    "INT128": "DECIMAL(38, 0)", "UINT128": "DECIMAL(38, 0)", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING", "TEXT": "STRING", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMPNTZ": "TIMESTAMP_NTZ", "TIMESTAMPTZ": "TIMESTAMP_LTZ", "VARBINARY": "BINARY",
}  # fmt: skip
"""DuckDB's types, as sqlglot calls them, in Spark."""
_ESCAPE = "¦"
"""What escapes in a pattern where nothing does: in Spark a backslash would."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands for a name of a table in a query."""

    view: str
    """The name under which the DataFrame is handed to Spark."""
    name: str
    """What the rest of the query calls it."""
    paths: frozenset[tuple[str, ...]] = frozenset()
    """How columns may name the table with its schema, in lower case."""


def spark_sql(query: str, tables: Mapping[int, Shown], params: Mapping[str, str | None]) -> str:
    """A query for `spark.sql(text, args, **dataframes)`.

    `tables` are those of the lake, by the place of the name in the text. `params` has the type in Spark, if
    there has to be one, for each parameter; they are called `p_` and their name there.
    """
    try:
        found = sqlglot.parse(query, read=_reader())
    except sqlglot_errors.SqlglotError as error:
        raise InvalidSql(f"this query cannot be given to Spark: {_first_line(error)}") from error
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise refused(query)
    tree = _Translation(tables, params).translated(found[0])
    options: Any = {"identify": True, "comments": False, "unsupported_level": sqlglot.ErrorLevel.RAISE}
    try:
        return tree.sql("spark", **options)
    except sqlglot_errors.SqlglotError as error:
        raise InvalidSql(f"this query cannot be given to Spark: {_first_line(error)}") from error


def refused(what: str) -> InvalidSql:
    """The error for what Spark is not asked for."""
    return InvalidSql(
        f"this query cannot be given to Spark because of {what[:80]!r}: run it with catalog.sql(), "
        "or leave that part out and let the DataFrame do it"
    )


@cache
def _reader() -> Any:
    """DuckDB's dialect, with the numbers of list elements as they are written."""
    # The class is made at first use, as sqlglot is loaded then.
    return type("DuckDBAsWritten", (sqlglot.Dialect.get_or_raise("duckdb").__class__,), {"INDEX_OFFSET": 0})


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0].strip()


class _Translation:
    def __init__(self, tables: Mapping[int, Shown], params: Mapping[str, str | None]) -> None:
        self.tables = tables
        self.params = params
        self.paths = frozenset(path for shown in tables.values() for path in shown.paths)
        self.placed: set[int] = set()

    def translated(self, tree: exp.Expr) -> exp.Expr:
        for node in list(tree.walk()):
            self._check(node)
        # From the leaves up, so that what a node is replaced by is not looked at again.
        for node in reversed(list(tree.walk())):
            new = self._new(node)
            if new is not node:
                tree = new if node is tree else tree
                node.replace(new)
        if self.placed != set(self.tables):
            raise refused(", ".join(shown.name for at, shown in self.tables.items() if at not in self.placed))
        return tree

    def _refuse(self, node: exp.Expr) -> NoReturn:
        raise refused(node.sql(dialect="duckdb"))

    def _check(self, node: exp.Expr) -> None:
        if not is_known(node) or unknown_argument(node) is not None:
            self._refuse(node)
        if isinstance(node, exp.Identifier) and set(str(node.this)) & set("{}"):
            # They mark DataFrames in what spark.sql() is given.
            raise refused(str(node.this))

    def _new(self, node: exp.Expr) -> exp.Expr:  # noqa: C901  # A table of rules.
        match node:
            case exp.Table():
                return self._table(node)
            case exp.Column():
                return self._column(node)
            case exp.Placeholder():
                return self._parameter(node)
            case exp.Literal() if node.is_string:
                return _string(node)
            case exp.DataType():
                return self._type(node)
            case exp.Div():
                # Of whole numbers and decimals too, what comes of it is a DOUBLE.
                return exp.Div(this=_double(node.this), expression=_double(node.expression), typed=False)
            case exp.Count() if node.this is None:
                # As DuckDB writes count(*) in views.
                return exp.Count(this=exp.Star())
            case exp.Avg():
                return exp.Avg(this=_double(node.this))
            case exp.Log() if node.args.get("expression") is None:
                return exp.Log(this=exp.Literal.number(10), expression=node.this)
            case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape):
                return _like(node)
            case exp.Bracket():
                return self._element(node)
            case exp.Select():
                return without_qualify(node)
            case _:
                return node

    def _table(self, node: exp.Table) -> exp.Expr:
        place = node.parts[0].meta.get("start")
        shown = self.tables.get(place) if isinstance(place, int) else None
        if place is None or shown is None:
            # A common table expression of the query.
            if len(node.parts) > 1:
                self._refuse(node)
            return node
        self.placed.add(place)
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(shown.name))
        if alias.this is None:
            alias.set("this", exp.to_identifier(shown.name))
        table = exp.Table(this=exp.to_identifier(f"{{{shown.view}}}", quoted=True), alias=alias)
        table.set("joins", node.args.get("joins"))
        return table

    def _column(self, node: exp.Column) -> exp.Expr:
        path = tuple(part.name.lower() for part in node.parts[:-1])
        if len(path) > 1 and path in self.paths:
            return exp.Column(this=node.this, table=node.args["table"])
        return node

    def _parameter(self, node: exp.Placeholder) -> exp.Expr:
        name = str(node.this)
        if name not in self.params:
            self._refuse(node)
        found = exp.Placeholder(this=f"p_{name}")
        type = self.params[name]
        return found if type is None else exp.cast(found, exp.DataType.build(type, dialect="spark"))

    def _type(self, node: exp.DataType) -> exp.Expr:
        if isinstance(node.parent, exp.DataType):
            self._refuse(node.parent)
        if node.this == exp.DType.DECIMAL:
            digits = [part.name for part in node.expressions] or ["18", "3"]
            return exp.DataType.build(f"DECIMAL({', '.join(digits)})", dialect="spark")
        name = _TYPES.get(str(node.this.value) if isinstance(node.this, exp.DType) else "")
        if name is None:
            self._refuse(node)
        return exp.DataType.build(name, dialect="spark")

    def _element(self, node: exp.Bracket) -> exp.Expr:
        (key,) = node.expressions if len(node.expressions) == 1 else (None,)
        if key is None or isinstance(key, exp.Slice):
            self._refuse(node)
        if isinstance(key, exp.Literal | exp.Cast) and not _is_number(key):
            # A field of a struct, or the value of a key.
            return node
        # Of lists and maps alike: they count from 1, from the end if it is negative, and give NULL beyond.
        return exp.Anonymous(this="try_element_at", expressions=[node.this, key])


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _double(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), exp.DType.DOUBLE)


def _string(node: exp.Literal) -> exp.Expr:
    """A string that means the same whatever a session makes of backslashes and `${…}`."""
    value = str(node.this)
    plain = text(value)
    if isinstance(node.parent, exp.Interval | exp.Escape) or (plain[0] == "'" and not set(value) & set("{}")):
        return node
    return exp.cast(exp.HexString(this=value.encode().hex()), exp.DType.TEXT)


def _like(node: exp.Like | exp.ILike) -> exp.Expr:
    pattern = node.expression
    if isinstance(pattern, exp.Literal):
        # One with a backslash is no literal any more.
        return node
    return exp.Escape(this=node.copy(), expression=exp.Literal.string(_ESCAPE))
