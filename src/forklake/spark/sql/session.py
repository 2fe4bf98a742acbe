"""Statements of SQL on Spark: queries become DataFrames, changes go through Spark's verbs.

What is about the catalog rather than about rows is run by the local session: definitions, functions,
transactions, rows that are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from forklake.api.catalog import Catalog
from forklake.api.sql import Parameters, session_of_catalog, session_of_transaction
from forklake.api.sql_result import SqlResult, counted
from forklake.api.transaction import Transaction
from forklake.errors import InvalidArgument, InvalidSql
from forklake.spark.sql.changes import create_from_query, delete_rows, insert_rows, update_rows
from forklake.spark.sql.merge import merge_rows
from forklake.spark.sql.query import dataframe_of, is_listing
from forklake.sql import statements as st
from forklake.sql.options import SqlOptions
from forklake.sql.parser.parse import parse
from forklake.sql.session import Session, parameters_of
from forklake.sql.statement import Running

if TYPE_CHECKING:
    from forklake.spark.catalog import SparkCatalog

_REFUSED: Mapping[type, str] = {
    st.Explain: "EXPLAIN is not run on Spark: sc.sql(query).explain() shows Spark's plan",
    st.CopyTo: "COPY … TO is not run on Spark: sc.sql(query).write writes files",
    st.CopyFrom: "COPY … FROM is not run on Spark: sc.append(spark.read…, table) inserts files",
    st.Prepare: "PREPARE is not there on Spark: pass parameters, sc.sql(text, params)",
    st.Execute: "EXECUTE is not there on Spark: pass parameters, sc.sql(text, params)",
}


def run_sql(
    sc: SparkCatalog, text: str, params: Parameters, *, read_only: bool = False
) -> DataFrame | SqlResult:
    """Run the statements of a text in order. Returns the answer of the last."""
    work = sc.catalog
    if isinstance(work, Transaction):
        session: Session = session_of_transaction(work)
    elif isinstance(work, Catalog):
        session = session_of_catalog(work)
    else:
        raise InvalidArgument("SQL needs a catalog or a transaction")
    options = SqlOptions(read_only=read_only)
    parsed = parse(text)
    if not parsed:
        raise InvalidSql("there is no statement: the text is empty")
    answer: DataFrame | SqlResult = SqlResult()
    for one in parsed:
        running = Running(session, options, parameters_of(one, params, len(parsed)))
        answer = _run(sc, one.statement, running)
    return answer


def _run(sc: SparkCatalog, statement: st.Statement, running: Running) -> DataFrame | SqlResult:
    if type(statement) in _REFUSED:
        raise InvalidSql(_REFUSED[type(statement)])
    change = _CHANGES.get(type(statement))
    if isinstance(statement, st.Query):
        text = statement.text.text
        with running.session.guarded(statement):
            if not is_listing(running, text):
                return dataframe_of(sc.spark, running, text)
    elif change is not None:
        with running.session.guarded(statement):
            count = change(statement, running, sc.on(running.work))
        if count is not None:
            return counted(count)
    return running.session.execute(statement, running.params, running.options)


Change = Callable[[Any, Running, "SparkCatalog"], int | None]
"""Changes rows with Spark and says how many; None leaves the statement to the local session."""
_CHANGES: Mapping[type, Change] = {
    st.Insert: insert_rows,
    st.CreateTable: create_from_query,
    st.Update: update_rows,
    st.Delete: delete_rows,
    st.Merge: merge_rows,
}
