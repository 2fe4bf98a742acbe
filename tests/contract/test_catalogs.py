"""Catalogs: created, looked up, listed, renamed and dropped; snapshots number what happened (C1, C2, C4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import forklake
from forklake.errors import CatalogExists, CatalogNotFound, InvalidArgument, InvalidName, SnapshotNotFound


def test_a_new_lake_is_snapshot_0_and_the_first_catalog_snapshot_1(lake: forklake.Lake) -> None:
    assert [snapshot.id for snapshot in lake.snapshots()] == [0]
    catalog = lake.create_catalog("first")
    assert [schema.name for schema in catalog.schemas()] == ["main"]
    catalog.create_schema("sales")
    assert [(s.id, s.catalog) for s in lake.snapshots()] == [(0, None), (1, "first"), (2, "first")]
    assert lake.snapshots()[1].changes == 'created_catalog:"first",created_schema:"main"'


def test_reads_and_empty_commits_create_no_snapshot(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INT")
    before = lake.snapshots()
    catalog.tables(), catalog.views(), catalog.macros(), catalog.schemas(), table.columns, lake.catalogs()
    with catalog.transaction() as nothing:
        pass
    with catalog.transaction() as undone:
        undone.create_table("u", "id INT")
        undone.table("t").add_column("c", "int")
        undone.table("t").drop_column("c")
        undone.drop_table("u")
    table.rename("t")
    table.alter_type("id", "int")
    assert nothing.snapshot is None
    assert undone.snapshot is None
    assert lake.snapshots() == before


def test_a_missing_catalog_is_an_error_unless_creation_is_asked_for(lake: forklake.Lake) -> None:
    with pytest.raises(CatalogNotFound, match='no catalog is named "nobody"'):
        lake.catalog("nobody")
    lake.create_catalog("somebody")
    assert lake.catalog("somebody").name == "somebody"


def test_creating_is_safe_to_repeat_with_if_not_exists(lake: forklake.Lake) -> None:
    first = lake.create_catalog("c", if_not_exists=True)
    first.create_table("t", "id INT")
    again = lake.create_catalog("c", if_not_exists=True)
    assert again.id == first.id
    assert [table.name for table in again.tables()] == ["t"]
    with pytest.raises(CatalogExists, match='catalog "c" exists'):
        lake.create_catalog("c")
    assert len(lake.snapshots()) == 3


def test_many_threads_creating_one_catalog_make_one(lake: forklake.Lake, in_threads) -> None:
    made = in_threads(*[lambda: lake.create_catalog("c", if_not_exists=True).id for _ in range(8)])
    assert len(set(made)) == 1
    assert len(lake.catalogs()) == 1


def test_many_threads_creating_different_catalogs_make_all(lake: forklake.Lake, in_threads) -> None:
    made = in_threads(*[lambda n=n: lake.create_catalog(f"c{n}").id for n in range(8)])
    assert len(set(made)) == 8
    assert [catalog.name for catalog in lake.catalogs()] == sorted(f"c{n}" for n in range(8))


def test_a_dropped_catalog_is_gone_and_its_name_free(lake: forklake.Lake) -> None:
    catalog = lake.create_catalog("c")
    table = catalog.create_table("t", "id INT")
    transaction = catalog.transaction()
    transaction.create_table("u", "id INT")
    before = lake.snapshots()[-1].id
    lake.drop_catalog("c")
    for use in (catalog.tables, lambda: table.name, transaction.commit, lambda: catalog.create_schema("s")):
        with pytest.raises(CatalogNotFound, match='catalog "c" was dropped in snapshot 3'):
            use()
    for use in (lambda: lake.catalog("c"), lambda: lake.drop_catalog("c")):
        with pytest.raises(CatalogNotFound, match='no catalog is named "c"'):
            use()
    assert lake.catalogs() == []
    again = lake.create_catalog("c")
    assert again.id != catalog.id
    assert again.tables() == []
    assert [info.id for info in lake.catalogs(at=before)] == [catalog.id]
    assert [table.name for table in lake.catalog("c", at=before).tables()] == ["t"]


def test_a_renamed_catalog_keeps_everything_but_its_name(lake: forklake.Lake) -> None:
    catalog = lake.create_catalog("old")
    catalog.create_table("t", "id INT")
    lake.create_catalog("taken")
    before = lake.snapshots()[-1].id
    with pytest.raises(CatalogExists):
        lake.rename_catalog("old", "taken")
    renamed = lake.rename_catalog("old", "new")
    assert renamed.id == catalog.id
    assert [table.name for table in renamed.tables()] == ["t"]
    assert [info.name for info in lake.catalogs()] == ["new", "taken"]
    assert [info.name for info in lake.catalogs(at=before)] == ["old", "taken"]
    assert lake.catalog("old", at=before).id == catalog.id
    with pytest.raises(CatalogNotFound):
        lake.catalog("old")
    assert [s.catalog for s in lake.snapshots("new")] == ["old", "old", "new"]


def test_a_listing_tells_where_a_catalog_comes_from(lake: forklake.Lake) -> None:
    lake.create_catalog("root")
    (info,) = lake.catalogs()
    assert (info.name, info.parent, info.fork_snapshot, info.depth, info.expires_at) == (
        "root",
        None,
        None,
        0,
        None,
    )
    assert abs(info.created_at - datetime.now(UTC)) < timedelta(minutes=5)
    assert len(info.uuid) == 36


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "x" * 10_000, None, 3])
def test_a_catalog_without_a_proper_name_is_refused(lake: forklake.Lake, name) -> None:
    for use in (lake.create_catalog, lake.catalog, lake.drop_catalog):
        with pytest.raises(InvalidName):
            use(name)
    assert [snapshot.id for snapshot in lake.snapshots()] == [0]


def test_numbers_are_never_used_twice_across_catalogs_and_kinds(lake: forklake.Lake, raw) -> None:
    first, second = lake.create_catalog("a"), lake.create_catalog("b")
    for catalog in (first, second, first):
        with catalog.transaction() as tx:
            tx.create_schema(f"s{catalog.snapshot}")
            tx.create_table(f"t{catalog.snapshot}", "id INT")
            tx.create_view(f"v{catalog.snapshot}", "SELECT 1")
            tx.create_macro(f"m{catalog.snapshot}", ["x"], "x")
    rows = raw(
        "SELECT catalog_id FROM ducklake_catalog UNION ALL SELECT schema_id FROM ducklake_schema "
        "UNION ALL SELECT table_id FROM ducklake_table UNION ALL SELECT view_id FROM ducklake_view "
        "UNION ALL SELECT macro_id FROM ducklake_macro"
    )
    numbers = [row[0] for row in rows]
    assert sorted(numbers) == list(range(16))
    (row,) = raw("SELECT max(next_catalog_id), max(snapshot_id) FROM ducklake_snapshot")
    assert tuple(row) == (16, 5)


def test_the_history_of_a_catalog_leaves_out_the_others(lake: forklake.Lake) -> None:
    first, second = lake.create_catalog("a"), lake.create_catalog("b")
    first.create_schema("x")
    second.create_schema("y")
    assert [(s.id, s.catalog) for s in lake.snapshots("a")] == [(1, "a"), (3, "a")]
    assert [(s.id, s.catalog) for s in second.snapshots()] == [(2, "b"), (4, "b")]


def test_a_commit_says_who_made_it_and_why(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    extra = {"run": 7, "nested": {"quote": 'a"b', "unicode": "é"}, "none": None}
    with catalog.transaction(author="Ada", message="it's done; 100%", extra=extra) as tx:
        tx.create_schema("s")
    last = lake.snapshots()[-1]
    assert (last.id, last.author, last.message, last.extra) == (tx.snapshot, "Ada", "it's done; 100%", extra)
    assert last.changes == 'created_schema:"s"'


@pytest.mark.parametrize(
    "bad", [{"author": "a\0"}, {"message": "\ud800"}, {"extra": {"x": object()}}, {"author": 5}]
)
def test_what_cannot_be_recorded_is_refused_at_once(catalog: forklake.Catalog, bad) -> None:
    with pytest.raises(InvalidArgument):
        catalog.transaction(**bad)


def test_times_of_snapshots_rise_and_can_be_travelled_to(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    for name in ("a", "b", "c"):
        catalog.create_table(name, "id INT")
    history = catalog.snapshots()
    times = [snapshot.time for snapshot in history]
    assert times == sorted(set(times))
    assert [len(catalog.tables(at=timestamp)) for timestamp in times] == [0, 1, 2, 3]
    assert len(catalog.tables(at=datetime.now(UTC) + timedelta(days=1))) == 3
    assert [len(catalog.tables(at=snapshot.id)) for snapshot in history] == [0, 1, 2, 3]
    assert [info.name for info in lake.catalogs(at=times[0])] == ["main_catalog"]
    assert lake.catalogs(at=lake.snapshots()[0].time) == []


def test_a_snapshot_of_another_catalog_shows_this_one_as_it_was_then(lake: forklake.Lake) -> None:
    first, second = lake.create_catalog("a"), lake.create_catalog("b")
    first.create_table("t", "id INT")
    second.create_table("u", "id INT")
    first.create_table("later", "id INT")
    assert [table.name for table in first.tables(at=4)] == ["t"]
    assert [table.name for table in second.tables(at=3)] == []
    assert [table.name for table in lake.catalog("a", at=4).tables()] == ["t"]


def test_a_moment_that_never_was_is_refused(lake: forklake.Lake) -> None:
    lake.create_catalog("first")
    catalog = lake.create_catalog("second")
    for at in (99, -1, 1, 0, datetime(2001, 1, 1, tzinfo=UTC)):
        with pytest.raises(SnapshotNotFound):
            catalog.tables(at=at)
    for at in (99, -1, datetime(2001, 1, 1, tzinfo=UTC)):
        with pytest.raises(SnapshotNotFound):
            lake.catalogs(at=at)


def test_the_past_cannot_change(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INT")
    past = catalog.at(catalog.snapshot)
    table.add_column("c", "int")
    for use in (
        past.transaction,
        lambda: past.create_schema("s"),
        lambda: past.table("t").add_column("d", "int"),
        lambda: catalog.table("t", at=2).drop(),
    ):
        with pytest.raises(InvalidArgument, match="the past cannot change"):
            use()
    assert [column.name for column in past.table("t").columns] == ["id"]


@pytest.mark.parametrize("at", [1.5, True, b"1"])
def test_a_moment_of_the_wrong_kind_is_refused(lake: forklake.Lake, catalog: forklake.Catalog, at) -> None:
    for use in (
        lambda: catalog.tables(at=at),
        lambda: lake.catalogs(at=at),
        lambda: lake.catalog("main_catalog", at=at),
    ):
        with pytest.raises(InvalidArgument, match="a point in time is"):
            use()


def test_a_refused_init_changes_nothing_and_a_lake_made_by_hand_is_finished(
    lake_url, tmp_path, sql_on, raw
) -> None:
    with pytest.raises(forklake.MetadataExists):
        forklake.init(lake_url, data_path=tmp_path / "other")
    stored = "SELECT value FROM ducklake_metadata WHERE key = 'data_path'"
    assert raw(stored)[0][0] == f"{tmp_path}/files/"
    raw("DELETE FROM ducklake_metadata WHERE key = 'data_path'")
    forklake.init(lake_url, data_path=tmp_path / "other").close()
    assert raw(stored)[0][0] == f"{tmp_path}/other/"


def test_the_past_is_found_by_text_as_by_a_datetime(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INTEGER")
    table.append([{"id": 1}])
    here, there = datetime.now() + timedelta(days=2), datetime.now(UTC) + timedelta(days=2)
    texts = (here.isoformat(), there.isoformat(), f" {there.isoformat(' ')}", here.date().isoformat())
    for at in (*texts, here.date()):
        assert table.scan(at=at).count() == 1
        assert catalog.table("t", at=at).count() == catalog.at(at).table("t").count() == 1
        assert lake.catalog(catalog.name, at=at).table("t").count() == 1
        assert lake.catalogs(at=at)
    assert lake.fork(catalog, "forked", at=there.isoformat()).table("t").count() == 1
    for at in ("2001-01-01", "2001-01-01T10:00:00+02:00", "20010101"):
        with pytest.raises(SnapshotNotFound):
            catalog.at(at).tables()
    for at, said in (("yesterday", "2024-01-31"), ("", "2024-01-31"), ("3", "number, 3"), (1.5, "ISO")):
        with pytest.raises(InvalidArgument, match=said):
            table.scan(at=at)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidArgument, match=said):
            lake.fork(catalog, "never", at=at)  # pyright: ignore[reportArgumentType]
