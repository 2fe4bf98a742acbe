"""Chains of forks whose middle is dropped: they are shortened, and nobody notices but the database."""

from __future__ import annotations

from typing import Any

import pytest

import forklake
from forklake.store.tables import TABLES
from tests.contract.maintenance.cleaned import NOW, RunSql, clean, ids, rows

LINKS = 6


def counted(raw: RunSql) -> dict[str, int]:
    return {name: raw(f"SELECT count(*) FROM {name}")[0][0] for name in TABLES}


@pytest.fixture
def first(lake: forklake.Lake) -> forklake.Catalog:
    lake.set_option("data_inlining_row_limit", 0)
    shop = lake.create_catalog("shop")
    shop.create_table("t", "id INT, v VARCHAR").append(rows(0, 4))
    return shop


def link(lake: forklake.Lake, parent: str, number: int, *, writes: bool) -> forklake.Catalog:
    """A fork that takes the place of its parent."""
    made = lake.fork(parent, f"link {number}")
    if writes:
        made.table("t").overwrite(rows(10 * number, 10 * number + 3))
        made.table("t").delete(f"id = {10 * number}")
    return made


@pytest.mark.parametrize("writes", [True, False])
def test_a_catalog_that_is_forked_and_dropped_again_and_again_does_not_grow(
    lake: forklake.Lake, first: forklake.Catalog, raw: RunSql, writes: bool
) -> None:
    last, counts = first, list[dict[str, int]]()
    for number in range(1, LINKS + 1):
        new = link(lake, last.name, number, writes=writes)
        beside = lake.fork(new.name, f"beside {number}")
        lake.drop_catalog(last.name)
        clean(lake)
        clean(lake)
        assert lake.check().is_clean
        parents = {one.name: (one.parent, one.depth) for one in lake.catalogs()}
        assert parents[new.name][0] == last.name
        assert parents[beside.name] == (new.name, parents[new.name][1] + 1)
        lake.merge(beside, new)
        lake.drop_catalog(beside)
        counts.append(counted(raw))
        last = new
    assert counts[-1] == counts[-2]
    expected = [10 * LINKS + 1, 10 * LINKS + 2] if writes else [0, 1, 2, 3]
    assert ids(last) == expected
    fork = lake.fork(last.name, "fork")
    fork.table("t").append(rows(1000, 1001))
    last.table("t").delete(f"id = {expected[0]}")
    lake.merge(fork, last)
    assert ids(last) == [*expected[1:], 1000]
    lake.drop_catalogs([last.name, "fork"])
    clean(lake)
    clean(lake)
    left = counted(raw)
    assert {name for name, number in left.items() if number} <= {
        "ducklake_metadata",
        "ducklake_snapshot",
        "ducklake_counter",
    }


def test_what_relatives_have_not_seen_is_kept_for_merges(
    lake: forklake.Lake, first: forklake.Catalog, raw: RunSql
) -> None:
    """The first one lives on, and what was done since it was forked is news to it."""
    last, deepest = first, list[int]()
    for number in range(1, LINKS + 1):
        new = link(lake, last.name, number, writes=True)
        if last is not first:
            lake.drop_catalog(last.name)
        clean(lake)
        last = new
    first.table("t").append(rows(500, 501))
    assert lake.check().is_clean
    lake.merge(last, first)
    assert ids(first) == [10 * LINKS + 1, 10 * LINKS + 2, 500]
    deepest = [one.depth for one in lake.catalogs()]
    assert sorted(deepest) == [0, LINKS]


def test_who_did_nothing_is_left_out_beside_a_parent_that_lives(
    lake: forklake.Lake, first: forklake.Catalog, raw: RunSql
) -> None:
    last = first
    for number in range(1, LINKS + 1):
        new = link(lake, last.name, number, writes=False)
        if last is not first:
            lake.drop_catalog(last.name)
        last = new
    clean(lake)
    assert {one.name: (one.parent, one.depth) for one in lake.catalogs()} == {
        "shop": (None, 0),
        last.name: (f"link {LINKS - 1}", 2),
    }
    last.table("t").delete("id < 2")
    first.table("t").append(rows(500, 501))
    lake.merge(last, first)
    assert ids(first) == [2, 3, 500]
    assert lake.check().is_clean


def test_whoever_reads_the_history_keeps_the_chain(
    lake: forklake.Lake, first: forklake.Catalog, raw: Any
) -> None:
    second = link(lake, "shop", 1, writes=True)
    third = link(lake, second.name, 2, writes=True)
    fourth = link(lake, third.name, 3, writes=True)
    past = {at.id: ids(fourth.at(at.id)) for at in fourth.snapshots() if at.id > first.snapshot}
    lake.drop_catalogs(["shop", second.name, third.name])
    # The others are forgotten, and this one keeps what it inherited.
    lake.expire(older_than=NOW, keep_last=100)
    lake.collect_garbage(older_than=NOW)
    assert {at: ids(fourth.at(at)) for at in past} == past
    assert [one.depth for one in lake.catalogs()] == [3]
