"""Expiring snapshots: a catalog's history is its own, and the latest snapshot stays."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.distributed import write_part

NOW = timedelta(0)


@pytest.fixture
def table(lake: forklake.Lake) -> forklake.Table:
    """A table with ten commits."""
    table = lake.create_catalog("shop").create_table("t", "id INT")
    table.set_option("data_inlining_row_limit", 0)
    for number in range(5):
        table.append([{"id": number}])
        table.delete(f"id = {number - 1}")
    return table


def ids(catalog: forklake.Catalog) -> list[int]:
    return sorted(row["id"] for row in catalog.table("t").to_pylist())


def test_expired_snapshots_cannot_be_read_and_the_others_can(
    lake: forklake.Lake, table: forklake.Table
) -> None:
    shop = lake.catalog("shop")
    history = [snapshot.id for snapshot in shop.snapshots()]
    states = {number: shop.at(number).tables() and ids(shop.at(number)) for number in history[2:]}
    found = shop.expire(older_than=NOW, keep_last=4)
    assert list(found.snapshots) == history[:-4]
    assert found.oldest == history[-4]
    assert [snapshot.id for snapshot in shop.snapshots()] == history[-4:]
    for number in history[:-4]:
        with pytest.raises(forklake.SnapshotNotFound, match=rf"expired.* {history[-4]}"):
            shop.at(number)
        with pytest.raises(forklake.SnapshotNotFound, match="expired"):
            shop.fork(f"f{number}", at=number)
        with pytest.raises(forklake.SnapshotNotFound, match=rf"expired.* {history[-4]}"):
            table.changes(number)
    lake.collect_garbage(older_than=NOW)
    for number in history[-4:]:
        assert ids(shop.at(number)) == states[number]
        table.changes(number).to_arrow()
    for number in history[:-4]:
        with pytest.raises(forklake.SnapshotNotFound, match=rf"expired.* {history[-4]}"):
            shop.at(number)


def test_a_dry_run_expires_nothing(lake: forklake.Lake, table: forklake.Table) -> None:
    shop = lake.catalog("shop")
    before = shop.snapshots()
    found = shop.expire(older_than=NOW, dry_run=True)
    assert len(found.snapshots) == len(before) - 1 and found.dry_run
    assert shop.snapshots() == before
    assert lake.expire(older_than=NOW, dry_run=True).catalogs == 1
    assert shop.snapshots() == before


def test_a_fork_keeps_the_history_that_it_inherited(lake: forklake.Lake, table: forklake.Table) -> None:
    shop = lake.catalog("shop")
    history = [snapshot.id for snapshot in shop.snapshots()]
    fork = shop.fork("fork", at=history[6])
    states = {number: ids(fork.at(number)) for number in history[2:7]}
    shop.expire(older_than=NOW)
    lake.collect_garbage(older_than=NOW)
    assert {number: ids(fork.at(number)) for number in states} == states
    # And the other way round.
    kept = ids(shop)
    fork.expire(older_than=NOW)
    lake.collect_garbage(older_than=NOW)
    assert ids(shop) == kept
    assert ids(fork) == states[history[6]]
    # A fork of what is left has no more than that.
    child = shop.fork("child")
    with pytest.raises(forklake.SnapshotNotFound, match="expired"):
        child.at(history[3])


def test_single_snapshots_are_expired(lake: forklake.Lake, table: forklake.Table) -> None:
    shop = lake.catalog("shop")
    history = [snapshot.id for snapshot in shop.snapshots()]
    gone = [history[4], history[6]]
    states = {number: ids(shop.at(number)) for number in history[2:] if number not in gone}
    fork = shop.fork("fork")
    assert shop.expire(versions=gone).snapshots == tuple(gone)
    child = shop.fork("child")
    lake.collect_garbage(older_than=NOW)
    for catalog in (shop, child):
        for number in gone:
            with pytest.raises(forklake.SnapshotNotFound, match="expired"):
                catalog.at(number)
        assert {number: ids(catalog.at(number)) for number in states} == states
        with pytest.raises(forklake.SnapshotNotFound, match=f"snapshot {gone[0]} was expired"):
            catalog.table("t").changes(history[3], history[5]).to_arrow()
    assert ids(fork.at(gone[0])) is not None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, forklake.InvalidArgument, "older_than"),
        ({"older_than": "yesterday"}, forklake.InvalidArgument, "timedelta or a datetime"),
        ({"older_than": timedelta(days=-1)}, forklake.InvalidArgument, "an age"),
        ({"older_than": NOW, "keep_last": 0}, forklake.InvalidArgument, "the latest snapshot always stays"),
        ({"older_than": NOW, "keep_last": True}, forklake.InvalidArgument, "at least 1"),
        ({"versions": "12"}, forklake.InvalidArgument, "list of snapshot ids"),
        ({"versions": [1.5]}, forklake.InvalidArgument, "whole number"),
        ({"versions": [10**20]}, forklake.SnapshotNotFound, "has no snapshot"),
        ({"versions": [0]}, forklake.SnapshotNotFound, "has no snapshot"),
    ],
)
def test_bad_input_is_refused(
    lake: forklake.Lake, table: forklake.Table, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    shop = lake.catalog("shop")
    before = shop.snapshots()
    with pytest.raises(error, match=message):
        shop.expire(**options)
    with pytest.raises(forklake.InvalidArgument, match="always stays"):
        shop.expire(versions=[shop.snapshot])
    assert shop.snapshots() == before


def test_a_transaction_that_was_begun_before_conflicts_are_forgotten_is_refused(
    lake: forklake.Lake, table: forklake.Table
) -> None:
    shop = lake.catalog("shop")
    tx = shop.transaction()
    tx.table("t").update({"id": "id + 100"}, where="id = 4")
    table.update({"id": "id + 1000"}, where="id = 4")
    table.append([{"id": 7}])
    shop.expire(older_than=NOW)
    lake.collect_garbage(older_than=NOW)
    with pytest.raises(forklake.CommitConflict, match="expired meanwhile"):
        tx.commit()
    assert ids(shop) == [7, 1004]


def test_a_handle_on_the_past_notices_that_its_snapshot_was_expired(
    lake: forklake.Lake, table: forklake.Table
) -> None:
    shop = lake.catalog("shop")
    past = shop.at(shop.snapshot)
    kept = ids(past)
    scan, filtered = table.scan(), table.scan("id < 100")
    batches = table.to_batches()
    first = next(batches)
    table.overwrite([{"id": 9}])
    assert ids(past) == kept
    shop.expire(older_than=NOW)
    lake.collect_garbage(older_than=timedelta(days=1))
    # What was planned can be read for the whole retention time.
    rest = [row for batch in (first, *batches) for row in batch.to_pylist()]
    assert sorted(row["id"] for row in rest) == kept
    for read in (
        lambda: past.table("t").to_pylist(),
        lambda: scan.to_arrow(),
        lambda: scan.count(),
        lambda: filtered.count(),
        lambda: scan.max("id"),
        lambda: scan.plan(),
    ):
        with pytest.raises(forklake.SnapshotNotFound, match="expired"):
            read()


def test_a_distributed_snapshot_keeps_what_it_was_begun_from(
    lake: forklake.Lake, table: forklake.Table
) -> None:
    shop = lake.catalog("shop")
    ds = shop.begin_distributed(["t"])
    part = write_part(ds, "t", pa.table({"id": pa.array([50], pa.int32())}))
    table.append([{"id": 60}])
    assert shop.expire(older_than=NOW).oldest == ds.parent_snapshot_id
    lake.expire(older_than=NOW)
    lake.collect_garbage(older_than=NOW)
    lake.remove_orphans(older_than=NOW)
    shop.commit_distributed(ds, [part])
    assert ids(shop) == [4, 50, 60]
    assert shop.expire(older_than=NOW).oldest == shop.snapshot


def test_what_is_expired_never_comes_back(lake: forklake.Lake, table: forklake.Table) -> None:
    # The records of a fork's commits are kept for merges, whatever it has expired.
    fork = lake.fork("shop", "fork")
    for number in range(20, 26):
        fork.table("t").append([{"id": number}])
    oldest = fork.expire(older_than=NOW, keep_last=2).oldest
    lake.collect_garbage(older_than=NOW)
    fork.table("t").append([{"id": 30}])
    lake.expire(older_than=NOW, keep_last=3)
    assert fork.snapshots()[0].id == oldest
    lake.expire(older_than=NOW, keep_last=8)
    assert fork.snapshots()[0].id == oldest
