"""NaN lies above all numbers, wherever it is: Parquet leaves it out of the bounds that footers tell."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

NAN = float("nan")
DDL = (
    "n INT, x DOUBLE, f FLOAT, s STRUCT(a DOUBLE, l FLOAT[]), l DOUBLE[], t STRUCT(a DOUBLE)[], "
    "m MAP(VARCHAR, DOUBLE)"
)
GIVEN = [
    {
        "n": 1,
        "x": 1.0,
        "f": 1.0,
        "s": {"a": 1.0, "l": [1.0]},
        "l": [1.0],
        "t": [{"a": 1.0}],
        "m": [("k", 1.0)],
    },
    {
        "n": 2,
        "x": NAN,
        "f": NAN,
        "s": {"a": NAN, "l": [NAN]},
        "l": [NAN],
        "t": [{"a": NAN}],
        "m": [("k", NAN)],
    },
    {"n": 3},
]
LARGE = ("x > 100", "f > 100", "s.a > 100", "s.l[1] > 100", "l[1] > 100", "t[1].a > 100", "m['k'] > 100")
EQUAL = ("x = 'NaN'::DOUBLE", "f IN ('NaN'::FLOAT, 7)", "NOT (x < 100)", "x BETWEEN 100 AND 'NaN'::DOUBLE")


@pytest.mark.parametrize("origin", ["inlined", "written", "imported"])
def test_nan_is_found_above_all_numbers(catalog, tmp_path, origin) -> None:
    table = catalog.create_table("t", DDL)
    if origin == "imported":
        schema = pa.schema(table.arrow_schema)
        pq.write_table(pa.Table.from_pylist(GIVEN, schema), tmp_path / "nan.parquet")
        table.add_files(tmp_path / "nan.parquet", mapping="by_name")
    else:
        table.set_option("data_inlining_row_limit", 10 if origin == "inlined" else 0)
        table.append(GIVEN)
    for where in (*LARGE, *EQUAL):
        assert table.scan(where, ["n"]).to_arrow().to_pylist() == [{"n": 2}], where
        assert table.scan(where).count() == 1, where
    assert math.isnan(table.scan().max("x")) and math.isnan(table.scan("n > 0").max("f"))
    assert table.scan().min("x") == 1.0
    with duckdb.connect() as connection:
        relation = table.scan().to_duckdb(connection)
        assert relation.filter("x > 100").fetchall()[0][0] == 2
        assert math.isnan(relation.max("f").fetchone()[0])
    assert table.update({"n": "20"}, "x > 100") == 1
    assert table.delete("s.l[1] > 100") == 1
    assert sorted(table.scan(columns=["n"]).to_arrow().column(0).to_pylist()) == [1, 3]
