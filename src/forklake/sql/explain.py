"""EXPLAIN: the plan of DuckDB, and for each table of the lake what is read and what is pruned."""

from __future__ import annotations

from forklake.api.sql_result import SqlResult
from forklake.errors import InvalidSql
from forklake.lazy.arrow import pa
from forklake.sql import statements as st
from forklake.sql.rows import stream
from forklake.sql.statement import Running


def explain(statement: st.Explain, running: Running) -> SqlResult:
    """Explain a query."""
    if not isinstance(statement.statement, st.Query):
        raise InvalidSql("EXPLAIN shows how a query is run: take the SELECT of this statement")
    with running.binder() as binder:
        binder.is_only_explained = not statement.analyze
        (sql,) = binder.prepare(binder.read(statement.statement.text.text))
        word = "EXPLAIN ANALYZE" if statement.analyze else "EXPLAIN"
        found = pa.Table.from_batches(list(stream(binder, running, f"{word} {sql}")))
        keys = [f"scan of {table.view}" for table in binder.tables.values()]
        values: list[str] = []
        for table in binder.tables.values():
            if table.plan is None:
                raise AssertionError("a table is planned before it is read")
            files, rows = len(table.plan.files), sum(place.live_rows for place in table.plan.rows)
            every = len(table.source.reader.files()) if table.source.is_stored else files
            uses = "".join(f"; index {use}" for use in table.plan.indexes)
            values.append(f"reads {files} of {every} files and {rows} inlined rows{uses}")
    for row in found.to_pylist():
        key, plan = row.values()
        # A row for each line, as in PostgreSQL: a plan is a drawing, and every tool prints rows.
        lines = str(plan).splitlines()
        keys += [str(key)] * len(lines)
        values += lines
    return SqlResult(pa.table({"explain_key": keys, "explain_value": values}))
