"""Reading rows: a plan, the columns to show and a limit, as one query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from forklake.data.parquet.schema import ROW_ID_NAME, SNAPSHOT_ID_NAME
from forklake.engine.condition import naming
from forklake.engine.local import BATCH_ROWS, Engine
from forklake.engine.scan_sql import PREFIX, ROW_ID, SNAPSHOT, Relation, Wanted, relation
from forklake.engine.sql_text import shown, shown_as, text
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.names import quoted
from forklake.model.table.columns import Columns
from forklake.model.types.arrow import to_arrow
from forklake.scan.inlined_rows import gather
from forklake.scan.scan_plan import ScanPlan

ALIAS = "forklake_scan"
_AS_THEY_ARE = frozenset(
    {
        *("boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64", "varchar", "blob"),
    }
)
"""Types whose values DuckDB would hand out just as it got them."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a reader wants to see."""

    columns: Columns
    """As they are shown, in order; some may be fields of structs."""
    row_id: bool = False
    snapshot: bool = False
    limit: int | None = None
    inside: Mapping[ColumnId, tuple[Column, ...]] = field(default_factory=dict[ColumnId, tuple[Column, ...]])
    """Where fields of structs are: the whole column first, and the field itself last."""

    def path(self, column: Column) -> tuple[Column, ...]:
        """A column, after those that it is inside of."""
        return self.inside.get(column.id, (column,))

    def read(self, table: Columns, needed: Set[str]) -> Columns:
        """The whole columns to read, `needed` ones among them; of structs only what is asked for."""
        paths = [self.path(column) for column in self.columns]
        paths += [(column,) for column in table if column.name in needed]
        tops = dict.fromkeys(path[0].id for path in paths)
        columns = {path[0].id: path[0] for path in paths}
        return tuple(_pruned(columns[top], [path for path in paths if path[0].id == top]) for top in tops)


def _pruned(column: Column, paths: Sequence[tuple[Column, ...]]) -> Column:
    """A struct with those fields only that are on one of the paths, each of which begins with it."""
    if any(len(path) == 1 for path in paths):
        return column
    inner = [path[1:] for path in paths]
    children = tuple(
        _pruned(child, found)
        for child in column.children
        if (found := [path for path in inner if path[0].id == child.id])
    )
    return replace(column, children=children)


def query(engine: Engine, plan: ScanPlan, selection: Selection, *, prefix: str = PREFIX) -> Relation:
    """The query that shows the rows of a plan, with everything that it needs.

    Its Arrow tables have names that begin with `prefix`.
    """
    needed = plan.predicate.columns if plan.predicate is not None else frozenset[str]()
    columns = selection.read(plan.table.columns, needed)
    wanted = Wanted(columns, selection.row_id, selection.snapshot, prefix=prefix)
    source = relation(plan, engine.storage, wanted)
    selected = shown_columns(selection)
    selected += [f"{ROW_ID} AS row_id"] if selection.row_id else []
    selected += [f"{SNAPSHOT} AS snapshot_id"] if selection.snapshot else []
    sql = f"SELECT {', '.join(selected)} FROM ({source.sql}) AS {ALIAS}{where(plan)}"
    sql += "" if selection.limit is None else f" LIMIT {int(selection.limit)}"
    return Relation(sql, source.tables, source.places)


def shown_columns(selection: Selection) -> list[str]:
    """The columns of a result, as SQL over the columns that are read."""
    return [
        f"{shown(_place(selection.path(column)), column.data_type)} AS {quoted(column.name)}"
        for column in selection.columns
    ]


def _place(path: Sequence[Column]) -> str:
    found = quoted(path[0].name)
    for inner in path[1:]:
        found = f"struct_extract({found}, {text(inner.name)})"
    return found


def where(plan: ScanPlan) -> str:
    """The condition that rows of a plan still have to meet."""
    return "" if plan.predicate is None else f" WHERE {plan.predicate.sql}"


def result_schema(selection: Selection) -> pa.Schema:
    """What a result looks like in Arrow."""
    fields = [
        pa.field(column.name, to_arrow(shown_as(column.data_type)), column.nullable)
        for column in selection.columns
    ]
    fields += [pa.field("row_id", pa.int64())] if selection.row_id else []
    fields += [pa.field("snapshot_id", pa.int64())] if selection.snapshot else []
    return pa.schema(fields)


def read_table(engine: Engine, plan: ScanPlan, selection: Selection) -> pa.Table:
    """All rows."""
    at_hand = _at_hand(plan, selection)
    if at_hand is not None:
        return at_hand
    found = query(engine, plan, selection)
    with naming(plan.predicate):
        return engine.table(found.sql, found.tables, plan).cast(result_schema(selection))


def read_batches(engine: Engine, plan: ScanPlan, selection: Selection) -> Iterator[pa.RecordBatch]:
    """All rows, batch by batch."""
    at_hand = _at_hand(plan, selection)
    if at_hand is not None:
        yield from at_hand.to_batches(BATCH_ROWS)
        return
    found = query(engine, plan, selection)
    schema = result_schema(selection)
    with naming(plan.predicate):
        for batch in engine.stream(found.sql, found.tables, plan):
            yield batch.cast(schema)


def _at_hand(plan: ScanPlan, selection: Selection) -> pa.Table | None:
    """The rows, if all of them came with the plan and DuckDB has nothing to do for them; else None.

    Small tables live in the metadata, and planning a query takes DuckDB longer than all else.
    """
    if plan.files or plan.predicate is not None or selection.inside:
        return None
    if not all(column.type in _AS_THEY_ARE for column in selection.columns):
        return None
    schema = result_schema(selection)
    if not plan.rows:
        return schema.empty_table()
    rows = gather(plan.rows, selection.columns)
    names = [f"c{column.id}" for column in selection.columns]
    names += [ROW_ID_NAME] if selection.row_id else []
    names += [SNAPSHOT_ID_NAME] if selection.snapshot else []
    found = pa.Table.from_arrays([rows.column(name) for name in names], schema=schema)
    return found if selection.limit is None else found.slice(0, selection.limit)


def count_rows(engine: Engine, plan: ScanPlan) -> int:
    """How many rows meet the condition of a plan."""
    needed = plan.predicate.columns if plan.predicate is not None else frozenset[str]()
    columns = tuple(column for column in plan.table.columns if column.name in needed)
    source = relation(plan, engine.storage, Wanted(columns or plan.table.columns[:1]))
    sql = f"SELECT count(*) AS n FROM ({source.sql}) AS {ALIAS}{where(plan)}"
    with naming(plan.predicate):
        return engine.table(sql, source.tables, plan).column("n")[0].as_py()
