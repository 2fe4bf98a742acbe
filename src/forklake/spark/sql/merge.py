"""MERGE INTO through `SparkCatalog.merge`: the source is a query on Spark, and keys are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from forklake.api.scoped import scope_of
from forklake.engine.query.tree import QueryTree
from forklake.errors import InvalidSql
from forklake.lazy.sqlglot import exp
from forklake.model.entities import Table
from forklake.model.names import quoted
from forklake.model.sql.expressions import path_of, read
from forklake.model.sql.predicate import given_expression
from forklake.model.table.columns import find
from forklake.spark.sql.changes import check_returning
from forklake.spark.sql.expressions import Spell, of_two, spelled, with_literals
from forklake.spark.sql.query import dataframe_of
from forklake.sql import statements as st
from forklake.sql.parser.parse import numbered
from forklake.sql.rows import default_sql
from forklake.sql.statement import Running

if TYPE_CHECKING:
    from forklake.spark.catalog import SparkCatalog

_HINT = "run the statement with catalog.sql(), which has all of MERGE INTO"


def merge_rows(statement: st.Merge, running: Running, sc: SparkCatalog) -> int:
    """MERGE INTO with one WHEN MATCHED and one WHEN NOT MATCHED at most, neither with a condition."""
    check_returning(statement.returning)
    matched, missing = _clauses(statement.clauses)
    name = running.target(statement.table)
    table = scope_of(running.work).read().table_named(name)
    with_ = f"{statement.with_.text} " if statement.with_ is not None else ""
    text = f"{with_}SELECT * FROM {statement.source.text}"  # noqa: S608  # Parts of the user's statement.
    df = dataframe_of(sc.spark, running, text)
    spell = of_two(statement.alias or table.name, _names(table), _called(running, text), df.columns)
    keys = list(statement.using) or _keys(statement, running, spell)
    df, keys, spell, names = _renamed(df, keys, spell)
    when_matched = _matched(matched, table, names, running, spell)
    when_not_matched = _inserted(missing, table, names, running, spell)
    if isinstance(when_matched, str) and isinstance(when_not_matched, str):
        # Nothing else of the source is asked for.
        df = df.select(*keys)
    merged = sc.merge(df, name, keys, when_matched=when_matched, when_not_matched=when_not_matched, cast=True)
    return merged.updated + merged.deleted + merged.inserted


def _clauses(clauses: Sequence[st.When]) -> tuple[st.When | None, st.When | None]:
    found: dict[str, st.When] = {}
    for one in clauses:
        if one.condition is not None:
            raise InvalidSql(f"WHEN … AND a condition is not run on Spark: {_HINT}")
        if one.match == "not matched by source" or one.action == "error":
            what = "ERROR" if one.action == "error" else "WHEN NOT MATCHED BY SOURCE"
            raise InvalidSql(f"{what} is not run on Spark: {_HINT}")
        # Without conditions, the first of a kind is the only one that does anything.
        found.setdefault(one.match, one)
    return found.get("matched"), found.get("not matched")


def _names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def _called(running: Running, text: str) -> str:
    """What the statement calls its source."""
    with running.binder() as binder:
        tree = QueryTree.read(binder.workbench.connection, numbered(text))
    node = {} if tree is None else tree.selects[-1]["from_table"]
    for one in () if tree is None else tree.selects:
        if one["select_list"] and one["from_table"]:
            node = one["from_table"]
            break
    return str(node.get("alias") or node.get("table_name") or "")


def _keys(statement: st.Merge, running: Running, spell: Spell) -> list[tuple[str, str]]:
    """Columns of the table and of the source that ON compares."""
    if statement.on is None:
        raise InvalidSql("MERGE INTO needs ON a condition, or USING (columns)")
    text = with_literals(statement.on.text, running.params)
    root, _ = read(given_expression(text), lambda node: spell(path_of(node))[0])
    parts = root.flatten() if isinstance(root, exp.And) else [root]
    return [_key(part, text, spell) for part in parts]


def _key(part: exp.Expr, text: str, spell: Spell) -> tuple[str, str]:
    while isinstance(part, exp.Paren):
        part = part.this
    if isinstance(part, exp.EQ):
        sides = dict(_side(one, spell) for one in (part.this, part.expression) if path_of(one))
        if len(sides) == 2:
            return sides["target"], sides["source"]
    raise InvalidSql(
        f"on Spark, ON compares columns of the table with columns of the source, as in t.id = s.id, not "
        f"{text[:80]!r}: {_HINT}"
    )


def _side(node: exp.Expr, spell: Spell) -> tuple[str, str]:
    place, inside = spell(path_of(node))
    side, _, name = place.partition(".")
    if inside:
        raise InvalidSql(f"on Spark, MERGE INTO is on plain columns, not on fields of structs: {_HINT}")
    return side, _unquoted(name)


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"')


def _renamed(
    df: DataFrame, keys: Sequence[tuple[str, str]] | Sequence[str], spell: Spell
) -> tuple[DataFrame, list[str], Spell, dict[str, str]]:
    """The source with keys called as those of the table, and others as no column of it is.

    Otherwise they would become values of those columns, before the statement computes with them.
    """
    chosen = {key.lower(): key for key in keys if isinstance(key, str)}
    chosen |= {key[1].lower(): key[0] for key in keys if not isinstance(key, str)}
    names = {name: chosen.get(name.lower(), f"forklake_source_{at}") for at, name in enumerate(df.columns)}
    if len(names) < len(df.columns):
        raise InvalidSql("two columns of the source have one name: give them others")
    known = {name.lower(): new for name, new in names.items()}

    def renamed(path: Sequence[str]) -> tuple[str, Sequence[str]]:
        place, inside = spell(path)
        side, _, name = place.partition(".")
        if side == "target":
            return place, inside
        return f"source.{quoted(known[_unquoted(name).lower()])}", inside

    return df.toDF(*names.values()), list(chosen.values()), renamed, names


def _matched(
    clause: st.When | None, table: Table, names: Mapping[str, str], running: Running, spell: Spell
) -> str | Mapping[str, object]:
    if clause is None or clause.action == "nothing":
        return "ignore"
    if clause.action == "delete":
        return "delete"
    if not clause.assignments:
        return _all(clause, table, names)
    values: dict[str, object] = {}
    for one in clause.assignments:
        column = find(table.columns, one.path[-1:])
        if len(one.path) > 2:
            raise InvalidSql(f"fields of structs are not set by MERGE INTO on Spark: {_HINT}")
        values[column.name] = (
            default_sql(column) if one.value is None else spelled(one.value.text, running.params, spell)
        )
    return values


def _inserted(
    clause: st.When | None, table: Table, names: Mapping[str, str], running: Running, spell: Spell
) -> str | Mapping[str, object]:
    if clause is None or clause.action == "nothing":
        return "ignore"
    if clause.default_values:
        raise InvalidSql(f"DEFAULT VALUES is not run on Spark in MERGE INTO: {_HINT}")
    if not clause.values:
        if clause.columns:
            raise InvalidSql("INSERT (columns) in MERGE INTO needs VALUES")
        return _all(clause, table, names)
    columns = [find(table.columns, [name]) for name in clause.columns] or list(table.columns)
    if len(columns) != len(clause.values):
        raise InvalidSql(f"INSERT has {len(columns)} columns and {len(clause.values)} values")
    return {
        column.name: default_sql(column) if value is None else spelled(value.text, running.params, spell)
        for column, value in zip(columns, clause.values, strict=True)
    }


def _all(clause: st.When, table: Table, names: Mapping[str, str]) -> Mapping[str, object]:
    """All columns of the source, by their names or by their places."""
    if not clause.by_name and len(names) != len(table.columns):
        raise InvalidSql(
            f'"{table.name}" has {len(table.columns)} columns and the source {len(names)}: name them'
        )
    columns = [find(table.columns, [name]) for name in names] if clause.by_name else table.columns
    return {column.name: f"source.{quoted(new)}" for column, new in zip(columns, names.values(), strict=True)}
