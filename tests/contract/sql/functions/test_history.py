"""Functions about snapshots, and about what came and went between them."""

from __future__ import annotations

from datetime import timedelta

import pytest

import forklake
from forklake.sql.functions.function import Caller
from forklake.sql.functions.registry import FUNCTIONS
from tests.contract.sql.functions.conftest import Call, Refused

MANY = 200


def test_snapshots_say_what_they_did_in_words_of_ducklake(catalog: forklake.Catalog, call: Call) -> None:
    with catalog.transaction(author="ada", message="tables", extra={"run": 7}) as tx:
        tx.create_schema("Odd one")
        tx.create_table("Odd one.t", "id BIGINT")
        tx.create_table("plain", "id BIGINT")
        tx.create_view("v", "SELECT 1")
        tx.create_macro("one", [], "1")
    table = catalog.table("plain")
    table.append([{"id": 1}])
    table.append([{"id": at} for at in range(MANY)])
    table.delete("id = 1")
    table.delete("id < 150")
    table.add_column("note", "VARCHAR")
    table.append([{"id": 1, "note": "y"}])
    table.flush_inlined()
    table.append([{"id": at, "note": "x"} for at in range(MANY)])
    catalog.compact()
    catalog.drop_table("plain")
    found = call("snapshots")
    number = str(table.id)
    assert [(row["snapshot_id"], row["snapshot_time"]) for row in found] == [
        (snapshot.id, snapshot.time) for snapshot in catalog.snapshots()
    ]
    assert [row["changes"] for row in found] == [
        {"schemas_created": ["main"]},
        {
            "schemas_created": ["Odd one"],
            "tables_created": ['"Odd one".t', "main.plain"],
            "views_created": ["main.v"],
            "scalar_macros_created": ["main.one"],
        },
        {"inlined_insert": [number]},
        {"tables_inserted_into": [number]},
        {"inlined_delete": [number]},
        {"tables_deleted_from": [number]},
        {"tables_altered": [number]},
        {"inlined_insert": [number]},
        {"flushed_inlined": [number]},
        {"tables_inserted_into": [number]},
        {"merge_adjacent": [number]},
        {"tables_dropped": [number]},
    ]
    said = [(row["author"], row["commit_message"], row["commit_extra_info"]) for row in found]
    assert said[1] == ("ada", "tables", '{"run": 7}')
    assert said[2] == (None, None, None)
    assert [row["schema_version"] for row in found][:3] == [0, 1, 1]


def test_rewritten_files_with_deletes_are_told_from_merged_ones(
    catalog: forklake.Catalog, call: Call
) -> None:
    table = catalog.create_table("t", "id BIGINT")
    table.append([{"id": at} for at in range(MANY)])
    table.delete("id >= 120")
    table.rewrite_deletes(0.1)
    assert call("snapshots")[-1]["changes"] == {"rewrite_delete": [str(table.id)]}
    for first in (1000, 2000):
        table.append([{"id": first + at} for at in range(MANY)])
    table.delete("id % 2 = 0")
    table.rewrite_deletes(0.1)
    assert call("snapshots")[-1]["changes"] == {"rewrite_delete": [str(table.id)]}
    table.append([{"id": 3000 + at} for at in range(MANY)])
    table.delete("id > 3100")
    table.compact()
    assert call("snapshots")[-1]["changes"] == {"merge_adjacent": [str(table.id)]}


def test_the_current_snapshot_is_the_one_that_is_read(catalog: forklake.Catalog, call: Call) -> None:
    catalog.create_table("t", "id BIGINT")
    with catalog.transaction() as tx:
        tx.table("t").append([{"id": 1}])
        begun = catalog.snapshot
        catalog.create_table("other", "id BIGINT")
        assert call("current_snapshot", work=tx) == [{"id": begun}]
        assert call("current_snapshot") == [{"id": begun + 1}]
    assert call("current_snapshot", on=catalog.at(begun)) == [{"id": begun}]


def test_the_last_snapshot_that_this_program_committed_is_known(
    catalog: forklake.Catalog, call: Call, reopen
) -> None:
    assert call("last_committed_snapshot") == [{"id": None}]
    catalog.create_table("t", "id BIGINT")
    made = catalog.snapshot
    assert call("last_committed_snapshot") == [{"id": made}]
    with reopen() as other:
        handle = other.catalog(catalog.name)
        run = FUNCTIONS["last_committed_snapshot"].body
        assert run(Caller(other, handle, handle), {}).to_pylist() == [{"id": None}]
        handle.create_table("other", "id BIGINT")
        assert run(Caller(other, handle, handle), {}).to_pylist() == [{"id": made + 1}]
    with catalog.transaction() as tx:
        tx.create_table("third", "id BIGINT")
        assert call("last_committed_snapshot", work=tx) == [{"id": made}]
    assert call("last_committed_snapshot") == [{"id": catalog.snapshot}]


@pytest.fixture
def changed(catalog: forklake.Catalog) -> list[int]:
    """A table `sales.t` and the snapshots that changed it."""
    catalog.create_schema("sales")
    table = catalog.create_table("sales.t", "id BIGINT, note VARCHAR")
    table.append([{"id": 1, "note": "a"}, {"id": 2, "note": "b"}])
    table.update({"note": "'c'"}, "id = 2")
    table.delete("id = 1")
    return [snapshot.id for snapshot in catalog.snapshots()][-3:]


def test_changes_are_told_from_the_first_to_the_last_snapshot(changed: list[int], call: Call) -> None:
    first, second, third = changed
    all_of_them = [
        (first, 0, "insert", 1, "a"),
        (first, 1, "insert", 2, "b"),
        (second, 1, "update_preimage", 2, "b"),
        (second, 1, "update_postimage", 2, "c"),
        (third, 0, "delete", 1, "a"),
    ]
    found = call("table_changes", "sales", "t", first, third)
    assert list(found[0]) == ["snapshot_id", "rowid", "change_type", "id", "note"]
    assert [tuple(row.values()) for row in found] == all_of_them
    assert call("table_changes", "t", 0, third, inside="sales") == found
    assert call("table_changes", "sales.t", 0, third) == found
    assert call("table_changes", "sales", "t", second, second) == found[2:4]


def test_insertions_and_deletions_are_the_rows_with_hidden_ids(changed: list[int], call: Call) -> None:
    first, second, third = changed
    found = call("table_insertions", "sales", "t", first, third)
    assert [tuple(row.values()) for row in found] == [
        (1, "a", first, 0),
        (2, "b", first, 1),
        (2, "c", second, 1),
    ]
    assert list(found[0]) == ["id", "note", "snapshot_id", "rowid"]
    gone = call("table_deletions", "sales", "t", first, third)
    assert [tuple(row.values()) for row in gone] == [(2, "b", second, 1), (1, "a", third, 0)]
    assert {FUNCTIONS[name].hidden for name in ("table_insertions", "table_deletions")} == {
        ("snapshot_id", "rowid")
    }


def test_changes_are_found_by_timestamps(catalog: forklake.Catalog, changed: list[int], call: Call) -> None:
    times = {snapshot.id: snapshot.time for snapshot in catalog.snapshots()}
    first, second, third = (times[snapshot] for snapshot in changed)

    def kinds(*span: object) -> list[str]:
        return [row["change_type"] for row in call("table_changes", "sales", "t", *span)]

    assert kinds(second, third) == ["update_preimage", "update_postimage", "delete"]
    # The first snapshot at or after the start, the last one up to the end.
    assert kinds(first + timedelta(microseconds=1), third - timedelta(microseconds=1)) == kinds(
        second, second
    )
    assert kinds(str(first), third + timedelta(days=1)) == kinds(changed[0], changed[2])


def test_changes_that_cannot_be_told_are_refused(
    catalog: forklake.Catalog, changed: list[int], call: Call, refused: Refused
) -> None:
    first, second, third = changed
    catalog.create_view("v", "SELECT 1")
    assert '"main.v" is a view' in refused("table_changes", "v", first, catalog.snapshot)
    assert "which is before it" in refused("table_changes", "sales", "t", third, second)
    assert "no snapshot" in refused("table_changes", "sales", "t", first, 10**9)
    assert "start is the id of a snapshot or a timestamp, not NULL" in refused(
        "table_changes", "sales", "t", None, third
    )
    assert "needs end" in refused("table_changes", "t", first)
    latest = catalog.snapshots()[-1].time
    assert "has no snapshot since" in refused(
        "table_changes", "sales", "t", latest + timedelta(days=1), third
    )
    catalog.expire(versions=[second])
    assert "was expired" in refused("table_changes", "sales", "t", first, third)
    assert len(call("table_changes", "sales", "t", third, third)) == 1
