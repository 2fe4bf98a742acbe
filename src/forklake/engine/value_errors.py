"""Computing new values of rows, with errors that say which column could not be computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from forklake.engine.condition import naming
from forklake.engine.local import Engine
from forklake.errors import InvalidPredicate
from forklake.lazy.arrow import pa
from forklake.scan.scan_plan import ScanPlan


def computed_rows(
    engine: Engine,
    plan: ScanPlan,
    values: Mapping[str, str],
    extras: Sequence[str],
    rest: str,
    tables: Mapping[str, pa.Table],
) -> Iterator[pa.RecordBatch]:
    """Values by column and extras, selected from the rest of a query, batch by batch."""
    sql = f"SELECT {', '.join((*values.values(), *extras))} {rest}"
    try:
        yield from engine.stream(sql, tables, plan)
    except InvalidPredicate as error:
        culprit = _culprit(engine, plan, values, rest, tables)
        if culprit is None:
            with naming(plan.predicate):
                raise
        raise InvalidPredicate(f'no new value for column "{culprit}": {error}') from error


def _culprit(
    engine: Engine, plan: ScanPlan, values: Mapping[str, str], rest: str, tables: Mapping[str, pa.Table]
) -> str | None:
    """The column that fails alone; none if the rest of the query does."""
    if _fails(engine, plan, f"SELECT 1 {rest}", tables):
        return None
    failing = (
        name for name, value in values.items() if _fails(engine, plan, f"SELECT {value} {rest}", tables)
    )
    return next(failing, None)


def _fails(engine: Engine, plan: ScanPlan, sql: str, tables: Mapping[str, pa.Table]) -> bool:
    try:
        for _ in engine.stream(sql, tables, plan):
            pass
    except InvalidPredicate:
        return True
    return False
