"""What files call their columns is committed with them: some engines find columns of a file by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.errors import InvalidSchemaChange

MANY = 150
"""More rows than stay in the metadata."""


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    return catalog.create_table("t", "id BIGINT, s STRUCT(x INT)")


def rows(**more: Any) -> pa.Table:
    return pa.table({"id": range(MANY), **{name: [value] * MANY for name, value in more.items()}})


def test_a_new_field_that_a_file_has_is_renamed_after_the_commit(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    """Inside of structs, files are read by name."""
    with catalog.transaction() as changes:
        mine = changes.table("t")
        mine.add_column("s.fresh", "INT")
        mine.append(rows(s={"fresh": 1}))
        with pytest.raises(InvalidSchemaChange, match="commit before you rename"):
            mine.rename_column("s.fresh", "other")
        mine.rename_column("id", "number")
    table.rename_column("s.fresh", "other")
    assert table.scan("number = 7").to_pylist() == [{"number": 7, "s": {"x": None, "other": 1}}]


def test_a_column_that_came_and_went_leaves_its_name_and_its_id_behind(
    catalog: forklake.Catalog, table: forklake.Table, raw: Any
) -> None:
    with catalog.transaction() as changes:
        changes.table("t").add_column("gone", "INT")
        changes.table("t").append(rows(gone=1))
        changes.table("t").drop_column("gone")
    known = raw("SELECT column_name FROM ducklake_column WHERE end_snapshot = begin_snapshot")
    assert known == [("gone",)]
    table.add_column("gone", "INT")
    assert table.scan("gone IS NULL").count() == MANY
    assert table.scan("gone = 1").count() == 0


def test_a_name_that_only_files_know_is_remembered(
    catalog: forklake.Catalog, table: forklake.Table, raw: Any
) -> None:
    """Also one between two others, of a column that was there before."""
    with catalog.transaction() as changes:
        mine = changes.table("t")
        mine.add_column("fresh", "INT")
        mine.rename_column("id", "middle")
        mine.append(pa.table({"middle": range(MANY), "fresh": [1] * MANY}))
        mine.rename_column("fresh", "other")
        mine.rename_column("middle", "number")
        with pytest.raises(InvalidSchemaChange, match="commit before you rename"):
            mine.add_column("s.y", "INT")
            mine.rename_column("s.x", "middle")
            mine.append(rows(s={"middle": 1}).rename_columns(["number", "s"]))
            mine.rename_column("s.middle", "z")
    known = raw("SELECT column_name FROM ducklake_column WHERE end_snapshot = begin_snapshot ORDER BY 1")
    assert known == [("fresh",), ("middle",)]
    table.add_column("fresh", "INT")
    table.add_column("middle", "INT", default=5)
    assert {column.name: column.id for column in table.columns}["middle"] > 6
    assert table.scan("fresh IS NULL AND middle = 5").count() == 2 * MANY
    assert table.scan("other = 1 AND number < 10").count() == 10


def test_a_name_that_no_file_has_is_free(catalog: forklake.Catalog, table: forklake.Table, raw: Any) -> None:
    """Rows that are still in memory are laid down under the names of the commit."""
    with catalog.transaction() as changes:
        mine = changes.table("t")
        mine.append(rows(s={"x": 1}))
        mine.rename_column("id", "other")
        mine.rename_column("other", "id")
        mine.rename_column("s.x", "other")
        mine.rename_column("s.other", "x")
        mine.rename_column("s.x", "y")
        mine.append([{"id": MANY, "s": {"y": 2}}])
        mine.rename_column("s.y", "z")
    assert raw("SELECT column_name FROM ducklake_column WHERE end_snapshot = begin_snapshot") == []
    assert table.scan(f"id IN (0, {MANY})").to_pylist() == [
        {"id": 0, "s": {"z": 1}},
        {"id": MANY, "s": {"z": 2}},
    ]
