"""Rows in the forms that other packages hand over: views, frames with an index, maps, geometries."""

from __future__ import annotations

import struct
from uuid import UUID

import polars as pl
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
