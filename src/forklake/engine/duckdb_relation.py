"""A scan inside somebody's own DuckDB connection."""

from __future__ import annotations

from uuid import uuid4

from forklake.engine.condition import naming
from forklake.engine.errors import translated
from forklake.engine.local import Engine
from forklake.engine.remote_files import attach_storage
from forklake.engine.select import Selection, query
from forklake.lazy.duckdb import duckdb
from forklake.scan.scan_plan import ScanPlan


def to_relation(
    connection: duckdb.DuckDBPyConnection, engine: Engine, plan: ScanPlan, selection: Selection
) -> duckdb.DuckDBPyRelation:
    """The rows of a plan as a relation; what it needs is registered under names that nobody else uses."""
    engine.verify(plan)
    found = query(engine, plan, selection, prefix=f"forklake_{uuid4().hex}")
    with naming(plan.predicate), translated(engine.storage, plan):
        attach_storage(connection, engine.storage)
        for name, table in found.tables.items():
            connection.register(name, table)
        return connection.sql(found.sql)
