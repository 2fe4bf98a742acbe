"""Writers of one catalog wait for each other, and readers wait for nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import forklake
from forklake.model.ids import CatalogId
from forklake.store.backend import Database
from forklake.store.row_sets import RowSet
from tests.contract.store.rows import (
    A_WHILE,
    SCHEMA_COLUMNS,
    InThreads,
    RunSql,
    many_processes,
    only_postgresql,
    schema_rows,
    write,
    written,
)


def test_a_writer_waits_for_the_head_that_another_holds_and_then_sees_what_it_did(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], head: CatalogId
) -> None:
    other = reopen()
    seen: list[Any] = []

    def second_writer() -> None:
        with other._database.transaction() as session:
            seen.append(session.lock_head(head))

    waiting = threading.Thread(target=second_writer)
    with lake._database.transaction() as session:
        at, numbers = session.lock_head(head)
        assert at is not None
        session.execute(
            "move_head",
            catalog=head,
            snapshot=numbers.snapshot_id,
            time=numbers.snapshot_time,
            schema_version=7,
        )
        waiting.start()
        waiting.join(A_WHILE)
        assert waiting.is_alive()
        assert seen == []
        session.commit()
    waiting.join()
    (found, later), *_ = seen
    assert (found.snapshot_id, found.schema_version) == (numbers.snapshot_id, 7)
    assert later.snapshot_id > numbers.snapshot_id


@only_postgresql
def test_writers_of_other_catalogs_do_not_wait(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], head: CatalogId, in_threads: InThreads
) -> None:
    lake.create_catalog("other")
    with lake._database.transaction() as session:
        _, numbers = session.lock_head(head, catalog_ids=2)
        write(session, "held")
        in_threads(
            lambda: lake.catalog("other").create_schema("meanwhile"),
            lambda: reopen().create_catalog("new").create_schema("meanwhile"),
        )
        assert session.rows("setting", key="held") == [("test",)]
        session.commit()
    assert lake.catalog("other").snapshot > numbers.snapshot_id
    assert "meanwhile" in [schema.name for schema in lake.catalog("other").schemas()]


def test_the_head_of_a_catalog_that_does_not_exist_is_none(database: Database) -> None:
    with database.transaction() as session:
        assert session.lock_head(CatalogId(12345), catalog_ids=1) is None


def test_readers_are_not_blocked_by_a_writer_and_do_not_see_its_rows(
    lake: forklake.Lake,
    reopen: Callable[..., forklake.Lake],
    catalog: forklake.Catalog,
    in_threads: InThreads,
) -> None:
    def read(handle: forklake.Lake) -> tuple[Any, ...]:
        found = handle.catalog("main_catalog")
        settings = handle._database.rows("setting", key="unseen")
        return found.snapshot, [schema.name for schema in found.schemas()], found.tables(), settings

    with lake._database.transaction() as session:
        _, numbers = session.lock_head(catalog.id)
        write(session, "unseen")
        session.insert(RowSet("ducklake_schema", SCHEMA_COLUMNS), schema_rows(2000))
        session.execute(
            "move_head",
            catalog=catalog.id,
            snapshot=numbers.snapshot_id,
            time=numbers.snapshot_time,
            schema_version=1,
        )
        seen = in_threads(*(lambda h=h: read(h) for h in (lake, lake, reopen(), reopen())))
        assert seen == [(1, ["main"], [], [])] * 4
        session.commit()
    assert read(lake)[0] == numbers.snapshot_id


def test_many_threads_read_through_one_handle(
    lake: forklake.Lake, catalog: forklake.Catalog, in_threads: InThreads
) -> None:
    catalog.create_schema("s")

    def read() -> set[tuple[int, str]]:
        return {(catalog.snapshot, lake.catalog("main_catalog").schemas()[1].name) for _ in range(20)}

    assert in_threads(*[read] * 12) == [{(2, "s")}] * 12


HOLD = """
from forklake.store.row_sets import SETTINGS
with forklake.connect(sys.argv[1]) as lake:
    session = lake._database.transaction()
    session.lock_head(0)
    session.insert(SETTINGS, [("lost", "test")])
    session.rows("setting", key="lost")
    say("held")
    input()
"""


@many_processes
def test_a_process_that_is_killed_leaves_nothing_and_frees_its_lock(
    lake_url: str,
    database: Database,
    head: CatalogId,
    raw: RunSql,
    program: Callable[..., Any],
    in_threads: InThreads,
) -> None:
    assert head == 0
    holder = program(HOLD, lake_url)
    assert holder.hear() == "held"
    holder.kill()

    def next_writer() -> None:
        with database.transaction() as session:
            session.lock_head(head)
            write(session, "kept")
            session.commit()

    in_threads(next_writer)
    assert written(raw) == ["kept"]
