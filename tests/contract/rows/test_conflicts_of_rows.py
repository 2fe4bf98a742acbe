"""Two writers at once: what can stand beside each other does, all else is refused and leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import CommitConflict
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered

Verb = Callable[[forklake.Table], object]
START = [*range(MANY), *range(1000, 1000 + MANY), 5000, 5001]


@pytest.fixture
def two_files(table: forklake.Table) -> forklake.Table:
    """Rows 0 to 149 and 1000 to 1149 in two files, 5000 and 5001 inlined."""
    table.append(many())
    table.append(many(1000))
    table.append(numbered(5000, 5001))
    return table


def append(table: forklake.Table) -> object:
    return table.append(numbered(9000))


def append_many(table: forklake.Table) -> object:
    return table.append(many(9000))


def delete(table: forklake.Table) -> object:
    return table.delete("id = 3")


def delete_same(table: forklake.Table) -> object:
    return table.delete("id = 4")


def delete_other(table: forklake.Table) -> object:
    return table.delete("id = 1003")


def delete_inlined(table: forklake.Table) -> object:
    return table.delete("id = 5000")


def delete_all(table: forklake.Table) -> object:
    return table.delete()


def update(table: forklake.Table) -> object:
    return table.update({"v": "'u'"}, "id = 3")


def update_same(table: forklake.Table) -> object:
    return table.update({"v": "'w'"}, "id = 4")


def update_other(table: forklake.Table) -> object:
    return table.update({"v": "'w'"}, "id = 1004")


def merge_other(table: forklake.Table) -> object:
    return table.merge(numbered(1005, 9500, v="m"), "id")


def flush(table: forklake.Table) -> object:
    return table.flush_inlined()


def alter(table: forklake.Table) -> object:
    return table.add_column("n", "INT", default="7")


def require(table: forklake.Table) -> object:
    return table.set_nullable("v", False)


def partition(table: forklake.Table) -> object:
    return table.set_partitioning(["v"])


def rename(table: forklake.Table) -> object:
    return table.rename("renamed")


def comment(table: forklake.Table) -> object:
    return table.comment("text")


def drop(table: forklake.Table) -> object:
    return table.drop()


COMMUTE: list[tuple[Verb, Verb, int]] = [
    (append, append, 2),
    (append, append_many, MANY + 1),
    (append_many, append_many, 2 * MANY),
    (append, delete, 0),
    (delete, append_many, MANY - 1),
    (append, delete_all, 1 - len(START)),
    (delete_all, append, 1 - len(START)),
    (delete, delete_other, -2),
    (delete, delete_inlined, -2),
    (delete, update_other, -1),
    (update, update_other, 0),
    (update, merge_other, 1),
    (flush, append, 1),
    (append, flush, 1),
    (flush, delete, -1),
    (update, flush, 0),
    (append, alter, 1),
    (delete, alter, -1),
    (rename, append, 1),
    (comment, update, 0),
    (append, partition, 1),
]


@pytest.mark.parametrize(("theirs", "ours", "more"), COMMUTE, ids=lambda v: getattr(v, "__name__", str(v)))
def test_what_touches_different_rows_stands_beside_each_other(
    catalog: forklake.Catalog, two_files: forklake.Table, reopen, raw, theirs: Verb, ours: Verb, more: int
) -> None:
    other = reopen().catalog("main_catalog")
    before = catalog.snapshot
    tx = catalog.transaction()
    ours(tx.table("t"))
    theirs(other.table("t"))
    tx.commit()
    assert catalog.snapshot == before + 2
    rows = content(two_files)
    assert len(rows) == two_files.count() == len(START) + more
    assert len({row[0] for row in rows}) == len(rows)
    # The other handle, which knew an older state, sees the same.
    assert content(other.at(catalog.snapshot).table(two_files.name)) == rows
    statistics = raw(f"SELECT record_count FROM ducklake_table_stats WHERE table_id = {two_files.id}")
    assert statistics == [(len(rows),)]
    told = feed(two_files, before)
    came = sum(change[0] == "insert" for change in told)
    gone = sum(change[0] == "delete" for change in told)
    assert came - gone == more


COLLIDE: list[tuple[Verb, Verb]] = [
    (delete, delete),
    (delete, delete_same),
    (delete, delete_all),
    (delete_all, delete),
    (update, update),
    (update, update_same),
    (delete, update_same),
    (update, delete_same),
    (update_other, merge_other),
    (flush, delete_inlined),
    (delete_inlined, flush),
    (flush, flush),
    (flush, delete_all),
    (alter, append),
    (alter, append_many),
    (alter, delete),
    (alter, flush),
    (partition, append_many),
    (append, require),
    (drop, append),
    (drop, append_many),
    (drop, delete),
    (drop, flush),
]


@pytest.mark.parametrize(("theirs", "ours"), COLLIDE, ids=lambda verb: verb.__name__)
def test_what_touches_the_same_rows_is_refused_and_leaves_nothing(
    catalog: forklake.Catalog, two_files: forklake.Table, reopen, stored, theirs: Verb, ours: Verb
) -> None:
    other = reopen().catalog("main_catalog")
    two_files.set_option("data_inlining_row_limit", 0)
    tx = catalog.transaction()
    ours(tx.table("t"))
    theirs(other.table("t"))
    after, tables = catalog.snapshot, [info.name for info in other.tables()]
    rows = content(other.table("t")) if tables else None
    told = stored()
    with pytest.raises(CommitConflict) as caught:
        tx.commit()
    assert caught.value.conflicts[0].snapshot == after
    assert catalog.snapshot == after
    assert (content(other.table("t")) if tables else None) == rows
    # Files of the one that was refused are gone, those of the other are not.
    assert set(stored()) <= set(told)
    known = {file.path for info in tables for file in other.table(info).files()} - {None}
    assert known <= set(stored())


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(delete, delete_same), (update, update_same), (flush, delete_inlined), (alter, append)],
    ids=lambda verb: verb.__name__,
)
def test_a_verb_of_its_own_is_made_again_instead(
    two_files: forklake.Table, reopen, theirs: Verb, ours: Verb
) -> None:
    """Without a transaction nobody has seen the base, so the change is made on what is there now."""
    other = reopen().catalog("main_catalog").table("t")
    alone = {delete_same: 1, update_same: 1, delete_inlined: 1, append: 1}
    # It remembers the catalog as its own last commit left it, and that is not the present any more.
    other.comment("mine")
    theirs(two_files)
    assert ours(other) == alone[ours]
    expected = set(START) - ({3} if theirs is delete else set())
    expected -= {4} if ours is delete_same else {5000} if ours is delete_inlined else set()
    expected |= {9000} if ours is append else set()
    assert ids(two_files) == ids(other) == sorted(expected)


def test_a_drop_takes_rows_along_that_came_after_it_was_staged(
    catalog: forklake.Catalog, two_files: forklake.Table, reopen, raw
) -> None:
    other = reopen().catalog("main_catalog").table("t")
    tx = catalog.transaction()
    tx.drop_table("t")
    other.append(many(7000))
    other.append(numbered(8000))
    last = catalog.snapshot
    tx.commit()
    assert catalog.tables() == []
    live = "SELECT count(*) FROM ducklake_{} WHERE end_snapshot IS NULL"
    assert raw(live.format("data_file")) == raw(live.format("delete_file")) == [(0,)]
    assert len(ids(catalog.table("t", at=last))) == len(START) + MANY + 1


def test_many_writers_append_at_once(
    catalog: forklake.Catalog, table: forklake.Table, reopen, in_threads
) -> None:
    handles = [reopen().catalog("main_catalog").table("t") for _ in range(4)]

    def write(handle: forklake.Table, writer: int) -> None:
        for turn in range(5):
            handle.append(numbered(writer * 10_000 + turn))
        handle.append(many(writer * 10_000 + 1000))

    in_threads(*(lambda h=handle, w=writer: write(h, w) for writer, handle in enumerate(handles)))
    rows = content(table)
    assert len(rows) == table.count() == 4 * (5 + MANY)
    assert [row[0] for row in rows] == list(range(len(rows)))
    assert len({row[1] for row in rows}) == len(rows)


def test_a_file_becomes_part_of_a_table_once_whoever_imports_it(
    catalog: forklake.Catalog, table: forklake.Table, tmp_path: Path
) -> None:
    path = tmp_path / "one.parquet"
    pq.write_table(numbered(1, 2), path)
    with pytest.raises(CommitConflict, match="both import one file"), catalog.transaction() as late:
        late.table("t").add_files(path, mapping="by_name")
        with catalog.transaction() as early:
            early.table("t").add_files(path, mapping="by_name")
    assert ids(table) == [1, 2]


def test_a_key_that_two_merges_bring_at_once_comes_once(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    with pytest.raises(CommitConflict, match="not looked at"), catalog.transaction() as late:
        late.table("t").merge(numbered(1, v="late"), "id")
        table.merge(numbered(1, v="early"), "id")
    assert [row[1:] for row in content(table)] == [(1, "early")]
    # An append that came first is no reason to refuse a merge outside a transaction: it is made again.
    table.append(numbered(7))
    assert table.merge(numbered(7, v="seen"), "id").updated == 1
    assert [row[1:] for row in content(table)] == [(1, "early"), (7, "seen")]
