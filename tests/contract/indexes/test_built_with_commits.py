"""Segments that commits build of the data files that they add."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import IndexNotBuilt, MissingDependency
from forklake.index import registry
from forklake.index.hash import Hash
from forklake.model.index import SegmentSummary
from tests.index_checks import check_entries, segments_of, uncovered_files


def checked(table: forklake.Table, segments: int) -> None:
    assert uncovered_files(table, "by_id") == 0
    check_entries(table, "by_id", "id", "name")
    assert len(segments_of(table, "by_id")) == segments


def test_every_commit_indexes_the_files_that_it_adds(
    catalog: forklake.Catalog, lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    before = catalog.snapshot
    table.create_index("by_id", kind="hash", columns=["id"], include=["name"])
    checked(table, 1)
    assert catalog.snapshot == before + 1
    table.create_index("later", kind="hash", columns=["id"], maintain="later")
    table.append([{"id": 3, "name": "n3"}, {"id": None, "name": "none"}])
    checked(table, 2)
    table.update({"name": "'x'"}, "id = 3")
    table.merge([{"id": 1, "name": "one"}, {"id": 8, "name": "eight"}], on="id")
    table.delete("id = 1")
    checked(table, 4)
    with catalog.transaction() as tx:
        inside = tx.table("t")
        for number in range(20, 23):
            inside.append([{"id": number, "name": "n"}])
        inside.delete("id = 21")
        inside.alter_type("id", "HUGEINT")
    checked(table, 5)
    folder = tmp_path / "incoming"
    folder.mkdir()
    pq.write_table(pa.table({"id": [30, 31], "name": ["a", None]}), folder / "a.parquet")
    table.add_files(folder, mapping="by_name", allow_missing=True)
    checked(table, 6)
    table.set_option("data_inlining_row_limit", 10)
    table.append([{"id": 40, "name": "inlined"}])
    checked(table, 6)
    catalog.flush_inlined()
    checked(table, 7)
    fork = lake.fork("main_catalog", "fork")
    fork.compact()
    checked(fork.table("t"), 1)
    checked(table, 7)
    assert segments_of(table, "later") == []
    with catalog.transaction() as tx:
        made = tx.create_table("made", "id BIGINT, name VARCHAR")
        made.set_option("data_inlining_row_limit", 0)
        made.append([{"id": 1, "name": "a"}])
        made.create_index("by_id", kind="hash", columns=["id"], include=["name"])
        made.append([{"id": 2, "name": "b"}])
    checked(catalog.table("made"), 1)
    assert lake.check().differences == ()


class Lacking(Hash):
    def build(self, *_: object, **__: object) -> SegmentSummary:
        raise MissingDependency("install it")


def test_rows_are_committed_where_their_index_cannot_be_built(
    monkeypatch: pytest.MonkeyPatch, table: forklake.Table
) -> None:
    table.create_index("by_id", kind="hash", columns=["id"], include=["name"])
    with monkeypatch.context() as patch:
        patch.setitem(registry._loaded, "hash", Lacking())
        with pytest.warns(IndexNotBuilt, match='"by_id".* install it'):
            table.append([{"id": 9, "name": "n9"}])
    assert table.scan("id = 9").to_arrow().num_rows == 1
    assert uncovered_files(table, "by_id") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.append([{"id": 10, "name": "n10"}])
    assert uncovered_files(table, "by_id") == 1
