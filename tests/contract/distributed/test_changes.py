"""Deletes, updates, merges, overwrites and compactions that are written elsewhere (S4, for S1 and S7)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import forklake
from forklake.distributed import (
    ROW_ID,
    SNAPSHOT_ID,
    BaseFile,
    DeleteFilePart,
    Manifest,
    PositionsPart,
    base_files,
    write_part,
)
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered


@pytest.fixture
def filled(table: forklake.Table) -> forklake.Table:
    """Two files with 150 rows each, one of which has lost a few, and inlined rows."""
    table.append(many())
    table.append(many(1000))
    table.append(numbered(5000, 5001))
    table.delete("id IN (3, 1004)")
    return table


def bases(table: forklake.Table) -> list[BaseFile]:
    return [BaseFile.from_json(base.to_json()) for base in base_files(table.scan().plan())]


def twin(catalog: forklake.Catalog, lake: forklake.Lake, name: str = "twin") -> forklake.Table:
    """The same table in a fork, where the same is done by local verbs."""
    return lake.fork(catalog.name, name).table("t")


def same(table: forklake.Table, other: forklake.Table) -> None:
    assert content(table) == content(other)
    assert table.stats().record_count == other.stats().record_count == table.count()


def test_rows_are_deleted_by_their_positions(
    lake: forklake.Lake, catalog: forklake.Catalog, filled: forklake.Table
) -> None:
    local = twin(catalog, lake)
    ds = catalog.begin_distributed()
    first, second, inlined = bases(filled)
    made = write_part(ds, "t", delete={first.id: [0, 1, 2, 2], second.id: pa.array([7]), inlined.id: [1]})
    assert made.paths == []
    catalog.commit_distributed(ds, Manifest.from_json(made.to_json()))
    local.delete("id IN (0, 1, 2, 1007, 5001)")
    same(filled, local)
    assert {change[0] for change in feed(filled, ds.parent_snapshot_id)} == {"delete"}
    assert len(feed(filled, ds.parent_snapshot_id)) == 5


@pytest.mark.parametrize("knowing", [True, False], ids=["what was lost before", "nothing"])
def test_many_deletes_become_files_where_the_worker_knows(
    lake: forklake.Lake, catalog: forklake.Catalog, filled: forklake.Table, knowing: bool, stored
) -> None:
    local = twin(catalog, lake)
    for start in (10, 130):
        # The second time, a delete file is there already.
        count = 110 if start == 10 else 10
        ds = catalog.begin_distributed()
        found = bases(filled)
        gone = {found[0].id: range(start, start + count), found[1].id: [start]}
        made = write_part(ds, "t", delete=gone, files=found if knowing else (), part=0)
        kinds = [type(entry) for entry in made.entries]
        large = knowing and start == 10
        assert kinds == ([DeleteFilePart, PositionsPart] if large else [PositionsPart, PositionsPart])
        before = set(stored())
        catalog.commit_distributed(ds, made)
        # What the worker has written is used as it is.
        assert set(stored()) == before or not large
        local.delete(f"id BETWEEN {start} AND {start + count - 1} OR id = {1000 + start}")
        same(filled, local)
    assert filled.count() == 2 * MANY + 2 - 2 - 122


def test_a_delete_file_that_did_not_know_all_is_merged(
    lake: forklake.Lake, catalog: forklake.Catalog, filled: forklake.Table
) -> None:
    local = twin(catalog, lake)
    first = bases(filled)[0]
    ds = catalog.begin_distributed()
    ignorant = BaseFile(first.file)
    parts = [
        write_part(ds, "t", delete={first.id: range(10, 120)}, files=[ignorant]),
        write_part(ds, "t", delete={first.id: range(100, 140)}, files=[first]),
        write_part(ds, "t", delete={first.id: [141, 10]}),
    ]
    catalog.commit_distributed(ds, parts)
    local.delete("id BETWEEN 10 AND 139 OR id = 141")
    same(filled, local)
    with pytest.raises(forklake.InvalidData, match="no row"):
        write_part(catalog.begin_distributed(), "t", delete={first.id: range(150)}, files=[first])


def test_a_file_that_lost_every_row_is_gone(catalog: forklake.Catalog, filled: forklake.Table) -> None:
    first, second, inlined = bases(filled)
    ds = catalog.begin_distributed()
    gone = {first.id: [n for n in range(MANY) if n != 3], inlined.id: [0, 1]}
    catalog.commit_distributed(ds, write_part(ds, "t", delete=gone, files=[first, second, inlined]))
    assert [base.id for base in bases(filled)] == [second.id]
    assert filled.count() == filled.stats().record_count == MANY - 1


def rewritten(table: forklake.Table, where: str, v: str) -> pa.Table:
    """Rows with another value, and the ids that they have."""
    rows = table.scan(where, row_ids=True).to_arrow()
    return pa.table({"id": rows["id"], "v": pa.array([v] * len(rows)), ROW_ID: rows["row_id"]})


def test_an_update_keeps_row_ids(
    lake: forklake.Lake, catalog: forklake.Catalog, filled: forklake.Table
) -> None:
    local = twin(catalog, lake)
    ds = catalog.begin_distributed()
    first = bases(filled)[0]
    rows = rewritten(filled, "id < 5", "new")
    made = write_part(ds, "t", rows, delete={first.id: rows["id"].combine_chunks()}, part=0)
    assert [part.row_ids for part in made.files] == [4]
    # A task that ran twice changes nothing.
    again = write_part(ds, "t", rows, delete={first.id: rows["id"].to_pylist()}, part=0)
    catalog.commit_distributed(ds, [made, again])
    local.update({"v": "'new'"}, "id < 5")
    same(filled, local)
    kinds = [change[0] for change in feed(filled, ds.parent_snapshot_id)]
    assert sorted(kinds) == ["update_postimage"] * 4 + ["update_preimage"] * 4
    assert filled.locate(2) is not None


def test_a_merge_is_one_part_of_new_and_rewritten_rows(
    catalog: forklake.Catalog, filled: forklake.Table
) -> None:
    ds = catalog.begin_distributed()
    first = bases(filled)[0]
    rows = pa.concat_tables(
        [
            rewritten(filled, "id = 7", "merged"),
            pa.table({"id": [9000], "v": ["merged"], ROW_ID: pa.array([None], pa.int64())}),
        ]
    )
    batches = iter(rows.to_batches())
    made = write_part(ds, "t", batches, delete={first.id: [7]}, unless_there=True)
    catalog.commit_distributed(ds, made)
    assert filled.count() == filled.stats().record_count == 2 * MANY + 1
    found = {row[1]: row for row in content(filled) if row[2] == "merged"}
    assert found.keys() == {7, 9000}
    assert found[7][0] == 7
    assert found[9000][0] not in {row[0] for row in content(filled, at=ds.parent_snapshot_id)}
    kinds = sorted(change[0] for change in feed(filled, ds.parent_snapshot_id))
    assert kinds == ["insert", "update_postimage", "update_preimage"]


def test_an_overwrite_removes_files_whole(catalog: forklake.Catalog, filled: forklake.Table) -> None:
    ds = catalog.begin_distributed()
    everything = [base.id for base in bases(filled)]
    removal = write_part(ds, "t", remove=everything, part="driver")
    catalog.commit_distributed(ds, [removal, write_part(ds, "t", many(7000), part=0)])
    assert ids(filled) == list(range(7000, 7000 + MANY))
    assert filled.stats().record_count == MANY
    assert len(ids(filled, at=ds.parent_snapshot_id)) == 2 * MANY


def test_a_compaction_moves_rows_with_their_ids_and_snapshots(
    catalog: forklake.Catalog, filled: forklake.Table
) -> None:
    before = content(filled)
    start = catalog.snapshots()[1].id
    found = bases(filled)
    ds = catalog.begin_distributed()
    rows = filled.scan(row_ids=True).to_arrow()
    inserted = {change[2]: change[1] for change in feed(filled, start) if change[0] == "insert"}
    carried = pa.table(
        {
            "id": rows["id"],
            "v": rows["v"],
            ROW_ID: rows["row_id"],
            SNAPSHOT_ID: pa.array([inserted[number] for number in rows["row_id"].to_pylist()], pa.int64()),
        }
    )
    told = feed(filled, start, ds.parent_snapshot_id)
    made = write_part(ds, "t", carried, moved=[base.id for base in found])
    with pytest.raises(forklake.InvalidManifest, match="moved"):
        half = write_part(ds, "t", carried.slice(0, 10), moved=[base.id for base in found])
        catalog.commit_distributed(ds, half)
    catalog.commit_distributed(ds, made)
    assert content(filled) == before
    assert len(bases(filled)) == 1
    assert filled.stats().record_count == len(before)
    assert feed(filled, ds.parent_snapshot_id) == []
    assert feed(filled, start) == told
    assert pc.max(carried[SNAPSHOT_ID]).as_py() == bases(filled)[0].file.newest_row
    with pytest.raises(forklake.InvalidData):
        write_part(catalog.begin_distributed(), "t", carried.drop_columns([ROW_ID]))


def test_ids_and_snapshots_that_cannot_be_are_refused(
    catalog: forklake.Catalog, filled: forklake.Table
) -> None:
    before, found = content(filled), bases(filled)
    rows = filled.scan(row_ids=True).to_arrow()
    columns = {"id": rows["id"], "v": rows["v"], ROW_ID: rows["row_id"]}
    ds = catalog.begin_distributed()
    late = pa.table(columns | {SNAPSHOT_ID: pa.array([catalog.snapshot + 5] * len(rows), pa.int64())})
    with pytest.raises(forklake.InvalidManifest, match="cannot have been moved"):
        catalog.commit_distributed(ds, write_part(ds, "t", late, moved=[base.id for base in found]))
    negative = pa.table({"id": [1], "v": ["x"], ROW_ID: pa.array([-7], pa.int64())})
    with pytest.raises(forklake.InvalidManifest, match="the id -7"):
        catalog.commit_distributed(ds, write_part(ds, "t", negative, delete={found[0].id: [0]}))
    first, later = pa.table(columns).to_batches()[0], pa.record_batch({"id": [1], "v": ["x"]})
    with pytest.raises(forklake.InvalidData, match="later ones do not"):
        write_part(ds, "t", iter([first, later]))
    assert content(filled) == before


def test_several_tables_change_in_one_snapshot(catalog: forklake.Catalog, filled: forklake.Table) -> None:
    other = catalog.create_table("u", "id BIGINT, v VARCHAR")
    ds = catalog.begin_distributed()
    first = bases(filled)[0]
    parts = [
        write_part(ds, "t", delete={first.id: [0]}),
        write_part(ds, "u", filled.scan("id = 0")),
        write_part(ds, "t", many(3000)),
    ]
    assert catalog.commit_distributed(ds, parts) == catalog.snapshot
    assert (ids(other), 0 in ids(filled), 3000 in ids(filled)) == ([0], False, True)
    summary = (catalog.snapshots()[-1].extra or {})["summary"]
    assert summary == {"parts": 3, "files": 2, "rows": MANY + 1, "deleted": 1}


def test_a_fork_deletes_inherited_rows_for_itself_only(
    lake: forklake.Lake, catalog: forklake.Catalog, filled: forklake.Table
) -> None:
    fork = lake.fork("main_catalog", "fork")
    inherited = fork.table("t")
    found = bases(inherited)
    ds = fork.begin_distributed()
    parts = [
        write_part(ds, "t", delete={found[0].id: range(10, 130)}, files=found),
        write_part(ds, "t", many(8000), remove=[found[1].id], delete={found[2].id: [0]}),
    ]
    fork.commit_distributed(ds, parts)
    expected = [*range(3), *range(4, 10), *range(130, MANY), 5001, *range(8000, 8000 + MANY)]
    assert ids(inherited) == expected
    assert inherited.stats().record_count == len(expected)
    assert filled.count() == filled.stats().record_count == 2 * MANY
