"""Rewrites that are run elsewhere: they travel as text, and are committed as far as they still hold."""

from __future__ import annotations

import pytest

import forklake
from forklake.compact.inputs import rewrite_scan
from forklake.compact.run import run
from forklake.data.storage.storage import open_storage
from forklake.engine.local import Engine
from tests.contract.rows.shown import content, feed, numbered


@pytest.fixture
def parted(table: forklake.Table) -> forklake.Table:
    table.set_partitioning(["v"])
    for v in "ab":
        for start in (0, 10):
            table.append(numbered(*range(start, start + 5), v=v))
    table.append(numbered(7, v="c"))
    table.delete("id IN (1, 2) AND v = 'a'")
    table.delete("id IN (10, 11, 12) AND v = 'b'")
    return table


def elsewhere(lake: forklake.Lake, texts: list[str]) -> list[str]:
    """A worker that knows nothing but the place of the files."""
    engine = Engine(open_storage(lake.data_path))
    done = [run(forklake.Rewrite.from_json(text), engine).to_json() for text in texts]
    engine.close()
    return done


def test_rewrites_travel_as_text_and_are_committed(
    lake: forklake.Lake, catalog: forklake.Catalog, parted: forklake.Table
) -> None:
    rows, before = content(parted), catalog.snapshot
    rewrites = catalog.plan_compaction("t")
    assert [rewrite.partition_values for rewrite in rewrites] == [("a",), ("b",), None]
    assert sum(rewrite_scan(rewrite).files[0].live_rows for rewrite in rewrites[:1]) == 3
    texts = [rewrite.to_json() for rewrite in rewrites]
    assert [forklake.Rewrite.from_json(text) for text in texts] == list(rewrites)
    done = [forklake.Rewritten.from_json(text) for text in elsewhere(lake, texts)]
    (told,) = catalog.commit_rewrites(done).tables
    assert (told.files_in, told.files_out, told.rows_dropped, told.given_up) == (5, 3, 5, 0)
    assert catalog.snapshot == before + 1
    assert content(parted) == rows
    assert feed(parted, before) == []
    assert catalog.plan_compaction("t") == ()


def test_rewrites_that_come_too_late_are_given_up(
    lake: forklake.Lake, catalog: forklake.Catalog, parted: forklake.Table
) -> None:
    texts = [rewrite.to_json() for rewrite in catalog.plan_compaction("t")]
    done = [forklake.Rewritten.from_json(text) for text in elsewhere(lake, texts)]
    again = [forklake.Rewritten.from_json(text) for text in elsewhere(lake, texts)]
    parted.delete("v = 'b' AND id = 3")
    rows = content(parted)
    (told,) = catalog.commit_rewrites([*done, again[0]]).tables
    assert (told.files_in, told.given_up) == (3, 4)
    assert content(parted) == rows
    before = catalog.snapshot
    (told,) = catalog.commit_rewrites(again).tables
    assert (told.files_in, told.given_up) == (0, 5)
    assert catalog.commit_rewrites([]).tables == ()
    assert (catalog.snapshot, content(parted)) == (before, rows)


def test_a_commit_of_rewrites_may_be_tried_again(
    lake: forklake.Lake, catalog: forklake.Catalog, parted: forklake.Table
) -> None:
    texts = [rewrite.to_json() for rewrite in catalog.plan_compaction("t")]
    done = [forklake.Rewritten.from_json(text) for text in elsewhere(lake, texts)]
    rows = content(parted)
    told = catalog.commit_rewrites(done)
    before = catalog.snapshot
    assert catalog.commit_rewrites(done) == told
    parted.append(numbered(*range(50, 55), v="a"))
    catalog.compact()
    # Its files are history now, and still there for it.
    assert catalog.commit_rewrites(done[:1]).tables[0].given_up == 2
    assert content(parted, at=before) == rows
    assert len(content(parted)) == len(rows) + 5


def test_deletes_are_rewritten_elsewhere_too(
    lake: forklake.Lake, catalog: forklake.Catalog, parted: forklake.Table
) -> None:
    rows = content(parted)
    rewrites = catalog.plan_rewrite_deletes("t", 0.5)
    assert [(rewrite.why, rewrite.live_rows) for rewrite in rewrites] == [(("deletes",), 2)]
    done = elsewhere(lake, [rewrite.to_json() for rewrite in rewrites])
    with catalog.transaction() as tx:
        told = tx.commit_rewrites([forklake.Rewritten.from_json(text) for text in done])
        assert (told.files_in, told.files_out) == (1, 1)
    assert content(parted) == rows
