"""Merges, diffs, restores and undos take indexes along, and segments with the files that they are of."""

from __future__ import annotations

import pytest

import forklake
from forklake.errors import MergeConflict
from tests.index_kinds import build, data_files, segments


def names(table: forklake.Table) -> list[str]:
    return [index.name for index in table.indexes()]


@pytest.fixture
def fork(lake: forklake.Lake, table: forklake.Table) -> forklake.Catalog:
    """A fork of a table with an index `i`, and the segment `all` of its files."""
    table.create_index("i", kind="shelf", columns=["id"])
    build(table, "i", "all")
    return lake.fork("main_catalog", "fork")


def test_definitions_are_merged(lake: forklake.Lake, fork: forklake.Catalog, table: forklake.Table) -> None:
    mine = fork.table("t")
    mine.create_index("new", kind="shelf", columns=["name"], height=7)
    mine.create_index("never", kind="shelf", columns=["name"])
    mine.drop_index("never")
    mine.drop_index("i")
    made = fork.create_table("made", "id BIGINT")
    made.create_index("of_made", kind="shelf", columns=["id"])
    table.create_index("beside", kind="shelf", columns=["id"])
    table.append([{"id": 8}])
    diff = fork.diff().table("t")
    assert diff is not None
    assert diff.schema_changes == ('index "i" dropped', 'index "new" created')
    fork.merge_into("main_catalog")
    assert names(table) == ["new", "beside"]
    assert table.indexes()[0] == mine.indexes()[0]
    assert segments(table).keys() == set()
    assert names(lake.catalog("main_catalog").table("made")) == ["of_made"]
    lake.catalog("main_catalog").merge_into("fork")
    assert names(mine) == ["new", "beside"]
    assert lake.check().differences == ()
    # Once more there is nothing to do.
    assert fork.merge_into("main_catalog").snapshot is None


def test_definitions_that_collide_are_not_merged(fork: forklake.Catalog, table: forklake.Table) -> None:
    for each in (fork.table("t"), table):
        each.create_index("Same" if each is table else "same", kind="shelf", columns=["name"])
    with pytest.raises(MergeConflict, match="has an index of that name"):
        fork.merge_into("main_catalog")
    table.drop_index("same")
    # It was taken back, so it stands in nobody's way.
    fork.merge_into("main_catalog")
    assert names(table) == ["i", "same"]


def test_a_column_that_is_dropped_by_a_merge_takes_its_indexes_along(
    fork: forklake.Catalog, table: forklake.Table
) -> None:
    fork.table("t").create_index("of_name", kind="shelf", columns=["id"], include=["name"])
    fork.merge_into("main_catalog")
    assert names(table) == ["i", "of_name"]
    fork.table("t").drop_column("name")
    fork.merge_into("main_catalog")
    assert names(table) == ["i"]


def test_segments_come_with_their_files(
    lake: forklake.Lake, fork: forklake.Catalog, table: forklake.Table
) -> None:
    mine = fork.table("t")
    old = data_files(table)
    for number in (20, 21):
        mine.append([{"id": number}])
    new = data_files(mine)[len(old) :]
    build(mine, "i", "new", new)
    build(mine, "i", "old", old)
    build(mine, "i", "mixed", [old[0], new[0]])
    mine.create_index("later", kind="shelf", columns=["name"])
    build(mine, "later", "inherited", old[1:])
    table.delete("id = 0")
    fork.merge_into("main_catalog")
    # What finds rows of a file that is gone here does not come, nor what is found already.
    assert segments(table).keys() == {"all", "new", "inherited"}
    assert segments(table)["new"].covers == tuple(new)
    assert lake.check().differences == ()
    build(mine, "later", "only", [old[1], new[1]])
    fork.merge_into("main_catalog")
    assert segments(table).keys() == {"all", "new", "inherited", "only"}
    table.drop_index("i")
    assert segments(table).keys() == {"inherited", "only"}
    assert segments(mine).keys() == {"all", "new", "old", "mixed", "inherited", "only"}


def test_restores_and_undos_bring_indexes_back_as_new_ones(
    catalog: forklake.Catalog, fork: forklake.Catalog, table: forklake.Table
) -> None:
    before, (index,) = catalog.snapshot, table.indexes()
    table.drop_column("id")
    dropped = catalog.snapshot
    table.create_index("other", kind="shelf", columns=["name"])
    catalog.undo(dropped)
    assert names(table) == ["other", "i"]
    assert table.indexes()[1].id > index.id
    made = catalog.snapshot
    table.create_index("made", kind="shelf", columns=["id"])
    catalog.undo(made + 1)
    assert names(table) == ["other", "i"]
    table.restore(before)
    assert names(table) == ["i"]
    assert segments(table).keys() == set()
    table.drop()
    catalog.undrop_table("t")
    assert names(catalog.table("t")) == ["i"]
    catalog.restore(before)
    assert names(catalog.table("t")) == ["i"]
    build(catalog.table("t"), "i", "again")
    assert segments(catalog.table("t")).keys() == {"again"}
    assert segments(fork.table("t")).keys() == {"all"}
