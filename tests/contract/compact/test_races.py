"""Compaction beside others: appends never disturb it, and where rows go it gives way and tries again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import forklake
from forklake.compact import compaction as compacting
from forklake.compact.run import run
from forklake.errors import CommitConflict
from tests.contract.rows.shown import content, feed, numbered


@pytest.fixture
def many(table: forklake.Table) -> forklake.Table:
    """Three groups of small files, by partition."""
    table.set_partitioning(["v"])
    for v in "abc":
        for start in (0, 10, 20):
            table.append(numbered(*range(start, start + 5), v=v))
    return table


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let something happen after so many rewrites were run; returns a list of what was rewritten, and why."""

    def arrange(*events: Callable[[], Any]) -> list[str]:
        waiting, ran = list(events), list[str]()

        def noting(rewrite: Any, *args: Any) -> Any:
            done = run(rewrite, *args)
            ran.append((rewrite.partition_values or ("inlined",))[0])
            if waiting:
                waiting.pop(0)()
            return done

        monkeypatch.setattr(compacting, "run", noting)
        return ran

    return arrange


def test_appends_do_not_conflict_and_nothing_is_done_again(
    catalog: forklake.Catalog, many: forklake.Table, meanwhile
) -> None:
    before = len(content(many))
    ran = meanwhile(*(lambda n=n: many.append(numbered(n, n + 1, n + 2, v="a")) for n in (100, 200, 300)))
    (told,) = catalog.compact().tables
    assert ran == ["a", "b", "c"]
    assert (told.files_in, told.files_out, told.given_up) == (9, 3, 0)
    assert len(content(many)) == many.count() == before + 9
    assert len(many.files()) == 6


@pytest.mark.parametrize("how", ["delete", "update", "overwrite"])
def test_only_what_others_touched_is_done_again(
    catalog: forklake.Catalog, many: forklake.Table, meanwhile, stored, how: str
) -> None:
    rows, start = content(many), catalog.snapshot
    change = {
        "delete": lambda: many.delete("v = 'b' AND id = 3"),
        "update": lambda: many.update({"id": "1003"}, "v = 'b' AND id = 3"),
        "overwrite": lambda: many.overwrite(numbered(1003, v="b"), "v = 'b' AND id = 3"),
    }[how]
    ran = meanwhile(lambda: None, lambda: None, change)
    (told,) = catalog.compact().tables
    assert ran[:3] == ["a", "b", "c"]
    assert ran.count("a") == ran.count("c") == 1
    assert ran.count("b") >= 1
    assert told.given_up == 0
    assert told.files_out == 3 + (how != "delete")
    gone = next(row for row in rows if row[1:] == (3, "b"))
    changes = [change[0] for change in feed(many, start)]
    assert gone not in content(many)
    assert len(content(many)) == many.count() == len(rows) - (how == "delete")
    assert (
        changes
        == {
            "delete": ["delete"],
            "update": ["update_preimage", "update_postimage"],
            "overwrite": ["delete", "insert"],
        }[how]
    )
    # What came too late was removed: every file is one that some snapshot shows.
    assert len(stored()) == 9 + 3 + (how != "delete")


def test_files_that_are_changed_again_and_again_are_left_alone(
    catalog: forklake.Catalog, many: forklake.Table, meanwhile
) -> None:
    rows = content(many)
    doomed = [0, 10, 20, 1, 11]
    # The first round rewrites three groups, each of the others the first one only.
    events = [lambda: None, lambda: None]
    events += [lambda n=n: many.delete(f"v = 'a' AND id = {n}") for n in doomed]
    assert len(doomed) == compacting.ROUNDS
    ran = meanwhile(*events)
    (told,) = catalog.compact().tables
    assert ran == ["a", "b", "c", *["a"] * (compacting.ROUNDS - 1)]
    assert (told.files_in, told.files_out, told.given_up) == (6, 2, 3)
    assert len(content(many)) == len(rows) - compacting.ROUNDS
    assert catalog.compact().files_in == 3


def test_two_compactions_of_one_table_do_its_work_once(
    catalog: forklake.Catalog, many: forklake.Table, meanwhile, reopen
) -> None:
    rows, start = content(many), catalog.snapshot
    other = reopen().catalog("main_catalog")
    ran = meanwhile(lambda: None, lambda: other.compact())
    told = catalog.compact()
    assert sorted(ran) == list("aabbcc")
    assert told.files_in == 0
    assert len(many.files()) == 3
    assert content(many) == rows
    assert feed(many, start) == []


def test_a_table_that_is_altered_meanwhile_is_compacted_as_it_is_then(
    catalog: forklake.Catalog, many: forklake.Table, meanwhile
) -> None:
    ran = meanwhile(lambda: many.add_column("n", "INT", default="7"))
    assert catalog.compact().files_out == 3
    assert len(ran) == 6
    assert {row[3] for row in content(many)} == {7}
    assert many.scan("n = 7").count() == 45


def test_a_table_that_is_dropped_meanwhile_is_left_alone(
    catalog: forklake.Catalog, many: forklake.Table, meanwhile, stored
) -> None:
    files = stored()
    meanwhile(many.drop)
    assert catalog.compact().tables == ()
    assert stored() == files


def test_transactions_meet_compactions_by_the_rules(catalog: forklake.Catalog, many: forklake.Table) -> None:
    for change, collides in (
        (lambda tx: tx.table("t").append(numbered(1, 2, 3)), False),
        (lambda tx: tx.table("t").delete("id = 1"), True),
        (lambda tx: tx.compact(), True),
        (lambda tx: tx.table("t").rename("u"), False),
    ):
        many.append(numbered(50, 51, 52, v="a"))
        many.append(numbered(53, 54, 55, v="a"))
        rows = many.count()
        tx = catalog.transaction()
        change(tx)
        assert many.compact().files_out > 0
        if collides:
            with pytest.raises(CommitConflict, match="was compacted"):
                tx.commit()
            assert many.count() == rows
        else:
            tx.commit()
    assert many.name == "u"


def test_a_delete_that_began_before_a_compaction_is_made_on_the_new_files(
    catalog: forklake.Catalog, many: forklake.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, compacted = forklake.Table._delete, list[Any]()

    def late(self: Any, *args: Any) -> Any:
        deleted = original(self, *args)
        if not compacted:
            compacted.append(catalog.compact())
        return deleted

    monkeypatch.setattr(forklake.Table, "_delete", late)
    rows = content(many)
    assert many.delete("id = 3") == 3
    assert content(many) == [row for row in rows if row[1] != 3]


def test_threads_and_handles_that_write_and_compact_lose_nothing(
    catalog: forklake.Catalog, table: forklake.Table, reopen, in_threads
) -> None:
    """Every row is there once with the id that it was given, whatever got in between."""
    url_lakes = [reopen() for _ in range(4)]
    handles = [lake.catalog("main_catalog") for lake in url_lakes]
    table.append(numbered(*range(1000, 1030)))

    def append() -> None:
        for n in range(8):
            handles[0].table("t").append(numbered(*range(n * 10, n * 10 + 4 + n % 2 * 4)))

    def delete() -> None:
        for n in range(1000, 1006):
            handles[1].table("t").delete(f"id = {n}")

    def compact(at: int) -> Callable[[], None]:
        def work() -> None:
            for _ in range(4):
                handles[at].compact()
                handles[at].rewrite_deletes(0)

        return work

    start = catalog.snapshot
    known = {row[0]: row[1:] for row in content(table)}
    in_threads(append, delete, compact(2), compact(3))
    expected = sorted([*(n * 10 + at for n in range(8) for at in range(4 + n % 2 * 4)), *range(1006, 1030)])
    rows = content(table)
    assert sorted(row[1] for row in rows) == expected
    assert len({row[0] for row in rows}) == len(rows) == table.count() == table.stats().record_count
    for change in feed(table, start):
        if change[0] == "insert":
            assert change[2] not in known
            known[change[2]] = change[3:]
        else:
            assert change[0] == "delete"
            assert known.pop(change[2]) == change[3:]
    assert known == {row[0]: row[1:] for row in rows}


COMPACT = """
with forklake.connect(sys.argv[1]) as lake:
    catalog = lake.catalog("main_catalog")
    say("ready")
    told = [catalog.compact() for _ in range(4)]
    told += [catalog.rewrite_deletes(0) for _ in range(2)]
    say(sum(one.files_in for one in told))
"""


def test_processes_that_write_and_compact_lose_nothing(
    lake_url: str, catalog: forklake.Catalog, table: forklake.Table, program
) -> None:
    if lake_url.startswith("duckdb"):
        pytest.skip("DuckDB lets one process at a time open a file")
    for start in range(0, 30, 5):
        table.append(numbered(*range(start, start + 5)))
    others = [program(COMPACT, lake_url) for _ in range(2)]
    assert [other.hear() for other in others] == ["ready", "ready"]
    for n in range(6):
        table.append(numbered(*range(1000 + n * 5, 1005 + n * 5)))
        table.delete(f"id = {n * 5}")
        table.update({"v": "'u'"}, f"id = {n * 5 + 1}")
    assert sum(other.hear() for other in others) >= 6
    assert [other.wait() for other in others] == [0, 0]
    rows = content(table)
    assert sorted(row[1] for row in rows) == [n for n in (*range(30), *range(1000, 1030)) if n >= 30 or n % 5]
    assert {row[1] for row in rows if row[2] == "u"} == {n for n in range(30) if n % 5 == 1}
    assert len({row[0] for row in rows}) == table.count() == len(rows)
