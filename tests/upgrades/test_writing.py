"""Upgraded lakes are written to and merged: nothing that was merged comes again, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

import forklake
from forklake.distributed import DistributedSnapshot, Manifest
from tests.upgrades.lakes import OldLake


@pytest.fixture
def lake(old: OldLake) -> Iterator[forklake.Lake]:
    with old.open(upgrade=True) as opened:
        yield opened


def ids(lake: forklake.Lake, catalog: str, table: str) -> Counter[int]:
    found = lake.catalog(catalog).table(table).scan(columns=["id"]).to_arrow()
    return Counter(found.column("id").to_pylist())


def row_ids(lake: forklake.Lake, catalog: str, table: str) -> Counter[int]:
    content = lake.catalog(catalog).table(table).scan(row_ids=True).to_arrow()
    return Counter(content.column(content.column_names[-1]).to_pylist())


def notes_in(lake: forklake.Lake, catalog: str) -> dict[int, str]:
    content = lake.catalog(catalog).table("notes").scan(columns=["id", "note"]).to_arrow()
    return {row["id"]: row["note"] for row in content.to_pylist()}


def test_all_that_was_not_merged_is_merged_once_whatever_way_it_takes(lake: forklake.Lake) -> None:
    before, orders = notes_in(lake, "main"), ids(lake, "main", "orders")
    # Of these, main has some by way of others; one and late lead to main by two ways.
    for source in ("two", "one", "three", "late", "dev", "orphan", "renamed", "alone", "later", "of alone"):
        lake.merge(source, "main")
    notes = notes_in(lake, "main")
    came = {1001, 9000, 6000, 7100, 7200, 7300, 8000, 8100}
    assert notes.keys() == (before.keys() | came) - {1000}
    assert notes[3] == "three waits"
    assert notes[2] == "changed in dev"
    expected = orders + Counter([*range(600, 615), *range(700, 712)])
    for gone in (14, 15, 16, 17, 100):
        del expected[gone]
    assert ids(lake, "main", "orders") == expected
    for table in ("notes", "orders"):
        assert max(ids(lake, "main", table).values()) == 1
        assert max(row_ids(lake, "main", table).values()) == 1
    for source in ("one", "two", "three", "late", "later", "alone", "of alone", "orphan", "renamed", "dev"):
        assert lake.merge(source, "main").snapshot is None, f"{source} has nothing that main has not seen"


def test_forks_that_were_merged_before_get_what_their_parent_did_since(lake: forklake.Lake) -> None:
    for fork in ("one", "two", "three", "deep", "late", "copied"):
        own = notes_in(lake, fork)
        lake.merge("main", fork)
        found = notes_in(lake, fork)
        assert found.keys() >= {51, 7000} | (own.keys() - {1000})
        assert max(ids(lake, fork, "orders").values()) == 1
        assert not {45, 20} & ids(lake, fork, "orders").keys()
        assert lake.merge("main", fork).snapshot is None


def test_merges_go_on_over_forks_of_both_times(lake: forklake.Lake) -> None:
    new = lake.fork("two", "new")
    new.table("notes").append([{"id": 11_000, "note": "after the upgrade"}])
    lake.merge("new", "three")
    lake.merge("three", "one")
    result = lake.merge("one", "new")
    assert [(table.name, table.rows_added) for table in result.tables if table.rows_added] == [
        ("main.notes", 4)  # 50 of main, 1001 of one, 3000 of three, and 3 as three has changed it
    ]
    assert max(ids(lake, "new", "notes").values()) == 1
    assert {50, 1001, 3000, 11_000} <= notes_in(lake, "new").keys()
    assert notes_in(lake, "new")[3] == "three waits"


def test_rows_are_added_changed_deleted_compacted_and_restored(lake: forklake.Lake) -> None:
    main = lake.catalog("main")
    start, table = main.snapshot, main.table("orders")
    before = ids(lake, "main", "orders")
    table.append([{"id": 5000 + n, "region": "eu", "amount": 1.0, "state": "x"} for n in range(20)])
    # From a file that has a delete file of the earlier version, and inlined deletes beside it.
    table.delete("id IN (0, 9, 12, 15, 18, 21, 54)")
    table.update({"amount": 7}, "id = 51")
    expected = before + Counter(range(5000, 5020))
    for gone in (0, 9, 12, 15, 18, 21, 54):
        del expected[gone]
    assert ids(lake, "main", "orders") == expected
    assert table.stats().record_count == expected.total()
    main.rewrite_deletes("orders", 0)
    main.compact()
    assert ids(lake, "main", "orders") == expected
    main.restore(start)
    assert ids(lake, "main", "orders") == before


def test_what_an_earlier_version_dropped_and_did_is_taken_back(lake: forklake.Lake) -> None:
    lake.undrop_catalog("parent")
    assert 7100 in notes_in(lake, "parent")
    main = lake.catalog("main")
    main.undrop_table("gone")
    assert main.table("gone").count() == 1
    copied = lake.catalog("copied")
    deleted = next(s.id for s in copied.snapshots() if s.id == copied.snapshot)
    copied.undo(deleted)
    assert 100 in ids(lake, "copied", "orders")


def test_a_distributed_snapshot_that_waited_is_committed(lake: forklake.Lake, old: OldLake) -> None:
    waiting = old.expected["waiting"]
    moved = waiting["snapshot"].replace(old.expected["data_path"], str(old.folder / "files"))
    snapshot = DistributedSnapshot.from_json(moved)
    main = lake.catalog("main")
    main.commit_distributed(snapshot, [Manifest.from_json(text) for text in waiting["manifests"]])
    assert notes_in(lake, "main")[990] == "waited"
    assert ids(lake, "main", "orders") >= Counter(range(900, 910))
    assert [info.state for info in main.reservations()] == ["committed", "cancelled", "committed"]


def test_work_that_was_committed_once_is_not_done_again(lake: forklake.Lake) -> None:
    main = lake.catalog("main")
    before = main.snapshot
    with main.transaction(once="load of monday") as tx:
        tx.table("notes").append([{"id": 12_000, "note": "again"}])
    assert main.snapshot == before


def test_bounds_of_tables_hold_for_all_rows_after_more_writes(lake: forklake.Lake, old: OldLake) -> None:
    old.made_by_the_first()
    main = lake.catalog("main")
    main.table("notes").append([{"id": -5, "note": "zz"}])
    with old.sql() as run:
        found = run(
            "SELECT min_value, max_value, min_key, max_key FROM ducklake_table_column_stats "
            f"WHERE catalog_id = {main.id} AND table_id = {main.table('notes').id}"
        )
    # What was known is not certain, so one more write does not make it so.
    assert set(found) == {(None, None, "", "~~")}


def test_parents_of_mapped_names_are_entries_of_the_mapping(lake: forklake.Lake, old: OldLake) -> None:
    with old.sql() as run:
        names = run(
            "SELECT n.source_name, p.source_name "
            "FROM ducklake_name_mapping n LEFT JOIN ducklake_name_mapping p "
            "ON p.catalog_id = n.catalog_id AND p.mapping_id = n.mapping_id AND p.column_id = n.parent_column"
        )
    assert set(names) == {
        ("number", None),
        ("place", None),
        ("region", None),
        ("city", "place"),
        ("zip", "place"),
    }
