"""One snapshot by many writers: what they need, what they give back, and what becomes of it (S4)."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import forklake
from forklake import distributed
from forklake.api.scoped import scope_of
from forklake.distributed import DistributedSnapshot, Manifest, write_part
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered

NESTED = "id BIGINT NOT NULL, at TIMESTAMP, s STRUCT(a INT, b VARCHAR[]), f DOUBLE, m MAP(VARCHAR, INT)"


def test_the_descriptor_is_plain_json_both_ways_and_holds_no_secret(catalog: forklake.Catalog) -> None:
    catalog.create_table("odd", NESTED, partition_by=["day(at)", "bucket(4, id)"], sorted_by=["id DESC"])
    catalog.table("odd").add_column("note", "varchar", default="'it''s'")
    catalog.table("odd").set_option("parquet_compression", "snappy")
    ds = catalog.begin_distributed(properties={"run": 7})
    again = DistributedSnapshot.from_json(ds.to_json())
    assert again == ds
    assert json.loads(ds.to_json())["properties"] == {"run": 7}
    assert again.table("odd").options.parquet_compression == "snappy"
    assert again.table("odd").columns == scope_of(catalog).read().table(ds.tables[0].id).columns
    assert (again.catalog, again.parent_snapshot_id) == ("main_catalog", catalog.snapshot)
    assert "lake.db" not in ds.to_json()


def test_it_is_for_the_tables_that_were_asked_for(catalog: forklake.Catalog, table: forklake.Table) -> None:
    catalog.create_schema("s")
    catalog.create_table("s.other", "id INT")
    every = catalog.begin_distributed()
    assert [str(target.full_name) for target in every.tables] == ["main.t", "s.other"]
    some = catalog.begin_distributed(["s.other"])
    assert [str(target.full_name) for target in some.tables] == ["s.other"]
    with pytest.raises(forklake.TableNotFound):
        write_part(some, "t", numbered(1))


def test_manifests_travel_as_values_texts_files_and_folders(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    ds = catalog.begin_distributed()
    value = write_part(ds, "t", numbered(1))
    text = write_part(ds, "t", numbered(2)).to_json()
    kept = write_part(ds, "t", numbered(3), manifest="file").path
    assert kept is not None
    snapshot = catalog.commit_distributed(ds, [value, text, kept])
    assert ids(table) == [1, 2, 3]
    assert snapshot == ds.snapshot_id == catalog.snapshot

    other = catalog.begin_distributed()
    for number in (4, 5):
        write_part(other, "t", numbered(number), manifest="file")
    catalog.commit_distributed(other)
    third = catalog.begin_distributed()
    path = write_part(third, "t", numbered(6), manifest="file").path
    catalog.commit_distributed(third, str(Path(path or "").parent))
    assert ids(table) == [1, 2, 3, 4, 5, 6]


def test_a_manifest_is_the_same_after_a_journey(catalog: forklake.Catalog) -> None:
    catalog.create_table("odd", NESTED, partition_by=["day(at)"])
    ds = catalog.begin_distributed()
    rows = [
        {
            "id": n,
            "at": datetime(2026, 1, n % 3 + 1, 12),
            "s": {"a": n, "b": ["\u2028\n", None]},
            "f": math.nan,
        }
        for n in range(10)
    ]
    made = write_part(ds, "odd", rows, part="no/odd name\n✓")
    again = Manifest.from_json(made.to_json())
    assert again == made
    assert (again.digest, again.piece, again.rows) == (made.digest, made.piece, 10)
    assert len(made.files) == 3
    catalog.commit_distributed(ds, again)
    assert catalog.table("odd").scan("at < TIMESTAMP '2026-01-02'").count() == 4
    assert len(catalog.table("odd").scan("at < TIMESTAMP '2026-01-02'").plan().files) == 1


def test_rows_look_as_if_they_had_been_appended_here(catalog: forklake.Catalog) -> None:
    columns = (
        "id BIGINT, v VARCHAR DEFAULT 'd', at TIMESTAMP DEFAULT TIMESTAMP '2026-01-01', u UUID DEFAULT uuid()"
    )
    here, there = catalog.create_table("here", columns), catalog.create_table("there", columns)
    given = pa.table({"id": pa.array(range(MANY), pa.int64())})
    here.append(given)
    ds = catalog.begin_distributed()
    catalog.commit_distributed(ds, write_part(ds, "there", given))
    shown = ["id", "v", "at"]
    assert (
        here.scan(columns=shown, row_ids=True).to_arrow()
        == there.scan(columns=shown, row_ids=True).to_arrow()
    )
    assert len(set(there.scan(columns=["u"]).to_arrow().column("u").to_pylist())) == MANY
    assert here.stats().record_count == there.stats().record_count
    assert [file.record_count for file in there.files()] == [MANY]
    assert there.scan("id = 149").count() == 1
    assert len(feed(there, ds.parent_snapshot_id)) == MANY


def test_what_others_commit_meanwhile_is_no_obstacle(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    ds = catalog.begin_distributed()
    manifest = write_part(ds, "t", many(1000))
    table.append(numbered(1))
    catalog.create_table("another", "id INT")
    head = catalog.snapshot
    snapshot = catalog.commit_distributed(
        ds, manifest, summary={"operation": "append"}, author="me", message="load", extra={"run": 1}
    )
    assert snapshot > head > ds.snapshot_id
    assert ids(table) == [1, *range(1000, 1000 + MANY)]
    last = catalog.snapshots()[-1]
    assert (last.id, last.author, last.message) == (snapshot, "me", "load")
    assert last.extra == {
        "run": 1,
        "summary": {"parts": 1, "files": 1, "rows": MANY, "deleted": 0, "operation": "append"},
        "reservation": {
            "id": ds.reservation_id,
            "snapshot": ds.snapshot_id,
            "parent": ds.parent_snapshot_id,
        },
    }
    row_ids = [row[0] for row in content(table)]
    assert len(set(row_ids)) == len(row_ids)
    # Time goes on with the snapshots of a catalog.
    times = [each.time for each in catalog.snapshots()]
    assert times == sorted(times)
    assert ids(table, at=head) == [1]


def test_a_number_that_was_reserved_is_not_used_below_snapshots_that_others_made_meanwhile(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    ds = catalog.begin_distributed()
    fork = lake.fork("main_catalog", "fork")
    other = lake.create_catalog("other")
    other.create_table("x", "id INT")
    # Whoever has read the lake at one of theirs must not see it change.
    committed = catalog.commit_distributed(ds, write_part(ds, "t", many()))
    assert catalog.snapshot == committed > other.snapshot > ds.snapshot_id
    assert ids(fork.table("t")) == []
    later = lake.fork("main_catalog", "later")
    assert len(ids(later.table("t"))) == MANY
    table.append(numbered(5000))
    assert catalog.snapshot > other.snapshot
    assert ids(table, at=committed) == list(range(MANY))


def test_a_fork_writes_into_its_own_folder(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, tmp_path: Path
) -> None:
    table.append(many())
    for name, path in (("near", None), ("far", tmp_path / "far")):
        fork = lake.fork("main_catalog", name, data_path=path)
        ds = DistributedSnapshot.from_json(fork.begin_distributed().to_json())
        kept = write_part(ds, "t", many(1000), part=1, manifest="file")
        assert kept.path is not None
        assert (str(tmp_path / "far") in kept.path) == (path is not None)
        fork.commit_distributed(ds)
        assert fork.table("t").count() == 2 * MANY
        assert len({row[0] for row in content(fork.table("t"))}) == 2 * MANY
        unused = fork.begin_distributed()
        lost = write_part(unused, "t", many(2000), manifest="file")
        fork.cancel_distributed(unused)
        assert not any(Path(unused.address(path)).exists() for path in lost.paths)
        assert fork.table("t").count() == 2 * MANY
    assert table.count() == MANY


def test_a_snapshot_without_rows_leaves_the_catalog_where_it_is(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    for manifests in ([], None):
        ds = catalog.begin_distributed()
        given = [write_part(ds, "t", [], manifest="file")] if manifests is None else manifests
        before = catalog.snapshot
        assert catalog.commit_distributed(ds, given) == before == catalog.snapshot
        assert catalog.commit_distributed(ds, given) == before
        with pytest.raises(forklake.ReservationConsumed):
            catalog.commit_distributed(ds, write_part(ds, "t", numbered(1)))


def test_reservations_are_listed(catalog: forklake.Catalog, table: forklake.Table) -> None:
    first = catalog.begin_distributed(ttl=timedelta(minutes=5), properties={"job": "a"})
    second = catalog.begin_distributed()
    catalog.commit_distributed(first, write_part(first, "t", numbered(1)))
    catalog.cancel_distributed(second)
    listed = catalog.reservations()
    assert [(each.snapshot_id, each.state, each.committed_snapshot_id) for each in listed] == [
        (first.snapshot_id, "committed", first.snapshot_id),
        (second.snapshot_id, "cancelled", None),
    ]
    assert listed[0].properties == {"job": "a"}
    assert listed[0].expires_at - listed[0].created_at == timedelta(minutes=5)


def test_files_say_in_their_path_what_they_were_written_for(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    ds = catalog.begin_distributed()
    made = write_part(ds, "t", many(), part="a part")
    (path,) = made.paths
    folder, name = path.rsplit("/", 1)
    assert folder.endswith(f"/t/{ds.commit_uuid}")
    assert name.startswith(f"{ds.commit_uuid}-a_part-")
    assert distributed.output_folder(ds, "t", "x").startswith(f"{ds.data_path}{folder}/x-")
