"""New values of updates and merges: they come from the row and nothing else, as text or as values."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

import forklake
from forklake.api.upsert import RowsMerged
from forklake.errors import ColumnNotFound, ForklakeError, InvalidArgument, InvalidData, InvalidPredicate
from tests.reaching import REACHING, SHADOWING

DDL = "id BIGINT, z VARCHAR, s STRUCT(z INTEGER, w INTEGER), t STRUCT(z INTEGER)"
ROW = {"id": 1, "z": "own", "s": {"z": 1, "w": 2}, "t": {"z": 3}}


@pytest.fixture
def rows(catalog: forklake.Catalog) -> forklake.Table:
    table = catalog.create_table("rows", DDL)
    table.append([ROW])
    return table


def test_no_verb_takes_what_says_something_else_than_the_row(rows: forklake.Table) -> None:
    source = [{"id": 1, "secret": "theirs"}]
    for text in (*REACHING, *SHADOWING):
        for change in (
            lambda text: rows.update({"z": text}),
            lambda text: rows.delete(text),
            lambda text: rows.merge(source, on="id", when_matched={"z": text}, when_not_matched="ignore"),
            lambda text: rows.set_sort_order([text]),
            lambda text: rows.set_partitioning([text]),
            lambda text: rows.scan(text).to_arrow(),
        ):
            with pytest.raises(ForklakeError):
                change(text)
        # Where no column of that name is in sight, a variable is what it seems to be.
        if text not in SHADOWING:
            with pytest.raises(ForklakeError):
                rows.set_default("z", text)
            with pytest.raises(ForklakeError):
                rows.merge([{"id": 2}], on="id", when_not_matched={"z": text})
    assert rows.scan().to_pylist() == [ROW]


def test_a_merge_reads_the_columns_that_it_names(rows: forklake.Table) -> None:
    source = [{"id": 1, "z": "new", "x": {"y": 5}}, {"id": 2, "z": "more", "x": {"y": 6}}]
    merged = rows.merge(
        source,
        on="id",
        when_matched={"z": "target.z || source.z", "s.w": "source.x.y + target.t.z"},
        when_not_matched={"id": "source.id", "t.z": "source.x.y"},
    )
    assert merged == RowsMerged(1, 0, 1)
    assert sorted(rows.scan().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "z": "ownnew", "s": {"z": 1, "w": 8}, "t": {"z": 3}},
        {"id": 2, "z": None, "s": None, "t": {"z": 6}},
    ]


def test_a_source_may_call_its_columns_like_the_sides(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INTEGER, source INTEGER, target STRUCT(id INTEGER)")
    table.append([{"id": 1, "source": 10, "target": {"id": 100}}])
    table.merge(
        [{"id": 1, "source": 20, "target": {"id": 200}}],
        on="id",
        when_matched={"source": "source.source + target.source + target.target.id + source.target.id"},
    )
    assert table.scan(columns=["source"]).to_pylist() == [{"source": 330}]


TYPES: list[tuple[str, Any, Any]] = [
    ("INTEGER", 5, 5),
    ("DOUBLE", 5, 5.0),
    ("DOUBLE", -math.inf, -math.inf),
    ("FLOAT", 0.5, 0.5),
    ("DECIMAL(10, 2)", 5.25, Decimal("5.25")),
    ("DECIMAL(2, 2)", Decimal("0.25"), Decimal("0.25")),
    ("HUGEINT", 10**30, Decimal(10**30)),
    ("BOOLEAN", False, False),
    ("VARCHAR", None, None),
    ("DATE", date(2024, 2, 29), date(2024, 2, 29)),
    ("TIME", time(1, 2, 3, 4), time(1, 2, 3, 4)),
    ("TIMESTAMP", datetime(2024, 2, 29, 1, 2, 3, 4), datetime(2024, 2, 29, 1, 2, 3, 4)),
    ("TIMESTAMP_S", datetime(2024, 2, 29, 1, 2, 3), datetime(2024, 2, 29, 1, 2, 3)),
    ("TIMESTAMPTZ", datetime(1924, 2, 29, tzinfo=UTC), datetime(1924, 2, 29, tzinfo=UTC)),
    ("BLOB", b"\x00\xff'\\x41", b"\x00\xff'\\x41"),
    ("UUID", UUID(int=7), UUID(int=7)),
    ("JSON", {"a": ["it's"]}, '{"a": ["it\'s"]}'),
    ("INTEGER[]", [1, None, 3], [1, None, 3]),
    ("INTEGER[]", [], []),
    ("VARCHAR[]", ["it's", "#1", "\0", ""], ["it's", "#1", "\0", ""]),
    ("STRUCT(a INTEGER, b VARCHAR)", {"b": "x"}, {"a": None, "b": "x"}),
    ("MAP(VARCHAR, INTEGER[])", {"k": [1], "l": None}, [("k", [1]), ("l", None)]),
    ("STRUCT(a DATE)[]", [{"a": date(2024, 1, 1)}], [{"a": date(2024, 1, 1)}]),
    ("INTERVAL", timedelta(days=3), None),
]


@pytest.mark.parametrize(("type", "value", "read"), TYPES)
def test_values_of_python_are_literals(catalog: forklake.Catalog, type: str, value: Any, read: Any) -> None:
    table = catalog.create_table("typed", f"id INTEGER, v {type}")
    table.append([{"id": 1}, {"id": 2}])
    assert table.update({"v": value}, "id = 1") == 1
    table.merge([{"id": 2}, {"id": 3}], on="id", when_matched={"v": value}, when_not_matched={"v": value})
    found = table.scan().to_arrow().column("v")
    assert found.combine_chunks().equals(found.take([0, 0, 0]).combine_chunks())
    if type != "INTERVAL":
        assert found.to_pylist() == [read] * 3
    else:
        table.append([{"v": value}])
        assert len(set(table.scan(columns=["v"]).to_arrow().column("v").to_pylist())) == 1


@pytest.mark.parametrize(
    ("type", "value"),
    [("TINYINT", 300), ("INTEGER", 1.5), ("DECIMAL(4, 2)", 0.125), ("DATE", 5), ("INTEGER[]", [1, "x"]),
     ("STRUCT(a INTEGER)", {"b": 1}), ("BOOLEAN", 2), ("INTEGER", object()), ("UUID", b"short")],
)  # fmt: skip
def test_a_value_that_its_column_does_not_hold_is_refused(
    catalog: forklake.Catalog, type: str, value: Any
) -> None:
    table = catalog.create_table("typed", f"id INTEGER, v {type}")
    table.append([{"id": 1}])
    with pytest.raises(InvalidData, match='"v'):
        table.update({"v": value})
    with pytest.raises(InvalidData, match='"v'):
        table.merge([{"id": 1}], on="id", when_matched={"v": value})


def test_a_field_of_a_struct_changes_and_the_others_stay(catalog: forklake.Catalog) -> None:
    table = catalog.create_table(
        "nested", 'id INTEGER, s STRUCT(x INTEGER, y STRUCT(a DECIMAL(4, 2), b VARCHAR)), "s.x" INTEGER'
    )
    table.append([{"id": 1, "s": {"x": 1, "y": {"a": 2, "b": "b"}}, "s.x": 9}, {"id": 2}])
    with catalog.transaction() as tx:
        nested = tx.table("nested")
        assert nested.update({"S.Y.a": "s.x + 0.5", 's."x"': 7}) == 2
        assert nested.scan("id = 1").to_pylist()[0]["s"] == {"x": 7, "y": {"a": Decimal("1.50"), "b": "b"}}
    assert table.scan("id = 2").to_pylist() == [
        {"id": 2, "s": {"x": 7, "y": {"a": None, "b": None}}, "s.x": None}
    ]
    # A whole column of that name comes first.
    table.update({"s.x": "-1"})
    assert table.scan(columns=["s.x"]).to_pylist() == [{"s.x": -1}] * 2
    for twice in ({"s": "NULL", "s.y": "NULL"}, {"s.y.a": 1, "s.y": None}, {"s.y": None, "s.y.a": 1}):
        with pytest.raises(InvalidArgument, match="two values"):
            table.update(twice)
    with pytest.raises(ColumnNotFound, match="no struct"):
        table.update({"id.x": 1})
    with pytest.raises(ColumnNotFound, match='"nope"'):
        table.update({"s.nope": 1})
    with pytest.raises(InvalidPredicate, match=r"s\.y\.a"):
        table.update({"s.y.a": "#1"})


def test_a_default_may_be_a_value_of_python(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INTEGER")
    table.append([{"id": 1}])
    table.add_column("d", "DATE", default=date(2024, 1, 2))
    table.add_column("ts", "TIMESTAMPTZ", default=datetime(2024, 1, 2, 3, tzinfo=UTC))
    table.add_column("u", "UUID", default=UUID(int=5))
    table.add_column("b", "BLOB", default=b"\x00'a")
    table.add_column("n", "DECIMAL(6, 2)", default=Decimal("1.5"))
    table.set_default("id", 7)
    table.append([{"d": date(2025, 1, 1)}])
    first, second = table.scan().to_pylist()
    assert first == {
        "id": 1, "d": date(2024, 1, 2), "ts": datetime(2024, 1, 2, 3, tzinfo=UTC), "u": UUID(int=5),
        "b": b"\x00'a", "n": Decimal("1.50"),
    }  # fmt: skip
    assert second == {**first, "id": 7, "d": date(2025, 1, 1)}
