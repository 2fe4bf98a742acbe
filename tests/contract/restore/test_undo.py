"""What one commit did is taken back, if nothing that came later is in the way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import forklake
from forklake.errors import CommitConflict, InvalidArgument, SnapshotNotFound


def rows(table: forklake.Table) -> list[dict[str, Any]]:
    found = table.scan(row_ids=True).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["row_id"])


def ids(table: forklake.Table) -> list[int]:
    return sorted(row["id"] for row in table.scan().to_arrow().to_pylist())


def filled(catalog: forklake.Catalog, limit: int) -> forklake.Table:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.set_option("data_inlining_row_limit", limit)
    table.append([{"id": n, "v": "a"} for n in range(6)])
    return table


@pytest.fixture(params=(0, 10), ids=("files", "inlined"))
def table(catalog: forklake.Catalog, request: pytest.FixtureRequest) -> forklake.Table:
    return filled(catalog, request.param)


def test_rows_that_were_appended_are_taken_out(catalog: forklake.Catalog, table: forklake.Table) -> None:
    before = rows(table)
    table.append([{"id": 10, "v": "x"}, {"id": 11, "v": "x"}])
    bad = catalog.snapshot
    table.append([{"id": 12, "v": "y"}])
    table.update({"v": "'b'"}, "id = 0")
    catalog.undo(bad, author="me", message="oops")
    assert ids(table) == [0, 1, 2, 3, 4, 5, 12]
    last = catalog.snapshots()[-1]
    assert (last.author, last.message) == ("me", "oops")
    assert table.changes(last.id - 1).count() == 2
    assert table.count() == 7 == table.stats().record_count
    assert catalog.at(bad).table("t").count() == 8
    # An undo can be undone.
    catalog.undo(last.id)
    assert ids(table) == [0, 1, 2, 3, 4, 5, 10, 11, 12]
    assert rows(table)[1:6] == before[1:]


def test_rows_that_were_deleted_come_back(catalog: forklake.Catalog, table: forklake.Table) -> None:
    before = rows(table)
    table.delete("id IN (1, 2)")
    bad = catalog.snapshot
    table.append([{"id": 12, "v": "y"}])
    catalog.undo(bad)
    assert rows(table)[:6] == before
    assert ids(table) == [0, 1, 2, 3, 4, 5, 12]


def test_rows_that_were_all_deleted_come_back(catalog: forklake.Catalog, table: forklake.Table) -> None:
    before = rows(table)
    table.overwrite([{"id": 99, "v": "z"}])
    catalog.undo(catalog.snapshot)
    assert rows(table) == before
    assert table.count() == 6 == table.stats().record_count


def test_rows_that_were_updated_get_their_old_values(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    before = rows(table)
    table.update({"v": "'new'"}, "id < 3")
    bad = catalog.snapshot
    table.append([{"id": 12, "v": "y"}])
    catalog.undo(bad)
    assert rows(table)[:6] == before
    found = table.changes(catalog.snapshots()[-2].id).to_arrow().to_pylist()
    assert sorted({row["change_type"] for row in found}) == ["update_postimage", "update_preimage"]
    assert len(found) == 6


@pytest.mark.parametrize("moved", ("compact", "flush", "rewrite_deletes"))
def test_rows_that_were_moved_since_are_found_by_their_ids(
    catalog: forklake.Catalog, table: forklake.Table, moved: str
) -> None:
    table.append([{"id": 6, "v": "b"}])
    before = rows(table)
    with catalog.transaction() as tx:
        changed = tx.table("t")
        changed.delete("id = 1")
        changed.update({"v": "'u'"}, "id = 2")
        changed.append([{"id": 20, "v": "new"}])
    bad = catalog.snapshot
    table.append([{"id": 12, "v": "y"}])
    match moved:
        case "compact":
            table.compact()
        case "flush":
            catalog.flush_inlined("t")
        case _:
            table.rewrite_deletes(0)
    catalog.undo(bad)
    assert rows(table)[:7] == before
    assert ids(table) == [0, 1, 2, 3, 4, 5, 6, 12]
    assert table.count() == 8 == table.stats().record_count


def test_rows_next_to_others_that_changed_since(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.delete("id = 0")
    bad = catalog.snapshot
    table.delete("id = 1")
    table.update({"v": "'kept'"}, "id = 2")
    catalog.undo(bad)
    assert ids(table) == [0, 2, 3, 4, 5]
    assert [row["v"] for row in rows(table)] == ["a", "kept", "a", "a", "a"]


def test_rows_that_are_gone_already_are_no_reason_to_refuse(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.append([{"id": 10, "v": "x"}, {"id": 11, "v": "x"}])
    bad = catalog.snapshot
    table.delete("id = 10")
    catalog.undo(bad)
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_rows_that_changed_since_stand_in_the_way(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append([{"id": 10, "v": "x"}, {"id": 11, "v": "x"}])
    appended = catalog.snapshot
    table.update({"v": "'new'"}, "id = 3")
    updated = catalog.snapshot
    table.update({"v": "'other'"}, "id IN (3, 10)")
    later, before = catalog.snapshot, rows(table)
    for bad in (appended, updated):
        with pytest.raises(
            CommitConflict, match=rf"snapshot {bad} cannot be undone: .*snapshot {later} .row \d+ was updated"
        ) as caught:
            catalog.undo(bad)
        assert [conflict.snapshot for conflict in caught.value.conflicts] == [later]
    assert rows(table) == before
    assert catalog.snapshot == later
    # In the other order it goes.
    catalog.undo(later)
    catalog.undo(updated)
    catalog.undo(appended)
    assert [(row["id"], row["v"]) for row in rows(table)] == [(n, "a") for n in range(6)]


def test_rows_that_came_back_otherwise_stand_in_the_way(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    then = catalog.snapshot
    table.delete("id = 1")
    bad = catalog.snapshot
    table.restore(then)
    with pytest.raises(CommitConflict):
        catalog.undo(bad)
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_compaction_can_be_undone(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append([{"id": 6, "v": "b"}])
    before, files = rows(table), [file.path for file in table.files()]
    table.compact()
    now = catalog.snapshot
    catalog.undo(now)
    assert rows(table) == before
    assert [file.path for file in table.files()] == files
    assert table.changes(now).count() == 0


def test_definitions_go_back(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.comment("first")
    columns = table.columns
    steps = [
        lambda: table.rename("u"),
        lambda: table.comment("second"),
        lambda: table.comment("c", column="id"),
        lambda: table.set_partitioning(["bucket(2, id)"]),
        lambda: table.set_sort_order(["id"]),
        lambda: catalog.create_view("w", "SELECT 1"),
        lambda: catalog.create_schema("s"),
        lambda: catalog.create_macro("m", ["x"], "x"),
        lambda: table.add_column("more", "INTEGER", default="1"),
    ]
    done = []
    for step in steps:
        step()
        done.append(catalog.snapshot)
    for number in done:
        catalog.undo(number)
    assert (table.name, table.columns, table.tags()) == ("t", columns, {"comment": "first"})
    assert (table.partitioning, table.sort_order, table.tags(column="id")) == ((), (), {})
    assert (catalog.views(), catalog.macros()) == ([], [])
    assert [schema.name for schema in catalog.schemas()] == ["main"]
    assert table.count() == 6


def test_what_was_dropped_comes_back(catalog: forklake.Catalog, table: forklake.Table) -> None:
    before = rows(table)
    catalog.create_schema("s")
    catalog.create_table("s.x", "id BIGINT", comment="c").append([{"id": 1}])
    catalog.create_view("s.w", "SELECT 1")
    catalog.create_macro("s.m", ["x"], "x")
    catalog.comment("macro", "s.m", "hi")
    macros = catalog.macros()
    catalog.drop_table("t")
    first = catalog.snapshot
    catalog.drop_schema("s", cascade=True)
    second = catalog.snapshot
    catalog.create_table("other", "id BIGINT")
    catalog.undo(first)
    catalog.undo(second)
    assert rows(table) == before
    assert catalog.table("s.x").count() == 1
    assert catalog.table("s.x").tags() == {"comment": "c"}
    assert [view.name for view in catalog.views()] == ["w"]
    assert catalog.macros() == macros
    assert catalog.tags("macro", "s.m") == {"comment": "hi"}
    assert catalog.table("other").count() == 0


def test_a_commit_of_many_changes_is_undone_as_a_whole(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    catalog.create_table("old", "id BIGINT").append([{"id": 5}])
    before = rows(table)
    with catalog.transaction() as tx:
        tx.create_schema("s")
        tx.create_table("s.x", "id BIGINT").append([{"id": 1}])
        tx.drop_table("old")
        tx.table("t").rename("old")
        tx.table("old").delete("id = 0")
        tx.create_view("t", "SELECT 1")
    catalog.undo(catalog.snapshot)
    assert [info.name for info in catalog.tables()] == ["old", "t"]
    assert rows(table) == before
    assert ids(catalog.table("old")) == [5]
    assert catalog.views() == []


def test_definitions_that_changed_since_stand_in_the_way(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    def refused(undone: int, match: str) -> None:
        at = catalog.snapshot
        with pytest.raises(CommitConflict, match=match):
            catalog.undo(undone)
        assert catalog.snapshot == at

    table.rename("u")
    renamed = catalog.snapshot
    table.rename("w")
    refused(renamed, f"renamed in snapshot {catalog.snapshot}")
    table.add_column("c", "INTEGER")
    added = catalog.snapshot
    table.append([{"id": 1, "v": "x", "c": 1}])
    refused(added, "rows were written for the columns")
    table.comment("a")
    commented = catalog.snapshot
    table.comment("b")
    refused(commented, 'its tag "comment" was set again')
    catalog.create_schema("s")
    made = catalog.snapshot
    catalog.create_table("s.t", "id BIGINT")
    created = catalog.snapshot
    refused(made, "no longer empty")
    catalog.table("s.t").append([{"id": 1}])
    refused(created, "changed since it was created")
    catalog.drop_table("s.t")
    dropped = catalog.snapshot
    catalog.create_view("s.t", "SELECT 1")
    refused(dropped, "the name is taken")
    catalog.drop_view("s.t")
    catalog.drop_schema("s")
    refused(dropped, "its schema is gone")
    catalog.undo(catalog.snapshot)
    catalog.undo(dropped)
    refused(dropped, "it is there again")


def test_a_merge_is_undone_as_a_whole(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    fork = lake.fork(catalog, "fork")
    fork.table("t").delete("id = 1")
    fork.table("t").append([{"id": 20, "v": "f"}])
    fork.create_table("other", "id BIGINT").append([{"id": 1}])
    before = rows(table)
    merged = lake.merge(fork, catalog).snapshot
    assert merged is not None
    table.append([{"id": 30, "v": "p"}])
    catalog.undo(merged)
    assert rows(table)[:6] == before
    assert ids(table) == [0, 1, 2, 3, 4, 5, 30]
    assert [info.name for info in catalog.tables()] == ["t"]
    # The fork has what it did, and more of it can be merged.
    assert ids(fork.table("t")) == [0, 2, 3, 4, 5, 20]
    fork.table("t").append([{"id": 21, "v": "g"}])
    lake.merge(fork, catalog)
    assert ids(table) == [0, 1, 2, 3, 4, 5, 21, 30]


def test_a_fork_undoes_what_it_inherited_for_itself(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.delete("id = 1")
    bad = catalog.snapshot
    fork = lake.fork(catalog, "fork")
    fork.undo(bad)
    assert ids(fork.table("t")) == [0, 1, 2, 3, 4, 5]
    assert ids(table) == [0, 2, 3, 4, 5]


def test_undone_on_one_side_a_fork_can_be_merged(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    fork = lake.fork(catalog, "fork")
    fork.table("t").update({"v": "'fork'"}, "id = 1")
    bad = fork.snapshot
    fork.table("t").append([{"id": 20, "v": "kept"}])
    table.update({"v": "'parent'"}, "id = 1")
    with pytest.raises(forklake.MergeConflict):
        lake.merge(fork, catalog)
    fork.undo(bad)
    lake.merge(fork, catalog)
    assert ids(table) == [0, 1, 2, 3, 4, 5, 20]
    assert [row["v"] for row in rows(table) if row["id"] == 1] == ["parent"]


def test_restored_on_one_side_a_fork_can_be_merged(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    fork = lake.fork(catalog, "fork")
    point = fork.snapshot
    fork.table("t").delete("id = 1")
    table.update({"v": "'parent'"}, "id = 1")
    with pytest.raises(forklake.MergeConflict):
        lake.merge(fork, catalog)
    fork.table("t").restore(point)
    fork.table("t").append([{"id": 20, "v": "kept"}])
    lake.merge(fork, catalog)
    assert ids(table) == [0, 1, 2, 3, 4, 5, 20]
    assert [row["v"] for row in rows(table) if row["id"] == 1] == ["parent"]


def test_in_a_transaction_undo_comes_first(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append([{"id": 10, "v": "x"}])
    bad = catalog.snapshot
    with catalog.transaction() as tx:
        tx.undo(bad)
        assert ids(tx.table("t")) == [0, 1, 2, 3, 4, 5]
        tx.table("t").append([{"id": 11, "v": "y"}])
    assert ids(table) == [0, 1, 2, 3, 4, 5, 11]
    with catalog.transaction() as tx:
        tx.table("t").delete("id = 0")
        with pytest.raises(InvalidArgument, match="undo that before"):
            tx.undo(catalog.snapshot)


def test_a_commit_after_one_of_a_catalog_that_is_gone_is_undone(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    lake.create_catalog("gone")
    lake.drop_catalog("gone")
    table.append([{"id": 10, "v": "x"}])
    bad = catalog.snapshot
    table.append([{"id": 11, "v": "y"}])
    lake.expire(older_than=timedelta(0), keep_last=3)
    lake.collect_garbage(older_than=timedelta(0))
    with pytest.raises(SnapshotNotFound):
        catalog.at(bad - 1)
    catalog.undo(bad)
    assert ids(table) == [0, 1, 2, 3, 4, 5, 11]


def test_a_commit_after_one_that_is_expired_is_refused_whatever_is_left_of_that(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    first = catalog.snapshot
    for number in (10, 11):
        table.append([{"id": number, "v": "x"}])
    catalog.expire(versions=[catalog.snapshot - 1])
    for _ in range(2):
        with pytest.raises(SnapshotNotFound, match="was expired"):
            catalog.undo(catalog.snapshot)
        lake.collect_garbage(older_than=timedelta(0))
    assert catalog.at(first).table("t").count() == 6
    catalog.expire(older_than=timedelta(0))
    lake.collect_garbage(older_than=timedelta(0))
    with pytest.raises(SnapshotNotFound, match="was expired"):
        catalog.undo(catalog.snapshot)


def test_what_is_no_commit_to_undo_is_refused(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    with pytest.raises(InvalidArgument, match="made the catalog"):
        catalog.undo(catalog.snapshots()[0].id)
    for bad in ("5", None, True):
        with pytest.raises(InvalidArgument):
            catalog.undo(bad)  # type: ignore[arg-type]
    other = lake.create_catalog("other")
    with pytest.raises(SnapshotNotFound):
        catalog.undo(other.snapshot)
    with pytest.raises(SnapshotNotFound):
        catalog.undo(10**9)
    renamed = lake.rename_catalog("other", "another")
    with pytest.raises(InvalidArgument, match="was renamed in it"):
        renamed.undo(renamed.snapshot)
    fork = lake.fork(catalog, "fork")
    with pytest.raises((InvalidArgument, SnapshotNotFound)):
        fork.undo(fork.snapshot)
