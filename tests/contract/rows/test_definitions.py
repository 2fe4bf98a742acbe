"""Types and defaults of columns as people give them: SQL, Arrow, Python values; all else is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

import forklake
from forklake.errors import UnknownType


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
        lambda: catalog.create_table("u", {"y": wrong}),  # type: ignore[dict-item]
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
