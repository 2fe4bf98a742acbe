"""Rows as tuples of Python values or of text, the way DuckDB gives and writes them."""

from __future__ import annotations

from typing import Any

from forklake.engine.local import Engine
from forklake.lazy.arrow import kind, pa


def python_rows(engine: Engine, rows: pa.RecordBatch | pa.Table) -> list[tuple[Any, ...]]:
    """Values as DuckDB's own client gives them: an INTERVAL is a timedelta, a MAP a dict."""
    if all(_is_plain(type) for type in rows.schema.types):
        columns = [rows.column(at).to_pylist() for at in range(rows.num_columns)]
        return list(zip(*columns, strict=True))
    with engine.connection({"rows": _numbered(rows)}, None) as connection:
        return connection.sql("FROM rows").fetchall()


def text_rows(engine: Engine, rows: pa.RecordBatch | pa.Table) -> list[tuple[str | None, ...]]:
    """Rows of values as DuckDB writes them; NULL is None."""
    if not rows.num_columns:
        return []
    text = engine.table("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM rows", {"rows": _numbered(rows)})
    columns = [text.column(at).to_pylist() for at in range(text.num_columns)]
    return list(zip(*columns, strict=True))


def _numbered(rows: pa.RecordBatch | pa.Table) -> pa.Table:
    """With names of our own: a result may have two columns of one name."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    return table.rename_columns([f"c{at}" for at in range(table.num_columns)])


def _is_plain(type: pa.DataType) -> bool:
    """Whether Arrow gives the same values as DuckDB."""
    return (
        kind.is_boolean(type)
        or kind.is_integer(type)
        or kind.is_floating(type)
        or kind.is_string(type)
        or kind.is_large_string(type)
        or kind.is_binary(type)
        or kind.is_decimal128(type)
        or kind.is_date32(type)
        or (kind.is_timestamp(type) and type.unit == "us" and type.tz is None)
    )
