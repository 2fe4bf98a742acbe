"""What cannot be committed is refused with a reason, nothing changes, and no file stays for ever (S4)."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import forklake
from forklake.distributed import DistributedSnapshot, Manifest, base_files, write_part
from tests.contract.rows.shown import MANY, ids, many, numbered


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"id": ["text"]}),
        pa.table({"id": [1], "unknown": [2]}),
        pa.table({"id": [1.5]}),
        [{"id": 1}, {"id": "x"}],
        "no rows",
    ],
    ids=["type", "column", "loss", "second row", "nothing like it"],
)
def test_rows_that_do_not_fit_leave_no_file(
    catalog: forklake.Catalog, table: forklake.Table, stored, rows: object
) -> None:
    ds = catalog.begin_distributed()
    with pytest.raises(forklake.InvalidData):
        write_part(ds, "t", rows, manifest="file")
    assert stored() == []


def test_a_column_that_must_not_be_null_is_checked_by_the_worker(catalog: forklake.Catalog, stored) -> None:
    catalog.create_table("strict", "id BIGINT NOT NULL, v VARCHAR")
    ds = catalog.begin_distributed()
    for rows in (pa.table({"id": pa.array([1, None], pa.int64())}), pa.table({"v": ["x"]})):
        with pytest.raises(forklake.InvalidData, match="NOT NULL"):
            write_part(ds, "strict", rows)
    assert stored() == []


def test_an_unknown_table_is_refused_by_name(catalog: forklake.Catalog, table: forklake.Table) -> None:
    with pytest.raises(forklake.TableNotFound, match="nothing"):
        catalog.begin_distributed(["nothing"])
    with pytest.raises(forklake.TableNotFound, match=r"main\.t"):
        write_part(catalog.begin_distributed(), "nothing", numbered(1))


@pytest.mark.parametrize("given", [None, "{}", "[1]", '{"format": "other"}', "not json"])
def test_what_is_no_descriptor_is_refused(given: str | None, catalog: forklake.Catalog) -> None:
    if given is not None:
        with pytest.raises(forklake.InvalidArgument):
            DistributedSnapshot.from_json(given)
    with pytest.raises(forklake.InvalidArgument):
        catalog.commit_distributed(given, [])  # type: ignore[arg-type]


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=-1), 5, None])
def test_a_time_to_live_lies_in_the_future(catalog: forklake.Catalog, ttl) -> None:
    if ttl is not None:
        with pytest.raises(forklake.InvalidArgument):
            catalog.begin_distributed(ttl=ttl)
    with pytest.raises(forklake.InvalidArgument):
        catalog.begin_distributed("t")
    with pytest.raises(forklake.InvalidArgument):
        catalog.begin_distributed(properties={"x": object()})
    assert catalog.reservations() == []


def test_a_manifest_that_was_cut_anywhere_or_changed_is_refused(
    catalog: forklake.Catalog, table: forklake.Table, unchanged
) -> None:
    ds = catalog.begin_distributed()
    text = write_part(ds, "t", many()).to_json()
    torn = [text[:at] for at in range(1, len(text) - 1, 37)]
    torn += [text.replace('"part"', '"Part"'), text.replace(f"{MANY}", f"{MANY + 1}", 1)]
    lines = text.splitlines(keepends=True)
    torn += ["".join(lines[1:]), "".join(lines[:1] + lines[2:]), "".join(reversed(lines))]
    with unchanged():
        for piece in torn:
            with pytest.raises(forklake.InvalidManifest):
                catalog.commit_distributed(ds, piece)
    catalog.commit_distributed(ds, text)
    assert table.count() == MANY


def test_a_torn_manifest_in_a_folder_counts_unless_its_part_was_done_again(
    catalog: forklake.Catalog, table: forklake.Table, unchanged
) -> None:
    ds = catalog.begin_distributed()
    first = write_part(ds, "t", many(), part=0, manifest="file")
    write_part(ds, "t", many(1000), part=1, manifest="file")
    path = Path(first.path or "")
    for content in ("", path.read_text()[:50]):
        path.write_text(content)
        with unchanged(), pytest.raises(forklake.InvalidManifest, match="torn"):
            catalog.commit_distributed(ds)
    write_part(ds, "t", many(), part=0, manifest="file")
    catalog.commit_distributed(ds)
    assert ids(table) == [*range(MANY), *range(1000, 1000 + MANY)]


def test_a_manifest_that_is_missing_is_told(
    catalog: forklake.Catalog, table: forklake.Table, unchanged
) -> None:
    ds = catalog.begin_distributed()
    manifest = write_part(ds, "t", many(), part=0, manifest="file")
    with unchanged():
        with pytest.raises(forklake.FileMissing, match="1 parts have no manifest"):
            catalog.commit_distributed(ds, manifest, parts=[0, "one"])
        Path(manifest.path or "").unlink()
        with pytest.raises(forklake.FileMissing):
            catalog.commit_distributed(ds, manifest.path)
        with pytest.raises(forklake.FileMissing, match="no manifests"):
            catalog.commit_distributed(ds)
        with pytest.raises(forklake.InvalidArgument):
            catalog.commit_distributed(ds, [7])  # type: ignore[list-item]


def test_a_manifest_of_another_reservation_is_refused(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, unchanged
) -> None:
    ds, other = catalog.begin_distributed(), catalog.begin_distributed()
    foreign = write_part(other, "t", many())
    fork = lake.fork("main_catalog", "fork")
    with unchanged():
        with pytest.raises(forklake.InvalidManifest, match=other.reservation_id):
            catalog.commit_distributed(ds, foreign)
        with pytest.raises(forklake.InvalidArgument, match="main_catalog"):
            fork.commit_distributed(ds, [])
        with pytest.raises(forklake.InvalidArgument, match="main_catalog"):
            fork.cancel_distributed(ds)
        about = json.loads(ds.to_json())
        about["reservation_id"] = "00000000-0000-4000-8000-000000000000"
        with pytest.raises(forklake.InvalidArgument, match="another lake"):
            catalog.commit_distributed(DistributedSnapshot.from_json(json.dumps(about)), [])


def test_a_manifest_about_a_table_that_was_not_asked_for_is_refused(
    catalog: forklake.Catalog, table: forklake.Table, unchanged
) -> None:
    catalog.create_table("u", "id BIGINT, v VARCHAR")
    ds = catalog.begin_distributed()
    made = write_part(ds, "u", many())
    narrow = json.loads(ds.to_json())
    narrow["tables"] = narrow["tables"][:1]
    with unchanged(), pytest.raises(forklake.InvalidManifest, match="about table"):
        catalog.commit_distributed(DistributedSnapshot.from_json(json.dumps(narrow)), made)


@pytest.mark.parametrize("how", ["missing", "cut"])
def test_a_manifest_that_lists_a_file_which_is_not_there_is_refused(
    catalog: forklake.Catalog, table: forklake.Table, unchanged, how: str
) -> None:
    ds = catalog.begin_distributed()
    good, bad = write_part(ds, "t", many()), write_part(ds, "t", many(1000))
    path = Path(ds.address(bad.paths[0]))
    whole = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(whole[:-1])
    with unchanged(), pytest.raises(forklake.FileMissing, match=path.name):
        catalog.commit_distributed(ds, [good, bad])
    path.write_bytes(whole)
    catalog.commit_distributed(ds, [good, bad])
    assert table.count() == 2 * MANY


def test_an_expired_reservation_is_refused_by_worker_and_coordinator(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, unchanged, overdue
) -> None:
    ds = catalog.begin_distributed()
    made = write_part(ds, "t", many(), manifest="file")
    ds = overdue(ds)
    with unchanged():
        with pytest.raises(forklake.ReservationExpired, match="longer ttl"):
            write_part(ds, "t", many())
        with pytest.raises(forklake.ReservationExpired):
            catalog.commit_distributed(ds, made)
        (swept,) = lake.expire_reservations()
        assert (swept.reservation_id, swept.state, swept.files) == (ds.reservation_id, "expired", 2)
        assert stored() == []
        with pytest.raises(forklake.ReservationExpired):
            catalog.commit_distributed(ds, made)
        catalog.cancel_distributed(ds)
    assert [each.state for each in catalog.reservations()] == ["expired"]


def test_a_worker_whose_time_runs_out_while_it_writes_leaves_nothing(
    catalog: forklake.Catalog, table: forklake.Table, stored
) -> None:
    ds = catalog.begin_distributed(ttl=timedelta(seconds=1))

    def slowly():
        yield from many().to_batches()
        while datetime.now(UTC) < ds.expires_at:
            time.sleep(0.01)
        yield from many(1000).to_batches()

    with pytest.raises(forklake.ReservationExpired):
        write_part(ds, "t", slowly())
    assert stored() == []


def test_a_cancelled_reservation_is_consumed(
    catalog: forklake.Catalog, table: forklake.Table, stored, unchanged
) -> None:
    ds = catalog.begin_distributed()
    made = write_part(ds, "t", many(), manifest="file")
    with unchanged():
        catalog.cancel_distributed(ds)
        assert stored() == []
        catalog.cancel_distributed(ds)
        with pytest.raises(forklake.ReservationConsumed, match="cancelled"):
            catalog.commit_distributed(ds, made)
    done = catalog.begin_distributed()
    catalog.commit_distributed(done, write_part(done, "t", many()))
    with unchanged(), pytest.raises(forklake.ReservationConsumed, match="committed as snapshot"):
        catalog.cancel_distributed(done)


def test_a_head_that_moved_in_conflict_is_refused_and_the_files_go_with_the_reservation(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, unchanged, overdue
) -> None:
    table.append(many())
    (file,) = base_files(table.scan().plan())
    kept = stored()
    conflicts = [
        (lambda ds: write_part(ds, "t", many(1000)), lambda: table.add_column("x", "int")),
        (lambda ds: write_part(ds, "t", many(1000)), lambda: table.set_nullable("id", False)),
        (lambda ds: write_part(ds, "t", delete={file.id: [0]}), lambda: table.delete("id = 5")),
        (
            lambda ds: write_part(ds, "t", numbered(9000), unless_there=True),
            lambda: table.append(numbered(9000)),
        ),
        (lambda ds: write_part(ds, "t", many(1000)), lambda: catalog.drop_table("t")),
    ]
    for write, interfere in conflicts:
        ds = catalog.begin_distributed()
        made = write(ds)
        interfere()
        with unchanged(), pytest.raises(forklake.CommitConflict) as refused:
            catalog.commit_distributed(ds, made)
        assert refused.value.conflicts
        overdue(ds)
        lake.expire_reservations()
        assert stored() == kept


def test_a_worker_that_died_leaves_only_what_is_swept(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, stored, overdue
) -> None:
    """It was killed after its file, before its manifest: nobody ever hears of that file."""
    ds = catalog.begin_distributed()
    write_part(ds, "t", many())
    done = write_part(ds, "t", many(1000), part=1, manifest="file")
    catalog.commit_distributed(ds)
    assert ids(table) == list(range(1000, 1000 + MANY))
    overdue(ds)
    (swept,) = lake.expire_reservations()
    assert (swept.state, swept.files) == ("committed", 2)
    assert stored() == done.paths
    assert lake.expire_reservations() == []


def test_manifests_that_contradict_the_table_are_refused(
    catalog: forklake.Catalog, table: forklake.Table, unchanged
) -> None:
    table.append(many())
    table.append(numbered(1000, 1001))
    table.delete("id = 3")
    stored_file, inlined = (file.id for file in base_files(table.scan().plan()))
    ds = catalog.begin_distributed()
    rewritten = numbered(0).append_column("_ducklake_internal_row_id", pa.array([0], pa.int64()))
    wrong = {
        "no data file": lambda: write_part(ds, "t", delete={999: [0]}),
        "no row at one": lambda: write_part(ds, "t", delete={stored_file: [3]}),
        "no row": lambda: write_part(ds, "t", delete={stored_file: [MANY]}),
        "has no row": lambda: write_part(ds, "t", delete={inlined: [2]}),
        "twice": lambda: write_part(ds, "t", rewritten),
        "are moved": lambda: write_part(ds, "t", moved=[stored_file]),
        "loses single rows": lambda: write_part(ds, "t", delete={stored_file: [1]}, remove=[stored_file]),
        "to be moved": lambda: write_part(ds, "t", remove=[stored_file], moved=[stored_file]),
    }
    for reason, write in wrong.items():
        with unchanged(), pytest.raises(forklake.InvalidManifest, match=reason):
            catalog.commit_distributed(ds, write())
    for delete in ({stored_file: [-1]}, {stored_file: ["x"]}, [1, 2], pa.table({"x": [1]})):
        with pytest.raises(forklake.InvalidArgument):
            write_part(ds, "t", delete=delete)  # type: ignore[arg-type]
    with pytest.raises(forklake.InvalidArgument):
        write_part(ds, "t", numbered(1), part=True)
    with pytest.raises(forklake.InvalidArgument):
        write_part(ds, "t", numbered(1), manifest="nowhere")  # type: ignore[arg-type]
    with pytest.raises(forklake.InvalidManifest, match="one part"):
        Manifest.joined([write_part(ds, "t", numbered(1), part=part) for part in "ab"])
