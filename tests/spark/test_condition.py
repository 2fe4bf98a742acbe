"""Conditions on Spark: they mean what they mean in the local engine, or are refused."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import forklake
from forklake.errors import InvalidPredicate
from forklake.model.sql.predicate import parse_predicate
from forklake.spark import SparkCatalog
from forklake.spark.condition import condition
from tests.spark.compare import same_rows

CONDITIONS = [
    "i > 3",
    "i >= 3.5",
    "i < 1000000000000000000000",
    "i = 2.5",
    "i != 2.5",
    "i IN (1, 2.5, NULL)",
    "d > 1.005",
    "d <= 0.999999999999999999",
    "d = 1.25",
    "d BETWEEN -1 AND 1.5",
    "u > -1",
    "u < 300",
    "u = 255",
    "f > 1",
    "f = 'nan'",
    "f < 'infinity'",
    "f IN (0, 1.5)",
    "t > 'b'",
    "t LIKE 'a%'",
    "t LIKE '%\\%'",
    "t LIKE 'a_b'",
    "t NOT LIKE '%a%'",
    "t >= 'ä'",
    "t = 'it''s'",
    "NOT (t = 'a' OR i > 2)",
    "t IS NULL",
    "i IS DISTINCT FROM 2",
    "i IS NOT DISTINCT FROM NULL",
    "b",
    "NOT b",
    "b IS TRUE",
    "b IS NOT FALSE",
    "da > '2024-01-01'",
    "da = DATE '2024-02-29'",
    "da < TIMESTAMP '2024-02-29 12:00:00'",
    "ts >= '2024-01-01 00:00:00.5'",
    "ts > DATE '2024-01-01'",
    "tz > '2024-01-01 00:00:00+02'",
    "ti < '12:00:00'",
    "bl = '\\xFFa'",
    "bl > 'a'",
    "uu = 'AAAAAAAA-bbbb-cccc-dddd-eeeeeeeeeeee'",
    "s.x = 2",
    "s.y LIKE 'z%'",
    "i = s.x",
    "i % 2 = 0",
    "true",
    "false",
    "NULL",
    "l IS NULL",
    "starts_with(t, 'a')",
    "i IS NULL OR (i > 1 AND NOT i = 3)",
    "i IN (7)",
]


NANOSECONDS = ["ns = '2024-01-01 00:00:00.000000001'", "ns > '2024-01-01 00:00:00' OR i IS NULL"]


def _values() -> list[dict[str, Any]]:
    texts = ["a", "b", "ab", "a_b", "axb", "100%", "\\%", "it's", "ä", "", "z\nz", None]
    return [
        {
            "i": at if at < 9 else None,
            "d": f"{at - 3}.25",
            "u": at * 40 if at < 7 else 255,
            "f": [0.0, -0.0, 1.5, float("nan"), float("inf"), None][at % 6],
            "t": text,
            "b": [True, False, None][at % 3],
            "da": ["2024-02-29", "2023-12-31", None, "9999-12-31"][at % 4],
            "ts": ["2024-01-01 00:00:00.5", "2024-01-01", "1969-12-31 23:59:59.999999", None][at % 4],
            "tz": ["2024-01-01 00:00:00+00", "2023-12-31 22:00:00+00", "2024-01-01 00:00:00+05", None][
                at % 4
            ],
            "ti": ["00:00:00", "12:00:00", "23:59:59.999999", None][at % 4],
            "ns": ["2024-01-01 00:00:00.000000001", "2024-01-01", "1969-12-31 23:59:59.999999999", None][
                at % 4
            ],
            "bl": ["\\xFFa", "a", "b", None][at % 4],
            "uu": ["aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", None][at % 2],
            "s": {"x": at % 4, "y": text} if at % 5 else None,
            "l": [at] if at % 2 else None,
        }
        for at, text in enumerate(texts)
    ]


def test_conditions_mean_on_spark_what_they_mean_here(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    types = {
        "i": "INTEGER",
        "d": "DECIMAL(38, 10)",
        "u": "UTINYINT",
        "f": "DOUBLE",
        "t": "VARCHAR",
        "b": "BOOLEAN",
        "da": "DATE",
        "ts": "TIMESTAMP",
        "tz": "TIMESTAMPTZ",
        "ti": "TIME",
        "ns": "TIMESTAMP_NS",
        "bl": "BLOB",
        "uu": "UUID",
        "s": "STRUCT(x INTEGER, y VARCHAR)",
        "l": "INTEGER[]",
    }
    table = catalog.create_table("t", ", ".join(f"{name} {type}" for name, type in types.items()))
    rows = _values()
    given = pa.Table.from_pylist(rows)
    casts = ", ".join(f"CAST({name} AS {type}) AS {name}" for name, type in types.items())
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET arrow_lossless_conversion = true")
        typed = connection.sql(f"SELECT {casts} FROM given").to_arrow_table()
    table.append(typed)
    table.append(typed.slice(0, 2))
    assert len(given) + 2 == table.count()
    df = on_spark.read("t", row_ids=True)
    names = {column.id: column.name for column in table.columns}
    asked = [condition(parse_predicate(text, table.columns), table.columns, names, {}) for text in CONDITIONS]
    found = df.selectExpr("row_id", *(f"{text} AS q{at}" for at, text in enumerate(asked))).toArrow()
    for at, text in enumerate(CONDITIONS):
        expected = table.scan(text, ["i"], row_ids=True).to_arrow().column("row_id").to_pylist()
        assert found.filter(found.column(f"q{at}")).column("row_id").to_pylist() == expected, text
    for text in NANOSECONDS:
        same_rows(on_spark, table, text)
    for refused in (
        "lower(t) = 'a'",
        "l = [1]",
        "t ILIKE 'A'",
        "i + 1 = 2",
        "len(l) > 0",
        "s = {'x': 1, 'y': 'a'}",
    ):
        with pytest.raises(InvalidPredicate, match="filter the DataFrame"):
            on_spark.read("t", refused)
