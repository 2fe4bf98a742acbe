"""Rows in the forms that other packages hand over: views, DataFrames with an index, maps, geometries."""

from __future__ import annotations

import struct
from datetime import timedelta
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import forklake
from forklake.errors import InvalidData

POINT = struct.pack("<BIdd", 1, 1, 1.0, 2.0)


@pytest.mark.parametrize("limit", [0, 100])
def test_what_polars_shows_can_be_appended_again(catalog: forklake.Catalog, limit: int) -> None:
    table = catalog.create_table("t", "u UUID, s VARCHAR, b BLOB, l UUID[], m MAP(VARCHAR, BLOB), j JSON")
    table.set_option("data_inlining_row_limit", limit)
    row = {"u": UUID(int=7), "s": "a", "b": b"x", "l": [UUID(int=8)], "m": {"k": b"v"}, "j": "{}"}
    table.append([row, {}])
    shown = table.scan().to_arrow()
    assert table.append(table.scan().to_polars()) == 2
    assert table.merge(pl.DataFrame({"s": ["a"], "b": [b"y"]}), on="s").updated == 2
    assert table.update({"b": "'x'"}, "s = 'a'") == 2
    assert table.scan().to_arrow().sort_by("s").slice(0, 2).to_pylist() == [shown.to_pylist()[0]] * 2
    assert table.scan("u IS NULL").to_arrow().to_pylist() == [shown.to_pylist()[1]] * 2


@pytest.mark.parametrize("limit", [0, 100])
def test_bytes_that_are_no_geometry_are_refused(catalog: forklake.Catalog, limit: int) -> None:
    table = catalog.create_table("t", "id INT, g GEOMETRY, many GEOMETRY[]")
    table.set_option("data_inlining_row_limit", limit)
    for rows in ([{"id": 1, "g": b"abc"}], {"id": [1], "many": [[POINT, POINT[:-1]]]}):
        with pytest.raises(InvalidData, match=r'"(g|many\[\])" is GEOMETRY: 0x.* is not WKB'):
            table.append(rows)
    table.append([{"id": 1, "g": POINT, "many": [POINT]}])
    with pytest.raises(InvalidData, match='"g" is GEOMETRY'):
        table.merge([{"id": 1, "g": b""}], on="id")
    assert table.scan().to_pylist() == [{"id": 1, "g": POINT, "many": [POINT]}]


@pytest.mark.parametrize("limit", [0, 100])
def test_columns_of_any_type_may_be_required(catalog: forklake.Catalog, limit: int) -> None:
    """Also those of which Parquet counts no NULLs."""
    row = {
        "GEOMETRY": POINT,
        "INTERVAL": timedelta(days=1),
        "JSON": "{}",
        "UUID": "00000000-0000-0000-0000-000000000000",
        "INT[]": [1],
        "STRUCT(g GEOMETRY)": {"g": POINT},
        "BLOB": b"",
        "UHUGEINT": 1,
    }
    names = [f"c{at}" for at in range(len(row))]
    text = ", ".join(f"{name} {type} NOT NULL" for name, type in zip(names, row, strict=True))
    table = catalog.create_table("t", text)
    table.set_option("data_inlining_row_limit", limit)
    whole = dict(zip(names, row.values(), strict=True))
    assert table.append([whole, whole]) == 2
    for name in names:
        with pytest.raises(InvalidData, match=f'"{name}" is NOT NULL'):
            table.append([whole, whole | {name: None}])
        assert table.scan(f"{name} IS NOT NULL").count() == 2


def df(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"id": range(6), "v": list("abcdef"), **columns})


def test_an_unnamed_index_of_a_frame_is_left_out(table: forklake.Table) -> None:
    rows = df()
    filtered, turned, joined = (
        rows[rows.id % 2 == 1],
        rows.sort_values("id", ascending=False),
        pd.concat([rows] * 2),
    )
    for one in (
        filtered,
        turned,
        joined,
        rows.set_index([[9] * 6, list(range(6))]),
        rows.set_index("id", drop=False),
    ):
        for given in (one, pa.table(one)):
            assert table.overwrite(given) == len(one)
            assert table.append(given) == len(one)
            assert table.merge(given.drop_duplicates() if given is one else filtered, on="id").inserted == 0
            assert {row["v"] for row in table.scan().to_pylist()} == set(one.v)


def test_a_named_index_of_a_frame_is_a_column_or_refused(table: forklake.Table) -> None:
    assert table.append(pd.DataFrame({"v": list("abcdef")}, index=pd.RangeIndex(6, name="id"))) == 6
    assert table.merge(df(v="x").set_index("id"), on="id").updated == 6
    assert table.scan("v = 'x'").count() == 6
    for write in (table.append, table.overwrite, lambda rows: table.merge(rows, on="id")):
        with pytest.raises(InvalidData, match=r'"day", and no column is: .*reset_index\(\)'):
            write(df().rename_axis("day"))
        with pytest.raises(InvalidData, match=r"reset_index\(\)"):
            write(pa.table(df().rename_axis("day").sort_values("v", ascending=False)))
    assert table.count() == 6


@pytest.mark.parametrize("limit", [0, 100])
def test_maps_of_frames_are_pairs_or_dicts(catalog: forklake.Catalog, limit: int) -> None:
    table = catalog.create_table(
        "t", "id BIGINT, m MAP(VARCHAR, INT), l MAP(INT, VARCHAR)[], s STRUCT(m MAP(VARCHAR, INT), n INT)"
    )
    table.set_option("data_inlining_row_limit", limit)
    rows = [
        {"id": 1, "m": {"a": 1, "b": None}, "l": [{1: "x"}, {}], "s": {"m": {"k": 7}, "n": 1}},
        {"id": 2, "m": {"c": 3}, "l": None, "s": None},
        {"id": 3, "m": None, "l": [None], "s": {"m": None, "n": None}},
    ]
    table.append(rows)
    shown = table.scan().to_arrow()
    assert table.overwrite(table.scan().to_pandas()) == 3
    assert table.scan().to_arrow() == shown
    assert table.overwrite(pd.DataFrame(rows)[1:]) == 2
    assert table.merge(pd.DataFrame(rows)[::-1], on="id") == forklake.RowsMerged(2, 0, 1)
    assert table.scan().to_arrow().sort_by("id") == shown
    assert table.append(pd.DataFrame({"m": [{"z": 1}, float("nan")]})) == 2
    assert table.scan("id IS NULL", columns=["m"]).to_pylist() == [{"m": [("z", 1)]}, {"m": None}]
    with pytest.raises(InvalidData, match='"m" is MAP'):
        table.append(pd.DataFrame({"m": [5]}, dtype=object))


def test_rows_of_a_merge_have_the_same_keys(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INT, s VARCHAR, n INT DEFAULT 5")
    table.append([{"id": at, "s": f"s{at}", "n": at} for at in range(4)])
    before = table.scan().to_pylist()
    for rows in ([{"id": 2, "s": "S"}, {"id": 3, "n": 77}], [{"id": 2}, {"id": 3, "n": 1}]):
        for matched in ("update", "delete", "ignore"):
            with pytest.raises(InvalidData, match=r"row 1 of the source .* the same keys"):
                table.merge(rows, on="id", when_matched=matched)
    assert table.scan().to_pylist() == before
    assert table.merge([{"id": 2, "s": "S"}, {"s": None, "id": 3}], on="id").updated == 2
    assert [row["n"] for row in table.scan().to_pylist()] == [0, 1, 2, 3]
