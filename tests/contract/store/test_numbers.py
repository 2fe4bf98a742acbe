"""Numbers of the store are handed out once, and rise in the order of commits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import forklake
from forklake.store.backend import Database
from tests.contract.store.rows import InThreads, many_processes


def test_numbers_are_drawn_as_many_as_asked_and_the_counters_stand_after_them(database: Database) -> None:
    with database.transaction() as session:
        first = session.allocate(catalog_ids=3, file_ids=2)
        second = session.allocate(catalog_ids=1)
        third = session.allocate(file_ids=500)
        session.commit()
    assert (first.snapshot_id, first.catalog_ids, first.file_ids) == (1, (0, 1, 2), (0, 1))
    assert (first.next_catalog_id, first.next_file_id) == (3, 2)
    assert (second.snapshot_id, second.catalog_ids, second.file_ids) == (2, (3,), ())
    assert (second.next_catalog_id, second.next_file_id) == (4, 2)
    assert (third.snapshot_id, third.catalog_ids, third.file_ids) == (3, (), tuple(range(2, 502)))
    assert (third.next_catalog_id, third.next_file_id) == (4, 502)
    assert first.snapshot_time.tzinfo is UTC
    assert abs(first.snapshot_time - datetime.now(UTC)) < timedelta(minutes=5)


def test_no_number_is_handed_out_twice_whatever_threads_do_and_roll_back(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], in_threads: InThreads
) -> None:
    def draw(handle: forklake.Lake) -> list[tuple[int, int]]:
        kept: list[tuple[int, int]] = []
        for turn in range(30):
            with handle._database.transaction() as session:
                numbers = session.allocate(catalog_ids=turn % 3, file_ids=1)
                if turn % 4 != 3:
                    session.commit()
                    kept += [(0, numbers.snapshot_id), (2, numbers.file_ids[0])]
                    kept += [(1, number) for number in numbers.catalog_ids]
        return kept

    handles = [lake, lake, reopen(), reopen()]
    drawn = [number for numbers in in_threads(*(lambda h=h: draw(h) for h in handles)) for number in numbers]
    assert len(drawn) == len(set(drawn)) == sum(2 + turn % 3 for turn in range(30) if turn % 4 != 3) * 4


DRAW = """
with forklake.connect(sys.argv[1]) as lake:
    say("ready")
    input()
    drawn = []
    for turn in range(60):
        with lake._database.transaction() as session:
            numbers = session.allocate(catalog_ids=2, file_ids=1)
            if turn % 5:
                session.commit()
                drawn += [["snapshot", numbers.snapshot_id], ["file", numbers.file_ids[0]]]
                drawn += [["catalog", number] for number in numbers.catalog_ids]
    say(drawn)
"""


@many_processes
def test_no_number_is_handed_out_twice_whatever_processes_do(
    lake: forklake.Lake, lake_url: str, program: Callable[..., Any]
) -> None:
    programs = [program(DRAW, lake_url) for _ in range(2)]
    assert [each.hear() for each in programs] == ["ready", "ready"]
    for each in programs:
        each.go_on()
    drawn = [tuple(number) for each in programs for number in each.hear()]
    assert len(drawn) == len(set(drawn)) == 2 * 48 * 4


def test_numbers_rise_in_the_order_of_commits_within_a_catalog(
    lake: forklake.Lake,
    reopen: Callable[..., forklake.Lake],
    catalog: forklake.Catalog,
    in_threads: InThreads,
) -> None:
    before_and_after: list[tuple[int, int]] = []

    def commit_many(database: Database) -> None:
        for _ in range(15):
            with database.transaction() as session:
                at, numbers = session.lock_head(catalog.id)
                assert at is not None
                session.execute(
                    "move_head",
                    catalog=catalog.id,
                    snapshot=numbers.snapshot_id,
                    time=numbers.snapshot_time,
                    schema_version=at.schema_version,
                )
                # Whoever holds the head is the only one to get here.
                before_and_after.append((at.snapshot_id, numbers.snapshot_id))
                session.commit()

    handles = [lake, lake, reopen(), reopen()]
    in_threads(*(lambda h=h: commit_many(h._database) for h in handles))
    assert len(before_and_after) == 60
    heads = [catalog_head for _, catalog_head in before_and_after]
    assert heads == sorted(set(heads))
    assert [before for before, _ in before_and_after] == [1, *heads[:-1]]


def test_no_commit_is_lost_and_every_snapshot_is_one_of_them_when_many_write_at_once(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], in_threads: InThreads
) -> None:
    lake.create_catalog("a")
    lake.create_catalog("b")

    def work(handle: forklake.Lake, catalog: str, worker: int) -> None:
        for turn in range(8):
            handle.catalog(catalog).create_schema(f"s_{worker}_{turn}")

    handles = [lake, reopen(), lake, reopen()]
    in_threads(*(lambda h=h, w=worker: work(h, "ab"[w % 2], w) for worker, h in enumerate(handles)))
    for place, name in enumerate("ab"):
        names = {schema.name for schema in lake.catalog(name).schemas()}
        assert names == {"main"} | {f"s_{w}_{turn}" for w in (place, place + 2) for turn in range(8)}
        history = [snapshot.id for snapshot in lake.snapshots(name)]
        assert len(history) == 17
        assert history == sorted(set(history))
    assert len(lake.snapshots()) == 1 + 2 + 32
