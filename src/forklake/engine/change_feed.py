"""The change feed: rows that came and went, each with its snapshot, and both sides of an update."""

from __future__ import annotations

from collections.abc import Iterator

from forklake.engine.local import Engine
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID, SNAPSHOT, Relation, Wanted, relation
from forklake.engine.select import ALIAS
from forklake.engine.sql_text import shown, shown_as
from forklake.lazy.arrow import pa
from forklake.model.ids import DataFileId
from forklake.model.names import quoted
from forklake.model.sql.predicate import Predicate
from forklake.model.table.columns import Columns
from forklake.model.types.arrow import to_arrow
from forklake.scan.change_plan import ChangePlan, Gone
from forklake.scan.scan_plan import ScanPlan

KIND, SNAPSHOT_COLUMN, ROW_COLUMN = "change_type", "snapshot_id", "row_id"
_KIND, _CHANGE = "forklake_kind", "forklake_change"


def feed_schema(columns: Columns) -> pa.Schema:
    """What a change feed looks like in Arrow."""
    fields = [
        pa.field(KIND, pa.string()),
        pa.field(SNAPSHOT_COLUMN, pa.int64()),
        pa.field(ROW_COLUMN, pa.int64()),
    ]
    fields += [pa.field(column.name, to_arrow(shown_as(column.data_type))) for column in columns]
    return pa.schema(fields)


def feed_query(engine: Engine, plan: ChangePlan, lost: ScanPlan, predicate: Predicate | None) -> Relation:
    """The query of a change feed, in the order in which things happened; `lost` are files that lost rows."""
    columns = plan.inserted.table.columns
    tables: dict[str, pa.Table] = {}
    names = ", ".join(quoted(column.name) for column in columns)
    parts: list[str] = []
    engine.verify(plan.inserted, plan.dropped)
    for kind, part in (("insert", plan.inserted), ("delete", plan.dropped)):
        found = relation(part, engine.storage, _wanted(columns, kind, begin=True))
        tables |= found.tables
        parts.append(f"SELECT '{kind}' AS {_KIND}, {SNAPSHOT}, {ROW_ID}, {names} FROM ({found.sql})")
    if plan.deleted:
        parts.append(_deleted(engine, lost, plan.deleted, columns, tables))
    shown_columns = [f"{shown(quoted(c.name), c.data_type)} AS {quoted(c.name)}" for c in columns]
    # A row that went and came back in one commit, with the same id, was updated.
    kinds = (
        f"CASE WHEN count(DISTINCT {_KIND}) OVER (PARTITION BY {SNAPSHOT}, {ROW_ID}) = 1 THEN {_KIND} "
        f"WHEN {_KIND} = 'delete' THEN 'update_preimage' ELSE 'update_postimage' END AS {_CHANGE}"
    )
    unchanged = ""
    if plan.net:
        # Where rows were taken over, one may have come in another file and be the same.
        both = f"OVER (PARTITION BY {SNAPSHOT}, {ROW_ID})"
        listed = ", ".join(map(str, sorted(plan.net)))
        unchanged = (
            f" QUALIFY NOT ({SNAPSHOT} IN ({listed}) AND count(DISTINCT {_KIND}) {both} = 2 "
            f"AND count(DISTINCT row({names})) {both} = 1)"
        )
    events = f"SELECT {kinds}, {SNAPSHOT}, {ROW_ID}, {names} FROM ({' UNION ALL '.join(parts)}){unchanged}"
    where = "" if predicate is None else f" WHERE {predicate.sql}"
    sql = (
        f"SELECT {_CHANGE} AS {KIND}, {SNAPSHOT} AS {SNAPSHOT_COLUMN}, {ROW_ID} AS {ROW_COLUMN}, "
        f"{', '.join(shown_columns)} FROM ({events}) AS {ALIAS}{where} "
        f"ORDER BY {SNAPSHOT}, {ROW_ID}, {_CHANGE} DESC"
    )
    return Relation(sql, tables, ())


def _wanted(columns: Columns, prefix: str, *, begin: bool) -> Wanted:
    return Wanted(columns, row_id=True, begin=begin, place=not begin, prefix=f"forklake_{prefix}")


def _deleted(
    engine: Engine, plan: ScanPlan, gone: tuple[Gone, ...], columns: Columns, tables: dict[str, pa.Table]
) -> str:
    engine.verify(plan)
    found = relation(plan, engine.storage, _wanted(columns, "gone", begin=False))
    tables |= found.tables
    places = {place.file.id: at for at, place in enumerate(found.places)}
    tables["forklake_events"] = pa.concat_tables(list(_events(gone, places)))
    names = ", ".join(f"f.{quoted(column.name)}" for column in columns)
    return (
        f"SELECT 'delete' AS {_KIND}, e.snapshot AS {SNAPSHOT}, f.{ROW_ID}, {names} FROM ({found.sql}) AS f "
        f"JOIN forklake_events AS e ON e.place = f.{PLACE} AND e.position = f.{POSITION}"
    )


def _events(gone: tuple[Gone, ...], places: dict[DataFileId, int]) -> Iterator[pa.Table]:
    for entry in gone:
        count = len(entry.positions)
        yield pa.table(
            {
                "place": pa.repeat(pa.scalar(places[entry.place.file.id], pa.int64()), count),
                "position": entry.positions,
                "snapshot": pa.repeat(pa.scalar(entry.snapshot, pa.int64()), count),
            }
        )
