"""Transactions: one snapshot, rolled back unless committed, rebased when they commute (C5, C6, C7)."""

from __future__ import annotations

import gc

import pytest

import forklake
from forklake.errors import CommitConflict, TransactionClosed


def test_many_changes_are_one_snapshot_and_reads_inside_see_them(lake, catalog: forklake.Catalog) -> None:
    before = len(lake.snapshots())
    with catalog.transaction(author="me") as tx:
        tx.create_schema("s")
        table = tx.create_table("s.t", "id INT")
        table.add_column("name", "varchar")
        tx.create_view("s.v", "SELECT 1")
        tx.create_macro("s.m", ["x"], "x")
        tx.comment("table", "s.t", "inside")
        assert [(info.schema, info.name) for info in tx.tables()] == [("s", "t")]
        assert [column.name for column in tx.table("s.t").columns] == ["id", "name"]
        assert [view.name for view in tx.views()] == ["v"]
        assert [macro.name for macro in tx.macros()] == ["m"]
        assert tx.tags("table", "s.t") == {"comment": "inside"}
        assert catalog.tables() == []
        assert table.id < 0
    assert len(lake.snapshots()) == before + 1
    assert tx.snapshot == catalog.snapshot
    assert [column.name for column in catalog.table("s.t").columns] == ["id", "name"]
    assert catalog.tags("table", "s.t") == {"comment": "inside"}


def test_an_exception_rolls_back_everything(lake, catalog: forklake.Catalog, raw) -> None:
    before = lake.snapshots()
    with pytest.raises(ZeroDivisionError), catalog.transaction() as tx:
        tx.create_table("t", "id INT")
        raise ZeroDivisionError
    assert lake.snapshots() == before
    assert raw("SELECT count(*) FROM ducklake_table")[0][0] == 0
    with pytest.raises(TransactionClosed, match="rolled back"):
        tx.tables()


def test_a_transaction_without_commit_leaves_nothing(lake, catalog: forklake.Catalog) -> None:
    before = lake.snapshots()
    forgotten = catalog.transaction()
    forgotten.create_table("t", "id INT")
    del forgotten
    gc.collect()
    ended = catalog.transaction()
    ended.create_table("t", "id INT")
    ended.rollback()
    with catalog.transaction() as inside:
        inside.create_table("t", "id INT")
        inside.rollback()
    assert lake.snapshots() == before
    assert catalog.tables() == []


def test_a_transaction_ends_once(lake, catalog: forklake.Catalog) -> None:
    tx = catalog.transaction()
    table = tx.create_table("t", "id INT")
    snapshot = tx.commit()
    assert snapshot == tx.snapshot == catalog.snapshot
    before = lake.snapshots()
    for use in (
        tx.commit,
        tx.rollback,
        tx.tables,
        lambda: tx.create_schema("s"),
        lambda: tx.table("t"),
        lambda: table.add_column("c", "int"),
        lambda: table.name,
        tx.__enter__,
    ):
        with pytest.raises(TransactionClosed, match="this transaction was committed: begin a new one"):
            use()
    assert lake.snapshots() == before
    with catalog.transaction() as block:
        block.create_schema("s")
        block.commit()
    assert len(lake.snapshots()) == len(before) + 1


def test_a_refused_commit_cannot_be_tried_again(catalog: forklake.Catalog) -> None:
    mine, theirs = catalog.transaction(), catalog.transaction()
    mine.create_table("t", "a INT")
    theirs.create_table("t", "b INT")
    theirs.commit()
    with pytest.raises(CommitConflict) as refusal:
        mine.commit()
    assert '"t" was created in snapshot 2' in str(refusal.value)
    assert "refresh and run it again" in str(refusal.value)
    with pytest.raises(TransactionClosed, match="refused"):
        mine.commit()
    assert [column.name for column in catalog.table("t").columns] == ["b"]


def test_a_transaction_reads_the_catalog_as_it_was_when_it_began(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "a INT")
    tx = catalog.transaction()
    table.add_column("b", "int")
    catalog.create_table("u", "a INT")
    assert [info.name for info in tx.tables()] == ["t"]
    assert [column.name for column in tx.table("t").columns] == ["a"]


def test_commuting_transactions_are_rebased(lake, catalog: forklake.Catalog) -> None:
    for name in ("a", "b", "c"):
        catalog.create_table(name, "id INT")
    open_ones = [catalog.transaction() for _ in range(5)]
    open_ones[0].table("a").add_column("x", "int")
    open_ones[1].table("b").rename("bb")
    open_ones[2].drop_table("c")
    open_ones[3].create_table("d", "id INT")
    open_ones[4].comment("table", "a", "hello")
    numbers = [tx.commit() for tx in open_ones]
    assert numbers == sorted(numbers)
    assert [info.name for info in catalog.tables()] == ["a", "bb", "d"]
    assert [column.name for column in catalog.table("a").columns] == ["id", "x"]
    assert catalog.tags("table", "a") == {"comment": "hello"}
    versions = [snapshot.schema_version for snapshot in catalog.snapshots()]
    assert versions == list(range(len(versions)))


def test_a_conflict_carries_what_collided_as_values(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("users", "id INT")
    mine = catalog.transaction()
    mine.table("users").add_column("mine", "int")
    table.add_column("theirs", "int")
    with pytest.raises(CommitConflict) as refusal:
        mine.commit()
    (conflict,) = refusal.value.conflicts
    assert (conflict.ours.verb, conflict.theirs.verb) == ("alter_table", "alter_table")
    assert conflict.theirs.name == "users"
    assert conflict.theirs.object_id == table.id
    assert conflict.snapshot == catalog.snapshot


def test_a_commit_that_said_nothing_of_itself_conflicts_with_everything(
    catalog: forklake.Catalog, raw
) -> None:
    tx = catalog.transaction()
    tx.create_table("t", "id INT")
    catalog.create_schema("elsewhere")
    raw(f"UPDATE ducklake_snapshot_changes SET footprint = NULL WHERE snapshot_id = {catalog.snapshot}")
    with pytest.raises(CommitConflict, match="another program"):
        tx.commit()


def test_names_pass_from_one_table_to_another_in_one_commit(catalog: forklake.Catalog) -> None:
    first, second = catalog.create_table("a", "x INT"), catalog.create_table("b", "y INT")
    with catalog.transaction() as tx:
        tx.table("a").rename("tmp")
        tx.table("b").rename("a")
        tx.table("tmp").rename("b")
    assert (first.name, second.name) == ("b", "a")
    with catalog.transaction() as tx:
        tx.drop_table("a")
        tx.create_table("a", "z INT")
        tx.create_schema("s")
        tx.drop_schema("s")
    assert [column.name for column in catalog.table("a").columns] == ["z"]


def test_catalogs_do_not_conflict_with_each_other(lake: forklake.Lake) -> None:
    first, second = lake.create_catalog("a"), lake.create_catalog("b")
    mine, theirs = first.transaction(), second.transaction()
    mine.create_table("t", "id INT")
    theirs.create_table("t", "id INT")
    theirs.commit()
    mine.commit()
    assert [table.name for table in first.tables()] == [table.name for table in second.tables()] == ["t"]
    assert first.tables()[0].id != second.tables()[0].id


def test_threads_commit_to_one_catalog_and_none_is_lost(lake, catalog: forklake.Catalog, in_threads) -> None:
    def work(number: int) -> list[int]:
        snapshots = []
        for step in range(4):
            with catalog.transaction() as tx:
                tx.create_table(f"t_{number}_{step}", "id INT")
            snapshots.append(tx.snapshot)
        return snapshots

    done = in_threads(*[lambda n=n: work(n) for n in range(12)])
    assert len(catalog.tables()) == 48
    numbers = [number for each in done for number in each]
    assert len(set(numbers)) == 48
    assert all(each == sorted(each) for each in done)
    history = [snapshot.id for snapshot in catalog.snapshots()]
    assert set(numbers) <= set(history)


def test_of_many_threads_creating_one_table_exactly_one_wins(catalog: forklake.Catalog, in_threads) -> None:
    def create(number: int) -> bool:
        try:
            catalog.create_table("t", f"c{number} INT")
        except (CommitConflict, forklake.TableExists):
            return False
        return True

    won = in_threads(*[lambda n=n: create(n) for n in range(8)])
    assert won.count(True) == 1
    assert [column.name for column in catalog.table("t").columns] == [f"c{won.index(True)}"]


def test_a_structure_seen_through_a_second_handle_is_never_stale(lake, lake_url: str, reopen) -> None:
    first = lake.create_catalog("c")
    other = reopen().catalog("c")
    table = first.create_table("t", "a INT")
    assert [column.name for column in other.table("t").columns] == ["a"]
    other.table("t").add_column("b", "int")
    assert [column.name for column in table.columns] == ["a", "b"]
    table.rename("u")
    assert [info.name for info in other.tables()] == ["u"]
    other.create_table("t", "z INT")
    assert [column.name for column in first.table("t").columns] == ["z"]
    other.drop_table("t")
    assert [info.name for info in first.tables()] == ["u"]


def test_a_change_without_a_transaction_starts_from_the_present(lake, reopen) -> None:
    mine = lake.create_catalog("c")
    table = mine.create_table("t", "a INT")
    other = reopen().catalog("c")
    other.table("t").add_column("b", "int")
    other.create_table("u", "a INT")
    # None of these may be misled by what this handle saw last.
    table.add_column("c", "int")
    mine.drop_table("u", if_exists=True)
    other.create_schema("s")
    mine.create_schema("s", if_not_exists=True)
    other.create_table("s.x", "first INT")
    assert mine.create_table("s.x", "second INT", if_not_exists=True).columns[0].name == "first"
    other.drop_table("s.x")
    assert mine.create_table("s.x", "third INT", if_not_exists=True).columns[0].name == "third"
    other.table("t").comment("theirs")
    table.comment(None)
    with pytest.raises(forklake.TableExists):
        other.create_table("late", "a INT"), mine.create_table("late", "a INT")
    assert [column.name for column in table.columns] == ["a", "b", "c"]
    assert [(info.schema, info.name) for info in mine.tables()] == [
        ("main", "late"),
        ("main", "t"),
        ("s", "x"),
    ]
    assert table.tags() == {}


def test_threads_altering_one_table_at_once_all_succeed_one_after_the_other(catalog, in_threads) -> None:
    table = catalog.create_table("t", "id INT")
    in_threads(*[lambda n=n: table.add_column(f"c{n}", "int") for n in range(8)])
    assert sorted(column.name for column in table.columns) == [
        "c0",
        "c1",
        "c2",
        "c3",
        "c4",
        "c5",
        "c6",
        "c7",
        "id",
    ]
    assert sorted(column.id for column in table.columns) == list(range(1, 10))


def test_one_connection_is_enough_for_everything(postgres_schema_url: str, tmp_path) -> None:
    with forklake.connect(f"{postgres_schema_url}&pool_size=1", data_path=tmp_path, create=True) as lake:
        catalog = lake.create_catalog("c")
        catalog.create_table("t", "id INT").add_column("x", "int")
        tx, refused = catalog.transaction(), catalog.transaction()
        tx.table("t").add_column("y", "int")
        refused.table("t").add_column("z", "int")
        tx.commit()
        with pytest.raises(CommitConflict):
            refused.commit()
        late = catalog.transaction()
        late.create_table("u", "id INT")
        lake.drop_catalog("c")
        with pytest.raises(forklake.CatalogNotFound, match="was dropped"):
            late.commit()


def test_a_name_that_means_something_else_by_now_is_looked_up_again(lake, reopen) -> None:
    mine = lake.create_catalog("c")
    mine.create_schema("live")
    mine.create_schema("next")
    first = mine.create_table("live.t", "x INT, y INT, z INT")
    second = mine.create_table("next.t", "x INT, y INT, z INT")
    other = reopen().catalog("c")
    with other.transaction() as tx:
        tx.rename_schema("live", "old")
        tx.rename_schema("next", "live")
    mine.drop_table("live.t")
    assert [(info.schema, info.id) for info in mine.tables()] == [("old", first.id)]
    other.rename_schema("old", "older")
    with pytest.raises(forklake.SchemaNotFound):
        mine.create_table("old.new", "id INT")
    with other.transaction() as tx:
        tx.table("older.t").rename("gone")
        tx.create_table("older.t", "id INT")
    mine.comment("table", "older.t", "the new one")
    assert (first.tags(), mine.tags("table", "older.t")) == ({}, {"comment": "the new one"})
    with other.transaction() as tx:
        table = tx.table("older.gone")
        table.rename_column("x", "tmp"), table.rename_column("y", "x"), table.rename_column("tmp", "y")
        table.drop_column("z")
    first.comment("on the new x", column="x")
    assert first.tags(column="x") == {"comment": "on the new x"}
    assert first.tags(column="y") == {}
    with pytest.raises(forklake.ColumnNotFound):
        first.comment("on z", column="z")
    assert second.id not in [info.id for info in mine.tables()]


def test_a_rebased_transaction_does_not_leave_an_old_state_behind(catalog: forklake.Catalog) -> None:
    catalog.create_schema("live")
    catalog.create_schema("next")
    first, second = catalog.create_table("live.t", "id INT"), catalog.create_table("next.t", "id INT")
    tx = catalog.transaction()
    tx.rename_schema("live", "old")
    tx.rename_schema("next", "live")
    catalog.create_table("other", "id INT")
    tx.commit()
    catalog.drop_table("live.t")
    assert {info.id for info in catalog.tables()} >= {first.id}
    assert second.id not in {info.id for info in catalog.tables()}


def test_a_column_cannot_be_commented_while_it_is_dropped(catalog: forklake.Catalog) -> None:
    catalog.create_table("t", "a INT, b INT")
    for first, second in (("comment", "drop"), ("drop", "comment")):
        work = {
            "comment": lambda tx, text=first: tx.table("t").comment(text, column="b"),
            "drop": lambda tx: tx.table("t").drop_column("b"),
        }
        theirs, ours = catalog.transaction(), catalog.transaction()
        work[first](theirs), work[second](ours)
        theirs.commit()
        with pytest.raises(CommitConflict):
            ours.commit()


def test_a_verb_that_is_refused_stages_nothing(catalog: forklake.Catalog) -> None:
    with catalog.transaction() as tx:
        with pytest.raises(forklake.InvalidArgument):
            tx.create_table("t", "x int", comment=5)
        assert tx.tables() == []
    assert tx.snapshot is None


def test_what_a_commit_says_is_fixed_when_it_begins(catalog: forklake.Catalog) -> None:
    extra = {"run": [1]}
    with catalog.transaction(extra=extra) as tx:
        extra["run"].append(object())
        tx.create_schema("s")
    assert catalog.snapshots()[-1].extra == {"run": [1]}
