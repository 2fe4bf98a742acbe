"""What a lake was like at a snapshot or a time: whoever has read it once reads the same for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

import forklake
from forklake import distributed
from forklake.errors import SnapshotNotFound, StoreBusy
from forklake.store import commits_in_flight as in_flight

A_WHILE = 0.4
"""Seconds in which something that should wait may show that it does not. Nothing fails for taking longer."""
LONG = 60
"""Seconds after which a test gives up, however busy the machine is."""

only_postgresql = pytest.mark.parametrize("lake_url", ["postgresql"], indirect=True)
RunSql = Callable[..., list[tuple[Any, ...]]]


class Background(threading.Thread):
    """Work in a thread; `result` waits for what it returned, or raises what it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._outcome: list[Any] = []
        self._failure: list[BaseException] = []
        self.start()

    def run(self) -> None:
        try:
            self._outcome.append(self._work())
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self._failure.append(error)

    def result(self) -> Any:
        self.join(LONG)
        if self._failure:
            raise self._failure[0]
        return self._outcome[0]


class InFlight:
    """A commit that has its number and has written everything, and is held just before it counts."""

    def __init__(self, lake: forklake.Lake, work: Callable[[], Any], patch: pytest.MonkeyPatch) -> None:
        self._database: Any = lake._database
        self._go, self._held = threading.Event(), threading.Event()
        self._numbers: list[Any] = []
        transaction = self._database.transaction
        self.thread: Background | None = None

        def begin() -> Any:
            session = transaction()
            if threading.current_thread() is self.thread:
                commit = session.commit

                def late() -> None:
                    # What waits to be sent goes out first, so that all is written.
                    session.rows("latest_snapshot")
                    self._held.set()
                    assert self._go.wait(LONG)
                    commit()

                session.commit = late
            return session

        patch.setattr(self._database, "transaction", begin)
        started = threading.Event()

        def run() -> Any:
            started.wait(LONG)
            return work()

        self.thread = Background(run)
        started.set()
        assert self._held.wait(LONG)

    def land(self) -> Any:
        """Let the commit go on, and wait for it."""
        self._go.set()
        assert self.thread is not None
        return self.thread.result()


@pytest.fixture
def hold(lake: forklake.Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., InFlight]]:
    """Hold the commit that some work makes, until it is told to land; all land with the test."""
    flights: list[InFlight] = []

    def start(work: Callable[[], Any], of: forklake.Lake | None = None) -> InFlight:
        flights.append(InFlight(of or lake, work, monkeypatch))
        return flights[-1]

    yield start
    for flight in flights:
        with suppress(Exception):
            flight.land()


@pytest.fixture
def pair(lake: forklake.Lake) -> tuple[forklake.Catalog, forklake.Catalog]:
    """Two catalogs, each with a table of numbers."""
    made = (lake.create_catalog("a"), lake.create_catalog("b"))
    for catalog in made:
        catalog.create_table("t", "n BIGINT")
    return made


Pair = tuple[forklake.Catalog, forklake.Catalog]
Hold = Callable[..., InFlight]


def append(catalog: forklake.Catalog, number: int = 1) -> int:
    catalog.table("t").append([{"n": number}])
    return catalog.snapshot


def seen_twice(flight: InFlight, read: Callable[[], Any]) -> tuple[Any, Any]:
    """What is read while a commit is in flight, and after it."""
    reader = Background(read)
    reader.join(A_WHILE)
    flight.land()
    return reader.result(), read()


def other_commit(lake: forklake.Lake, flight: InFlight, work: Callable[[], int]) -> int | None:
    """Commit beside one that is in flight; None where it has to wait for its turn."""
    other = Background(work)
    if lake._database.dialect == "postgresql":
        return other.result()
    other.join(A_WHILE)
    waits = other.is_alive()
    flight.land()
    other.result()
    assert waits, "writers take turns, so nobody gets a number beside a commit in flight"
    return None


READS: dict[str, Callable[[forklake.Lake, int], Any]] = {
    "lake.catalog": lambda lake, at: lake.catalog("a", at=at).table("t").count(),
    "catalog.at": lambda lake, at: lake.catalog("a").at(at).table("t").count(),
    "catalog.table": lambda lake, at: lake.catalog("a").table("t", at=at).count(),
    "scan": lambda lake, at: lake.catalog("a").table("t").scan(at=at).count(),
    "snapshot": lambda lake, at: lake.catalog("a").at(at).snapshot,
    "changes": lambda lake, at: lake.catalog("a").table("t").changes(3, at).count(),
    "snapshots": lambda lake, at: [each.id for each in lake.snapshots() if each.id <= at],
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_snapshot_of_the_lake_stays_as_it_was_read_although_a_lower_one_was_in_flight(
    lake: forklake.Lake, pair: Pair, hold: Hold, read: Callable[[forklake.Lake, int], Any]
) -> None:
    a, b = pair
    flight = hold(lambda: append(a))
    number = other_commit(lake, flight, lambda: append(b))
    if number is None:
        number = b.snapshot
    first, later = seen_twice(flight, lambda: read(lake, number))
    assert first == later


CHANGES: dict[str, Callable[[forklake.Lake], object]] = {
    "create": lambda lake: lake.create_catalog("new"),
    "fork": lambda lake: lake.fork("a", "new"),
    "rename": lambda lake: lake.rename_catalog("a", "new"),
    "drop": lambda lake: lake.drop_catalog("a"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_catalogs_of_a_snapshot_stay_although_one_came_or_went_in_flight(
    lake: forklake.Lake, pair: Pair, hold: Hold, change: Callable[[forklake.Lake], object]
) -> None:
    flight = hold(lambda: change(lake))
    number = other_commit(lake, flight, lambda: append(pair[1])) or pair[1].snapshot
    first, later = seen_twice(flight, lambda: [info.name for info in lake.catalogs(at=number)])
    assert first == later


@pytest.mark.parametrize("read", ["lake", "catalog"])
def test_a_time_stays_as_it_was_read_although_a_commit_of_before_was_in_flight(
    lake: forklake.Lake, pair: Pair, hold: Hold, read: str
) -> None:
    a, _ = pair
    flight = hold(lambda: append(a))
    time = lake._database.now()

    def rows() -> int:
        past = lake.catalog("a", at=time) if read == "lake" else lake.catalog("a").at(time)
        return past.table("t").count()

    first, later = seen_twice(flight, rows)
    assert first == later


def test_the_catalogs_of_a_time_stay_although_a_commit_of_before_was_in_flight(
    lake: forklake.Lake, pair: Pair, hold: Hold
) -> None:
    flight = hold(lambda: lake.create_catalog("new"))
    time = lake._database.now()
    first, later = seen_twice(flight, lambda: [info.name for info in lake.catalogs(at=time)])
    assert first == later


@only_postgresql
def test_a_snapshot_of_a_catalogs_own_is_read_without_waiting_for_anybody(
    lake: forklake.Lake, pair: Pair, hold: Hold
) -> None:
    a, b = pair
    numbers = [append(b), append(b)]
    time = b.snapshots()[-2].time
    flight = hold(lambda: append(a))
    assert [b.at(number).table("t").count() for number in numbers] == [1, 2]
    assert b.table("t").changes(*numbers).count() == 1
    assert b.at(time).table("t").count() == 1
    assert lake.fork("b", "fork", at=numbers[0]).table("t").count() == 1
    flight.land()


@only_postgresql
def test_present_and_commits_do_not_wait_for_a_reader_that_waits(
    lake: forklake.Lake, pair: Pair, hold: Hold
) -> None:
    a, b = pair
    flight = hold(lambda: append(a))
    number = append(b)
    reader = Background(lambda: lake.catalog("a", at=number).table("t").count())
    reader.join(A_WHILE)
    assert append(b) > number
    assert lake.fork("a", "fork").table("t").count() == 0
    assert lake.catalog("a").table("t").count() == 0
    assert "fork" in [info.name for info in lake.catalogs()]
    assert reader.is_alive()
    flight.land()
    assert reader.result() == 1


@only_postgresql
def test_a_reader_does_not_wait_for_commits_that_began_after_the_snapshot(
    lake: forklake.Lake, pair: Pair, hold: Hold
) -> None:
    a, b = pair
    number = append(b)
    flight = hold(lambda: append(a))
    assert lake.catalog("a", at=number).table("t").count() == 0
    flight.land()
    assert lake.catalog("a", at=number).table("t").count() == 0


@contextmanager
def idle_transaction(lake_url: str, *texts: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(urlsplit(lake_url)._replace(query="").geturl()) as connection:
        for text in texts:
            connection.execute(text)  # pyright: ignore[reportArgumentType, reportCallIssue]
        yield connection
        connection.rollback()


@only_postgresql
def test_a_reader_does_not_wait_for_transactions_that_are_no_commits(
    lake_url: str, lake: forklake.Lake, pair: Pair
) -> None:
    writes = (
        "CREATE TEMP TABLE mine (n int)",
        "SELECT pg_current_xact_id()",
        "SELECT pg_advisory_xact_lock(1)",
    )
    with idle_transaction(lake_url, *writes):
        number = append(pair[1])
        assert lake.catalog("a", at=number).table("t").count() == 0
        assert lake.catalog("a", at=lake._database.now()).table("t").count() == 0


@only_postgresql
def test_a_reader_does_not_wait_for_commits_of_another_lake(
    lake_url: str, lake: forklake.Lake, pair: Pair, hold: Hold, tmp_path: Any
) -> None:
    name = "t_other_lake"
    address = urlsplit(lake_url)
    other_url = address._replace(query=f"metadata_schema={name}").geturl()
    with forklake.connect(other_url, data_path=tmp_path / "other", create=True) as other:
        flight = hold(lambda: other.create_catalog("x"), other)
        number = append(pair[1])
        assert lake.catalog("a", at=number).table("t").count() == 0
        flight.land()
    with psycopg.connect(address._replace(query="").geturl(), autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@only_postgresql
def test_a_commit_whose_client_is_gone_holds_up_nobody(
    lake: forklake.Lake, pair: Pair, reopen: Callable[..., forklake.Lake]
) -> None:
    a, b = pair
    session: Any = reopen()._database.transaction()
    session.lock_head(a.id)
    number = append(b)
    reader = Background(lambda: lake.catalog("a", at=number).table("t").count())
    reader.join(A_WHILE)
    assert reader.is_alive()
    session._wire.close()
    assert reader.result() == 0


@only_postgresql
def test_a_commit_that_hangs_is_named_when_a_reader_gives_up(
    lake: forklake.Lake, pair: Pair, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    flight = hold(lambda: append(a))
    number = append(b)
    monkeypatch.setattr(in_flight, "WAIT_SECONDS", 0.01)
    with pytest.raises(StoreBusy, match=r"commit.*in flight"):
        lake.catalog("a", at=number).table("t").count()
    flight.land()
    assert lake.catalog("a", at=number).table("t").count() == 1


# ---- Reserved numbers ------------------------------------------------------------------------------------


def write_distributed(ds: Any, number: int) -> Any:
    return distributed.write_part(ds, "t", [{"n": number}], part="one")


def test_a_reserved_number_is_not_used_below_a_snapshot_that_somebody_may_have_read(
    lake: forklake.Lake, pair: Pair
) -> None:
    a, b = pair
    ds = a.begin_distributed(["t"])
    part = write_distributed(ds, 1)
    number = append(b)
    assert number > ds.snapshot_id
    before = lake.catalog("a", at=number).table("t").count()
    committed = a.commit_distributed(ds, part)
    assert committed > number
    assert lake.catalog("a", at=number).table("t").count() == before == 0
    assert lake.catalog("a", at=committed).table("t").count() == 1
    with pytest.raises(SnapshotNotFound):
        lake.catalog("a", at=ds.snapshot_id)
    assert a.commit_distributed(ds, part) == committed


def test_a_reserved_number_is_used_while_no_later_snapshot_is_there(lake: forklake.Lake, pair: Pair) -> None:
    a, b = pair
    ds, other = a.begin_distributed(["t"]), b.begin_distributed(["t"])
    assert a.commit_distributed(ds, write_distributed(ds, 1)) == ds.snapshot_id
    assert b.commit_distributed(other, write_distributed(other, 1)) == other.snapshot_id


@only_postgresql
def test_a_reserved_number_that_is_being_committed_is_waited_for(
    lake: forklake.Lake, pair: Pair, hold: Hold
) -> None:
    a, b = pair
    ds = a.begin_distributed(["t"])
    part = write_distributed(ds, 1)
    # Drawn before the reservation is committed, and committed after that has chosen its number.
    later = hold(lambda: append(b))
    flight = hold(lambda: a.commit_distributed(ds, part))
    number = later.land()
    assert number > ds.snapshot_id
    first, again = seen_twice(flight, lambda: lake.catalog("a", at=number).table("t").count())
    assert first == again == 1


# ---- Times -----------------------------------------------------------------------------------------------


@pytest.fixture
def dated(raw: RunSql, lake: forklake.Lake) -> Callable[[forklake.Catalog, int], None]:
    """Let the newest snapshot of a catalog have been made at the beginning of a year."""

    def date(catalog: forklake.Catalog, year: int) -> None:
        timestamp, number = f"{year}-01-01 00:00:00.000000+00:00", catalog.snapshot
        raw(f"UPDATE ducklake_snapshot SET snapshot_time = '{timestamp}' WHERE snapshot_id = {number}")
        raw(f"UPDATE ducklake_catalog_head SET snapshot_time = '{timestamp}' WHERE catalog_id = {catalog.id}")

    return date


Dated = Callable[[forklake.Catalog, int], None]


def day(year: int) -> datetime:
    return datetime(year, 7, 1, tzinfo=UTC)


@pytest.fixture
def clock_went_back(lake: forklake.Lake, dated: Dated, raw: RunSql) -> Pair:
    """Catalog a was written in 2025 and 2030; then the clock was set right, and b was made in 2026."""
    made = "2020-01-01 00:00:00.000000+00:00"
    raw(f"UPDATE ducklake_snapshot SET snapshot_time = '{made}' WHERE snapshot_id = 0")
    a = lake.create_catalog("a")
    dated(a, 2024)
    a.create_table("t", "n BIGINT")
    dated(a, 2025)
    append(a)
    dated(a, 2030)
    b = lake.create_catalog("b")
    dated(b, 2026)
    b.create_table("t", "n BIGINT")
    dated(b, 2027)
    return a, b


def test_the_lake_at_a_time_shows_no_rows_of_later_times(lake: forklake.Lake, clock_went_back: Pair) -> None:
    assert lake.catalog("a", at=day(2027)).table("t").count() == 0
    assert lake.catalog("a", at=day(2030)).table("t").count() == 1
    assert lake.catalog("a").at(day(2027)).table("t").count() == 0
    assert lake.catalog("b", at=day(2027)).tables() != []
    assert lake.catalog("b", at=day(2026)).tables() == []


def test_catalogs_are_listed_as_they_were_by_their_own_times(
    lake: forklake.Lake, clock_went_back: Pair, dated: Dated
) -> None:
    def listed(year: int) -> list[str]:
        return [info.name for info in lake.catalogs(at=day(year))]

    assert [listed(year) for year in (2023, 2024, 2026, 2031)] == [[], ["a"], ["a", "b"], ["a", "b"]]
    renamed = lake.rename_catalog("a", "c")
    dated(renamed, 2035)
    assert [listed(year) for year in (2031, 2036)] == [["a", "b"], ["b", "c"]]
    assert lake.catalog("c", at=day(2036)).id == lake.catalog("a", at=day(2031)).id == renamed.id
    with pytest.raises(forklake.CatalogNotFound):
        lake.catalog("a", at=day(2036))


def test_of_two_that_had_a_name_at_a_time_the_one_that_took_it_last_is_meant(
    lake: forklake.Lake, clock_went_back: Pair, dated: Dated, raw: RunSql
) -> None:
    a, _ = clock_went_back
    lake.drop_catalog("a")
    again = lake.create_catalog("a")
    dated(again, 2028)
    assert lake.catalog("a", at=day(2026)).id == a.id
    assert lake.catalog("a", at=day(2029)).id == again.id
    found = [(info.name, info.id) for info in lake.catalogs(at=day(2029))]
    assert found == [("a", again.id), ("b", lake.catalog("b").id)]


def test_a_fork_shows_what_it_inherited_at_times_before_it_was_made(
    lake: forklake.Lake, clock_went_back: Pair
) -> None:
    lake.fork("a", "fork")
    assert lake.catalog("fork", at=day(2027)).table("t").count() == 0
    assert lake.catalog("fork", at=day(2030)).table("t").count() == 1


def test_a_time_before_everything_is_refused(lake: forklake.Lake, clock_went_back: Pair) -> None:
    with pytest.raises(forklake.CatalogNotFound, match="no catalog was named"):
        lake.catalog("a", at=day(2023))
    for read in (lambda: lake.catalog("a", at=day(2000)), lambda: lake.catalogs(at=day(2000))):
        with pytest.raises(SnapshotNotFound):
            read()


def test_what_was_read_at_a_time_to_come_is_the_present_and_does_not_move_in_one_handle(
    lake: forklake.Lake, pair: Pair
) -> None:
    a, _ = pair
    future = datetime.now(UTC) + timedelta(days=400)
    past = a.at(future)
    assert past.table("t").count() == 0
    append(a)
    assert past.table("t").count() == 0
    assert a.at(future).table("t").count() == 1
