"""What a statement answers with: rows, and how many were changed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from forklake.api.python_values import python_rows
from forklake.api.result_formats import ResultFormats
from forklake.api.sql_text_table import as_text
from forklake.display import MOST_ROWS, html_table, html_title
from forklake.lazy.arrow import pa

if TYPE_CHECKING:
    import duckdb

    from forklake.engine.query.run import Rows


class SqlResult(ResultFormats):
    """The rows of a statement: Arrow, pandas, polars, Python or DuckDB.

    A query is checked when it is run, and its rows are computed as they are asked for. Statements without
    rows have no columns; as Arrow and its like they have an empty one, `Success`, as in DuckDB.
    """

    __slots__ = ("__weakref__", "_has_columns", "_rows", "_table", "_types", "is_count", "rows_affected")

    def __init__(self, rows: Rows | pa.Table | None = None, *, rows_affected: int | None = None) -> None:
        """Rows that are still to be computed, or that are there."""
        self.rows_affected = rows_affected
        """How many rows were inserted, updated and deleted; None if the statement is not about rows."""
        self.is_count = False
        """Whether the rows are only that number."""
        self._rows: Rows | None = None
        self._table: pa.Table | None = None
        self._types: tuple[str, ...] | None = None
        self._has_columns = rows is not None
        if rows is None:
            # What has no column at all is no table to DuckDB.
            self._table, self._types = pa.table({"Success": pa.array([], pa.bool_())}), ()
        elif isinstance(rows, pa.Table):
            self._table = rows
        else:
            self._rows = rows
            self._types = rows.types
            weakref.finalize(self, rows.close)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._table.schema if self._table is not None else self._pending().schema

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; none for a statement without rows."""
        if not self._has_columns:
            return ()
        return self._pending().names if self._table is None else tuple(self._table.schema.names)

    @property
    def types(self) -> tuple[str, ...]:
        """DuckDB's names of the types of the columns."""
        if self._types is None:
            self._types = tuple(str(field.type) for field in self.schema)
        return self._types

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table. It is kept, so asking again costs nothing."""
        if self._table is None:
            rows = self._pending()
            self._table = rows.all()
            self._rows = None
        return self._table

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches, with bounded memory; a second time only if they were kept by `to_arrow`."""
        if self._table is not None:
            yield from self._table.to_batches()
            return
        yield from self._pending().batches()

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows as a list of dicts; for small results. Of columns with one name, the last counts."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.to_rows()]

    def to_rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python values; for small results."""
        return python_rows(self.to_arrow())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """The rows as a relation in a DuckDB connection of yours."""
        rows: Any = self.to_arrow()
        return connection.from_arrow(rows)

    def close(self) -> None:
        """Let go of rows that nobody will ask for."""
        if self._rows is not None:
            self._rows.close()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """One row after the other, as tuples."""
        return iter(self.to_rows())

    def __len__(self) -> int:
        """The number of rows."""
        return self.to_arrow().num_rows

    def __repr__(self) -> str:
        """The first rows as a table of text."""
        if not self.columns:
            return "<SqlResult without rows>"
        return as_text(self.to_arrow(), self.types)

    def _repr_html_(self) -> str:
        """For notebooks: the first rows as a table."""
        if not self.columns:
            return html_title("SqlResult") + "<p>done</p>"
        table = self.to_arrow()
        return html_table(self.columns, python_rows(table.slice(0, MOST_ROWS)), table.num_rows)

    def _pending(self) -> Rows:
        if self._rows is None:
            raise AssertionError("a result has rows that are kept, or that are still to come")
        return self._rows


def counted(count: int) -> SqlResult:
    """What INSERT, UPDATE, DELETE and MERGE answer with, as in DuckDB."""
    result = SqlResult(pa.table({"Count": pa.array([count], pa.int64())}), rows_affected=count)
    result.is_count = True
    return result
