"""Forks from the past: of a snapshot, of a time, of an ancestor's time (C9, F1)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

import forklake
from tests.contract.forks.seen import CHANGES, look, some_past
from tests.contract.rows.shown import content, ids, numbered


def test_a_fork_begins_where_it_was_told(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    snapshots = parent.snapshots()
    for at in some_past(parent):
        expected = look(parent.at(at))
        fork = lake.fork("parent", f"from {at}", at=at)
        assert look(fork) == expected
        assert fork.snapshots()[:-1] == [snapshot for snapshot in snapshots if snapshot.id <= at]
        info = next(info for info in lake.catalogs() if info.name == fork.name)
        assert (info.parent, info.fork_snapshot, info.depth) == ("parent", at, 1)
        # What came after that is no part of its history, whichever way one asks.
        assert look(fork.at(fork.snapshot)) == look(fork.at(parent.snapshot)) == expected


def test_a_fork_begins_at_a_time(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    first, second, *_ = parent.table("s.t").history()[2:]
    timestamps: dict[str, tuple[datetime, int]] = {
        "exactly": (first.time, first.id),
        "just before the next": (second.time - timedelta(microseconds=1), first.id),
        "without a zone": (second.time.astimezone().replace(tzinfo=None), second.id),
        "in the future": (second.time + timedelta(days=1), parent.snapshot),
    }
    for name, (timestamp, snapshot) in timestamps.items():
        fork = lake.fork("parent", name, at=timestamp)
        assert look(fork) == look(parent.at(snapshot)), name
        assert next(info for info in lake.catalogs() if info.name == name).fork_snapshot == snapshot


@pytest.mark.parametrize("mode", ["reference", "copy"])
def test_a_fork_of_the_past_goes_its_own_way(
    lake: forklake.Lake, parent: forklake.Catalog, mode: str
) -> None:
    # Before columns, deletes and updates that the parent has by now.
    history = parent.table("s.t").history()
    point = next(snapshot.id for snapshot in history if snapshot.changes.startswith("deleted"))
    before, now = look(parent.at(point)), look(parent)
    fork = lake.fork("parent", "fork", at=point, mode=mode)
    assert look(fork) == before
    for name in ("append many", "delete many", "update", "add column", "comment", "unsort"):
        CHANGES[name](fork) if name != "update" else fork.table("s.t").update({"v": "'u'"}, "id = 30")
    # Column ids that the parent used after the fork point are free here, and mean something else.
    assert [column.name for column in fork.table("s.t").columns] == ["id", "v", "z"]
    assert look(parent) == now
    assert look(fork.at(point)) == before
    assert fork.table("s.t").count() == len(ids(fork.table("s.t")))
    fork.create_table("u", "id BIGINT").append([{"id": 1}])
    assert ids(fork.table("u")) == [1]
    assert ids(parent.table("u")) == [1, 2, 3]


def test_a_fork_may_begin_before_its_parent_was_forked(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    past = some_past(parent)[2]
    expected = look(parent.at(past))
    child = lake.fork("parent", "child")
    CHANGES["drop table"](child)
    grandchild = lake.fork("child", "grandchild", at=past)
    assert look(grandchild) == expected
    info = next(info for info in lake.catalogs() if info.name == "grandchild")
    assert (info.parent, info.fork_snapshot, info.depth) == ("child", past, 2)
    # Neither the child's own past nor its future is part of it.
    assert child.snapshot not in {snapshot.id for snapshot in grandchild.snapshots()}
    child.materialize()
    assert look(grandchild) == expected
    grandchild.materialize()
    assert look(grandchild) == look(grandchild.at(past)) == expected


def test_snapshots_of_others_are_no_place_to_begin(
    lake: forklake.Lake, catalog: forklake.Catalog, unchanged
) -> None:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.append(numbered(1))
    child = lake.fork("main_catalog", "child")
    sibling = lake.fork("main_catalog", "sibling")
    stranger = lake.create_catalog("stranger")
    child.table("t").append(numbered(2))
    table.append(numbered(3))
    refused = {
        "main_catalog": (0, child.snapshot, sibling.snapshot, stranger.snapshot),
        "child": (0, catalog.snapshot, sibling.snapshot, stranger.snapshot),
        "stranger": (0, 1, catalog.snapshot),
    }
    for name, snapshots in refused.items():
        for at in snapshots:
            with unchanged(), pytest.raises(forklake.SnapshotNotFound, match=str(at)):
                lake.fork(name, "new", at=at)
    with unchanged(), pytest.raises(forklake.SnapshotNotFound):
        lake.fork("stranger", "new", at=catalog.snapshots()[0].time)
    fork = lake.fork("child", "new", at=child.snapshot)
    assert content(fork.table("t")) == content(child.table("t"))
