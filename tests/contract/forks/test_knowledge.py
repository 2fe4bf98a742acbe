"""Merges by way of others: third catalogs, back and forth, several at once; nothing twice, nothing lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import MergeConflict
from forklake.model.changes import Verb
from forklake.store.backend import Database

Change = Callable[[forklake.Catalog], Any]
CHANGES: dict[str, Change] = {
    "update": lambda c: c.table("t").update({"v": "v + 10"}, "id % 2 = 0"),
    "delete": lambda c: c.table("t").delete("id = 2"),
    "overwrite": lambda c: c.table("t").overwrite([{"id": 9, "v": 9}]),
    "flush": lambda c: c.flush_inlined(),
    "rename": lambda c: c.table("t").rename_column("v", "w"),
    "partition": lambda c: c.table("t").set_partitioning(["id"]),
    "comment": lambda c: c.table("t").comment("said"),
    "drop": lambda c: c.drop_table("t"),
    "replace": lambda c: (c.drop_table("t"), c.create_table("t", "other INT")),
    "view": lambda c: c.create_view("seen", "SELECT 1"),
}


@pytest.fixture
def parent(lake: forklake.Lake) -> forklake.Catalog:
    parent = lake.create_catalog("p")
    parent.create_table("t", "id BIGINT, v BIGINT").append(rows(0, 4))
    return parent


def rows(start: int, number: int) -> list[dict[str, int]]:
    return [{"id": at, "v": 0} for at in range(start, start + number)]


def shown(catalog: forklake.Catalog) -> Any:
    """All that there is to see, with row ids."""

    def of(table: forklake.Table) -> Any:
        found = table.scan(row_ids=True).to_arrow()
        listed = sorted(tuple(row.items()) for row in found.to_pylist())
        assert table.count() == len(listed)
        return found.schema.names, listed, table.tags(), table.partitioning

    tables = {info.name: of(catalog.table(info.name)) for info in catalog.tables()}
    return tables, {view.name: view.sql for view in catalog.views()}


@pytest.mark.parametrize("name", CHANGES)
def test_what_came_by_way_of_a_third_catalog_is_as_if_it_came_at_once(
    lake: forklake.Lake, parent: forklake.Catalog, name: str
) -> None:
    first, second = lake.fork_many("p", ["f", "g"])
    first.table("t").append(rows(10, 3))
    lake.merge("f", into="p")
    CHANGES[name](first)
    lake.merge("f", into="g")
    if name not in ("drop", "replace"):
        second.table("t").append([{"id": 20}])
    lake.merge("g", into="p")
    assert shown(parent) == shown(second)
    assert lake.merge("f", into="p").changes == lake.merge("p", into="g").changes == ()


@pytest.mark.parametrize("name", CHANGES)
def test_a_fork_that_was_merged_into_two_stands_between_them_no_more(
    lake: forklake.Lake, parent: forklake.Catalog, name: str
) -> None:
    first, second = lake.fork_many("p", ["f", "g"])
    CHANGES[name](first)
    lake.merge("f", into="p")
    lake.merge("f", into="g")
    second.create_table("own", "a INT")
    lake.merge("g", into="p")
    lake.merge("p", into="g")
    assert shown(parent) == shown(second)
    assert first.diff("p").is_empty


def test_catalogs_can_be_merged_back_and_forth_and_passed_on(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    parent.table("t").append(rows(100, 20))
    fork, beyond = lake.fork("p", "f"), lake.fork("f", "g")
    for turn in range(4):
        fork.table("t").delete(f"id = {100 + turn}")
        lake.merge("f", into="p")
        parent.table("t").delete(f"id = {110 + turn}")
        parent.table("t").comment(f"turn {turn}")
        lake.merge("p", into="f")
        lake.merge("f", into="g")
        assert shown(parent) == shown(fork) == shown(beyond)
    assert parent.table("t").count() == 4 + 20 - 8


def test_a_fork_that_was_brought_up_to_date_brings_back_only_its_own(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    forks = lake.fork_many("p", ["f", "g"])
    parent.table("t").add_column("extra", "INT")
    for fork in forks:
        lake.merge("p", into=fork.name)
        fork.table("t").append(rows(10 * fork.id, 1))
    for fork in forks:
        found = lake.merge(fork.name, into="p")
        assert [change.verb for change in found.changes] == [Verb.INSERT, Verb.MERGE_CATALOG]


def test_a_dropped_table_takes_no_rows_along_that_the_dropper_never_saw(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    """In both directions, and the advice is nothing that would lose them."""
    first, second = lake.fork_many("p", ["f", "g"])
    first.drop_table("t")
    parent.table("t").append(rows(10, 1))
    for source, into in (("f", "p"), ("p", "f")):
        with pytest.raises(MergeConflict, match="Replay"):
            lake.merge(source, into=into)
    second.drop_table("t")
    lake.merge("p", into="f", dry_run=True)
    assert parent.table("t").count() == 5
    lake.drop_catalog("f")
    other = lake.fork("p", "f")
    other.drop_table("t")
    found = lake.merge("f", into="p")
    assert [(table.name, table.rows_removed) for table in found.tables] == [("main.t", 5)]
    assert parent.tables() == []


def test_rules_about_keys_and_imports_hold_for_merges_too(
    lake: forklake.Lake, parent: forklake.Catalog, tmp_path: Path
) -> None:
    path = tmp_path / "given.parquet"
    pq.write_table(pa.table({"id": [70], "v": [0]}), path)
    first, second, third, fourth = lake.fork_many("p", ["f", "g", "h", "i"])
    for fork in (first, second):
        fork.table("t").merge([{"id": 60, "v": fork.id}], on="id")
    for fork in (third, fourth):
        fork.table("t").add_files(path, mapping="by_name")
    lake.merge("h", into="p")
    with pytest.raises(MergeConflict, match="both import one file"):
        lake.merge("i", into="p")
    for name in ("f", "g"):
        with pytest.raises(MergeConflict, match="has not looked at"):
            lake.merge(name, into="p")
    assert sorted(row["id"] for row in parent.table("t").scan().to_pylist()) == [0, 1, 2, 3, 70]


def test_forks_that_change_different_rows_of_one_file_can_all_be_merged(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    table = parent.table("t")
    table.append(pa.table({"id": range(1000, 1300), "v": [0] * 300}))
    forks = lake.fork_many("p", [f"agent {number}" for number in range(6)])
    for number, fork in enumerate(forks):
        fork.table("t").update({"v": str(number + 1)}, f"id = {1000 + number}")
        fork.table("t").delete(f"id = {1100 + number} OR id = {number % 4}")
    for number, fork in enumerate(forks[:4]):
        lake.merge(fork.name, into="p")
        assert table.scan(f"id = {1000 + number}").to_pylist() == [{"id": 1000 + number, "v": number + 1}]
    assert table.count() == 304 - 8
    # These deleted a row that another one had deleted.
    for fork in forks[4:]:
        with pytest.raises(MergeConflict, match="both changed the same rows: 1"):
            lake.merge(fork.name, into="p")
        lake.merge(fork.name, into="p", prefer="source")
    assert table.scan("v > 0").count() == 6
    found = table.scan(row_ids=True).to_pylist()
    assert len({row["row_id"] for row in found}) == len(found) == table.count() == 294
    last = lake.fork("p", "last", at=forks[0].snapshots()[-4].id)
    last.table("t").update({"v": "99"}, "id IN (1000, 1101)")
    with pytest.raises(MergeConflict, match="both changed the same rows: 2") as refused:
        lake.merge("last", into="p")
    (changed, deleted) = refused.value.conflicts[0].rows()
    assert (changed.base, changed.ours, changed.theirs) == tuple({"id": 1000, "v": v} for v in (0, 99, 1))
    assert (deleted.base, deleted.ours, deleted.theirs) == ({"id": 1101, "v": 0}, {"id": 1101, "v": 99}, None)


def test_a_name_that_is_free_again_can_be_taken(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    fork = lake.fork("p", "f")
    fork.create_table("n", "a INT")
    parent.create_table("n", "b INT").rename("other")
    parent.create_view("gone", "SELECT 1")
    parent.drop_view("gone")
    fork.create_view("gone", "SELECT 2")
    lake.merge("f", into="p")
    assert {info.name for info in parent.tables()} == {"t", "n", "other"}
    assert [view.sql for view in parent.views()] == ["SELECT 2"]


def test_the_same_merge_by_several_at_once_is_made_once(
    lake: forklake.Lake, parent: forklake.Catalog, reopen: Any, in_threads: Any
) -> None:
    fork = lake.fork("p", "f")
    for turn in range(3):
        fork.table("t").append(rows(100 * turn + 100, 2))
        fork.table("t").update({"v": "v + 1"}, f"id = {100 * turn + 100}")

        def merge() -> int | None:
            return reopen().merge("f", into="p").snapshot

        made = in_threads(merge, merge, merge, merge)
        assert len([snapshot for snapshot in made if snapshot is not None]) == 1
        assert shown(parent) == shown(fork)


def test_a_catalog_that_took_over_columns_by_two_ways_can_be_copied(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    early = lake.fork("p", "s")
    parent.table("t").add_column("a", "INT")
    parent.table("t").rename_column("a", "b")
    late = lake.fork("p", "f")
    lake.merge("p", into="s")
    early.table("t").add_column("z", "INT")
    lake.merge("s", into="f")
    copy = lake.fork("f", "c", mode="copy")
    late.materialize()
    assert shown(copy) == shown(late) == shown(early)


def test_ids_of_columns_that_were_gone_before_they_came_stay_taken(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    """A file of the first fork knows a column that neither the second nor the parent ever showed."""
    first, second = lake.fork_many("p", ["f", "g"])
    first.table("t").add_column("gone", "INT")
    first.table("t").append(pa.table({"id": range(50, 250), "gone": [1] * 200}))
    first.table("t").drop_column("gone")
    second.table("t").append(rows(20, 1))
    lake.merge("g", into="p")
    lake.merge("f", into="g")
    lake.merge("g", into="p")
    parent.table("t").add_column("fresh", "INT")
    assert {row["fresh"] for row in parent.table("t").scan().to_pylist()} == {None}


@pytest.fixture
def reads(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """How many statements were run outside transactions since this was last asked."""
    counted = [0]
    rows_of = type(database).rows

    def spy(self: Any, statement: str, /, **params: object) -> Any:
        counted[0] += 1
        return rows_of(self, statement, **params)

    monkeypatch.setattr(type(database), "rows", spy)

    def since() -> int:
        found, counted[0] = counted[0], 0
        return found

    yield since


def test_the_cost_of_a_merge_does_not_grow_with_those_before(
    lake: forklake.Lake, parent: forklake.Catalog, reads: Callable[[], int]
) -> None:
    fork = lake.fork("p", "f")
    counted: list[int] = []
    for turn in range(8):
        fork.table("t").append(rows(1000 + turn, 1))
        parent.table("t").append(rows(2000 + turn, 1))
        reads()
        lake.merge("p", into="f")
        lake.merge("f", into="p")
        counted.append(reads())
    assert len(set(counted[2:])) == 1
