"""What a fork did, told as counts, files and rows (F6)."""

from __future__ import annotations

import pytest

import forklake
from forklake import CatalogNotFound, InvalidArgument, InvalidName
from tests.contract.forks.seen import look
from tests.contract.rows.shown import MANY, many, numbered


@pytest.fixture
def parent(lake: forklake.Lake) -> forklake.Catalog:
    parent = lake.create_catalog("parent")
    parent.create_table("t", "id BIGINT, v VARCHAR").append(many())
    return parent


@pytest.fixture
def fork(lake: forklake.Lake, parent: forklake.Catalog) -> forklake.Catalog:
    return lake.fork("parent", "fork")


def counts(diff: forklake.CatalogDiff) -> tuple[int, int]:
    return diff.rows_added, diff.rows_removed


def test_a_catalog_is_not_compared_with_itself(parent: forklake.Catalog, fork: forklake.Catalog) -> None:
    for other in ("fork", fork):
        for ours in (fork, fork.at(fork.snapshot)):
            with pytest.raises(InvalidArgument, match='"fork" cannot be compared with itself'):
                ours.diff(other)
    with pytest.raises(InvalidArgument, match="say what to compare it with"):
        parent.diff()


def test_only_relatives_are_compared(lake: forklake.Lake, fork: forklake.Catalog) -> None:
    lake.create_catalog("stranger")
    with pytest.raises(InvalidArgument, match="no ancestor in common"):
        fork.diff("stranger")
    with pytest.raises(CatalogNotFound, match="nobody"):
        fork.diff("nobody")


def test_a_diff_is_one_sided(parent: forklake.Catalog, fork: forklake.Catalog) -> None:
    parent.table("t").append(numbered(1000, 1001))
    fork.table("t").append(numbered(2000))
    assert counts(fork.diff("parent")) == counts(fork.diff(parent)) == (1, 0)
    assert counts(parent.diff("fork")) == counts(parent.diff(fork)) == (2, 0)


def test_a_moment_before_the_fork_point_has_nothing_to_tell(
    parent: forklake.Catalog, fork: forklake.Catalog
) -> None:
    point = fork.snapshot - 1
    assert fork.at(point).diff().is_empty
    with pytest.raises(
        InvalidArgument, match=f"was at snapshot {point - 1}, before it was forked at {point}"
    ):
        fork.at(point - 1).diff()
    assert fork.at(point - 1).diff("parent").is_empty


def test_a_moment_is_compared_by_what_was_done_up_to_it(
    lake: forklake.Lake, parent: forklake.Catalog, fork: forklake.Catalog
) -> None:
    """Whatever was merged later, in either direction, and whoever was forked from it later."""
    table = fork.table("t")
    timestamps: dict[int, tuple[int, int]] = {}
    for number in range(3):
        table.append(numbered(1000 + number))
        timestamps[fork.snapshot] = (number + 1, 0)
    parent.table("t").append(numbered(5000))
    lake.merge("parent", into="fork")
    lake.merge("fork", into="parent")
    table.append(numbered(2000))
    grandchild = lake.fork("fork", "grandchild")
    for at, expected in timestamps.items():
        past = fork.at(at)
        assert counts(past.diff()) == expected
        # By now the parent and the grandchild have all that the fork had then.
        for other in (parent, grandchild):
            assert past.diff(other).is_empty
            assert (past.diff(other).snapshot, past.diff(other).base_snapshot) == (at, other.snapshot)
    assert counts(fork.diff("parent")) == (1, 0)
    # What came by the merge was no part of the fork before it.
    other = lake.fork("parent", "other", at=parent.snapshots()[0].id)
    assert counts(fork.at(max(timestamps)).diff(other)) == (MANY + 3, 0)
    lake.merge("fork", into="other")
    assert fork.at(max(timestamps)).diff(other).is_empty


def test_a_merge_changes_nothing_in_the_diff_with_the_fork_point(
    lake: forklake.Lake, fork: forklake.Catalog
) -> None:
    fork.table("t").append(numbered(1000))
    before = fork.diff()
    lake.merge("fork", into="parent")
    assert fork.diff() == before
    assert fork.diff("parent").is_empty


def test_a_table_is_asked_for_by_any_form_of_its_name(parent: forklake.Catalog, lake: forklake.Lake) -> None:
    parent.create_schema("a.b")
    fork = lake.fork(parent, "fork")
    for name in ("x", '"x.y"', '"a.b".t', ("a.b", "c d"), forklake.QualifiedName("main", "q")):
        fork.create_table(name, "id BIGINT").append([{"id": 1}])
    diff = fork.diff()
    for name in ("x", "main.x", ("main", "x"), '"x.y"', ("main", "x.y"), ("a.b", "t"), '"a.b"."c d"', "q"):
        found = diff.table(name)
        assert found is not None and found.rows_added == 1, name
        assert fork.table(name).name in found.name
    assert diff.table("t") is diff.table("nowhere.t") is None
    with pytest.raises(InvalidName):
        diff.table("a.b.c")


def test_a_table_that_was_made_again_comes_before_the_one_that_was_dropped(fork: forklake.Catalog) -> None:
    fork.drop_table("t")
    dropped = fork.diff().table("t")
    assert dropped is not None and (dropped.change, dropped.rows_removed) == ("dropped", MANY)
    fork.create_table("t", "id BIGINT").append([{"id": 1}])
    diff = fork.diff()
    assert sorted(table.change for table in diff.tables if table.name == "main.t") == ["created", "dropped"]
    found = diff.table("t")
    assert found is not None and (found.change, found.rows_added) == ("created", 1)
    assert found.rows().count() == 1


def test_files_are_files_and_rows_in_the_metadata_are_counted(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    parent.table("t").append(numbered(1000, 1001, 1002))
    fork = lake.fork("parent", "fork")
    table = fork.table("t")
    inherited = {file.path for file in table.files() if file.path}
    table.append(many(2000))
    table.append(numbered(3000, 3001))
    table.delete("id IN (5, 6, 1000)")
    found = fork.diff().table("t")
    assert found is not None
    new = {file.path for file in table.files() if file.path} - inherited
    assert (set(found.files_added), set(found.files_with_deletes), found.files_retired) == (
        new,
        inherited,
        (),
    )
    assert (found.rows_added, found.inlined_added) == (MANY + 2, 2)
    assert (found.rows_removed, found.inlined_removed) == (3, 1)
    table.overwrite(many(4000))
    found = fork.diff().table("t")
    assert found is not None
    assert (set(found.files_retired), found.files_with_deletes) == (inherited, ())
    assert (found.rows_added, found.inlined_added) == (MANY, 0)
    assert (found.rows_removed, found.inlined_removed) == (MANY + 3, 3)


def test_what_is_read_later_has_a_short_name(fork: forklake.Catalog) -> None:
    start = fork.snapshot
    table = fork.table("t")
    table.append(numbered(1000))
    found = fork.diff().table("t")
    assert found is not None
    assert repr(found.rows()) == f"<RowDiff of 't' after {start - 1} up to {fork.snapshot}>"
    assert repr(table.changes(start)) == f"<ChangeFeed of 't' after {start} up to {fork.snapshot}>"
    assert repr(table.scan()).startswith("<Scan of all rows of main.t of")
    assert repr(table.scan("id = 1")) == repr(table.scan(limit=1))


def test_a_fork_is_found_at_moments_that_it_inherited(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    point = parent.snapshot
    lake.create_catalog("stranger")
    fork = lake.fork("parent", "fork", at=point)
    fork.drop_table("t")
    for at in range(1, fork.snapshot + 1):
        timestamp = lake.snapshots()[at].time
        if at < parent.snapshots()[0].id:
            continue
        for found in (lake.catalog("fork", at=at), lake.catalog("fork", at=timestamp)):
            assert (found.id, found.snapshot) == (fork.id, fork.at(at).snapshot)
            assert look(found) == look(fork.at(at))
    with pytest.raises(CatalogNotFound, match="at snapshot 0"):
        lake.catalog("fork", at=0)
    with pytest.raises(CatalogNotFound, match=f"at snapshot {point}"):
        lake.catalog("stranger", at=point)


def test_a_name_of_the_past_counts_more_than_that_of_an_heir(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    old = lake.create_catalog("name")
    then = old.snapshot
    lake.drop_catalog("name")
    heir = lake.fork("parent", "name")
    assert lake.catalog("name", at=then).id == old.id
    assert lake.catalog("name", at=parent.snapshot).id == heir.id
    # Who was there under another name did not inherit the timestamp.
    lake.rename_catalog("name", "renamed")
    with pytest.raises(CatalogNotFound, match="renamed"):
        lake.catalog("renamed", at=heir.snapshot - 1)
    assert lake.catalog("renamed", at=parent.snapshot).id == heir.id


def test_a_difference_counts_what_one_side_removed_and_shows_no_definition_of_the_other(
    lake: forklake.Lake,
) -> None:
    parent = lake.create_catalog("large")
    parent.create_table("t", "id BIGINT, v BIGINT").append({"id": range(5_000), "v": [0] * 5_000})
    few, many = lake.fork_many("large", ["few", "many"])
    few.table("t").delete("id < 500")
    many.table("t").delete("id >= 1000 AND id < 3000")
    many.table("t").add_column("extra", "INT")
    one, other = few.diff("many"), many.diff("few")
    assert (one.rows_added, one.rows_removed) == (0, 500)
    assert (other.rows_added, other.rows_removed) == (0, 2_000)
    assert (one.tables[0].change, one.tables[0].schema_changes) == ("changed", ())
    assert (other.tables[0].change, other.tables[0].schema_changes) == ("altered", ('added "extra" INTEGER',))
    assert len(one.tables[0].rows().to_pylist()) == 500
    assert len(other.tables[0].rows().to_pylist()) == 2_000


def test_a_refused_merge_counts_the_rows_that_it_would_bring(lake: forklake.Lake) -> None:
    parent = lake.create_catalog("large")
    parent.create_table("t", "id BIGINT, v BIGINT").append({"id": range(5_000), "v": [0] * 5_000})
    fork = lake.fork("large", "fork")
    fork.table("t").update({"v": "1"}, "id < 500")
    parent.table("t").update({"v": "2"}, "id >= 400 AND id < 600")
    found = lake.merge("fork", into="large", dry_run=True)
    assert [conflict.row_count for conflict in found.conflicts] == [100]
    assert [(table.rows_added, table.rows_removed) for table in found.tables] == [(500, 400)]
