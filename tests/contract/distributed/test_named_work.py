"""Work that is committed under a name is committed once, in a catalog and in what is forked from it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import forklake
from forklake.distributed import write_part
from tests.contract.rows.shown import ids, many, numbered


def test_work_of_a_name_is_done_once_however_it_is_done(
    lake: forklake.Lake,
    catalog: forklake.Catalog,
    table: forklake.Table,
    stored: Callable[[], list[str]],
    reopen,
) -> None:
    def distributed(catalog: forklake.Catalog, start: int, once: str) -> int:
        ds = catalog.begin_distributed()
        return catalog.commit_distributed(ds, [write_part(ds, "t", many(start))], once=once)

    first = distributed(catalog, 0, "load/1")
    files = stored()
    elsewhere = reopen().catalog("main_catalog")
    assert distributed(elsewhere, 0, "load/1") == first
    with elsewhere.transaction(once="load/1") as tx:
        tx.table("t").append(many(1000))
        tx.create_table("other", "id INT")
    assert tx.snapshot is None
    assert catalog.snapshot == first
    assert stored() == files

    with catalog.transaction(once="load/2", extra={"why": "a test"}) as tx:
        tx.table("t").append(numbered(5000))
    assert tx.snapshot == catalog.snapshot
    assert catalog.snapshots()[-1].extra == {"why": "a test"}
    fork = lake.fork(catalog, "fork")
    assert distributed(catalog, 6000, "load/3") == catalog.snapshot
    for name, again in (("load/1", True), ("load/2", True), ("load/3", False)):
        before = fork.snapshot
        done = distributed(fork, 7000, name)
        assert (fork.snapshot == before) is again, name
        assert done <= fork.snapshot
    copied = lake.fork(catalog, "copied", mode="copy")
    before = copied.snapshot
    assert distributed(copied, 0, "load/2") == tx.snapshot
    assert copied.snapshot == before


def test_of_many_who_do_the_same_work_one_commits(
    catalog: forklake.Catalog, table: forklake.Table, stored: Callable[[], list[str]]
) -> None:
    def work(number: int) -> int:
        ds = catalog.begin_distributed()
        return catalog.commit_distributed(ds, [write_part(ds, "t", many(number * 1000))], once="the work")

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(work, range(4)))
    assert found == {catalog.snapshot}
    assert len(ids(table)) == len(many(0))
    assert len(stored()) == 1


def test_a_refused_commit_does_not_take_the_name(catalog: forklake.Catalog, table: forklake.Table) -> None:
    mine = catalog.transaction(once="work")
    mine.table("t").add_column("a", "INT")
    table.add_column("b", "INT")
    with pytest.raises(forklake.CommitConflict):
        mine.commit()
    with catalog.transaction(once="work") as tx:
        tx.table("t").append(numbered(1))
    assert ids(table) == [1]
    for bad in ("", 7, "a\0b"):
        with pytest.raises(forklake.InvalidArgument):
            catalog.transaction(once=bad)  # type: ignore[arg-type]
