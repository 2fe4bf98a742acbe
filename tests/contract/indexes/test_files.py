"""Segments of indexes: added with data files or later, inherited by forks, ended with what they cover."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake.errors import CommitConflict
from forklake.model.index import GONE
from tests.index_kinds import build, data_files, name_in, segments, written

RunSql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def indexed(table: forklake.Table) -> forklake.Table:
    """The table with an index, and a segment `all` of its files."""
    table.create_index("i", kind="shelf", columns=["id"])
    build(table, "i", "all")
    return table


def test_a_segment_is_read_as_it_was_written(catalog: forklake.Catalog, indexed: forklake.Table) -> None:
    (segment,) = segments(indexed).values()
    assert segment.covers == tuple(data_files(indexed))
    assert segment.index_id == indexed.indexes()[0].id
    facts = segment.facts
    assert (facts.entry_count, facts.format, facts.format_version, facts.footer_size) == (5, "shelf", 1, 2)
    assert (facts.min_key, facts.max_key, facts.summary) == ("a", "b", '{"books": 5}')
    assert indexed.history()[-1].summary == "built index i of main.t"
    # What it says holds for ever, so it counts for the past too.
    assert segments(catalog.table("t", at=catalog.snapshot - 2)).keys() == {"all"}


def test_segments_of_files_that_come_with_them(catalog: forklake.Catalog, indexed: forklake.Table) -> None:
    with catalog.transaction() as tx:
        t = tx.table("t")
        for number in (10, 11):
            t.append([{"id": number}])
        draft = tx._scope.read()
        definition = draft.table(t.id)
        t.create_index("new", kind="shelf", columns=["id"])
        one, other = draft.staged(definition).added
        t.delete("id = 10")
        index = draft.index_named(definition, "i")
        model = draft.add_index_file(index, written(t, draft, "model", ()))
        draft.add_index_file(index, written(t, draft, "both", (one, other)))
        new = draft.index_named(definition, "new")
        draft.add_index_file(new, written(t, draft, "of_new", (other, data_files(indexed)[0])))
        assert segments(t)["model"].id == model < 0
    found, files = segments(indexed), data_files(indexed)
    assert found["both"].covers == (GONE, files[-1])
    assert found["of_new"].covers == (files[-1], files[0])
    assert found["of_new"].index_id == indexed.indexes()[1].id
    assert found.keys() == {"all", "model", "both", "of_new"}
    assert indexed.history()[-1].summary.startswith("created index new of main.t, inserted into")


def test_a_segment_ends_with_the_last_of_its_files_and_with_its_index(
    lake: forklake.Lake, catalog: forklake.Catalog, indexed: forklake.Table
) -> None:
    files = data_files(indexed)
    build(indexed, "i", "first", files[:1])
    fork = lake.fork("main_catalog", "fork")
    theirs = fork.table("t")
    theirs.delete("id = 0")
    assert (segments(theirs).keys(), segments(indexed).keys()) == ({"all"}, {"all", "first"})
    theirs.append([{"id": 5}])
    build(theirs, "i", "own")
    inner = fork.fork("inner")
    theirs.drop_index("i")
    assert segments(theirs).keys() == set()
    assert segments(inner.table("t")).keys() == {"all", "own"}
    inner.table("t").compact()
    assert segments(inner.table("t")).keys() == set()
    assert inner.table("t").indexes() == indexed.indexes()
    indexed.delete("true")
    assert segments(indexed).keys() == set()
    assert lake.check().differences == ()


def test_segments_are_replaced_once(catalog: forklake.Catalog, indexed: forklake.Table) -> None:
    files = data_files(indexed)
    for place, file in enumerate(files):
        build(indexed, "i", f"s{place}", [file])
    old = [segments(indexed)[name].id for name in ("s0", "s1")]
    tx = catalog.transaction()
    # As if it had merged other files: of these, the rules of builds would know.
    build(tx.table("t"), "i", "mine", (), old)
    assert segments(tx.table("t")).keys() == {"all", "s2", "mine"}
    build(indexed, "i", "merged", files[:2], old)
    assert segments(indexed).keys() == {"all", "s2", "merged"}
    with pytest.raises(CommitConflict, match="replaced meanwhile"):
        tx.commit()
    assert segments(indexed).keys() == {"all", "s2", "merged"}


def test_builds_commute_with_all_but_a_drop(catalog: forklake.Catalog, indexed: forklake.Table) -> None:
    tx = catalog.transaction()
    build(tx.table("t"), "i", "later", data_files(indexed)[:1])
    build(indexed, "i", "beside", data_files(indexed)[1:])
    indexed.append([{"id": 7}])
    indexed.delete("id = 1")
    indexed.add_column("more", "INTEGER")
    indexed.rename("u")
    tx.commit()
    assert segments(indexed).keys() == {"all", "beside", "later"}
    tx, rows = catalog.transaction(), catalog.transaction()
    build(tx.table("u"), "i", "lost")
    rows.table("u").append([{"id": 8}])
    draft = rows._scope.read()
    definition = draft.table(indexed.id)
    (file,) = draft.staged(definition).added
    draft.add_index_file(draft.index_named(definition, "i"), written(indexed, draft, "useless", [file]))
    indexed.drop_index("i")
    with pytest.raises(CommitConflict, match="the index is gone"):
        tx.commit()
    # Rows are not refused for the index that they need no more.
    rows.commit()
    assert segments(indexed).keys() == set()
    assert indexed.count() == 4


def test_files_of_indexes_are_collected_like_others(
    lake: forklake.Lake, indexed: forklake.Table, raw: RunSql, tmp_path: Path
) -> None:
    def on_disk() -> set[str]:
        return {name_in(str(path)) for path in (tmp_path / "files").rglob("*.shelf")}

    def clean() -> None:
        lake.expire(older_than=timedelta(0))
        assert not lake.collect_garbage(older_than=timedelta(0)).kept
        lake.remove_orphans(older_than=timedelta(0))

    build(indexed, "i", "first", data_files(indexed)[:1])
    indexed.delete("id = 0")
    clean()
    assert on_disk() == {"all"}
    fork = lake.fork("main_catalog", "fork")
    copy = lake.fork("main_catalog", "copy", mode="copy")
    build(fork.table("t"), "i", "own")
    copy.table("t").drop_index("i")
    indexed.drop_index("i")
    lake.drop_catalog("main_catalog")
    clean()
    assert segments(fork.table("t")).keys() == on_disk() == {"all", "own"}
    assert lake.check().differences == ()
    for name in ("fork", "copy"):
        lake.drop_catalog(name)
    clean()
    clean()
    assert on_disk() == set()
    for name in ("index", "index_column", "index_file", "index_coverage"):
        assert raw(f"SELECT count(*) FROM ducklake_{name}")[0][0] == 0, name


def test_materialized_forks_keep_their_indexes(lake: forklake.Lake, indexed: forklake.Table) -> None:
    fork = lake.fork("main_catalog", "fork")
    before = segments(fork.table("t"))
    fork.materialize()
    assert fork.table("t").indexes() == indexed.indexes()
    after = segments(fork.table("t"))
    assert {name: file.covers for name, file in after.items()} == {
        name: file.covers for name, file in before.items()
    }
    fork.table("t").drop_index("i")
    assert segments(indexed).keys() == {"all"}
