"""Replays: a fork gets what its parent did since, and keeps its own changes where they do not collide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import forklake
from tests.contract.forks.two_tables import ROWS, base, fresh, two_tables, values


@pytest.fixture
def parent(lake: forklake.Lake) -> forklake.Catalog:
    return two_tables(lake)


def _upsert_and_rename(fork: forklake.Catalog) -> None:
    fork.table("t").merge([{"id": 1, "v": 1}, {"id": 1000, "v": 1}], "id")
    fork.table("t").rename("renamed")


def _append_and_compact(fork: forklake.Catalog) -> None:
    fork.table("t").append(fresh(200, 1000))
    fork.compact()


def test_a_fork_is_replayed_on_its_parent_and_what_collides_is_listed(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    fork.table("t").update({"v": "1"}, "id < 10")
    fork.table("t").append(fresh(3, 1000))
    fork.table("u").add_column("mine", "INT")
    fork.table("u").append(fresh(2, 2000))
    fork.create_view("w", "SELECT 1")
    parent.table("t").update({"v": "2"}, "id >= 8 AND id < 12")
    parent.table("t").delete("id = 20")
    parent.table("u").add_column("yours", "INT", default=7)
    before = (fork.snapshot, parent.snapshot)
    dry = lake.replay("f", onto="p", dry_run=True)
    assert (fork.snapshot, parent.snapshot) == before
    done = lake.replay("f", onto="p", author="ada")
    assert {conflict.theirs.name for conflict in done.refused} == {"t", "u"}
    assert set(dry.refused) <= set(done.refused)
    (rows,) = [conflict for conflict in done.refused if conflict.row_count]
    assert {(row.base or {})["id"] for row in rows.rows()} == {8, 9}
    assert parent.snapshot == before[1]
    assert fork.snapshots()[-1].author == "ada"
    expected = base(**{f"_{at}": 1 for at in range(8)}, **{f"_{at}": 2 for at in range(8, 12)})
    expected |= {1000: 0, 1001: 0, 1002: 0}
    del expected[20]
    assert values(fork) == expected
    assert [column.name for column in fork.table("u").columns] == ["id", "v", "s", "yours"]
    assert fork.table("u").scan("yours = 7").count() == ROWS
    assert fork.at(before[0]).table("u").count() == ROWS + 2
    lake.merge("f", into="p")
    assert values(parent) == expected
    assert [view.name for view in parent.views()] == ["w"]
    assert lake.replay("f", onto="p").refused == ()


def test_a_replay_keeps_definitions_of_the_fork_and_drops_what_the_parent_dropped(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    fork.table("t").add_column("mine", "VARCHAR")
    fork.table("t").update({"mine": "'x'"}, "id < 5")
    fork.table("u").append(fresh(1, 2000))
    parent.table("t").append(fresh(2, 1000))
    parent.drop_table("u")
    done = lake.replay("f", onto="p")
    assert {conflict.ours.name for conflict in done.refused} == {"u"}
    assert fork.table("t").scan("mine = 'x'").count() == 5
    assert (fork.table("t").count(), "u" in fork) == (ROWS + 2, False)
    assert fork.at(done.snapshot - 1).table("u").count() >= ROWS
    assert {info.name for info in lake.catalogs()} == {"p", "f"}
    lake.merge("f", into="p")
    assert parent.table("t").scan("mine = 'x'").count() == 5


def test_a_replay_keeps_rows_of_tables_that_only_the_parent_altered(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    fork.table("t").append(fresh(1, 1000))
    fork.table("t").update({"v": "1"}, "id < 3")
    fork.table("t").delete("id = 5")
    fork.table("u").append(fresh(1, 1000))
    fork.table("u").update({"v": "1"}, "id = 1")
    parent.table("t").update({"v": "2"}, "id = 2")
    parent.table("t").add_column("more", "INT", default=7)
    parent.table("t").rename_column("s", "z")
    parent.table("u").rename_column("s", "z")
    dry = lake.replay("f", onto="p", dry_run=True)
    done = lake.replay("f", onto="p", author="ada")
    (conflict,) = done.refused
    assert ([row.row_id for row in conflict.rows()], dry.refused) == ([2], done.refused)
    assert (done.snapshot, fork.snapshots()[-1].author) == (fork.snapshot, "ada")
    rows = {**base(_0=1, _1=1, _2=2), 1000: 0}
    del rows[5]
    assert [column.name for column in fork.table("t").columns] == ["id", "v", "z", "more"]
    for catalog in (fork, parent):
        assert values(catalog) == rows
        assert catalog.table("t").scan("more = 7").count() == len(rows)
        assert values(catalog, "u") == {**base(_1=1), 1000: 0}
        lake.merge("f", into="p")
    assert fork.diff("p").is_empty


def test_a_replay_brings_back_what_the_fork_dropped_and_the_parent_altered(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    fork.drop_table("t")
    fork.table("u").delete("id = 1")
    parent.table("t").add_column("more", "INT", default=7)
    parent.table("t").update({"v": "2"}, "id = 2")
    done = lake.replay("f", onto="p")
    assert {conflict.ours.name for conflict in done.refused} == {"t"}
    assert values(fork) == values(parent) == base(_2=2)
    assert fork.table("t").scan("more = 7").count() == ROWS
    lake.merge("f", into="p")
    assert parent.table("u").count() == ROWS - 1
    assert fork.diff("p").is_empty


def test_a_replay_leaves_out_rows_that_do_not_fit_to_what_the_parent_requires(
    lake: forklake.Lake, parent: forklake.Catalog
) -> None:
    fork = lake.fork("p", "f")
    fork.table("t").append(pa.table({"id": [1000], "v": [None]}, pa.schema({"id": "int64", "v": "int64"})))
    fork.table("u").append(fresh(1, 1000))
    parent.table("t").set_nullable("v", False)
    parent.table("u").add_column("more", "INT")
    done = lake.replay("f", onto="p")
    assert {conflict.ours.name for conflict in done.refused} == {"t"}
    assert (fork.table("t").count(), fork.table("u").count()) == (ROWS, ROWS + 1)
    assert not fork.table("t").columns[1].nullable
    lake.merge("f", into="p")
    assert parent.table("u").count() == ROWS + 1


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda fork: fork.table("t").update({"v": "1"}, "id < 200"), "t"),
        (_upsert_and_rename, "renamed"),
        (_append_and_compact, "t"),
    ],
    ids=["update", "upsert, rename", "append, compact"],
)
def test_a_replay_drops_what_the_fork_changed_and_the_parent_dropped(
    lake: forklake.Lake, parent: forklake.Catalog, change: Callable[[forklake.Catalog], Any], name: str
) -> None:
    fork = lake.fork("p", "f")
    change(fork)
    fork.table("u").delete("id = 1")
    parent.drop_table("t")
    parent.create_table(name, "id INT")
    changed = fork.snapshot
    tables = sorted(table.name for table in fork.tables())
    assert {conflict.theirs.name for conflict in lake.replay("f", "p").refused} >= {"t"}
    assert {table.name for table in fork.tables()} == {name, "u"}
    assert sorted(table.name for table in fork.at(changed).tables()) == tables
    lake.merge("f", into="p")
    assert parent.table("u").count() == ROWS - 1
    assert parent.table(name).count() == 0
    assert fork.diff("p").is_empty


def test_rows_that_were_taken_back_stand_beside_a_drop(lake: forklake.Lake, parent: forklake.Catalog) -> None:
    fork = lake.fork("p", "f")
    start = fork.snapshot
    for name in ("t", "u"):
        fork.table(name).update({"v": "1"}, "id = 1")
        parent.drop_table(name)
    fork.undo(fork.snapshot)
    assert {conflict.ours.name for conflict in lake.merge("f", "p", dry_run=True).conflicts} == {"t"}
    fork.table("t").restore(start)
    lake.merge("f", into="p")
    assert not parent.tables()
