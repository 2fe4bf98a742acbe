"""Searches of a table: what is asked, checked, and the rows that were found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from forklake.api.result_formats import ResultFormats
from forklake.api.scan import selection_of
from forklake.commit.draft import Draft
from forklake.context.lake_context import LakeContext
from forklake.display import html_record, html_title
from forklake.engine.condition import condition_of
from forklake.engine.scan_sql import ROW_ID
from forklake.engine.search import SCORE, Asked, Target, best_rows, measure_of
from forklake.engine.select import result_schema
from forklake.engine.sql_text import shown_as
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa, pc
from forklake.model.alike import pick
from forklake.model.entities import Table
from forklake.model.index import Index, Parameters
from forklake.model.names import check_name
from forklake.model.types.data_types import to_sql

ROW_COLUMN = "row_id"
Several: TypeAlias = "Sequence[tuple[str, object]]"
"""Names of indexes, each with a query for it."""
_MOST = 100_000


class SearchResult(ResultFormats):
    """The best rows for a query, best first, with `row_id` and `_score` or `_distance`."""

    __slots__ = ("_rows", "types")

    def __init__(self, rows: pa.Table, types: tuple[str, ...]) -> None:
        """Rows that were found, and the SQL types of their columns."""
        self._rows = rows
        self.types = types

    def __repr__(self) -> str:
        """How many rows were found."""
        return f"<SearchResult of {len(self)} rows>"

    def __len__(self) -> int:
        """The number of rows."""
        return self._rows.num_rows

    def _repr_html_(self) -> str:
        """For notebooks: how much was found."""
        facts = {"rows": len(self), "columns": ", ".join(self._rows.column_names)}
        return html_title("SearchResult") + html_record(facts)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self._rows.schema

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self._rows

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in batches."""
        yield from self._rows.to_batches()


def search(
    draft: Draft,
    table: Table,
    context: LakeContext,
    name: str | Several,
    query: object,
    k: object,
    where: str | None,
    columns: Sequence[str] | None,
    params: Parameters,
) -> SearchResult:
    """Search a table as a draft shows it."""
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= _MOST:
        raise InvalidArgument(f"k is how many rows are wanted, from 1 to {_MOST:,}, not {k!r}")
    source = draft.source(table)
    indexes = draft.scan_indexes(table)

    def index(given: str) -> Index:
        check_name(given, "index")
        found = pick(given, indexes.definitions, "index")
        # One that is unknown is refused; of the past, some have no segments that can be used.
        return draft.index_named(table, given) if found is None else found

    if isinstance(name, str):
        asked = [Asked(index(name), query, params)]
        measure = measure_of(asked[0].index, table.columns)
    else:
        asked = _several(name, query, params, index)
        measure = "score"
    selection = selection_of(table, columns, row_ids=False, limit=None)
    shown = f"_{measure}"
    for column in selection.columns:
        if column.name.lower() in (ROW_COLUMN, shown):
            raise InvalidArgument(
                f'a column is named "{column.name}" like one of a search: rename it, or choose other columns'
            )
    predicate = condition_of(context.engine, where, table.columns)
    found = best_rows(context.engine, Target(source, indexes, predicate), asked, k, selection)
    schema = result_schema(selection)
    rows = found.select(schema.names).cast(schema)
    scores = found.column(SCORE)
    # No distance is -0.0.
    scores = pc.subtract(0.0, scores) if measure == "distance" else scores
    types = tuple(to_sql(shown_as(column.data_type)) for column in selection.columns)
    rows = rows.append_column(ROW_COLUMN, found.column(ROW_ID)).append_column(shown, scores)
    return SearchResult(rows, (*types, "BIGINT", "DOUBLE"))


def _several(name: object, query: object, params: Parameters, index: Any) -> list[Asked]:
    if not isinstance(name, list | tuple) or not name:
        raise InvalidArgument(
            "a search names an index and a query, or a list of both: search([('by_text', 'red'), …])"
        )
    if query is not None or params:
        raise InvalidArgument("in a search by several indexes, each has its query in the list")
    asked: list[Asked] = []
    for entry in name:
        if not isinstance(entry, list | tuple) or len(entry) not in (2, 3):
            raise InvalidArgument(
                f"a search by several indexes has pairs of a name and a query, not {entry!r}"
            )
        asked.append(Asked(index(entry[0]), entry[1], *entry[2:]))
    return asked
