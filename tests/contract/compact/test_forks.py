"""Compaction and forks: a fork masks what it inherited, a parent keeps what its forks read; merges hold."""

from __future__ import annotations

import pytest

import forklake
from tests.contract.rows.shown import content, feed, numbered


@pytest.fixture
def worn(table: forklake.Table) -> forklake.Table:
    table.append(numbered(*range(10)))
    table.append(numbered(*range(10, 20)))
    table.append(numbered(20))
    table.delete("id IN (3, 13, 14, 15)")
    table.update({"v": "'u'"}, "id = 5")
    return table


def compacted(catalog: forklake.Catalog) -> forklake.CompactResult:
    told = catalog.compact()
    assert told.files_in > told.files_out
    return told


def test_a_fork_compacts_for_itself(
    lake: forklake.Lake, catalog: forklake.Catalog, worn: forklake.Table
) -> None:
    fork = lake.fork("main_catalog", "fork")
    below = lake.fork("fork", "below")
    rows, before, files = content(worn), catalog.snapshot, worn.files()
    point = fork.snapshot
    compacted(fork)
    assert [file.path.startswith("fork") for file in fork.table("t").files()] == [True]
    assert content(fork.table("t")) == content(fork.table("t"), at=point) == rows
    assert feed(fork.table("t"), before) == []
    assert fork.diff().table("t").rows().to_pylist() == []
    for untouched in (catalog, below):
        assert untouched.table("t").files() == files
        assert content(untouched.table("t")) == rows
    assert catalog.snapshot == before
    later = lake.fork("fork", "later")
    assert content(later.table("t")) == rows
    assert later.table("t").files() == fork.table("t").files()


def test_forks_keep_reading_what_their_parent_compacted(
    lake: forklake.Lake, catalog: forklake.Catalog, worn: forklake.Table
) -> None:
    fork = lake.fork("main_catalog", "fork")
    rows, files = content(worn), worn.files()
    compacted(catalog)
    assert content(fork.table("t")) == content(worn) == rows
    assert fork.table("t").files() == files
    fork.table("t").append(numbered(100, 101, 102))
    fork.table("t").delete("id = 0")
    compacted(fork)
    assert content(worn) == rows
    assert [row[1] for row in content(fork.table("t"))] == [
        *(row[1] for row in rows if row[1]),
        100,
        101,
        102,
    ]


@pytest.mark.parametrize("mode", ["reference", "copy"])
def test_a_fork_that_compacted_is_merged_back(
    lake: forklake.Lake, catalog: forklake.Catalog, worn: forklake.Table, mode
) -> None:
    fork = lake.fork("main_catalog", "fork", mode=mode)
    table = fork.table("t")
    table.append(numbered(100, 101, 102))
    compacted(fork)
    table.delete("id = 0")
    table.update({"v": "'f'"}, "id IN (1, 101)")
    compacted(fork)
    worn.append(numbered(200, 201, 202))
    before, old = catalog.snapshot, content(worn)
    rows = sorted([*content(table), *(row for row in old if row[1] >= 200)])
    lake.merge("fork", "main_catalog")
    assert content(worn) == rows
    assert worn.count() == worn.stats().record_count == len(rows)
    # Only what changed shows, though nearly every row is in another file now.
    assert [(change[0], change[3], change[4]) for change in feed(worn, before)] == [
        ("delete", 0, "x"),
        ("update_preimage", 1, "x"),
        ("update_postimage", 1, "f"),
        ("insert", 100, "x"),
        ("insert", 101, "f"),
        ("insert", 102, "x"),
    ]
    assert content(worn, at=before) == old
    compacted(catalog)
    assert content(worn) == rows
    assert lake.merge("fork", "main_catalog").snapshot is None


def test_a_parent_that_compacted_takes_new_rows_of_its_forks(
    lake: forklake.Lake, catalog: forklake.Catalog, worn: forklake.Table
) -> None:
    fork = lake.fork("main_catalog", "fork")
    fork.table("t").append(numbered(100, 101, 102))
    rows = content(fork.table("t"))
    compacted(catalog)
    lake.merge("fork", "main_catalog")
    assert content(worn) == rows
    lake.merge("main_catalog", "fork")
    assert content(fork.table("t")) == rows
    assert fork.table("t").files() != worn.files()
    assert [file.path for file in fork.table("t").files()] == [file.path for file in worn.files()]


@pytest.mark.parametrize("who", ["fork", "main_catalog"])
def test_rows_that_one_deletes_where_the_other_compacts_are_found_by_their_ids(
    lake: forklake.Lake, catalog: forklake.Catalog, worn: forklake.Table, who: str
) -> None:
    fork = lake.fork("main_catalog", "fork")
    other = "fork" if who == "main_catalog" else "main_catalog"
    compacted(lake.catalog(who))
    deleted = lake.catalog(other).table("t").delete("id = 0")
    rows = content(lake.catalog(other).table("t"))
    lake.merge("fork", "main_catalog")
    assert deleted == 1
    assert content(worn) == rows
    assert worn.count() == len(rows)
    lake.merge("main_catalog", "fork")
    assert content(fork.table("t")) == rows
    assert fork.table("t").count() == len(rows)


@pytest.mark.parametrize("how", ["update", "delete", "flush", "compact"])
def test_files_that_ended_on_the_way_end_where_they_came_from(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, how: str
) -> None:
    """Rows go round by way of catalogs that never saw the file that they were in first."""
    one = lake.fork("main_catalog", "one")
    two = lake.fork("main_catalog", "two")
    origin = lake.fork("two", "origin")
    origin.table("t").append(numbered(1, 2))
    origin.table("t").append(numbered(3, 4, 5))
    lake.merge("origin", "one")
    moved = one.table("t")
    {
        "update": lambda: moved.update({"v": "'u'"}),
        "delete": moved.delete,
        "flush": lambda: (one.flush_inlined(), one.rewrite_deletes(0)),
        "compact": lambda: compacted(one),
    }[how]()
    rows = content(moved)
    lake.merge("one", "two")
    assert content(two.table("t")) == rows
    lake.merge("two", "origin")
    assert content(origin.table("t")) == rows
    assert origin.table("t").count() == len(rows)
    assert lake.merge("two", "origin").snapshot is None


def test_compacting_and_materializing_go_together(
    lake: forklake.Lake, catalog: forklake.Catalog, worn: forklake.Table
) -> None:
    fork = lake.fork("main_catalog", "fork")
    rows = content(worn)
    compacted(fork)
    fork.table("t").append(numbered(100, 101, 102))
    fork.materialize()
    compacted(fork)
    assert content(fork.table("t"))[: len(rows)] == rows
    lake.drop_catalog("main_catalog")
    assert len(content(fork.table("t"))) == len(rows) + 3
