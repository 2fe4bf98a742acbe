"""INSERT, CREATE TABLE AS, UPDATE and DELETE through the verbs of a SparkCatalog.

Each says how many rows it changed, or None where the local session does it as well: rows that are written
out, and tables that are emptied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from forklake.api.scoped import scope_of
from forklake.api.sql import lake_of
from forklake.api.transaction import Transaction
from forklake.errors import ColumnNotFound, InvalidSql
from forklake.model.entities import Column, Table
from forklake.model.names import QualifiedName
from forklake.model.table.columns import find
from forklake.spark.sql.expressions import of_table, spelled
from forklake.spark.sql.query import dataframe_of, reads_tables
from forklake.spark.types import ddl, shown_type
from forklake.sql import statements as st
from forklake.sql.rows import default_sql
from forklake.sql.session import session_of
from forklake.sql.statement import Running

if TYPE_CHECKING:
    from forklake.spark.catalog import SparkCatalog


def insert_rows(statement: st.Insert, running: Running, sc: SparkCatalog) -> int | None:
    """INSERT INTO … SELECT."""
    if statement.query is None or not reads_tables(running, statement.query.text):
        return None
    check_returning(statement.returning)
    name, table = _target(running, statement.table)
    df = dataframe_of(sc.spark, running, statement.query.text)
    if statement.by_name:
        names = [_named(table, column) for column in df.columns]
    else:
        names = [find(table.columns, [column]).name for column in statement.columns]
        names = names or [column.name for column in table.columns]
        if len(names) != len(df.columns):
            raise InvalidSql(
                f'INSERT INTO "{table.name}" has {len(names)} columns, and the query gives {len(df.columns)}'
            )
    if len(set(names)) < len(names):
        raise InvalidSql("INSERT names a column twice")
    return sc.append(_assigned(df, [find(table.columns, [column]) for column in names]), name, cast=True)


def create_from_query(statement: st.CreateTable, running: Running, sc: SparkCatalog) -> int | None:
    """CREATE TABLE … AS SELECT: the table with DuckDB's types, and its rows from Spark, in one commit."""
    if statement.query is None or not statement.with_data:
        return None
    if not reads_tables(running, statement.query.text):
        return None
    name, work = running.target(statement.name), running.work
    draft = scope_of(work).read()
    if statement.if_not_exists and (draft.find_table(name) or draft.find_view(name)):
        return None
    if isinstance(work, Transaction):
        return _created(statement, running, sc)
    with work.transaction() as tx:
        session = session_of(lake_of(work), work, tx)
        session.schema = running.session.schema
        return _created(statement, replace(running, session=session), sc.on(tx))


def _created(statement: st.CreateTable, running: Running, sc: SparkCatalog) -> int:
    if statement.query is None:
        raise AssertionError("there is a query")
    # It may read the table that it replaces.
    df = dataframe_of(sc.spark, running, statement.query.text)
    running.session.execute(replace(statement, with_data=False), running.params, running.options)
    name, table = _target(running, statement.name)
    return sc.append(_assigned(df, table.columns), name, cast=True)


def _assigned(df: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The columns of a query as those of a table: numbers are rounded, as DuckDB does."""
    names = [f"c{at}" for at in range(len(columns))]
    df = df.toDF(*names)
    given = [field.dataType for field in df.schema.fields]
    values = list(map(_number, names, given, columns))
    return df.selectExpr(*values).toDF(*(column.name for column in columns))


def _number(value: str, given: T.DataType, column: Column) -> str:
    wanted = shown_type(column.data_type)
    if not (isinstance(given, T.NumericType) and isinstance(wanted, T.NumericType)) or given == wanted:
        return value
    if isinstance(wanted, T.IntegralType) and isinstance(given, T.FractionalType):
        value = f"{'round' if isinstance(given, T.DecimalType) else 'rint'}({value})"
    return f"CAST({value} AS {ddl(wanted)})"


def update_rows(statement: st.Update, running: Running, sc: SparkCatalog) -> int:
    """UPDATE … SET … WHERE."""
    check_alone(statement, "FROM")
    name, table = _target(running, statement.table)
    spell = of_table(table.name, name.schema, statement.alias, table.columns)
    values: dict[str, object] = {}
    for one in statement.assignments:
        path = one.path[1:] if len(one.path) > 1 and _is_named(one.path[0], statement, table) else one.path
        if one.value is None:
            new = default_sql(find(table.columns, path))
        else:
            new = spelled(one.value.text, running.params, spell)
        key = path[0] if len(path) == 1 else ".".join(f'"{part}"' for part in path)
        if key in values:
            raise InvalidSql(f'column "{".".join(path)}" gets two values')
        values[key] = new
    return sc.update(name, values, _where(statement, running, name, table))


def delete_rows(statement: st.Delete, running: Running, sc: SparkCatalog) -> int | None:
    """DELETE FROM … WHERE."""
    check_alone(statement, "USING")
    if statement.where is None:
        return None
    name, table = _target(running, statement.table)
    return sc.delete(name, _where(statement, running, name, table))


def _where(
    statement: st.Update | st.Delete, running: Running, name: QualifiedName, table: Table
) -> str | None:
    if statement.where is None:
        return None
    spell = of_table(table.name, name.schema, statement.alias, table.columns)
    return spelled(statement.where.text, running.params, spell)


def _is_named(first: str, statement: st.Update, table: Table) -> bool:
    return first.lower() == (statement.alias or table.name).lower()


def _target(running: Running, name: st.ObjectName) -> tuple[QualifiedName, Table]:
    found = running.target(name)
    return found, scope_of(running.work).read().table_named(found)


def _named(table: Table, name: str) -> str:
    try:
        return find(table.columns, [name]).name
    except ColumnNotFound:
        raise ColumnNotFound(
            f'the query has a column "{name}", and the table has none of this name'
        ) from None


def check_returning(returning: st.Fragment | None) -> None:
    """Refuse RETURNING: Spark's verbs keep no rows."""
    if returning is not None:
        raise InvalidSql(
            "RETURNING is not run on Spark: leave it out, or run the statement with catalog.sql()"
        )


def check_alone(statement: st.Update | st.Delete, word: str) -> None:
    """Refuse other tables in an UPDATE or DELETE."""
    check_returning(statement.returning)
    if statement.source is not None or statement.with_ is not None:
        what = word if statement.source is not None else "WITH"
        raise InvalidSql(
            f"{what} is not run on Spark in this statement: MERGE INTO changes rows by those of others, "
            "and catalog.sql() runs it as it is"
        )
