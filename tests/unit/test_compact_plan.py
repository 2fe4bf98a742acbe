"""Which files become which: pure plans, whatever a table consists of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.compact.compaction import delete_planner, merge_planner
from forklake.compact.plan import Input, Rewrite, Target, plan_deletes, plan_merges
from forklake.errors import InvalidArgument
from forklake.model.entities import Column, Default, Table
from forklake.model.ids import (
    CatalogId,
    ColumnId,
    DataFileId,
    DeleteFileId,
    MappingId,
    SchemaId,
    SnapshotId,
    TableId,
)
from forklake.model.options import Options
from forklake.model.table.files import DataFile, DeleteFile
from forklake.model.table.layout import PartitionField, Partitioning, SortKey
from forklake.model.table.name_mapping import MappedName, Mapping
from forklake.model.table.write_target import WriteTarget

MIB = 2**20
COLUMNS = (
    Column(ColumnId(1), "id", "int64", nullable=False, default=Default("7", "literal")),
    Column(ColumnId(2), "s", "struct", children=(Column(ColumnId(3), "é", "varchar"),)),
)
TABLE = Table(TableId(5), "uuid", SchemaId(1), "t", "c/main/t/", COLUMNS)
PARTITIONING = Partitioning(9, 5, (PartitionField(ColumnId(1), "bucket(4)"),))
WRITE = WriteTarget("c/main/t/", COLUMNS, Options(target_file_size=100 * MIB))
PLAIN = Target(TABLE, SnapshotId(50), WRITE)
PARTED = replace(
    PLAIN,
    write=replace(WRITE, partitioning=PARTITIONING, sort=(SortKey("id", "DESC"),)),
    mappings=(Mapping(MappingId(3), (MappedName(ColumnId(1), "ID"),)),),
)


@st.composite
def inputs(draw: st.DrawFn) -> list[Input]:
    found: list[Input] = []
    for number in range(draw(st.integers(0, 12))):
        rows = draw(st.sampled_from((1, 10, 1000)))
        deleted = draw(st.sampled_from((0, 0, rows // 2, rows)))
        inlined = draw(st.integers(0, 4)) == 0
        parted = not inlined and draw(st.booleans())
        named = DeleteFile(
            DeleteFileId(number), CatalogId(1), SnapshotId(7), DataFileId(number), "d", True, deleted, 10
        )
        file = DataFile(
            DataFileId(number),
            CatalogId(1),
            SnapshotId(draw(st.integers(1, 40))),
            "" if inlined else f"f{number}",
            True,
            rows,
            0
            if inlined
            else draw(st.sampled_from((1000, 10 * MIB, 30 * MIB, 74 * MIB, 80 * MIB, 300 * MIB))),
            partition_id=draw(st.sampled_from((8, 9))) if parted else None,
            newest_row=draw(st.sampled_from((None, SnapshotId(3)))),
            deletes=named if deleted and not inlined else None,
            inlined=inlined,
        )
        found.append(
            Input(
                file,
                tuple(range(deleted)) if inlined else (),
                "x" * 400 if inlined else None,
                (draw(st.sampled_from(("0", "1", None))),) if parted else (),
                draw(st.sampled_from((None, "a", "b"))),
            )
        )
    return found


@given(inputs(), st.sampled_from((PLAIN, PARTED)), st.integers(2, 4))
def test_small_files_are_merged_once_within_their_partition_up_to_the_target(
    found: list[Input], target: Target, least: int
) -> None:
    rewrites = plan_merges(target, found, least=least)
    taken = [one.file.id for rewrite in rewrites for one in rewrite.inputs]
    assert len(taken) == len(set(taken))
    for rewrite in rewrites:
        misplaced = [one for one in rewrite.inputs if one.file.partition_id != PARTITIONING.id]
        if target is PARTED and rewrite.partition_values is not None:
            assert not misplaced
            assert {one.partition_values for one in rewrite.inputs} == {rewrite.partition_values}
        elif target is PARTED:
            assert len(misplaced) == len(rewrite.inputs)
        sizes = [one.live_bytes for one in rewrite.inputs]
        assert len(sizes) == 1 or sum(sizes) <= target.write.options.target_file_size
        must = [
            one
            for one in rewrite.inputs
            if one.file.inlined or not one.live_rows or (target is PARTED and one in misplaced)
        ]
        assert len(rewrite.inputs) >= least or len(must) == len(rewrite.inputs)
        assert all(
            one.file.inlined or not one.live_rows or one.live_bytes < 75 * MIB for one in rewrite.inputs
        )
        lows = [one.low or "~" for one in rewrite.inputs]
        assert lows == sorted(lows)
        assert rewrite.newest_row == max(one.file.newest_row or one.file.begin for one in rewrite.inputs)
        assert rewrite.why
    assert {one.file.id for one in found if one.file.inlined} <= set(taken)
    rest = [one for one in found if one.file.id not in taken]
    assert plan_merges(target, rest, least=least) == (), "what was left alone once is left alone again"


@given(inputs(), st.sampled_from((PLAIN, PARTED)), st.floats(0, 1))
def test_exactly_the_files_with_many_deletes_are_rewritten(
    found: list[Input], target: Target, threshold: float
) -> None:
    rewrites = plan_deletes(target, found, threshold)
    taken = {one.file.id for rewrite in rewrites for one in rewrite.inputs}
    assert taken == {
        one.file.id
        for one in found
        if not one.file.inlined and one.deleted_rows and one.deleted_rows / one.file.record_count >= threshold
    }
    assert all("deletes" in rewrite.why for rewrite in rewrites)


@given(inputs(), st.sampled_from((PLAIN, PARTED)))
def test_a_rewrite_travels_as_text(found: list[Input], target: Target) -> None:
    for rewrite in plan_merges(target, found):
        assert Rewrite.from_json(rewrite.to_json()) == rewrite
        assert Rewrite.from_json(rewrite.to_json().encode()) == rewrite


def file_of(size: int, number: int) -> Input:
    return Input(DataFile(DataFileId(number), CatalogId(1), SnapshotId(number), f"f{number}", True, 10, size))


def test_a_large_file_is_not_written_again_for_the_sake_of_little() -> None:
    little = [file_of(MIB, number) for number in range(3)]
    large = file_of(60 * MIB, 9)
    (rewrite,) = plan_merges(PLAIN, [*little, large])
    assert rewrite.inputs == tuple(little)
    assert plan_merges(PLAIN, [little[0], large]) == ()
    (rewrite,) = plan_merges(PLAIN, [large, file_of(20 * MIB, 1)])
    assert len(rewrite.inputs) == 2
    (rewrite,) = plan_merges(PLAIN, [file_of(16 * MIB, 1), file_of(1, 2)])
    assert len(rewrite.inputs) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"target": 1}', "nonsense", "null"])
def test_what_is_no_rewrite_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="no Rewrite"):
        Rewrite.from_json(text)


def test_values_of_another_type_are_refused() -> None:
    (rewrite,) = plan_merges(PLAIN, [file_of(1, 1), file_of(1, 2)])
    text = rewrite.to_json()
    for old, new in (
        ('"record_count":10', '"record_count":"10"'),
        ('"small"', '"large"'),
        ('"at":50', '"at":true'),
    ):
        assert old in text
        with pytest.raises(InvalidArgument, match="no Rewrite"):
            Rewrite.from_json(text.replace(old, new))


@pytest.mark.parametrize("bad", [-0.1, 1.1, "much", True, None, float("nan")])
def test_a_threshold_is_a_share(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="from 0 to 1"):
        delete_planner(bad)


@pytest.mark.parametrize("bad", [1, 0, 2.5, True, "3"])
def test_the_least_number_of_files_is_at_least_two(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="at least 2"):
        merge_planner(bad)
