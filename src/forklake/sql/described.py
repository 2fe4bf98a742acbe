"""What DESCRIBE says of a table."""

from __future__ import annotations

from forklake.lazy.arrow import pa
from forklake.model.table.columns import Columns
from forklake.sql.functions.described import default_of, shown_type


def described(columns: Columns) -> pa.Table:
    """One row for each column, as DuckDB has them for its own tables."""
    shown = {
        "column_name": [column.name for column in columns],
        "column_type": [shown_type(column.data_type) for column in columns],
        "null": ["YES" if column.nullable else "NO" for column in columns],
        "key": [None for _ in columns],
        "default": [default_of(column) for column in columns],
        "extra": [None for _ in columns],
    }
    return pa.table({name: pa.array(values, pa.string()) for name, values in shown.items()})
