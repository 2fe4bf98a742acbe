"""What DESCRIBE says of a table."""

from __future__ import annotations

from forklake.lazy.arrow import pa
from forklake.model.table.columns import Columns
from forklake.model.types.data_types import to_sql


def described(columns: Columns) -> pa.Table:
    """One row for each column, as DuckDB has them for its own tables."""
    defaults = [column.default for column in columns]
    shown = {
        "column_name": [column.name for column in columns],
        "column_type": [to_sql(column.data_type) for column in columns],
        "null": ["YES" if column.nullable else "NO" for column in columns],
        "key": [None for _ in columns],
        "default": [
            None
            if default is None
            else default.value
            if default.kind == "expression"
            else f"'{default.value}'"
            for default in defaults
        ],
        "extra": [None for _ in columns],
    }
    return pa.table({name: pa.array(values, pa.string()) for name, values in shown.items()})
