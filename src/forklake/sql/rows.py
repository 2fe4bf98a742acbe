"""INSERT, UPDATE, DELETE and TRUNCATE: DuckDB finds and computes rows, staged like all other changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from forklake.api.assignments import new_values
from forklake.api.sql_result import SqlResult
from forklake.api.staged_rows import replace_rows, take_rows
from forklake.commit.draft import Draft
from forklake.engine.dml import Places, assigned, rewritten
from forklake.engine.query.tables import QueryTable
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID
from forklake.engine.sql_text import default_sql
from forklake.errors import ColumnNotFound, InvalidArgument, InvalidSql
from forklake.lazy.arrow import pa
from forklake.model.entities import Column, Table
from forklake.model.names import quoted
from forklake.model.table.columns import Columns, find
from forklake.model.types.data_types import to_sql
from forklake.sql import statements as st
from forklake.sql.binder import Binder
from forklake.sql.statement import Running

_VALUES = "forklake values"
TARGET = "forklake target"
"""What the table that is changed is called in queries of ours."""


def insert_rows(statement: st.Insert, running: Running) -> SqlResult | int:
    """INSERT."""
    name = running.target(statement.table)

    def change(draft: Draft) -> SqlResult | int:
        table = draft.table_named(name)
        with running.binder(draft) as binder:
            inserted = _inserted(statement, binder, running, table)
            kept: list[pa.RecordBatch] = []
            seen = None if statement.returning is None else kept.append
            arrived = take_rows(running.context, draft, table, inserted, seen)
            arrived.stage(draft, table)
            if statement.returning is None:
                return arrived.count
            shown = pa.Table.from_batches(kept) if kept else pa.table({})
            return _returned(statement.returning, binder, running, table, shown, statement.alias)

    return running.scope.apply(change)[0]


def _kept(batches: Iterator[pa.RecordBatch], kept: list[pa.RecordBatch] | None) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if kept is not None:
            kept.append(batch)
        yield batch


def _inserted(
    statement: st.Insert, binder: Binder, running: Running, table: Table
) -> Iterator[pa.RecordBatch]:
    """What an INSERT brings, as the table has it; columns that it does not name get their defaults."""
    columns = table.columns
    if statement.query is None:
        yield pa.record_batch({columns[0].name: _default_column(running, columns[0])})
        return
    chosen = tuple(find(columns, [name]) for name in statement.columns) or columns
    if len({column.id for column in chosen}) < len(chosen):
        raise InvalidSql("INSERT names a column twice")
    text = _with_defaults(statement, chosen)
    query = binder.read(text)
    (sql,) = binder.prepare(query)
    width = query.tree.width_of_mixed_values
    if width == len(chosen) and not statement.by_name:
        sql = _converted(binder, running, sql, chosen)
    names = _columns_of(binder, running, sql)
    if statement.by_name:
        chosen = tuple(_named(columns, name) for name in names)
        if len({column.id for column in chosen}) < len(chosen):
            raise InvalidSql("the query has two columns of one name, and BY NAME inserts by names")
    elif len(names) != len(chosen):
        raise InvalidSql(
            f'INSERT INTO "{table.name}" has {len(chosen)} columns, and the query gives {len(names)}'
        )
    yield from computed_query(binder, running, sql, chosen)


def _converted(binder: Binder, running: Running, sql: str, columns: Sequence[Column]) -> str:
    """A query for VALUES of which each was converted to the type of its column by itself.

    Only in an INSERT of its own does DuckDB do that; elsewhere it gives all rows of VALUES one type first.
    """
    listed = ", ".join(f"v{at} {to_sql(column.data_type)}" for at, column in enumerate(columns))
    binder.workbench.keep_temporary(_VALUES)
    name = f"temp.main.{quoted(_VALUES)}"
    binder.workbench.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(_VALUES)} ({listed})")
    text = f"INSERT INTO {name} {sql}"
    rows = running.rows_of(binder)
    rows.begin(text, binder.used(text))
    rows.all()
    return f"FROM {name}"


def computed_query(
    binder: Binder, running: Running, sql: str, columns: Sequence[Column]
) -> Iterator[pa.RecordBatch]:
    """The rows of a bound query as values of columns, in their order."""
    names = [f"v{place}" for place in range(len(columns))]
    selected = [assigned(column, f"q.{name}") for column, name in zip(columns, names, strict=True)]
    text = f"SELECT {', '.join(selected)} FROM (\n{sql}\n) AS q({', '.join(names)})"
    yield from stream(binder, running, text)


def stream(binder: Binder, running: Running, sql: str) -> Iterator[pa.RecordBatch]:
    """The rows of a bound statement of ours."""
    rows = running.rows_of(binder)
    rows.begin(sql, binder.used(sql))
    yield from rows.batches()


def _columns_of(binder: Binder, running: Running, sql: str) -> list[str]:
    """The names of the columns of a bound query."""
    rows = running.rows_of(binder)
    rows.begin(f"SELECT * FROM (\n{sql}\n) LIMIT 0", binder.used(sql))
    return rows.schema.names


def types_of(binder: Binder, running: Running, sql: str) -> list[tuple[str, str]]:
    """The names and DuckDB's types of the columns of a bound query."""
    rows = running.rows_of(binder)
    rows.begin(f"SELECT * FROM (\n{sql}\n) LIMIT 0", binder.used(sql))
    return list(zip(rows.schema.names, rows.types, strict=True))


def _named(columns: Columns, name: str) -> Column:
    try:
        return find(columns, [name])
    except ColumnNotFound:
        raise ColumnNotFound(
            f'the query has a column "{name}", and the table has none of this name'
        ) from None


def _with_defaults(statement: st.Insert, chosen: Columns) -> str:
    """The query with the defaults of columns where VALUES say DEFAULT."""
    if statement.query is None:
        raise AssertionError("DEFAULT VALUES has no query")
    text, parts, last = statement.query.text, [], 0
    for start, end, place in statement.default_places:
        if place >= len(chosen):
            raise InvalidSql("VALUES have more values than there are columns")
        parts += [text[last:start], default_sql(chosen[place])]
        last = end
    return "".join([*parts, text[last:]])


def _default_column(running: Running, column: Column) -> pa.Array:
    return running.context.engine.evaluate(default_sql(column), column.data_type, 1)


# ---- Rows that are there ---


def target_of(draft: Draft, table: Table, binder: Binder, name: str = TARGET) -> QueryTable:
    """The table that is changed, as queries of ours read it: rows can be found again."""
    catalog = binder.names.catalog
    if catalog is None:
        raise InvalidSql("say in which catalog: USE a catalog first, or call sql() of the catalog")
    found = QueryTable(
        binder.attached(binder.names.name_of(catalog)),
        binder.names.schema,
        name,
        draft.source(table),
        f"{binder.prefix}target_",
        places=True,
    )
    binder.given[name] = found
    return found


def update_rows(statement: st.Update, running: Running) -> SqlResult | int:
    """UPDATE."""
    name = running.target(statement.table)

    def change(draft: Draft) -> SqlResult | int:
        table = draft.table_named(name)
        alias = statement.alias or table.name
        with running.binder(draft) as binder:
            target_of(draft, table, binder)
            values = assigned_values(statement.assignments, table.columns, alias)
            selected = [
                assigned(column, values.get(column.name, f"{quoted(alias)}.{quoted(column.name)}"))
                for column in table.columns
            ]
            text = _found_rows(statement, alias, selected)
            (sql,) = binder.prepare(binder.read(text))
            places = Places(planned_places(binder))
            kept: list[pa.RecordBatch] | None = [] if statement.returning is not None else None
            batches = rewritten(_kept(stream(binder, running, sql), kept), table.columns, places)
            count = replace_rows(running.context, draft, table, batches, places.found)
            if kept is None or statement.returning is None:
                return count
            shown = _table_of(kept, table.columns)
            return _returned(statement.returning, binder, running, table, shown, statement.alias)

    return running.scope.apply(change)[0]


def delete_rows(statement: st.Delete, running: Running) -> SqlResult | int:
    """DELETE."""
    name = running.target(statement.table)
    if statement.where is None and statement.source is None and statement.returning is None:
        return running.work.table(name).delete()

    def change(draft: Draft) -> SqlResult | int:
        table = draft.table_named(name)
        alias = statement.alias or table.name
        with running.binder(draft) as binder:
            target_of(draft, table, binder)
            wanted = table.columns if statement.returning is not None else ()
            selected = [assigned(column, f"{quoted(alias)}.{quoted(column.name)}") for column in wanted]
            (sql,) = binder.prepare(binder.read(_found_rows(statement, alias, selected)))
            places = Places(planned_places(binder))
            kept: list[pa.RecordBatch] = []
            for batch in stream(binder, running, sql):
                places.add(batch)
                if statement.returning is not None:
                    kept.append(batch)
            count = draft.staged(table).delete(places.found(twice="allowed"))
            if statement.returning is None:
                return count
            shown = _table_of(kept, table.columns)
            return _returned(statement.returning, binder, running, table, shown, statement.alias)

    return running.scope.apply(change)[0]


def truncate(statement: st.Truncate, running: Running) -> int:
    """TRUNCATE."""
    return running.work.table(running.target(statement.table)).delete()


def planned_places(binder: Binder) -> tuple[Any, ...]:
    """The files and rows that places of the target are in."""
    target = binder.given[TARGET]
    if target is None or target.relation is None:
        raise AssertionError("the target of a statement is planned before its rows are read")
    return target.relation.places


def _found_rows(statement: st.Update | st.Delete, alias: str, selected: Sequence[str]) -> str:
    """The query that finds the rows of a statement, once each."""
    with_ = f"{statement.with_.text} " if statement.with_ is not None else ""
    extras = [f"{quoted(alias)}.{name}" for name in (ROW_ID, PLACE, POSITION)]
    source = "" if statement.source is None else f", {statement.source.text}"
    where = "" if statement.where is None else f" WHERE {statement.where.text}"
    # A row that meets several of the others is changed once, as in PostgreSQL.
    once = (
        f" QUALIFY row_number() OVER (PARTITION BY {extras[1]}, {extras[2]}) = 1"
        if statement.source is not None
        else ""
    )
    listed = ", ".join([*selected, *extras])
    return f"{with_}SELECT {listed} FROM {quoted(TARGET)} AS {quoted(alias)}{source}{where}{once}"


def assigned_values(assignments: Sequence[st.Assignment], columns: Columns, alias: str) -> dict[str, str]:
    """New values of columns, by their names, as SQL."""
    asked: dict[Any, str] = {}
    for one in assignments:
        path = one.path[1:] if len(one.path) > 1 and one.path[0].lower() == alias.lower() else one.path
        if path in asked:
            raise InvalidSql(f'column "{".".join(path)}" gets two values')
        asked[path] = f"({one.value.text})" if one.value is not None else default_sql(find(columns, path))
    try:
        return new_values(
            asked, columns, lambda text: text, lambda column: f"{quoted(alias)}.{quoted(column.name)}"
        )
    except InvalidArgument as error:
        raise InvalidSql(str(error)) from error


def _table_of(batches: Sequence[pa.RecordBatch], columns: Columns) -> pa.Table:
    """Changed rows with the columns of their table alone."""
    names = [column.name for column in columns]
    if not batches:
        return pa.table({name: pa.array([], pa.null()) for name in names})
    return pa.Table.from_batches(list(batches)).select(range(len(names))).rename_columns(names)


def _returned(
    returning: st.Fragment, binder: Binder, running: Running, table: Table, rows: pa.Table, alias: str | None
) -> SqlResult:
    """What RETURNING shows of changed rows."""
    found = {name.lower(): name for name in rows.column_names}
    names = [column.name for column in table.columns]
    arrays = [
        rows.column(found[name.lower()]) if name.lower() in found else pa.nulls(rows.num_rows)
        for name in names
    ]
    return returned(
        returning, binder, running, alias or table.name, pa.table(arrays, names=names), rows.num_rows
    )


def returned(
    returning: st.Fragment,
    binder: Binder,
    running: Running,
    alias: str,
    rows: pa.Table,
    count: int,
    hidden: frozenset[str] = frozenset(),
) -> SqlResult:
    """What RETURNING shows of rows that have the columns of their table, and some that `*` does not mean."""
    name = f"{TARGET} changed"
    binder.add_rows(name, rows)
    query = binder.read(f"SELECT {returning.text} FROM {quoted(name)} AS {quoted(alias)}")
    if hidden:
        query.answers |= {id(ref.node): (alias, hidden) for ref in query.tree.tables if ref.parts == (name,)}
    (sql,) = binder.prepare(query)
    batches = list(stream(binder, running, sql))
    shown = pa.Table.from_batches(batches) if batches else _nothing(binder, running, sql)
    return SqlResult(shown, rows_affected=count)


def _nothing(binder: Binder, running: Running, sql: str) -> pa.Table:
    rows = running.rows_of(binder)
    rows.begin(sql, binder.used(sql))
    return rows.all()
