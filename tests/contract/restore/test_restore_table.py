"""A table as it was: rows with their ids, definition, history; no file is written for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake.errors import (
    CommitConflict,
    InvalidArgument,
    SnapshotNotFound,
    TableExists,
    TableNotFound,
)

Rows = list[dict[str, Any]]


def rows(table: forklake.Table, **options: Any) -> Rows:
    found = table.scan(row_ids=True, **options).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["row_id"])


def data_files(lake: forklake.Lake) -> set[str]:
    return {str(path) for path in Path(lake.data_path).rglob("*") if path.is_file()}


def filled(catalog: forklake.Catalog, *, inline: bool = False, count: int = 6) -> forklake.Table:
    table = catalog.create_table("t", "id BIGINT, name VARCHAR")
    if not inline:
        table.set_option("data_inlining_row_limit", 0)
    table.append([{"id": n, "name": f"n{n}"} for n in range(count)])
    return table


def spoil_by_delete(table: forklake.Table) -> None:
    table.delete("id < 3")


def spoil_by_update(table: forklake.Table) -> None:
    table.update({"name": "'changed'"}, "id >= 2")


def spoil_by_overwrite(table: forklake.Table) -> None:
    table.overwrite([{"id": 100, "name": "new"}])


def spoil_by_append(table: forklake.Table) -> None:
    table.append([{"id": 7, "name": "more"}, {"id": 8, "name": None}])


def spoil_by_compaction(table: forklake.Table) -> None:
    table.append([{"id": 7, "name": "more"}])
    table.delete("id = 0")
    table.compact()
    table.rewrite_deletes(0)


def spoil_by_schema(table: forklake.Table) -> None:
    table.drop_column("name")
    table.add_column("name", "INTEGER", default="7")
    table.append([{"id": 1, "name": 1}])


SPOILERS = (
    spoil_by_delete,
    spoil_by_update,
    spoil_by_overwrite,
    spoil_by_append,
    spoil_by_compaction,
    spoil_by_schema,
)


@pytest.mark.parametrize("inline", (True, False), ids=("inlined", "files"))
@pytest.mark.parametrize("spoil", SPOILERS, ids=lambda spoil: spoil.__name__)
def test_rows_and_columns_are_those_of_then(
    lake: forklake.Lake,
    catalog: forklake.Catalog,
    spoil: Callable[[forklake.Table], None],
    inline: bool,
) -> None:
    table = filled(catalog, inline=inline)
    then, before, columns = catalog.snapshot, rows(table), table.columns
    spoil(table)
    now, spoiled = catalog.snapshot, rows(table)
    assert spoiled != before or spoil is spoil_by_compaction
    files = data_files(lake)

    table.restore(then)

    assert rows(table) == before
    assert table.columns == columns
    assert table.count() == len(before) == table.stats().record_count
    assert data_files(lake) == files
    # The past stays what it was.
    assert rows(catalog.table("t", at=now)) == spoiled
    assert rows(catalog.table("t", at=then)) == before
    # One can go back and forth, and go on.
    table.restore(now)
    assert rows(table) == spoiled
    table.restore(then)
    assert rows(table) == before
    table.append([{"id": 50, "name": "later"}])
    assert len(rows(table)) == len(before) + 1
    assert len({row["row_id"] for row in rows(table)}) == len(before) + 1
    assert table.scan("id = 50").count() == 1
    assert table.scan("id = 4").count() == 1


def test_nothing_to_restore_is_no_commit(catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    at = catalog.snapshot
    table.restore(at)
    assert catalog.snapshot == at


def test_a_row_that_was_not_touched_stays_where_it_is(catalog: forklake.Catalog, raw: Any) -> None:
    table = filled(catalog)
    then = catalog.snapshot
    table.append([{"id": 10, "name": "x"}])
    before = raw("SELECT count(*) FROM ducklake_data_file")
    table.restore(then)
    assert raw("SELECT count(*) FROM ducklake_data_file") == before


def test_what_was_deleted_by_then_stays_deleted(catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    table.delete("id = 0")
    lake_option = table.options().data_inlining_row_limit
    assert lake_option == 0  # Deletes of this table are files.
    then, before = catalog.snapshot, rows(table)
    table.delete("id = 1")
    table.set_option("data_inlining_row_limit", 10)
    table.delete("id = 2")
    later, fewer = catalog.snapshot, rows(table)
    table.delete("id = 3")
    table.restore(then)
    assert rows(table) == before
    table.restore(later)
    assert rows(table) == fewer
    assert [row["id"] for row in fewer] == [3, 4, 5]
    table.delete("id = 4")
    assert [row["id"] for row in rows(table)] == [3, 5]
    assert table.count() == 2


def test_the_definition_goes_back_too(catalog: forklake.Catalog) -> None:
    catalog.create_table(
        "t",
        "id BIGINT NOT NULL, s STRUCT(a INTEGER, b VARCHAR)",
        partition_by=["bucket(4, id)"],
        sorted_by=["id"],
        comment="first",
    )
    table = catalog.table("t")
    table.set_option("data_inlining_row_limit", 0)
    table.comment("key", column="id")
    table.append([{"id": n, "s": {"a": n, "b": "x"}} for n in range(8)])
    then, before, columns, tags = catalog.snapshot, rows(table), table.columns, table.tags()
    table.set_partitioning([])
    table.set_sort_order([])
    table.comment("second")
    table.comment(None, column="id")
    table.rename("u")
    table.rename_column("s.a", "z")
    table.drop_column("s.b")
    table.add_column("extra", "VARCHAR", default="'e'")
    table.set_nullable("id", True)
    table.append([{"id": 99, "s": {"z": 1}}])

    table.restore(then)

    assert table.name == "t"
    assert (table.columns, table.tags(), table.tags(column="id")) == (columns, tags, {"comment": "key"})
    assert (table.partitioning, table.sort_order) == (("bucket(4, id)",), ("id ASC NULLS LAST",))
    assert rows(table) == before
    assert [table.scan(f"id = {n}").count() for n in range(8)] == [1] * 8
    table.append([{"id": 9, "s": {"a": 1, "b": "y"}}])
    assert table.scan("id = 9").to_arrow().to_pylist() == [{"id": 9, "s": {"a": 1, "b": "y"}}]
    # Ids of columns that are gone are not given out again.
    table.add_column("other", "VARCHAR")
    assert table.columns[-1].id > max(
        column.id for column in catalog.table("u", at=catalog.snapshots()[-4].id).columns
    )


def test_files_that_are_older_than_a_column_are_found_by_its_default(catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    table.add_column("kind", "VARCHAR", default="'old'")
    table.append([{"id": 10, "name": "x", "kind": "new"}])
    then = catalog.snapshot
    table.delete()
    table.restore(then)
    assert table.scan("kind = 'old'").count() == 6
    assert table.scan("kind = 'new'").count() == 1
    assert table.scan("kind > 'a' AND id < 3").count() == 3


def test_imported_files_come_back_with_their_names(catalog: forklake.Catalog, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = tmp_path / "in.parquet"
    pq.write_table(pa.table({"other": [1, 2, 3]}), file)
    table = catalog.create_table("t", "id BIGINT")
    table.add_files(file, mapping={"other": "id"})
    then = catalog.snapshot
    table.delete()
    with catalog.transaction() as tx:
        tx.table("t").restore(then)
        assert sorted(row["id"] for row in tx.table("t").scan().to_arrow().to_pylist()) == [1, 2, 3]
    assert sorted(row["id"] for row in rows(table)) == [1, 2, 3]
    with pytest.raises(forklake.InvalidData):
        table.add_files(file, mapping={"other": "id"})


def test_changes_are_net(catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    then = catalog.snapshot
    table.delete("id = 0")
    table.update({"name": "'new'"}, "id = 1")
    table.append([{"id": 10, "name": "x"}])
    now = catalog.snapshot
    table.restore(then)
    found = table.changes(now).to_arrow().to_pylist()
    assert [(row["change_type"], row["row_id"], row["id"], row["name"]) for row in found] == [
        ("insert", 0, 0, "n0"),
        ("update_preimage", 1, 1, "new"),
        ("update_postimage", 1, 1, "n1"),
        ("delete", found[3]["row_id"], 10, "x"),
    ]
    # The same file counts twice in a span that holds both of its lives.
    everything = table.changes(1).to_arrow().to_pylist()
    assert sum(row["change_type"] == "insert" for row in everything) == 6 + 1 + 1


def test_compaction_is_taken_back_without_a_change_of_rows(catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    table.append([{"id": 10, "name": "x"}])
    then, before = catalog.snapshot, rows(table)
    table.compact()
    now = catalog.snapshot
    table.restore(then)
    assert table.changes(now).count() == 0
    assert rows(table) == before
    table.compact()
    assert rows(table) == before
    assert table.changes(now).count() == 0


def test_in_a_transaction_rows_can_be_changed_further(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    table.delete("id = 5")
    then = catalog.snapshot
    table.overwrite([{"id": 100, "name": "x"}])
    for limit in (0, 10):
        with catalog.transaction() as tx:
            staged = tx.table("t")
            staged.append([{"id": 7, "name": "forgotten"}])
            staged.restore(then)
            assert [row["id"] for row in rows(staged)] == [0, 1, 2, 3, 4]
            staged.set_option("data_inlining_row_limit", limit)
            assert staged.delete("id < 2") == 2
            assert staged.update({"name": "'u'"}, "id = 3") == 1
            staged.append([{"id": 8, "name": "y"}])
            seen = sorted((row["id"], row["name"]) for row in rows(staged))
        assert sorted((row["id"], row["name"]) for row in rows(table)) == seen
        assert seen == [(2, "n2"), (3, "u"), (4, "n4"), (8, "y")]
        assert table.count() == 4 == table.stats().record_count
    with catalog.transaction() as tx:
        tx.table("t").restore(then)
        assert tx.table("t").delete() == 5
    assert table.count() == 0
    statistics = lake.catalog("main_catalog").table("t").stats()
    assert statistics.record_count == 0


def test_a_rollback_leaves_files_of_the_past_alone(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    then, before = catalog.snapshot, rows(table)
    table.delete()
    files = data_files(lake)
    tx = catalog.transaction()
    tx.table("t").restore(then)
    tx.rollback()
    assert data_files(lake) == files
    table.restore(then)
    assert rows(table) == before


def test_a_table_that_was_dropped_comes_back(
    lake: forklake.Lake, catalog: forklake.Catalog, reopen: Any
) -> None:
    table = filled(catalog)
    table.comment("kept")
    table.add_column("gone", "VARCHAR")
    table.drop_column("gone")
    then, before, last = catalog.snapshot, rows(table), max(column.id for column in table.columns)
    catalog.drop_table("t")
    other = reopen().catalog("main_catalog")
    back = other.restore_table("t", then)
    assert back.id == table.id
    assert rows(back) == before
    assert back.tags() == {"comment": "kept"}
    assert back.count() == 6 == back.stats().record_count
    back.append([{"id": 60, "name": "x"}])
    assert len({row["row_id"] for row in rows(back)}) == 7
    back.add_column("another", "VARCHAR")
    assert back.columns[-1].id == last + 2
    assert back.count() == 7


def test_undrop_table_takes_the_last_one_of_the_name(catalog: forklake.Catalog) -> None:
    with pytest.raises(TableNotFound, match="was dropped"):
        catalog.undrop_table("t")
    filled(catalog, count=2)
    catalog.drop_table("t")
    filled(catalog, count=3)
    catalog.drop_table("t")
    assert catalog.undrop_table("t").count() == 3
    with pytest.raises(TableExists, match="rename"):
        catalog.undrop_table("t")
    older = catalog.undrop_table("t", as_name="older")
    assert (older.name, older.count()) == ("older", 2)
    with pytest.raises(TableNotFound):
        catalog.undrop_table("t")


def test_a_name_that_is_taken_is_not_taken_away(catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    then = catalog.snapshot
    table.rename("u")
    catalog.create_view("t", "SELECT 1")
    with pytest.raises(TableExists, match="another table or view"):
        table.restore(then)
    assert catalog.restore_table("t", then, as_name="w").name == "w"


def test_a_table_in_a_schema_that_is_gone(catalog: forklake.Catalog) -> None:
    catalog.create_schema("s")
    catalog.create_table("s.t", "id BIGINT").append([{"id": 1}])
    then = catalog.snapshot
    catalog.drop_schema("s", cascade=True)
    with pytest.raises(forklake.SchemaNotFound, match="create that"):
        catalog.restore_table("s.t", then)
    assert catalog.restore_table("s.t", then, as_name="main.t").count() == 1
    catalog.create_schema("s")
    catalog.drop_table("t")
    assert catalog.restore_table("s.t", then).schema_name == "s"


def test_what_cannot_be_restored_is_refused(catalog: forklake.Catalog) -> None:
    before = catalog.snapshot
    table = filled(catalog)
    with pytest.raises(TableNotFound, match="was not there"):
        table.restore(before)
    with pytest.raises(SnapshotNotFound):
        table.restore(10**6)
    for bad in (None, "no time", True, 1.5):
        with pytest.raises(InvalidArgument):
            table.restore(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="the past cannot change"):
        catalog.table("t", at=catalog.snapshot).restore(before)


def test_a_time_is_as_good_as_a_snapshot(catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    timestamp = catalog.snapshots()[-1].time
    table.delete()
    table.restore(timestamp)
    assert table.count() == 6


def test_who_changes_the_table_meanwhile_stands_in_the_way(catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    then = catalog.snapshot
    table.delete("id = 0")
    for disturb in (
        lambda: table.append([{"id": 70, "name": "x"}]),
        lambda: table.delete("id = 1"),
        lambda: table.comment("x"),
        lambda: table.add_column("c", "VARCHAR"),
        lambda: table.compact(min_files=2) and table.rewrite_deletes(0),
    ):
        tx = catalog.transaction()
        tx.table("t").restore(then)
        disturb()
        with pytest.raises(CommitConflict):
            tx.commit()
    # And those who took rows from what a restore has retired.
    tx = catalog.transaction()
    tx.table("t").delete("id = 2")
    table.restore(then)
    with pytest.raises(CommitConflict):
        tx.commit()
    assert table.count() == 6


def test_one_who_only_adds_rows_goes_on_after_a_restore(catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    then = catalog.snapshot
    table.delete("id = 0")
    tx = catalog.transaction()
    tx.table("t").append([{"id": 80, "name": "x"}])
    table.restore(then)
    tx.commit()
    assert table.count() == 7


def test_the_number_of_statements_is_the_same_for_many_files(
    catalog: forklake.Catalog, counted: Callable[[], AbstractContextManager[list[str]]]
) -> None:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    counts = []
    # What the first one reads is known afterwards.
    for files in (2, 2, 12):
        table.delete()
        for n in range(files):
            table.append([{"id": n, "v": "a"}, {"id": n, "v": "b"}])
        table.delete("v = 'a'")
        then = catalog.snapshot
        table.delete()
        with counted() as names:
            table.restore(then)
        counts.append(names)
        assert table.count() == files
    assert counts[1] == counts[2]
