"""Searches: the best rows whatever covers them, without those that are deleted or left out by a condition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.errors import IndexNotFound, InvalidArgument, InvalidIndex, InvalidQuery
from tests.index_kinds import data_files
from tests.index_segments import build_segment

NOTES = [
    "red bicycle",
    "the red bicycle of a friend",
    "a blue car",
    "bicycle, bicycle, bicycle",
    "red",
    "a green bicycle and a red car",
    "nothing of the kind",
]


@pytest.fixture
def notes(catalog: forklake.Catalog) -> forklake.Table:
    """Three files, some rows in the metadata, and segments of the first two files."""
    table = catalog.create_table("notes", "id BIGINT, note VARCHAR, at STRUCT(x INTEGER), u UUID")
    table.set_option("data_inlining_row_limit", 2)
    for first in (0, 10, 20):
        table.append([{"id": first + at, "note": note, "at": {"x": at}} for at, note in enumerate(NOTES)])
    table.append([{"id": 30, "note": "red bicycle", "at": None}])
    table.create_index("by_note", kind="bm25", columns=["note"])
    files = data_files(table)
    build_segment(table, "by_note", files[:1])
    build_segment(table, "by_note", files[1:2])
    return table


def best(table: forklake.Table, query: str, **how: Any) -> list[int]:
    found = table.search("by_note", query, **how).to_arrow()
    scores = found.column("_score").to_pylist()
    keys = list(zip([-score for score in scores], found.column("row_id").to_pylist(), strict=True))
    assert keys == sorted(keys)
    return found.column("id").to_pylist()


def scores(table: forklake.Table, query: str, ids: Sequence[int]) -> list[float]:
    rows = table.search("by_note", query, k=100, columns=["id"]).to_pylist()
    return [row["_score"] for row in rows if row["id"] in ids]


def test_the_best_rows_come_first_whatever_covers_them(
    lake: forklake.Lake, catalog: forklake.Catalog, notes: forklake.Table
) -> None:
    assert best(notes, "red bicycle", k=4) == [0, 10, 20, 30]
    assert set(best(notes, "+red +bicycle", k=100)) == {0, 10, 20, 30, 1, 11, 21, 5, 15, 25}
    assert best(notes, '"red bicycle"', k=100, operator="and") == [0, 10, 20, 30, 1, 11, 21]
    assert best(notes, "elephant") == []
    # What is not covered has scores as if it were.
    same = scores(notes, "red bicycle", [0, 10, 20, 30])
    assert same == pytest.approx([same[0]] * 4)
    before = catalog.snapshot
    notes.delete("id IN (0, 20)")
    notes.update({"note": "'blue bicycle'"}, "id = 10")
    assert best(notes, "red bicycle", k=2) == [30, 1]
    assert best(notes, "blue bicycle", k=1) == [10]
    past = catalog.table("notes", at=before)
    assert best(past, "red bicycle", k=4) == best(notes, "red bicycle", k=4, at=before) == [0, 10, 20, 30]
    for where, ids in (
        ("id % 10 = 5", [5, 15, 25]),
        ("id >= 11 AND at.x IS NOT NULL AND note LIKE '%friend'", [11, 21]),
        ("at IS NULL", [30]),
        ("false", []),
    ):
        assert best(notes, "red bicycle", k=3, where=where)[: len(ids)] == ids
    fork = lake.fork("main_catalog", "fork").table("notes")
    fork.append([{"id": 40, "note": "red bicycle"}])
    assert best(fork, "red bicycle", k=2) == [30, 40]
    assert best(notes, "red bicycle", k=2) == [30, 1]
    with catalog.transaction() as tx:
        mine = tx.table("notes")
        mine.append(pa.table({"id": range(50, 60), "note": ["red bicycle"] * 10}))
        mine.delete("id = 30 OR id = 51")
        assert best(mine, "red bicycle", k=3) == [50, 52, 53]
    assert best(notes, "red bicycle", k=3) == [50, 52, 53]


def test_columns_and_several_indexes(catalog: forklake.Catalog, notes: forklake.Table) -> None:
    found = notes.search("by_note", "red", k=2, columns=["at.x", "note"])
    assert found.schema.names == ["x", "note", "row_id", "_score"]
    assert (len(found), found.types) == (2, ("INTEGER", "VARCHAR", "BIGINT", "DOUBLE"))
    assert "2 rows" in repr(found)
    assert "_score" in found._repr_html_()
    fused = notes.search(
        [("by_note", "red"), ("by_note", "bicycle", {"operator": "and"})], k=4, where="id < 9"
    )
    ids = [row["id"] for row in fused.to_pylist()]
    ranks = {"red": best(notes, "red", k=9, where="id < 9"), "b": best(notes, "bicycle", k=9, where="id < 9")}
    sums = {
        at: sum(1 / (61 + ranked.index(at)) for ranked in ranks.values() if at in ranked) for at in range(7)
    }
    assert ids == sorted(sums, key=lambda at: (-sums[at], at))[:4]
    assert fused.to_pylist()[0]["_score"] == pytest.approx(max(sums.values()))
    sql = "SELECT s.id FROM search('notes', 'by_note', $1, k => 4) s JOIN notes n USING (id) WHERE n.id > 9"
    assert sorted(row["id"] for row in catalog.sql(sql, ["red bicycle"]).to_pylist()) == [10, 20, 30]
    called = catalog.sql(
        "CALL search('main.notes', 'by_note', 'car', k => 1, columns => ['id'], where => 'id > 4')"
    )
    assert [row["id"] for row in called.to_pylist()] == [12]


def test_what_cannot_be_searched(catalog: forklake.Catalog, notes: forklake.Table) -> None:
    notes.create_index("by_id", kind="hash", columns=["id"])
    for asked, error, match in (
        (lambda: notes.search("by_note", '"red'), InvalidQuery, "character 1"),
        (lambda: notes.search("by_note", 7), InvalidQuery, "is a string"),
        (lambda: notes.search("by_note", "red", nonsense=1), InvalidQuery, "nonsense"),
        (lambda: notes.search("by_id", 7), InvalidIndex, "answers conditions"),
        (lambda: notes.search("by_not", "red"), IndexNotFound, "by_note"),
        (lambda: notes.search("by_note", "red", k=0), InvalidArgument, "k is"),
        (lambda: notes.search([("by_note",)], k=1), InvalidArgument, "pairs"),
        (lambda: notes.search([], k=1), InvalidArgument, "a list of both"),
        (lambda: notes.search([("by_note", "red")], "red"), InvalidArgument, "in the list"),
        (
            lambda: catalog.sql("FROM search('notes', 'by_note', 'red', k => 0)"),
            forklake.ForklakeError,
            "at least 1",
        ),
    ):
        with pytest.raises(error, match=match):
            asked()
    notes.add_column("_score", "DOUBLE")
    with pytest.raises(InvalidArgument, match="like one of a search"):
        notes.search("by_note", "red")
    assert len(notes.search("by_note", "red", columns=["id"])) == 10


def test_segments_that_cannot_be_read_are_done_without(notes: forklake.Table, tmp_path: Path) -> None:
    torn, gone = sorted(tmp_path.rglob("index-*.bm25"))
    torn.write_bytes(b"nothing of use" * 20)
    assert best(notes, "red bicycle", k=4) == [0, 10, 20, 30]
    gone.unlink()
    assert best(notes, "red bicycle", k=4) == [0, 10, 20, 30]
