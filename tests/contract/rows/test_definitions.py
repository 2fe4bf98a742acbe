"""Types and defaults of columns as people give them: SQL, Arrow, Python values; all else is refused."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import forklake
from forklake.errors import InvalidSchemaChange, UnknownType


@pytest.mark.parametrize("wrong", [int, str, None, 5, ["int"], ("int",), b"int"])
def test_what_is_no_type_is_refused_everywhere_and_changes_nothing(
    catalog: forklake.Catalog, table: forklake.Table, wrong: object
) -> None:
    before = catalog.snapshot
    for attempt in (
        lambda: table.add_column("y", wrong),  # type: ignore[arg-type]
        lambda: table.alter_type("id", wrong),  # type: ignore[arg-type]
        lambda: forklake.ColumnSpec("y", wrong),  # type: ignore[arg-type]
        lambda: catalog.create_table("u", [("y", wrong)]),  # type: ignore[list-item]
        # A list would be the values of a column.
        lambda: catalog.create_table("u", {"y": 5 if isinstance(wrong, list | tuple) else wrong}),  # type: ignore[dict-item]
    ):
        with pytest.raises(UnknownType, match="a type is SQL text such as"):
            attempt()
    assert catalog.snapshot == before


def test_types_of_arrow_serve_wherever_a_type_is_given(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", {"id": pa.int32(), "name": "varchar"})
    table.add_column("tags", pa.list_(pa.string()))
    table.alter_type("id", pa.int64())
    table.append([{"id": 2**40, "name": "a", "tags": ["x"]}])
    assert [(column.name, column.type) for column in table.columns] == [
        ("id", "int64"),
        ("name", "varchar"),
        ("tags", "list"),
    ]
    specs = [forklake.ColumnSpec("id", pa.int16(), nullable=False), ("note", pa.large_string())]
    assert catalog.create_table("u", specs).arrow_schema == pa.schema(
        [pa.field("id", pa.int16(), nullable=False), pa.field("note", pa.string())]
    )


def test_numbers_and_truth_values_of_python_are_defaults(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", [forklake.ColumnSpec("id", "INT", default=-7), ("x", "INT")])
    table.append([{"x": 1}])
    table.add_column("count", "INT", default=5)
    table.add_column("ok", "BOOLEAN", default=True, nullable=False)
    table.add_column("ratio", "DOUBLE", default=float("-inf"))
    table.add_column("price", "DECIMAL(5,2)", default=Decimal("1.50"))
    table.add_column("nothing", "INT", default=None)
    table.set_default("count", 6)
    table.set_default("ratio", 1e300)
    table.set_default("id", None)
    table.append([{"x": 2}])
    assert [tuple(row.values()) for row in table.scan().to_pylist()] == [
        (-7, 1, 5, True, float("-inf"), Decimal("1.50"), None),
        (None, 2, 6, True, 1e300, Decimal("1.50"), None),
    ]


@pytest.mark.parametrize("wrong", [["x"], {"x": 1}, {1}, 1j])
def test_other_values_are_no_defaults(
    catalog: forklake.Catalog, table: forklake.Table, wrong: object
) -> None:
    before = catalog.snapshot
    for attempt in (
        lambda: table.add_column("y", "INT", default=wrong),  # type: ignore[arg-type]
        lambda: table.set_default("v", wrong),  # type: ignore[arg-type]
        lambda: forklake.ColumnSpec("y", "INT", default=wrong),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidSchemaChange, match="a default is SQL text"):
            attempt()
    with pytest.raises(InvalidSchemaChange, match="single quotes"):
        table.set_default("v", "hello")
    with pytest.raises(InvalidSchemaChange, match="does not fit INTEGER"):
        table.add_column("y", "INT", default=True)
    assert catalog.snapshot == before
