"""Segments that are built later, and merged by level: by this process, by two at once, by forks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.context.committer import Committer
from forklake.errors import IndexNotFound, InvalidArgument
from forklake.index import coverage, registry
from forklake.index.hash import Hash
from forklake.index.kind import Part, SegmentFile
from forklake.model.index import IndexSpec, SegmentSummary
from tests.index_checks import check_entries, segments_of, uncovered_files


@pytest.fixture
def later(table: forklake.Table) -> forklake.Table:
    """The table with an index that nothing is built of yet."""
    table.create_index("i", kind="hash", columns=["id"], include=["name"], maintain="later")
    assert uncovered_files(table, "i") == 3
    return table


def levels(table: forklake.Table) -> list[int]:
    return sorted(segment.level for segment in segments_of(table, "i"))


def complete(table: forklake.Table) -> None:
    assert uncovered_files(table, "i") == 0
    check_entries(table, "i", "id", "name")


def test_what_an_index_lacks_is_built(catalog: forklake.Catalog, later: forklake.Table) -> None:
    before = catalog.snapshot
    planned = catalog.build_indexes(dry_run=True)
    assert catalog.snapshot == before
    told: list[forklake.Progress] = []
    built = catalog.build_indexes("t", ["I"], progress=told.append)
    (index,), (plan,) = built.indexes, planned.indexes
    assert (index.table, index.index, index.files, index.rows, index.segments) == ("main.t", "i", 3, 3, 1)
    assert (plan.files, plan.rows, plan.segments, plan.bytes) == (3, 3, 1, 0)
    assert index.bytes == segments_of(later, "i")[0].file_size_bytes
    assert (told[-1].what, told[-1].done, told[-1].total) == ("build i of main.t", 3, 3)
    complete(later)
    assert later.history()[-1].summary == "built index i of main.t"
    assert catalog.build_indexes().indexes == ()
    assert catalog.snapshot == before + 1
    with catalog.transaction() as tx:
        tx.table("t").append([{"id": 50, "name": "x"}])
        tx.build_indexes()
    with pytest.raises(IndexNotFound, match='did you mean "i"'):
        catalog.build_indexes("t", ["ii"])
    with pytest.raises(InvalidArgument, match="list"):
        catalog.build_indexes("t", "i")  # type: ignore[arg-type]
    catalog.build_indexes()
    complete(later)


def test_segments_of_a_level_become_one(
    lake: forklake.Lake, catalog: forklake.Catalog, later: forklake.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage, "FAN_IN", 3)
    for number in range(4, 12):
        catalog.build_indexes()
        later.append([{"id": number, "name": None if number % 2 else "x"}, {"id": None}])
    later.delete("id = 5")
    with catalog.transaction() as tx:
        tx.table("t").delete("id < 3")
        tx.table("t").delete("id = 6 OR id IS NULL")
    fork = lake.fork("main_catalog", "fork")
    inherited = {segment.path for segment in segments_of(later, "i")}
    built = catalog.build_indexes()
    assert levels(later) == [2]
    assert built.indexes[0].files == 1
    assert built.indexes[0].merged + 1 == built.indexes[0].segments + len(inherited)
    complete(later)
    # A fork leaves what it inherited alone, and builds the rest.
    fork.build_indexes()
    assert inherited < {segment.path for segment in segments_of(fork.table("t"), "i")}
    complete(fork.table("t"))
    inner = fork.fork("inner")
    assert inner.build_indexes().indexes == ()
    inner.table("t").append([{"id": 77, "name": "y"}])
    assert inner.build_indexes().files == 1
    complete(inner.table("t"))
    assert lake.check().differences == ()


def test_a_file_that_ends_while_its_segment_is_merged_is_left_out(
    catalog: forklake.Catalog, later: forklake.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage, "FAN_IN", 2)
    merge = Hash.merge
    seen: list[int] = []

    def meanwhile(self: Hash, *given: Any) -> SegmentSummary:
        if not seen:
            seen.append(1)
            catalog.table("t").delete("id = 0")
            catalog.table("t").append([{"id": 9, "name": "n"}])
        return merge(self, *given)

    catalog.build_indexes()
    later.append([{"id": 4, "name": "n"}])
    monkeypatch.setattr(Hash, "merge", meanwhile)
    catalog.build_indexes()
    assert uncovered_files(later, "i") == 0
    assert later.count() == 4


def test_two_that_build_at_once_build_each_file_once(
    lake: forklake.Lake, later: forklake.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Hash.build
    waiting: list[int] = []

    def slowly(
        self: Hash, spec: IndexSpec, parts: Iterable[Part], out: Path, model: SegmentFile | None = None
    ) -> SegmentSummary:
        made = build(self, spec, parts, out, model)
        waiting.append(1)
        if len(waiting) == 1:
            # The other builds the same meanwhile, and is done first.
            lake.catalog("main_catalog").build_indexes()
        return made

    monkeypatch.setattr(Hash, "build", slowly)
    built = lake.catalog("main_catalog").build_indexes()
    assert len(waiting) == 2
    assert built.indexes == ()
    complete(later)
    assert len(segments_of(later, "i")) == 1


def test_two_builds_that_neither_saw_of_the_other_collide(
    catalog: forklake.Catalog, later: forklake.Table
) -> None:
    tx = catalog.transaction()
    tx.build_indexes()
    catalog.build_indexes()
    with pytest.raises(forklake.CommitConflict, match="built for the same files"):
        tx.commit()
    complete(later)


def test_an_index_that_is_dropped_while_it_is_built_stays_dropped(
    catalog: forklake.Catalog, later: forklake.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Hash.build

    def dropping(self: Hash, *given: Any) -> SegmentSummary:
        catalog.table("t").drop_index("i")
        return build(self, *given)

    monkeypatch.setattr(Hash, "build", dropping)
    assert catalog.build_indexes().indexes == ()
    assert later.indexes() == []
    assert list((tmp_path / "files").rglob("index-*")) == []


def test_a_build_that_dies_leaves_an_orphan_and_is_done_again(
    lake: forklake.Lake, later: forklake.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = lake.catalog("main_catalog")

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Committer, "commit", die)
        patch.setattr(type(later._scope.context), "discard", lambda *_: None)
        with pytest.raises(Killed):
            catalog.build_indexes()
    (orphan,) = (tmp_path / "files").rglob("index-*")
    catalog.build_indexes()
    complete(later)
    lake.remove_orphans(older_than=timedelta(0))
    assert not orphan.exists()
    complete(later)


class Trained(Hash):
    """As if its segments shared something."""

    def train(self, spec: IndexSpec, sample: Iterable[pa.RecordBatch], out: Path) -> SegmentSummary | None:
        rows = sum(batch.num_rows for batch in sample)
        out.write_text(str(rows))
        return SegmentSummary(rows, "sample", 1)

    def build(
        self, spec: IndexSpec, parts: Iterable[Part], out: Path, model: SegmentFile | None = None
    ) -> SegmentSummary:
        assert model is not None
        assert model.local().read_text() == "3"
        return super().build(spec, parts, out)


@pytest.mark.parametrize("maintain", ["commit", "later"])
def test_segments_share_a_model_that_is_trained_once(
    catalog: forklake.Catalog,
    table: forklake.Table,
    monkeypatch: pytest.MonkeyPatch,
    maintain: Any,
) -> None:
    monkeypatch.setitem(registry._loaded, "hash", Trained())
    monkeypatch.setattr(coverage, "FAN_IN", 2)
    table.create_index("i", kind="hash", columns=["id"], include=["name"], maintain=maintain)
    catalog.build_indexes()
    table.append([{"id": 8, "name": "x"}])
    catalog.build_indexes()
    draft = table._scope.read()
    (model,) = [file for file in draft.index_files(draft.table(table.id)) if file.role == "model"]
    (segment,) = segments_of(table, "i")
    assert (segment.model, segment.level, model.covers) == (model.id, 1, ())
    complete(table)
