"""What the store promises on every database: transactions, set-based writes, numbers, locks, readers."""

from __future__ import annotations

import gc
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import forklake
from forklake.errors import CatalogExists, CorruptMetadata, StoreError, TransactionClosed
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database, Session, UniqueViolation, as_time
from forklake.store.row_sets import SETTINGS, RowSet

RunSql = Callable[..., list[tuple[Any, ...]]]
InThreads = Callable[..., list[Any]]

A_WHILE = 0.4
"""Seconds in which something that should wait may show that it does not. Nothing fails for taking longer."""

many_processes = pytest.mark.parametrize("lake_url", ["sqlite", "postgresql", "pgbouncer"], indirect=True)
"""DuckDB lets only one process open a file, and it does not survive a fork."""
only_postgresql = pytest.mark.parametrize("lake_url", ["postgresql"], indirect=True)


def write(session: Session, *keys: str) -> None:
    session.insert(SETTINGS, [(key, "test") for key in keys])


def keyed(table: str, keys: tuple[str, ...]) -> RowSet:
    """Rows that are named by their keys, to be ended."""
    return RowSet(table, keys, len(keys))


def written(raw: RunSql) -> list[str]:
    return [key for (key,) in raw("SELECT key FROM ducklake_metadata WHERE value = 'test' ORDER BY key")]


def commit_one(database: Database, key: str) -> None:
    with database.transaction() as session:
        write(session, key)
        session.commit()


@pytest.fixture
def head(database: Database, catalog: forklake.Catalog) -> CatalogId:
    """A catalog whose head can be locked."""
    return catalog.id


# ---- Transactions ---------------------------------------------------------------------------------------


def test_a_committed_transaction_stays(database: Database, raw: RunSql, head: CatalogId) -> None:
    with database.transaction() as session:
        write(session, "a", "b")
        session.execute("move_head", catalog=head, snapshot=5, time=datetime.now(UTC), schema_version=6)
        session.commit()
    assert written(raw) == ["a", "b"]
    assert raw("SELECT snapshot_id, schema_version FROM ducklake_catalog_head") == [(5, 6)]


def leave_without_commit(database: Database, head: CatalogId) -> None:
    with database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")


def leave_by_exception(database: Database, head: CatalogId) -> None:
    with suppress(ZeroDivisionError), database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")
        raise ZeroDivisionError


def leave_by_interrupt(database: Database, head: CatalogId) -> None:
    with suppress(KeyboardInterrupt), database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")
        raise KeyboardInterrupt


def roll_back(database: Database, head: CatalogId) -> None:
    session = database.transaction()
    session.lock_head(head)
    write(session, "lost")
    session.rollback()


def forget(database: Database, head: CatalogId) -> None:
    session = database.transaction()
    session.lock_head(head)
    write(session, "lost")
    del session
    gc.collect()


def forget_in_a_thread(database: Database, head: CatalogId) -> None:
    thread = threading.Thread(target=forget, args=(database, head))
    thread.start()
    thread.join()


def forget_in_a_cycle(database: Database, head: CatalogId) -> None:
    session = database.transaction()
    session.lock_head(head)
    write(session, "lost")
    cycle: list[Any] = [session]
    cycle.append(cycle)
    del session, cycle
    gc.collect()


def fail_on_a_key(database: Database, head: CatalogId) -> None:
    with pytest.raises(UniqueViolation), database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")
        numbers = ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id")
        session.insert(RowSet("ducklake_snapshot", numbers), [(0, datetime.now(UTC), 0, 0, 0)])
        session.commit()


def fail_on_an_end(database: Database, head: CatalogId) -> None:
    with pytest.raises(CorruptMetadata), database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")
        session.end_rows(keyed("ducklake_schema", ("schema_id",)), [(99,)], catalog=head, end=SnapshotId(5))
        session.commit()


@pytest.mark.parametrize(
    "abandon",
    [
        leave_without_commit,
        leave_by_exception,
        leave_by_interrupt,
        roll_back,
        forget,
        forget_in_a_thread,
        forget_in_a_cycle,
        fail_on_a_key,
        fail_on_an_end,
    ],
)
def test_a_transaction_that_is_not_committed_leaves_nothing_and_frees_its_lock(
    database: Database,
    raw: RunSql,
    head: CatalogId,
    in_threads: InThreads,
    abandon: Callable[[Database, CatalogId], None],
) -> None:
    abandon(database, head)
    assert written(raw) == []

    def next_writer() -> None:
        with database.transaction() as session:
            assert session.lock_head(head) is not None
            write(session, "kept")
            session.commit()

    in_threads(next_writer)
    assert written(raw) == ["kept"]


def test_abandoned_transactions_never_use_up_the_connections(
    lake_url: str, lake: forklake.Lake, reopen: Callable[..., forklake.Lake], raw: RunSql
) -> None:
    lake.create_catalog("a")
    url = f"{lake_url}&pool_size=2" if lake_url.startswith("postgresql") else lake_url
    database = reopen(url)._database
    for abandon in (leave_without_commit, forget, fail_on_a_key, fail_on_an_end) * 5:
        abandon(database, CatalogId(0))
    commit_one(database, "kept")
    assert written(raw) == ["kept"]


def test_writers_are_not_held_up_by_a_lake_that_was_closed_with_a_transaction_open(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], raw: RunSql
) -> None:
    other = reopen()
    session = other._database.transaction()
    write(session, "lost")
    other.close()
    del session
    gc.collect()
    commit_one(lake._database, "kept")
    assert written(raw) == ["kept"]


USES: dict[str, Callable[[Session], object]] = {
    "rows": lambda session: session.rows("latest_snapshot"),
    "execute": lambda session: session.execute("end_catalog", catalog=0, snapshot=2),
    "insert": lambda session: write(session, "late"),
    "end_rows": lambda session: session.end_rows(
        keyed("ducklake_schema", ("schema_id",)), [(1,)], catalog=CatalogId(0), end=SnapshotId(2)
    ),
    "allocate": lambda session: session.allocate(),
    "lock_head": lambda session: session.lock_head(CatalogId(0)),
    "commit": lambda session: session.commit(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transaction_that_has_ended_refuses_to_be_used(
    database: Database, raw: RunSql, end: str, use: Callable[[Session], object]
) -> None:
    session = database.transaction()
    write(session, "early")
    getattr(session, end)()
    with pytest.raises(TransactionClosed):
        use(session)
    session.rollback()
    assert written(raw) == (["early"] if end == "commit" else [])


def test_a_transaction_sees_its_own_rows_and_nobody_else_does_before_the_commit(
    database: Database, in_threads: InThreads
) -> None:
    with database.transaction() as session:
        write(session, "mine")
        assert session.rows("setting", key="mine") == [("test",)]
        assert in_threads(lambda: database.rows("setting", key="mine")) == [[]]
        session.commit()
    assert in_threads(lambda: database.rows("setting", key="mine")) == [[("test",)]]


def test_a_commit_is_seen_by_every_handle_and_every_other_client_at_once(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], raw: RunSql
) -> None:
    other = reopen()
    for number in range(10):
        writer, reader = (lake, other) if number % 2 else (other, lake)
        commit_one(writer._database, f"key{number}")
        assert reader._database.rows("setting", key=f"key{number}") == [("test",)]
        assert len(written(raw)) == number + 1


def test_a_statement_that_does_not_exist_leaves_the_transaction_usable(
    database: Database, raw: RunSql
) -> None:
    with database.transaction() as session:
        with pytest.raises(KeyError):
            session.rows("no_such_statement")
        write(session, "kept")
        session.commit()
    assert written(raw) == ["kept"]


# ---- Rows in sets ---------------------------------------------------------------------------------------

TEXTS = [
    "",
    "'",
    '"',
    "''; DROP TABLE ducklake_schema; --",
    "\\",
    "\\N",
    "%s %% %(x)s $1 $name ? :x",
    "Ünï ✓ 𝄞 \u202e e\u0301",
    "line\nbreak\r\n\ttab\x7f\x01",
    "NULL",
    "null",
    "true",
    "{}",
    '{"a": [1, "2"]}',
    "{1,2,NULL}",
    "0123",
    " spaces ",
    "x" * 300,
    None,
]
INTEGERS = [0, 1, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), None]
TIMES = [
    datetime(2024, 2, 29, 12, 34, 56, 789_012, UTC),
    datetime(2024, 2, 29, 12, 34, 56, 1, UTC),
    datetime(2024, 2, 29, 12, 34, 56, 0, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    datetime(1900, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 30, 23, 59, 59, 999_999, UTC),
    datetime(2024, 6, 1, 0, 0, 0, 5, timezone(timedelta(hours=5, minutes=30))),
    datetime(2024, 6, 1, 23, 0, 0, 5, timezone(-timedelta(hours=9))),
    None,
]

NAME_COLUMNS = ("catalog_id", "catalog_uuid", "catalog_name", "begin_snapshot")
SCHEMA_COLUMNS = (
    "catalog_id",
    "schema_id",
    "begin_snapshot",
    "end_snapshot",
    "schema_uuid",
    "schema_name",
    "path",
    "path_is_relative",
)
READ_SCHEMAS = (
    f"SELECT {', '.join(SCHEMA_COLUMNS)} FROM ducklake_schema WHERE catalog_id >= 900 ORDER BY schema_id"
)


def schema_rows(count: int) -> list[tuple[Any, ...]]:
    """Rows of every kind but times; each column is None in some of them."""
    return [
        (
            900,
            number,
            INTEGERS[number % len(INTEGERS)] or 0,
            INTEGERS[number % len(INTEGERS)],
            None if number % 5 == 4 else str(uuid.UUID(int=number)),
            f"name {number}",
            TEXTS[number % len(TEXTS)],
            (True, False, None)[number % 3],
        )
        for number in range(count)
    ]


def as_stored(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows as the drivers return them, in one form: SQLite has texts for uuids and numbers for booleans."""
    return [
        (
            *row[:4],
            None if row[4] is None else str(row[4]),
            *row[5:7],
            None if row[7] is None else bool(row[7]),
        )
        for row in rows
    ]


@pytest.mark.parametrize("count", [1, len(TEXTS) * len(INTEGERS), 1000, 20_000])
def test_rows_of_every_kind_are_inserted_as_they_are(database: Database, raw: RunSql, count: int) -> None:
    rows = schema_rows(count)
    with database.transaction() as session:
        session.insert(RowSet("ducklake_schema", SCHEMA_COLUMNS), rows)
        session.commit()
    assert as_stored(raw(READ_SCHEMAS)) == rows


def test_a_set_larger_than_any_buffer_on_the_way_is_inserted(database: Database, raw: RunSql) -> None:
    # 40 MB: the statistics of some hundred thousand files.
    rows = [(900, number, 1, f"{number:06}" + "x" * 20_000) for number in range(2000)]
    with database.transaction() as session:
        session.insert(RowSet("ducklake_schema", ("catalog_id", "schema_id", "begin_snapshot", "path")), rows)
        session.commit()
    assert raw("SELECT count(*), sum(length(path)), max(path) FROM ducklake_schema") == [
        (2000, 2000 * 20_006, rows[-1][3])
    ]


def test_columns_may_be_given_in_any_order_and_left_out(database: Database, raw: RunSql) -> None:
    with database.transaction() as session:
        session.insert(
            RowSet("ducklake_schema", ("path", "begin_snapshot", "schema_id", "catalog_id")),
            [("p", 7, 1, 900), (None, 8, 2, 900)],
        )
        session.commit()
    assert as_stored(raw(READ_SCHEMAS)) == [
        (900, 1, 7, None, None, None, "p", None),
        (900, 2, 8, None, None, None, None, None),
    ]


def test_times_keep_their_microseconds_and_their_moment(database: Database, raw: RunSql) -> None:
    columns = ("catalog_id", "path", "schedule_start")
    rows = [(900, f"{number:02}", timestamp) for number, timestamp in enumerate(TIMES)]
    with database.transaction() as session:
        session.insert(RowSet("ducklake_files_scheduled_for_deletion", columns), rows)
        session.commit()
    found = raw("SELECT schedule_start FROM ducklake_files_scheduled_for_deletion ORDER BY path")
    assert [None if timestamp is None else as_time(timestamp) for (timestamp,) in found] == TIMES


def test_a_time_means_the_same_moment_in_whichever_zone_it_is_asked_for(database: Database) -> None:
    columns = ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id")
    timestamp = datetime(2100, 1, 1, 12, 0, 0, 500, UTC)
    with database.transaction() as session:
        session.insert(RowSet("ducklake_snapshot", columns), [(77, timestamp, 0, 0, 0)])
        session.insert(RowSet("ducklake_catalog", NAME_COLUMNS), [(9, str(uuid.UUID(int=9)), "c", 77)])
        session.commit()
    for hours in (-11, -5, 0, 5.5, 14):
        zone = timezone(timedelta(hours=hours))
        just_before = (timestamp - timedelta(microseconds=1)).astimezone(zone)
        found = [
            database.rows("catalog_by_name_at_time", name="c", time=asked)
            for asked in (just_before, timestamp.astimezone(zone))
        ]
        assert found == [[], [(9,)]], f"in the zone {zone}"


def test_a_time_is_stored_as_its_moment_in_whichever_zone_it_is_given(database: Database) -> None:
    columns = ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id")
    timestamp = datetime(2100, 1, 1, 12, 0, 0, 500, UTC)
    zones = [timezone(timedelta(hours=hours)) for hours in (-11, 0, 14)]
    rows = [
        (70 + place, (timestamp + timedelta(hours=place)).astimezone(zone), 0, 0, 0)
        for place, zone in enumerate(zones)
    ]
    with database.transaction() as session:
        session.insert(RowSet("ducklake_snapshot", columns), rows)
        names = [(place, str(uuid.UUID(int=place)), "c", 70 + place) for place in range(3)]
        session.insert(
            RowSet("ducklake_catalog", ("end_snapshot", *NAME_COLUMNS)), [(71, *names[0]), (72, *names[1])]
        )
        session.insert(RowSet("ducklake_catalog", NAME_COLUMNS), names[2:])
        session.commit()
    asked = [timestamp + timedelta(hours=place, minutes=1) for place in range(3)]
    assert [database.rows("catalog_by_name_at_time", name="c", time=time) for time in asked] == [
        [(0,)],
        [(1,)],
        [(2,)],
    ]


def test_no_rows_are_no_work(database: Database, raw: RunSql) -> None:
    with database.transaction() as session:
        session.insert(RowSet("ducklake_schema", SCHEMA_COLUMNS), [])
        session.end_rows(
            keyed("ducklake_schema", ("schema_id",)), [], catalog=CatalogId(900), end=SnapshotId(1)
        )
        session.commit()
    assert raw(READ_SCHEMAS) == []


TAG_COLUMNS = ("catalog_id", "table_id", "column_id", "key", "begin_snapshot", "value")
TAG_KEYS = ("table_id", "column_id", "key", "begin_snapshot")


def tag_rows(count: int) -> list[tuple[Any, ...]]:
    keys = [text for text in TEXTS if text is not None]
    return [(900, number, number % 7, keys[number % len(keys)], 10, "v") for number in range(count)]


@pytest.mark.parametrize("count", [1, 1000, 20_000])
def test_live_rows_end_by_their_keys_and_others_live_on(database: Database, raw: RunSql, count: int) -> None:
    rows = tag_rows(count)
    bystanders = [(900, -1, 0, "other key", 10, "v"), (901, 0, 0, "other catalog", 10, "v")]
    bystanders += [(901, *row[1:]) for row in rows[:50]]
    with database.transaction() as session:
        session.insert(RowSet("ducklake_column_tag", TAG_COLUMNS), rows + bystanders)
        session.commit()
    with database.transaction() as session:
        session.end_rows(
            keyed("ducklake_column_tag", TAG_KEYS),
            [row[1:5] for row in rows],
            catalog=CatalogId(900),
            end=SnapshotId(11),
        )
        session.commit()
    count_ended = "SELECT count(*) FROM ducklake_column_tag WHERE end_snapshot = 11 AND catalog_id = 900"
    assert raw(count_ended) == [(count,)]
    assert raw("SELECT count(*) FROM ducklake_column_tag WHERE end_snapshot IS NULL") == [(len(bystanders),)]


def test_rows_that_a_transaction_has_added_can_end_in_it(database: Database, raw: RunSql) -> None:
    rows = tag_rows(10)
    with database.transaction() as session:
        session.insert(RowSet("ducklake_column_tag", TAG_COLUMNS), rows)
        session.end_rows(
            keyed("ducklake_column_tag", TAG_KEYS),
            [row[1:5] for row in rows],
            catalog=CatalogId(900),
            end=SnapshotId(11),
        )
        session.commit()
    assert raw("SELECT count(*), min(end_snapshot) FROM ducklake_column_tag") == [(10, 11)]


NOT_LIVE = {
    "that never was": (5, 5, "none", 10),
    "that has ended": (2, 2, "ended", 10),
    "of another catalog": (3, 3, "elsewhere", 10),
    "that began at another snapshot": (1, 1, "live", 9),
}


@pytest.mark.parametrize("key", NOT_LIVE.values(), ids=[name.replace(" ", "_") for name in NOT_LIVE])
def test_ending_a_row_that_is_not_live_is_refused_and_leaves_nothing(
    database: Database, raw: RunSql, key: tuple[Any, ...]
) -> None:
    with database.transaction() as session:
        session.insert(
            RowSet("ducklake_column_tag", (*TAG_COLUMNS, "end_snapshot")),
            [
                (900, 1, 1, "live", 10, "v", None),
                (900, 2, 2, "ended", 10, "v", 11),
                (901, 3, 3, "elsewhere", 10, "v", None),
            ],
        )
        session.commit()
    before = raw("SELECT * FROM ducklake_column_tag ORDER BY table_id")

    def end() -> None:
        with database.transaction() as session:
            write(session, "lost")
            session.end_rows(
                keyed("ducklake_column_tag", TAG_KEYS),
                [(1, 1, "live", 10), key],
                catalog=CatalogId(900),
                end=SnapshotId(12),
            )
            session.commit()

    with pytest.raises(CorruptMetadata, match="ducklake_column_tag"):
        end()
    assert raw("SELECT * FROM ducklake_column_tag ORDER BY table_id") == before
    assert written(raw) == []
    commit_one(database, "kept")


def test_a_key_that_is_taken_is_refused_and_leaves_nothing(database: Database, raw: RunSql) -> None:
    rows = tag_rows(3)
    with database.transaction() as session:
        session.insert(RowSet("ducklake_column_tag", TAG_COLUMNS), rows)
        session.commit()
    for again in ([rows[1]], [*tag_rows(2000)[1000:], rows[2]], [(902, 1, 1, "k", 1, "v")] * 2):
        with pytest.raises(UniqueViolation), database.transaction() as session:
            write(session, "lost")
            session.insert(RowSet("ducklake_column_tag", TAG_COLUMNS), again)
            session.commit()
    assert raw("SELECT count(*) FROM ducklake_column_tag") == [(3,)]
    assert written(raw) == []


LIVE_NAMES = {
    "catalog": (
        "ducklake_catalog",
        ("catalog_id", "catalog_uuid", "catalog_name", "begin_snapshot", "end_snapshot"),
        lambda number, end: (number, str(uuid.UUID(int=number)), "same", 1, end),
    ),
    "schema": (
        "ducklake_schema",
        ("catalog_id", "schema_id", "schema_name", "begin_snapshot", "end_snapshot"),
        lambda number, end: (900, number, "same", 1, end),
    ),
    "table": (
        "ducklake_table",
        ("catalog_id", "table_id", "schema_id", "table_name", "begin_snapshot", "end_snapshot"),
        lambda number, end: (900, number, 1, "same", 1, end),
    ),
    "view": (
        "ducklake_view",
        ("catalog_id", "view_id", "schema_id", "view_name", "begin_snapshot", "end_snapshot"),
        lambda number, end: (900, number, 1, "same", 1, end),
    ),
    "macro": (
        "ducklake_macro",
        ("catalog_id", "macro_id", "schema_id", "macro_name", "begin_snapshot", "end_snapshot"),
        lambda number, end: (900, number, 1, "same", 1, end),
    ),
}


@many_processes  # DuckDB has no partial indexes; there the one process that may write checks names itself.
@pytest.mark.parametrize(("table", "columns", "row"), LIVE_NAMES.values(), ids=LIVE_NAMES.keys())
def test_a_name_that_is_live_cannot_be_given_twice_and_one_that_ended_can(
    database: Database,
    raw: RunSql,
    table: str,
    columns: tuple[str, ...],
    row: Callable[[int, int | None], tuple[Any, ...]],
) -> None:
    with database.transaction() as session:
        session.insert(RowSet(table, columns), [row(1, 5), row(2, 6), row(3, None)])
        session.commit()
    with pytest.raises(UniqueViolation), database.transaction() as session:
        session.insert(RowSet(table, columns), [row(4, None)])
        session.commit()
    assert raw(f"SELECT count(*) FROM {table}") == [(3,)]


def test_only_one_of_many_writers_gets_a_name(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], in_threads: InThreads
) -> None:
    def create(handle: forklake.Lake) -> bool:
        try:
            handle.create_catalog("wanted")
        except CatalogExists:
            return False
        return True

    handles = [lake, lake, lake, reopen(), reopen(), reopen()]
    won = in_threads(*(lambda handle=handle: create(handle) for handle in handles))
    assert sorted(won) == [False] * 5 + [True]
    assert [catalog.name for catalog in lake.catalogs()] == ["wanted"]
    assert len(lake.snapshots()) == 2


def test_a_missing_value_is_not_taken_for_a_key_that_exists(database: Database, raw: RunSql) -> None:
    # Callers read UniqueViolation as "the name is taken": nothing else may be called that.
    with pytest.raises(StoreError) as caught, database.transaction() as session:
        session.insert(SETTINGS, [("lost", None)])
        session.commit()
    assert not isinstance(caught.value, UniqueViolation)
    assert raw("SELECT count(*) FROM ducklake_metadata WHERE key = 'lost'") == [(0,)]


# ---- Numbers --------------------------------------------------------------------------------------------


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


# ---- Locks and readers ----------------------------------------------------------------------------------


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


# ---- Many who create one lake ---------------------------------------------------------------------------


def test_a_lake_that_many_threads_create_at_once_is_created_once(
    lake_url: str, tmp_path: Any, in_threads: InThreads, sql_on: Callable[[str], RunSql]
) -> None:
    def connect() -> list[Any]:
        with forklake.connect(lake_url, data_path=tmp_path / "files", create=True) as lake:
            lake.create_catalog("a", if_not_exists=True)
            return [snapshot.id for snapshot in lake.snapshots()]

    assert all(found == [0, found[-1]] for found in in_threads(*[connect] * 6))
    raw = sql_on(lake_url)
    assert raw("SELECT count(*) FROM ducklake_metadata WHERE key = 'version'") == [(1,)]
    assert raw("SELECT count(*) FROM ducklake_metadata WHERE key = 'data_path'") == [(1,)]
    assert raw("SELECT count(*) FROM ducklake_catalog") == [(1,)]


CREATE = """
say("ready")
input()
with forklake.connect(sys.argv[1], data_path=sys.argv[2], create=True) as lake:
    say(lake.create_catalog("a", if_not_exists=True).id)
"""


@many_processes
def test_a_lake_that_many_processes_create_at_once_is_created_once(
    lake_url: str, tmp_path: Any, program: Callable[..., Any], sql_on: Callable[[str], RunSql]
) -> None:
    programs = [program(CREATE, lake_url, str(tmp_path / "files")) for _ in range(3)]
    assert [each.hear() for each in programs] == ["ready"] * 3
    for each in programs:
        each.go_on()
    ids = {each.hear() for each in programs}
    assert len(ids) == 1
    raw = sql_on(lake_url)
    assert raw("SELECT count(*) FROM ducklake_metadata WHERE key IN ('version', 'data_path')") == [(2,)]
    assert raw("SELECT catalog_id FROM ducklake_catalog") == [(ids.pop(),)]


@pytest.mark.parametrize("lake_url", ["sqlite"], indirect=True)
def test_a_lake_is_created_in_a_file_as_soon_as_another_program_has_written_to_it(
    lake_url: str, tmp_path: Any, sql_on: Callable[[str], RunSql]
) -> None:
    raw = sql_on(lake_url)
    raw("BEGIN IMMEDIATE")
    raw("CREATE TABLE accounts (id INTEGER)")
    commits = threading.Timer(A_WHILE, raw, ["COMMIT"])
    commits.start()
    try:
        with forklake.connect(lake_url, data_path=tmp_path / "files", create=True) as lake:
            assert lake.create_catalog("a").snapshot == 1
    finally:
        commits.join()
    assert raw("SELECT count(*) FROM accounts") == [(0,)]


# ---- Forked processes -----------------------------------------------------------------------------------


def use_many_connections(lake: forklake.Lake, in_threads: InThreads) -> None:
    """Fill the pool with idle connections, as the threads of a server would."""
    meet = threading.Barrier(5)

    def read() -> None:
        with lake._database.transaction() as session:
            session.rows("latest_snapshot")
            if lake._database.dialect == "postgresql":
                meet.wait()

    in_threads(*[read] * 5)


@many_processes
def test_a_forked_child_uses_the_lake_it_inherits_and_so_does_its_parent(
    lake: forklake.Lake,
    catalog: forklake.Catalog,
    forked: Callable[..., Any],
    in_threads: InThreads,
    raw: RunSql,
) -> None:
    use_many_connections(lake, in_threads)

    def child(turn: int) -> list[str]:
        catalog.create_schema(f"of_child_{turn}")
        return sorted(schema.name for schema in lake.catalog("main_catalog").schemas())

    expected = ["main"]
    for turn in range(3):
        expected = sorted([*expected, f"of_child_{turn}"])
        assert forked(lambda turn=turn: child(turn)) == expected
        catalog.create_schema(f"of_parent_{turn}")
        expected = sorted([*expected, f"of_parent_{turn}"])
        assert sorted(schema.name for schema in catalog.schemas()) == expected
    assert [snapshot.id for snapshot in catalog.snapshots()] == list(range(1, 8))
    if lake.url.startswith("sqlite"):
        assert raw("PRAGMA integrity_check") == [("ok",)]


@many_processes
def test_a_child_forked_during_a_transaction_reads_and_the_transaction_goes_on(
    lake: forklake.Lake, catalog: forklake.Catalog, forked: Callable[..., Any], raw: RunSql
) -> None:
    with lake._database.transaction() as session:
        session.lock_head(catalog.id)
        write(session, "kept")
        assert forked(lambda: (catalog.snapshot, lake._database.rows("setting", key="kept"))) == (1, [])
        assert session.rows("setting", key="kept") == [("test",)]
        session.commit()
    assert written(raw) == ["kept"]


@many_processes
def test_a_child_that_forgets_an_inherited_transaction_does_not_end_it_for_its_parent(
    lake: forklake.Lake, catalog: forklake.Catalog, forked: Callable[..., Any], raw: RunSql
) -> None:
    held = [lake._database.transaction()]
    held[0].lock_head(catalog.id)
    write(held[0], "kept")
    assert held[0].rows("setting", key="kept") == [("test",)]

    def child() -> int:
        held.clear()
        return gc.collect()

    forked(child)
    assert held[0].rows("setting", key="kept") == [("test",)]
    held[0].commit()
    assert written(raw) == ["kept"]


@many_processes
def test_a_child_that_closes_the_lake_does_not_close_it_for_its_parent(
    lake: forklake.Lake,
    catalog: forklake.Catalog,
    forked: Callable[..., Any],
    in_threads: InThreads,
    raw: RunSql,
) -> None:
    use_many_connections(lake, in_threads)
    with lake._database.transaction() as session:
        session.lock_head(catalog.id)
        write(session, "kept")
        forked(lake.close)
        session.commit()
    assert written(raw) == ["kept"]
    assert [schema.name for schema in catalog.schemas()] == ["main"]
    catalog.create_schema("s")
    assert in_threads(*[lambda: len(catalog.schemas())] * 5) == [2] * 5


@only_postgresql  # SQLite itself forbids a second connection in a child while an inherited one holds a lock.
def test_a_forked_child_waits_for_its_parents_transaction_like_anybody_else(
    lake: forklake.Lake, catalog: forklake.Catalog, forked: Callable[..., Any], raw: RunSql
) -> None:
    session: Any = lake._database.transaction()
    session.lock_head(catalog.id)
    write(session, "kept")
    assert session.rows("setting", key="kept") == [("test",)]
    holder = session._wire._server.backend_pid
    ended = threading.Event()
    waited: list[bool] = []

    def commit_when_it_waits() -> None:
        blocked = f"SELECT 1 FROM pg_stat_activity WHERE {holder} = ANY(pg_blocking_pids(pid))"
        while not raw(blocked) and not ended.wait(0.01):
            pass
        waited.append(not ended.is_set())
        session.commit()

    commits = threading.Thread(target=commit_when_it_waits)
    commits.start()
    try:
        forked(lambda: catalog.create_schema("of_child"))
    finally:
        ended.set()
        commits.join()
    assert waited == [True]
    assert written(raw) == ["kept"]
    assert [schema.name for schema in catalog.schemas()] == ["main", "of_child"]
