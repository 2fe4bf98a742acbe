"""The rows that parts of `make bench-data` write and read: eight columns of the types that tables have."""

from __future__ import annotations

import duckdb
import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("quantity", pa.int32()),
        ("score", pa.float64()),
        ("price", pa.decimal128(12, 2)),
        ("sold_at", pa.timestamp("us")),
        ("region", pa.string()),
        ("customer", pa.string()),
        ("paid", pa.bool_()),
    ]
)

_QUERY = """
SELECT i AS id,
       CAST(hash(i) % 1000 AS INTEGER) AS quantity,
       (hash(i + 1) % 1000000) / 7e0 AS score,
       CAST((hash(i + 2) % 10000000) / 100 AS DECIMAL(12, 2)) AS price,
       TIMESTAMP '2024-01-01' + to_microseconds(i * 1000003) AS sold_at,
       'region ' || (hash(i + 3) % 12) AS region,
       'customer ' || lpad(CAST(hash(i + 4) % 50000 AS VARCHAR), 6, '0') AS customer,
       hash(i + 5) % 3 = 0 AS paid
  FROM range({start}, {end}) AS r(i)
"""


def sample(rows: int, start: int = 0) -> pa.Table:
    """Rows with rising ids; the same ids always have the same rows."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        found = connection.execute(_QUERY.format(start=start, end=start + rows)).to_arrow_table(122_880)
    return found.cast(SCHEMA)
