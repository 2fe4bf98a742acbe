"""Merges: one commit, nothing rewritten, what both changed refused with both sides named."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.errors import CatalogNotFound, InvalidArgument, MergeConflict
from forklake.model.changes import Verb

MANY = 150


def many(start: int, rows: int = MANY) -> pa.Table:
    return pa.table({"id": range(start, start + rows), "v": ["x"] * rows})


def ids(table: forklake.Table, where: str | None = None) -> list[int]:
    return sorted(row["id"] for row in table.scan(where).to_pylist())


@pytest.fixture
def parent(lake: forklake.Lake) -> forklake.Catalog:
    """Rows 0 to 149 in a file, 1000 and 1001 inlined."""
    parent = lake.create_catalog("parent")
    table = parent.create_table("t", "id BIGINT, v VARCHAR")
    table.append(many(0))
    table.append([{"id": 1000, "v": "i"}, {"id": 1001, "v": "i"}])
    return parent


@pytest.fixture
def fork(lake: forklake.Lake, parent: forklake.Catalog) -> forklake.Catalog:
    return lake.fork("parent", "fork")


def test_appends_of_both_sides_go_together_and_no_file_is_written_again(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog
) -> None:
    fork.table("t").append(many(2000))
    fork.table("t").append([{"id": 5000, "v": "f"}])
    parent.table("t").append(many(3000))
    before = parent.snapshot
    paths = {file.path for catalog in (parent, fork) for file in catalog.table("t").files()}
    result = lake.merge("fork", into="parent", author="ada", message="back", extra={"run": 7})
    assert result.snapshot == parent.snapshot == parent.snapshots()[-1].id
    assert [(t.name, t.files_added, t.rows_added, t.rows_removed) for t in result.tables] == [
        ("main.t", 2, MANY + 1, 0)
    ]
    assert {file.path for file in parent.table("t").files()} == paths
    last = parent.snapshots()[-1]
    assert (last.author, last.message, last.extra) == ("ada", "back", {"run": 7})
    assert last.changes == f"inserted_into_table:2,merged_from:{fork.id}"
    expected = [*range(MANY), 1000, 1001, *range(2000, 2150), *range(3000, 3150), 5000]
    assert ids(parent.table("t")) == expected
    assert parent.table("t").count() == len(expected)
    found = [row["row_id"] for row in parent.table("t").scan(row_ids=True).to_pylist()]
    assert len(set(found)) == len(found)
    feed = parent.table("t").changes(before).to_pylist()
    assert Counter(row["change_type"] for row in feed) == {"insert": MANY + 1}
    assert ids(parent.table("t", at=before)) == [i for i in expected if not 2000 <= i < 2150 and i != 5000]


def test_a_second_merge_brings_only_what_is_new(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog
) -> None:
    fork.table("t").delete("id = 7")
    assert lake.merge("fork", into="parent").snapshot is not None
    before = parent.snapshot
    again = lake.merge("fork", into="parent")
    assert (again.snapshot, again.changes, again.tables) == (None, (), ())
    fork.table("t").delete("id = 8")
    fork.table("t").append([{"id": 9000}])
    result = lake.merge("fork", into="parent")
    assert [(t.rows_added, t.rows_removed) for t in result.tables] == [(1, 1)]
    assert parent.snapshot == result.snapshot != before
    assert {7, 8}.isdisjoint(ids(parent.table("t")))
    assert 9000 in ids(parent.table("t"))


def test_every_kind_of_object_comes_along(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog
) -> None:
    parent.create_table("old", "a INT")
    fork = lake.fork("parent", "second")
    with fork.transaction() as tx:
        tx.create_schema("s")
        made = tx.create_table("s.n", "a INT, b STRUCT(c INT)", partition_by=["a"], sorted_by=["a"])
        made.append([{"a": 1, "b": {"c": 2}}])
        made.comment("new")
        tx.table("t").rename("renamed")
        tx.table("renamed").add_column("c", "INT", default=7)
        tx.table("renamed").set_option("data_inlining_row_limit", 3)
        tx.create_view("w", "SELECT 1")
        tx.drop_table("old")
    lake.merge("second", into="parent")
    assert {f"{t.schema}.{t.name}" for t in parent.tables()} == {"main.renamed", "s.n"}
    assert parent.table("s.n").scan().to_pylist() == [{"a": 1, "b": {"c": 2}}]
    assert parent.table("s.n").tags() == {"comment": "new"}
    assert [view.name for view in parent.views()] == ["w"]
    table = parent.table("renamed")
    assert table.scan("c = 7").count() == table.count() == MANY + 2
    parent.table("s.n").append([{"a": 2, "b": {"c": 3}}])
    assert len({row["row_id"] for row in parent.table("s.n").scan(row_ids=True).to_pylist()}) == 2


def test_updates_keep_row_ids_and_show_as_updates(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog
) -> None:
    before = parent.snapshot
    rows = {r["id"]: r["row_id"] for r in parent.table("t").scan(row_ids=True).to_pylist()}
    fork.table("t").update({"v": "'new'"}, "id IN (3, 1000)")
    fork.flush_inlined()
    lake.merge("fork", into="parent")
    found = parent.table("t").scan(row_ids=True).to_pylist()
    assert {r["id"]: r["row_id"] for r in found} == rows
    assert sorted(r["id"] for r in found if r["v"] == "new") == [3, 1000]
    kinds = Counter(row["change_type"] for row in parent.table("t").changes(before).to_pylist())
    assert kinds == {"update_preimage": 2, "update_postimage": 2}


def test_a_fork_is_brought_up_to_date_by_merging_its_parent(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog
) -> None:
    fork.table("t").append(many(2000))
    parent.table("t").add_column("c", "INT", default=5)
    with pytest.raises(MergeConflict, match="rows were written for the old definition"):
        lake.merge("fork", into="parent")
    assert lake.merge("parent", into="fork").snapshot == fork.snapshot
    assert fork.table("t").scan("c = 5").count() == fork.table("t").count() == 2 * MANY + 2
    assert lake.merge("fork", into="parent").snapshot == parent.snapshot
    assert parent.table("t").scan("c = 5").count() == parent.table("t").count() == 2 * MANY + 2
    assert fork.diff("parent").is_empty
    assert parent.diff("fork").is_empty


def test_forks_of_one_parent_merge_with_each_other(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog
) -> None:
    other = lake.fork("parent", "other")
    fork.table("t").append(many(2000))
    fork.table("t").delete("id = 3")
    other.table("t").append(many(3000))
    lake.merge("fork", into="other")
    assert ids(other.table("t"), "id >= 2000 OR id = 3") == [*range(2000, 2150), *range(3000, 3150)]
    lake.merge("other", into="parent")
    assert ids(parent.table("t")) == ids(other.table("t"))
    assert lake.merge("fork", into="parent").snapshot is None


CONFLICTS: dict[str, tuple[Any, Any, Verb, Verb]] = {
    "a file": (
        lambda c: c.table("t").delete("id < 3"),
        lambda c: c.table("t").update({"v": "'p'"}, "id = 2"),
        Verb.DELETE,
        Verb.DELETE,
    ),
    "definitions": (
        lambda c: c.table("t").add_column("a", "INT"),
        lambda c: c.table("t").rename("r"),
        Verb.ALTER_TABLE,
        Verb.RENAME_TABLE,
    ),
    "a name": (
        lambda c: c.create_table("n", "a INT"),
        lambda c: c.create_view("n", "SELECT 1"),
        Verb.CREATE_TABLE,
        Verb.CREATE_VIEW,
    ),
    "a table that is gone": (
        lambda c: c.table("t").append(many(2000)),
        lambda c: c.drop_table("t"),
        Verb.INSERT,
        Verb.DROP_TABLE,
    ),
    "a comment": (
        lambda c: c.table("t").comment("ours"),
        lambda c: c.table("t").comment("theirs"),
        Verb.TAG_TABLE,
        Verb.TAG_TABLE,
    ),
    "rows moved, and changed by both": (
        lambda c: (c.flush_inlined(), c.table("t").update({"v": "'f'"}, "id = 1000")),
        lambda c: c.table("t").delete("id >= 1000"),
        Verb.DELETE,
        Verb.DELETE,
    ),
}


@pytest.mark.parametrize("what", CONFLICTS)
def test_what_both_changed_is_refused_with_both_sides_named(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog, what: str, unchanged
) -> None:
    ours, theirs, our_verb, their_verb = CONFLICTS[what]
    ours(fork)
    theirs(parent)
    with unchanged(), pytest.raises(MergeConflict) as refusal:
        lake.merge("fork", into="parent")
    found = refusal.value.conflicts
    assert (our_verb, their_verb) in {(c.ours.verb, c.theirs.verb) for c in found}
    assert {c.snapshot for c in found} == {parent.snapshot}
    assert {c.ours_snapshot for c in found} == {fork.snapshot}
    if what == "a file":
        assert found[0].files == (parent.table("t").files()[0].path,)
    with unchanged():
        dry = lake.merge("fork", into="parent", dry_run=True)
    assert dry.conflicts == found
    assert dry.snapshot is None


def test_a_dry_run_says_what_a_merge_will_do(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog, unchanged
) -> None:
    fork.table("t").append(many(2000))
    with unchanged():
        dry = lake.merge("fork", into="parent", dry_run=True)
    done = lake.merge("fork", into="parent")
    assert (dry.changes, dry.tables, dry.conflicts) == (done.changes, done.tables, ())


def test_merges_into_one_parent_at_the_same_time_all_arrive(
    lake: forklake.Lake, parent: forklake.Catalog, in_threads
) -> None:
    forks = lake.fork_many("parent", [f"f{number}" for number in range(8)])
    for number, made in enumerate(forks):
        made.table("t").append(many(10_000 * (number + 1)))
    in_threads(*(lambda name=made.name: lake.merge(name, into="parent") for made in forks))
    assert parent.table("t").count() == len(ids(parent.table("t"))) == 9 * MANY + 2
    assert sum("merged_from" in snapshot.changes for snapshot in parent.snapshots()) == 8


def test_bad_merges_are_refused_and_write_nothing(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog, unchanged
) -> None:
    lake.create_catalog("stranger")
    lake.fork("parent", "dropped")
    lake.drop_catalog("dropped")
    for source, into, kind, words in (
        ("fork", "fork", InvalidArgument, "into itself"),
        ("nobody", "parent", CatalogNotFound, "nobody"),
        ("fork", "nobody", CatalogNotFound, "nobody"),
        ("dropped", "parent", CatalogNotFound, "dropped"),
        ("fork", "dropped", CatalogNotFound, "dropped"),
        ("stranger", "parent", InvalidArgument, "no ancestor in common"),
    ):
        with unchanged(), pytest.raises(kind, match=words):
            lake.merge(source, into=into)


def test_names_and_ids_of_columns_that_only_a_fork_had_stay_known(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog
) -> None:
    """Its files know them: a struct's field by its old name, a dropped column by its id."""
    made = fork.create_table("n", "a INT, s STRUCT(x INT)")
    made.append(pa.table({"a": range(MANY), "s": [{"x": number} for number in range(MANY)]}))
    made.rename_column("s.x", "y")
    fork.table("t").add_column("gone", "INT")
    fork.table("t").append(pa.table({"id": range(9000, 9000 + MANY), "gone": [1] * MANY}))
    fork.table("t").drop_column("gone")
    lake.merge("fork", into="parent")
    assert parent.table("n").scan("a = 5").to_pylist() == [{"a": 5, "s": {"y": 5}}]
    parent.table("t").add_column("fresh", "INT")
    assert {row["fresh"] for row in parent.table("t").scan().to_pylist()} == {None}
