"""Forks with a time to live (F5)."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

import forklake
from tests.contract.forks.seen import look
from tests.contract.rows.shown import ids, many, numbered

SOON = timedelta(milliseconds=1)
LATER = timedelta(hours=1)


@pytest.fixture
def source(catalog: forklake.Catalog) -> forklake.Catalog:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.append(many())
    table.append(numbered(1000))
    return catalog


def wait() -> None:
    time.sleep(0.01)


def test_a_time_to_live_shows_in_the_listing(lake: forklake.Lake, source: forklake.Catalog) -> None:
    lake.fork("main_catalog", "short", ttl=LATER)
    lake.fork("main_catalog", "forever")
    listed = {info.name: info for info in lake.catalogs()}
    assert listed["short"].expires_at == listed["short"].created_at + LATER
    assert listed["forever"].expires_at is listed["main_catalog"].expires_at is None


def test_only_those_whose_time_is_over_are_dropped(lake: forklake.Lake, source: forklake.Catalog) -> None:
    due = lake.fork("main_catalog", "due", ttl=SOON)
    due.table("t").append(numbered(2000))
    others = {"main_catalog": source, "child": lake.fork("due", "child")}
    others["later"] = lake.fork("main_catalog", "later", ttl=LATER)
    others["forever"] = lake.fork("main_catalog", "forever")
    lake.fork("main_catalog", "also due", ttl=SOON)
    before = {name: look(each) for name, each in others.items()}
    point = due.snapshot
    wait()
    # Until somebody clears up, it can be used.
    assert due.table("t").count() == 152
    assert lake.drop_expired() == ["due", "also due"]
    assert {name: look(lake.catalog(name)) for name in others} == before
    assert sorted(info.name for info in lake.catalogs()) == sorted(others)
    with pytest.raises(forklake.CatalogNotFound, match="dropped"):
        due.table("t")
    with pytest.raises(forklake.CatalogNotFound):
        lake.catalog("due")
    # Its past is there for who asks, and its child knows its parent.
    assert ids(lake.catalog("due", at=point).table("t")) == [*range(150), 1000, 2000]
    assert next(info for info in lake.catalogs() if info.name == "child").parent == "due"
    others["child"].table("t").append(numbered(3000))
    assert ids(others["child"].table("t"))[-2:] == [2000, 3000]


def test_nothing_is_written_when_nothing_is_due(lake: forklake.Lake, source, unchanged) -> None:
    lake.fork("main_catalog", "later", ttl=LATER)
    with unchanged():
        assert lake.drop_expired() == []
    lake.fork("main_catalog", "due", ttl=SOON)
    lake.drop_catalog("due")
    wait()
    with unchanged():
        assert lake.drop_expired() == []


def test_all_that_are_due_go_in_one_snapshot(lake: forklake.Lake, source: forklake.Catalog, raw) -> None:
    forks = lake.fork_many("main_catalog", ["a", "b"], ttl=SOON)
    wait()
    before = len(lake.snapshots())
    assert lake.drop_expired() == ["a", "b"]
    (last,) = lake.snapshots()[before:]
    assert last.catalog is None
    told = "SELECT catalog_id, changes_made FROM ducklake_snapshot_changes WHERE snapshot_id ="
    expected = [(fork.id, f"dropped_catalog:{fork.id}") for fork in forks]
    assert sorted(raw(f"{told} {last.id}")) == expected


def test_time_can_be_given_and_taken(lake: forklake.Lake, source: forklake.Catalog, unchanged) -> None:
    lake.fork_many("main_catalog", ["longer", "forever", "due"], ttl=SOON)
    wait()
    lake.set_ttl("longer", LATER)
    lake.set_ttl("forever", None)
    assert lake.drop_expired() == ["due"]
    listed = {info.name: info.expires_at for info in lake.catalogs()}
    assert listed["forever"] is None
    assert listed["longer"] is not None
    lake.set_ttl("longer", SOON)
    wait()
    assert lake.drop_expired() == ["longer"]
    for name in ("longer", "nobody"):
        with unchanged(), pytest.raises(forklake.CatalogNotFound, match=name):
            lake.set_ttl(name, LATER)


def test_roots_may_expire_too_and_leave_their_forks(lake: forklake.Lake, source: forklake.Catalog) -> None:
    child = lake.fork("main_catalog", "child")
    before = look(child)
    lake.set_ttl("main_catalog", SOON)
    wait()
    assert lake.drop_expired() == ["main_catalog"]
    assert look(child) == before


def test_a_name_is_free_once_its_time_is_over(lake: forklake.Lake, source: forklake.Catalog) -> None:
    old = lake.fork("main_catalog", "agent", ttl=SOON)
    old.table("t").delete()
    wait()
    # Being due is not being gone.
    with pytest.raises(forklake.CatalogExists):
        lake.fork("main_catalog", "agent")
    assert lake.drop_expired() == ["agent"]
    new = lake.fork("main_catalog", "agent")
    assert new.id != old.id
    assert new.table("t").count() == 151
    assert lake.drop_expired() == []


def test_many_clear_up_at_once(lake: forklake.Lake, source: forklake.Catalog, reopen, in_threads) -> None:
    names = [f"f{number}" for number in range(12)]
    lake.fork_many("main_catalog", names, ttl=SOON)
    wait()
    dropped = in_threads(*(reopen().drop_expired for _ in range(3)))
    assert sorted(name for each in dropped for name in each) == sorted(names)
    assert [info.name for info in lake.catalogs()] == ["main_catalog"]


@pytest.mark.parametrize("ttl", [timedelta(0), -LATER, 60, "1 hour", True, timedelta.max])
def test_no_other_time_to_live_is_taken(lake: forklake.Lake, source, unchanged, ttl: object) -> None:
    for work in (
        lambda: lake.fork("main_catalog", "new", ttl=ttl),
        lambda: lake.fork_many("main_catalog", ["new"], ttl=ttl),
        lambda: lake.set_ttl("main_catalog", ttl),
    ):
        with unchanged(), pytest.raises(forklake.InvalidArgument, match="time to live"):
            work()
