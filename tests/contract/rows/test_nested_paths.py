"""Fields of structs by their paths, in what is read."""

from __future__ import annotations

from datetime import date

import pytest

import forklake
from forklake.errors import ColumnNotFound, InvalidArgument
from tests.contract.rows.shown import MANY

STRUCT = "STRUCT(x INTEGER, y STRUCT(a DATE, b DOUBLE), l INTEGER[])"
DDL = f'id INTEGER, s {STRUCT}, "s.x" VARCHAR, t STRUCT(x TIMETZ)'


@pytest.fixture
def nested(catalog: forklake.Catalog) -> forklake.Table:
    """Rows in a file, one that is inlined, and one whose struct is NULL."""
    table = catalog.create_table("nested", DDL)
    table.append([row(at) for at in range(MANY)])
    table.append([row(MANY), {"id": MANY + 1}])
    return table


def row(at: int) -> dict[str, object]:
    return {
        "id": at,
        "s": {"x": -at, "y": {"a": date(2024, 1, 1 + at % 9), "b": at / 2}, "l": [at]},
        "s.x": "own",
    }


def test_a_scan_shows_fields_as_sql_does(nested: forklake.Table) -> None:
    found = nested.scan("id >= 149", columns=["S.Y.b", "id", 's."x"']).to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [
        {"b": 74.5, "id": 149, "x": -149},
        {"b": 75.0, "id": 150, "x": -150},
        {"b": None, "id": 151, "x": None},
    ]
    assert nested.scan("s.x = -7", columns=["s.y.a"]).to_pylist() == [{"a": date(2024, 1, 8)}]
    assert nested.scan("s.x = -7", columns=["s.y.a", "s"]).to_pylist()[0]["s"]["l"] == [7]
    assert nested.scan("id = 7", columns=["s.y", "s.l"]).to_pylist()[0]["y"] == {
        "a": date(2024, 1, 8),
        "b": 3.5,
    }
    assert nested.scan("id = 7", columns=["s.x"]).to_pylist() == [{"s.x": "own"}]
    assert nested.scan("id = 7", columns=["t.x"]).schema.names == ["x"]
    assert nested.scan(columns=["s.y.b"]).to_arrow().schema == nested.scan(columns=["s.y.b"]).schema


def test_fields_are_found_under_the_names_that_they_have_now(
    catalog: forklake.Catalog, nested: forklake.Table
) -> None:
    nested.rename_column("s.y.b", "c")
    nested.add_column("s.new", "VARCHAR")
    with catalog.transaction() as tx:
        inside = tx.table("nested")
        inside.append([{"id": 1000, "s": {"y": {"c": 0.25}, "new": "here"}}])
        assert inside.scan("id IN (3, 1000)", columns=["s.y.c", "s.new"]).to_pylist() == [
            {"c": 1.5, "new": None},
            {"c": 0.25, "new": "here"},
        ]
    assert nested.scan("s.new = 'here'", columns=["s.y.c"]).to_pylist() == [{"c": 0.25}]
    assert nested.scan(columns=["s.new"]).count() == MANY + 3


def test_paths_that_lead_nowhere_or_to_one_name_are_refused(nested: forklake.Table) -> None:
    for names, error, said in (
        (["s.nope"], ColumnNotFound, '"nope" in "s"'),
        (["id.x"], ColumnNotFound, "no struct"),
        (["s.l.element"], ColumnNotFound, "no struct"),
        (['s."x"', "t.x"], InvalidArgument, 'shown as "x"'),
        (["s.y.a", "S.Y.A"], InvalidArgument, "twice"),
        ([7], Exception, "string"),
    ):
        with pytest.raises(error, match=said):
            nested.scan(columns=names)
