"""A query on tables of a lake as a DataFrame.

DuckDB's parser reads it and DuckDB binds it over empty tables, as for the local engine: names, columns, types
and what may be reached mean the same. Each table becomes the DataFrame of its plan, with the files that the
query can use, and Spark gets the query in its own dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from forklake.api.search import SearchResult
from forklake.api.sql_result import SqlResult
from forklake.commit.draft import Draft
from forklake.engine.query.errors import refused as errors_refused
from forklake.engine.query.tables import QueryTable
from forklake.engine.query.tree import QueryTree
from forklake.engine.query.workbench import Described
from forklake.engine.select import Selection
from forklake.errors import InvalidSql, UnknownType
from forklake.lazy.arrow import pa
from forklake.model.entities import View
from forklake.model.names import quoted
from forklake.model.sql.predicate import Predicate
from forklake.model.types.arrow import one_array
from forklake.model.types.data_types import DataType, parse
from forklake.scan.scan_plan import plan_scan
from forklake.spark.read import read_plan
from forklake.spark.sql.dialect import Shown, refused, spark_sql
from forklake.spark.sql.parameters import bound, by_name
from forklake.spark.types import ddl, shown_type, to_arrow
from forklake.sql.binder import Binder
from forklake.sql.names import Found, Names, view_name
from forklake.sql.parser.parse import numbered
from forklake.sql.statement import Running
from forklake.store.retention import check_retained


def dataframe_of(spark: SparkSession, running: Running, text: str, draft: Draft | None = None) -> DataFrame:
    """The rows of a query; with a draft, of the catalog as the draft shows it."""
    text = numbered(text)
    with running.binder(draft) as binder:
        reader = _Reader(spark, running, binder)
        refs = reader.refs(text, binder.names)
        if refs is not None:
            return reader.query(text, refs)
    # Nothing in it is a table: it is about values, or about the lake itself.
    return from_result(spark, SqlResult(running.query(text)))


def reads_tables(running: Running, text: str) -> bool:
    """Whether a query reads tables or views of a lake at all."""
    text = numbered(text)
    with running.binder() as binder:
        return bool(_found(binder, text, binder.names))


def is_listing(running: Running, text: str) -> bool:
    """Whether it is SHOW, DESCRIBE or SUMMARIZE, which tell about a table."""
    with running.binder() as binder:
        tree = QueryTree.read(binder.workbench.connection, numbered(text))
    return tree is not None and bool(tree.shows)


@dataclass(slots=True)
class _Reader:
    """Reads what one query names."""

    spark: SparkSession
    running: Running
    binder: Binder
    frames: dict[tuple[Any, ...], DataFrame] = field(default_factory=dict[tuple[Any, ...], DataFrame])
    """DataFrames of tables and views."""
    pruning: Mapping[str, Predicate] = field(default_factory=dict[str, Predicate])
    columns: dict[tuple[Any, ...], Described] = field(default_factory=dict[tuple[Any, ...], Described])
    """Columns of views."""

    def refs(self, text: str, names: Names) -> dict[int, tuple[str, Found]] | None:
        """Where tables and views are named, and what the query calls them; None if there are none."""
        found = _found(self.binder, text, names)
        if not found:
            return None
        tree = self._tree(text)
        if tree.functions or tree.shows:
            function = ".".join(tree.functions[0].parts) + "()" if tree.functions else "SHOW"
            raise InvalidSql(
                f"{function} is run by forklake and not by Spark, so it cannot stand beside tables here: "
                "give it a statement of its own, or run the query with catalog.sql()"
            )
        for call in tree.calls:
            if names.macro(call, "scalar") is not None:
                raise InvalidSql(
                    f"{'.'.join(call)}() is a macro, which Spark does not have: write it out, "
                    "or run the query with catalog.sql()"
                )
        return found

    def query(self, text: str, refs: Mapping[int, tuple[str, Found]]) -> DataFrame:
        """The rows of the statement's own query."""
        query = self.binder.read(text)
        if query.lists:
            raise refused("PIVOT")
        for table in self.binder.tables.values():
            if table.virtual:
                listed = ", ".join(sorted(table.virtual))
                raise InvalidSql(f"{listed} cannot be read on Spark: sc.read(…, row_ids=True) has ids")
        views = {found.key: found for found in self._views(refs)}
        empty = [f"FROM {self._place(found)} LIMIT 0" for found in views.values()]
        (own, *others), self.pruning = self.binder.checked(query, *empty)
        self.columns = dict(zip(views, others, strict=True))
        return self._dataframe(text, refs, own)

    def _views(self, refs: Mapping[int, tuple[str, Found]]) -> list[Found]:
        """All views that are read, those inside of others too."""
        views: list[Found] = []
        for _, found in refs.values():
            if isinstance(found.item, View):
                inner = self.refs(found.item.sql, self.binder.names_in(found)) or {}
                views += [found, *self._views(inner)]
        return views

    def _place(self, found: Found) -> str:
        parts = (self.binder.attached(found.catalog), found.schema, view_name(found))
        return ".".join(map(quoted, parts))

    def _tree(self, text: str) -> QueryTree:
        tree = QueryTree.read(self.binder.workbench.connection, text)
        if tree is None:
            raise AssertionError("a query in which tables were found has a tree")
        return tree

    # ---- DataFrames ---

    def _dataframe(self, text: str, refs: Mapping[int, tuple[str, Found]], columns: Described) -> DataFrame:
        keys = list(dict.fromkeys(found.key for _, found in refs.values()))
        views = {key: f"t{at}" for at, key in enumerate(keys)}
        shown = {at: Shown(views[found.key], name, _paths(found)) for at, (name, found) in refs.items()}
        frames = {views[found.key]: self._frame(found) for _, found in refs.values()}
        values = by_name(self.running.params)
        params = {name: bound(name, values[name]) for name in (self.binder.used(text) or ())}
        written = spark_sql(text, shown, {name: value.type for name, value in params.items()})
        args = {f"p_{name}": value.value for name, value in params.items()}
        try:
            df = self.spark.sql(written, args or None, **frames)
            return _typed(df, columns)
        except PySparkException as error:
            raise InvalidSql(f"Spark cannot run this query: {_first_line(error)}") from error

    def _frame(self, found: Found) -> DataFrame:
        if found.key not in self.frames:
            self.frames[found.key] = self._view(found) if isinstance(found.item, View) else self._table(found)
        return self.frames[found.key]

    def _view(self, found: Found) -> DataFrame:
        if not isinstance(found.item, View):
            raise AssertionError("a view is looked at")
        text = found.item.sql
        refs = self.refs(text, self.binder.names_in(found)) or {}
        return self._dataframe(text, refs, self.columns[found.key])

    def _table(self, found: Found) -> DataFrame:
        table: QueryTable = self.binder.tables[found.key]
        source = table.source
        plan = plan_scan(source, self.pruning.get(table.prefix), self.running.context.storage)
        if source.is_stored:
            # It may have been expired while it was planned, and some of its rows be gone.
            check_retained(source.reader.database, source.reader.catalog, source.reader.at)
        # Which rows the query wants is for Spark to find: this says no more than which files may have them.
        plan = replace(plan, predicate=None)
        return read_plan(self.spark, self.running.context, plan, Selection(source.table.columns))


def _found(binder: Binder, text: str, names: Names) -> dict[int, tuple[str, Found]]:
    with errors_refused(binder.context.storage):
        tree = QueryTree.read(binder.workbench.connection, text)
    if tree is None:
        # It says what is wrong with the text; what is left has no tree.
        binder.read(text)
        raise refused("PIVOT")
    found: dict[int, tuple[str, Found]] = {}
    others: list[tuple[str, ...]] = []
    for ref in tree.tables:
        if ref.may_be_cte:
            continue
        relation = names.relation(ref.parts, binder.as_of(ref))
        if relation is None:
            others.append(ref.parts)
        else:
            found[_character(text, int(ref.node["query_location"]))] = (ref.shown_name, relation)
    if found and others:
        # Says which names there are, unless it is a listing of ours.
        binder.read(text)
        raise refused(".".join(others[0]))
    return found


def _character(text: str, byte: int) -> int:
    """A place in a text that DuckDB counts in bytes."""
    return byte if text.isascii() else len(text.encode()[:byte].decode())


def _paths(found: Found) -> frozenset[tuple[str, ...]]:
    """How columns may name a table with its schema or catalog."""
    catalog, schema, name = found.catalog.lower(), found.schema.lower(), found.name.lower()
    return frozenset({(schema, name), (catalog, schema, name), (catalog, name)})


def _first_line(error: PySparkException) -> str:
    return str(error).strip().split("\n", 1)[0]


def _known_type(text: str) -> DataType | None:
    try:
        return parse(text)
    except UnknownType:
        # Of a query's results only, as those of ENUM or BIT: Spark shows what it makes of them.
        return None


def _typed(df: DataFrame, columns: Described) -> DataFrame:
    """The columns as the local engine shows them: their names, and their types where Spark has others."""
    df = df.toDF(*(f"c{at}" for at in range(len(columns))))
    selected: list[str] = []
    for at, ((_, sql), shown) in enumerate(zip(columns, df.schema.fields, strict=True)):
        wanted = _shown_type(sql)
        is_same = wanted is None or wanted == shown.dataType
        selected.append(f"c{at}" if wanted is None or is_same else f"CAST(c{at} AS {ddl(wanted)})")
    return df.selectExpr(*selected).toDF(*(name for name, _ in columns))


def _shown_type(sql: str) -> T.DataType | None:
    type = _known_type(sql)
    try:
        return None if type is None or sql == "INTERVAL" else shown_type(type)
    except UnknownType:
        return None


def from_result(spark: SparkSession, result: SqlResult | SearchResult) -> DataFrame:
    """The rows of a result as a DataFrame."""
    rows = result.to_arrow()
    arrays: list[pa.Array] = []
    fields: list[T.StructField] = []
    for name, sql, values in zip(rows.column_names, result.types, rows.columns, strict=True):
        type = _known_type(sql)
        if type is None:
            raise InvalidSql(f'Spark has no type for the column "{name}", which is {sql}: cast it')
        arrays.append(to_arrow(one_array(values), type))
        fields.append(T.StructField(name, shown_type(type)))
    schema = T.StructType(fields)
    return spark.createDataFrame(pa.table(arrays, schema.names), schema)
