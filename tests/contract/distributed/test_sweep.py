"""Clearing up: what nobody can commit any more goes, and nothing that was committed ever does (S4, M3)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import forklake
from forklake.distributed import output_folder, write_part
from tests.contract.rows.shown import MANY, many


def test_only_what_has_expired_is_touched(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, overdue
) -> None:
    table.append(many())
    due, later = catalog.begin_distributed(), catalog.begin_distributed()
    write_part(due, "t", many(1000), manifest="file")
    kept = write_part(later, "t", many(2000), manifest="file")
    overdue(due)
    assert [swept.reservation_id for swept in lake.expire_reservations()] == [due.reservation_id]
    assert not any(due.commit_uuid in path for path in stored())
    assert sum(later.commit_uuid in path for path in stored()) == 2
    catalog.commit_distributed(later, kept)
    assert table.count() == 2 * MANY


def test_a_commit_keeps_its_files_and_loses_other_attempts(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, reopen, overdue
) -> None:
    ds = catalog.begin_distributed()
    taken = write_part(ds, "t", many(), part=0, manifest="file")
    catalog.commit_distributed(ds, taken)
    # Speculation: another attempt comes to its end when the snapshot is there already.
    write_part(ds, "t", many(), part=0, manifest="file")
    folder = Path(output_folder(ds, "t", "native"))
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    assert lake.expire_reservations() == []
    overdue(ds)
    (swept,) = reopen().expire_reservations()
    assert (swept.state, swept.files) == ("committed", 4)
    assert stored() == taken.paths
    assert table.count() == MANY
    # The row stays, so that a coordinator which asks again gets its answer.
    assert catalog.commit_distributed(ds, taken) == ds.snapshot_id


def test_files_of_a_commit_stay_when_their_rows_have_moved_on(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, overdue
) -> None:
    ds = catalog.begin_distributed()
    taken = write_part(ds, "t", many())
    snapshot = catalog.commit_distributed(ds, taken)
    fork = lake.fork("main_catalog", "fork")
    table.delete()
    lake.fork("main_catalog", "late", mode="copy")
    overdue(ds)
    lake.expire_reservations()
    assert stored() == taken.paths
    assert fork.table("t").count() == table.scan(at=snapshot).count() == MANY


def test_files_of_a_commit_stay_until_their_retention_is_over(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, overdue
) -> None:
    ds = catalog.begin_distributed()
    taken = write_part(ds, "t", many())
    catalog.commit_distributed(ds, taken)
    reading = table.scan().plan()
    table.delete()
    overdue(ds)
    catalog.expire(older_than=timedelta(0))
    # Its rows are gone and its files scheduled: whoever is reading may go on.
    assert lake.collect_garbage().scheduled == len(taken.paths)
    lake.expire_reservations()
    assert stored() == taken.paths
    assert [file.path for file in reading.files] == stored()
    assert lake.collect_garbage(older_than=timedelta(0)).removed == len(taken.paths)
    assert not stored()


def test_files_of_a_dropped_catalog_stay_if_it_committed_them(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, overdue
) -> None:
    done, open_ = (catalog.begin_distributed() for _ in range(2))
    taken = write_part(done, "t", many())
    catalog.commit_distributed(done, taken)
    write_part(open_, "t", many(), manifest="file")
    fork = lake.fork("main_catalog", "fork")
    lake.drop_catalog("main_catalog")
    overdue(done), overdue(open_)
    assert sorted(swept.state for swept in lake.expire_reservations()) == ["committed", "expired"]
    assert stored() == taken.paths
    assert fork.table("t").count() == MANY


def test_what_cannot_be_removed_is_tried_again(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, monkeypatch, overdue
) -> None:
    ds = catalog.begin_distributed()
    write_part(ds, "t", many(), manifest="file")
    overdue(ds)

    def refuse(*_: object) -> forklake.StorageError:
        return forklake.StorageError("no permission")

    monkeypatch.setattr(type(lake._context.storage), "_failure_to_delete", refuse)
    assert lake.expire_reservations() == []
    with pytest.raises(forklake.ReservationExpired):
        catalog.commit_distributed(ds)
    monkeypatch.undo()
    assert [swept.files for swept in lake.expire_reservations()] == [2]
    assert stored() == []


def test_what_cannot_be_removed_is_scheduled_and_the_collection_goes_on(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, monkeypatch, overdue, raw
) -> None:
    ds = catalog.begin_distributed()
    write_part(ds, "t", many(), manifest="file")
    folder = Path(output_folder(ds, "t", "native"))
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    overdue(ds)
    storage = type(lake._context.storage)
    failure = storage._failure_to_delete

    def refuse(self, path: str, relative: bool):
        return forklake.StorageError("no permission") if "part" not in path else failure(self, path, relative)

    before = set(stored())
    monkeypatch.setattr(storage, "_failure_to_delete", refuse)
    assert lake.expire_reservations() == []
    queue = "SELECT path, reason FROM ducklake_files_scheduled_for_deletion"
    scheduled = raw(queue)
    assert {reason for _, reason in scheduled} == {"reservation abandoned"}
    assert {path for path, _ in scheduled} == set(stored()) <= before
    found = lake.collect_garbage(older_than=timedelta(0))
    assert {file.path for file in found.kept if file.failed} == set(stored())
    monkeypatch.undo()
    assert lake.collect_garbage(older_than=timedelta(0)).removed == len(scheduled) > 1
    assert stored() == [] and raw(queue) == []
    assert [swept.files for swept in lake.expire_reservations()] == [0]
