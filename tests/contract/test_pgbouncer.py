"""A pooler in transaction mode: every transaction may run in another server process, which others use too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pytest

import forklake
from forklake.errors import InvalidUrl
from forklake.store.libpq import Wire
from tests.pgbouncer import PgBouncer, tracks_statements

CLIENTS = 40
TURNS = 3

InThreads = Callable[..., list[Any]]
Start = Callable[..., PgBouncer]


@pytest.fixture
def start(pgbouncer_program: None, postgres_server: str) -> Iterator[Start]:
    """Start a pooler with settings of its own; one that shall track statements is skipped if it cannot."""
    with ExitStack() as opened:

        def run(*, prepared: int = 0, **settings: Any) -> PgBouncer:
            if prepared and not tracks_statements():
                pytest.skip("this PgBouncer tracks no prepared statements: that takes 1.21")
            return opened.enter_context(PgBouncer(postgres_server, prepared=prepared, **settings))

        yield run


@contextmanager
def one_wire(url: str) -> Iterator[Wire]:
    """A connection of the store to a lake, as the store opened it."""
    with forklake.connect(url) as lake:
        database: Any = lake._database
        with database.pool.connection() as wire:
            yield wire


def with_option(url: str, option: str) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{option}"


def made(url: str, tmp_path: Path) -> str:
    """A new lake with a table."""
    with forklake.connect(url, data_path=tmp_path / "files", create=True) as lake:
        lake.create_catalog("shop").create_table("sales", "client BIGINT, turn BIGINT")
    return url


# ---- Many clients, few server processes -----------------------------------------------------------------


@pytest.mark.parametrize("prepared", [0, 500], ids=["unprepared", "prepared"])
def test_forty_clients_commit_and_fork_through_four_server_processes_and_lose_nothing(
    prepared: int, start: Start, postgres_schema_url: str, tmp_path: Path, in_threads: InThreads
) -> None:
    pooler = start(prepared=prepared, pool_size=4)
    url = pooler.through(made(postgres_schema_url, tmp_path))

    def work(client: int) -> None:
        with forklake.connect(url) as lake:
            fork = lake.fork("shop", f"fork_{client}")
            for turn in range(TURNS):
                row = [{"client": client, "turn": turn}]
                lake.catalog("shop").table("sales").append(row)
                fork.table("sales").delete("true")
                fork.table("sales").append(row)

    in_threads(*(lambda client=client: work(client) for client in range(CLIENTS)))
    with forklake.connect(postgres_schema_url) as lake:
        assert len(lake.catalogs()) == 1 + CLIENTS
        rows = lake.catalog("shop").table("sales").to_arrow().to_pylist()
        wanted = {(client, turn) for client in range(CLIENTS) for turn in range(TURNS)}
        assert {(row["client"], row["turn"]) for row in rows} == wanted
        assert len(rows) == len(wanted)
        for client in range(CLIENTS):
            rows = lake.catalog(f"fork_{client}").table("sales").to_arrow().to_pylist()
            assert rows == [{"client": client, "turn": TURNS - 1}]


def test_lakes_that_share_one_server_process_never_see_each_other(
    start: Start, postgres_database: str, tmp_path: Path, in_threads: InThreads
) -> None:
    pooler = start(pool_size=1)
    server = pooler.through(postgres_database)
    urls = [with_option(server, f"metadata_schema=lake_{number}") for number in range(4)]
    for number, url in enumerate(urls):
        made(url, tmp_path / str(number))

    def work(number: int) -> list[dict[str, int]]:
        with forklake.connect(urls[number]) as lake:
            table = lake.catalog("shop").table("sales")
            for turn in range(TURNS):
                table.append([{"client": number, "turn": turn}])
            return table.to_arrow().to_pylist()

    for number, rows in enumerate(in_threads(*(lambda n=n: work(n) for n in range(4)))):
        assert rows == [{"client": number, "turn": turn} for turn in range(TURNS)]


def test_nothing_is_left_to_the_next_client_of_a_server_process(
    start: Start, postgres_schema_url: str, tmp_path: Path
) -> None:
    pooler = start(pool_size=1)
    with psycopg.connect(pooler.through(server_of(postgres_schema_url)), autocommit=True) as other:
        shown = "SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY name"
        before = other.execute(shown).fetchall()
        made(pooler.through(postgres_schema_url), tmp_path)
        with forklake.connect(pooler.through(postgres_schema_url)) as lake:
            lake.fork("shop", "f").table("sales").append([{"client": 1, "turn": 1}])
        settings = [row for row in other.execute(shown).fetchall() if row[0] != "application_name"]
        assert settings == [row for row in before if row[0] != "application_name"]
        assert other.execute("SELECT * FROM pg_prepared_statements").fetchall() == []
        assert other.execute("SELECT * FROM pg_locks WHERE locktype = 'advisory'").fetchall() == []


def test_what_another_client_leaves_in_a_server_process_does_not_matter(
    start: Start, postgres_database: str, tmp_path: Path
) -> None:
    pooler = start(pool_size=1)
    server = pooler.through(postgres_database)
    url = made(with_option(server, "metadata_schema=lake"), tmp_path)
    made(with_option(server, "metadata_schema=other"), tmp_path / "other")
    with psycopg.connect(server, autocommit=True) as other:
        other.execute("SET search_path TO other")
        other.execute("CREATE TEMP TABLE ducklake_catalog AS SELECT * FROM ducklake_catalog")
        other.execute("SET enable_indexscan TO off")
        with forklake.connect(url) as lake:
            lake.catalog("shop").table("sales").append([{"client": 1, "turn": 1}])
            lake.create_catalog("second")
            assert sorted(lake) == ["second", "shop"]
        assert other.execute("SHOW search_path").fetchall() == [("other",)]
    with forklake.connect(with_option(server, "metadata_schema=other")) as lake:
        assert list(lake) == ["shop"]
        assert lake.catalog("shop").table("sales").to_arrow().num_rows == 0


def test_no_transaction_needs_a_second_connection(
    start: Start, postgres_schema_url: str, tmp_path: Path
) -> None:
    pooler = start(pool_size=1)
    url = with_option(pooler.through(postgres_schema_url), "pool_size=1")
    files = tmp_path / "files"
    with forklake.connect(url, data_path=files, create=True) as lake:
        shop = lake.create_catalog("shop")
        sales = shop.create_table("sales", "client BIGINT, turn BIGINT")
        sales.append(pa.table({"client": range(9), "turn": range(9)}))
        fork = lake.fork("shop", "fork")
        lake.set_ttl("fork", timedelta(hours=1))
        with fork.transaction() as tx:
            tx.table("sales").delete("client = 1")
            tx.create_table("more", "id BIGINT").append([{"id": 1}])
        fork.table("sales").update({"turn": "7"}, where="client = 2")
        fork.table("sales").compact()
        lake.merge("fork", "shop")
        lake.drop_catalog("fork")
        assert lake.drop_expired() == []
        assert lake.expire_reservations() == []
        assert sales.to_arrow().num_rows == 8
    files.rename(tmp_path / "moved")
    with forklake.connect(url, data_path=tmp_path / "moved", moved=True) as lake:
        assert lake.catalog("shop").table("sales").to_arrow().num_rows == 8


# ---- Found out, or said ---------------------------------------------------------------------------------


def server_of(url: str) -> str:
    return urlsplit(url)._replace(query="").geturl()


def kind(url: str) -> tuple[bool, bool]:
    """Whether a connection sends its settings along, and whether it prepares."""
    with one_wire(url) as wire:
        return wire.settings is not None, wire.prepares


def test_a_direct_connection_has_its_settings_for_life_and_prepares(
    postgres_schema_url: str, tmp_path: Path
) -> None:
    url = made(postgres_schema_url, tmp_path)
    assert kind(url) == (False, True)
    assert kind(with_option(url, "prepared_statements=off")) == (False, False)
    assert kind(with_option(url, "pool_mode=transaction&prepared_statements=off")) == (True, False)


@pytest.mark.parametrize("prepared", [0, 500], ids=["unprepared", "prepared"])
def test_a_pooler_is_found_out_with_what_it_tracks(
    prepared: int, start: Start, postgres_schema_url: str, tmp_path: Path
) -> None:
    url = start(prepared=prepared).through(made(postgres_schema_url, tmp_path))
    assert kind(url) == (True, prepared > 0)
    assert kind(with_option(url, "pool_mode=transaction&prepared_statements=off")) == (True, False)


def test_that_a_pooler_keeps_sessions_can_be_said(
    start: Start, postgres_schema_url: str, tmp_path: Path
) -> None:
    url = start(pool_mode="session").through(made(postgres_schema_url, tmp_path))
    assert kind(url) == (True, False)
    assert kind(with_option(url, "pool_mode=session")) == (False, True)
    with forklake.connect(with_option(url, "pool_mode=session")) as lake:
        lake.catalog("shop").table("sales").append([{"client": 1, "turn": 1}])
        # Whoever gets the address of the lake gets what was said with it.
        assert kind(lake.url) == (False, True)


@pytest.mark.parametrize("option", ["pool_mode=s3cret", "prepared_statements=s3cret", "pool_mode="])
def test_a_wrong_option_is_refused_and_not_shown(option: str, postgres_schema_url: str) -> None:
    with pytest.raises(InvalidUrl, match="must be") as refused:
        forklake.connect(with_option(postgres_schema_url, option))
    assert "s3cret" not in str(refused.value)


def test_a_connection_whose_statements_are_gone_is_replaced(postgres_schema_url: str, tmp_path: Path) -> None:
    with forklake.connect(made(postgres_schema_url, tmp_path)) as lake:
        table = lake.catalog("shop").table("sales")
        table.append([{"client": 1, "turn": 1}])
        database: Any = lake._database
        with database.pool.connection() as wire:
            wire.send_command(b"DEALLOCATE ALL")
            wire.receive()
        assert list(lake) == ["shop"]
        with database.pool.connection() as wire:
            wire.send_command(b"DEALLOCATE ALL")
            wire.receive()
        table.append([{"client": 1, "turn": 2}])
        assert table.to_arrow().num_rows == 2


# ---- Round trips ----------------------------------------------------------------------------------------


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[Wire]:
    """A connection for each round trip that it has taken."""
    taken: list[Wire] = []
    receive = Wire.receive

    def noted(wire: Wire) -> Any:
        taken.append(wire)
        return receive(wire)

    monkeypatch.setattr(Wire, "receive", noted)
    return taken


def test_a_pooler_costs_no_more_round_trips(
    start: Start, postgres_database: str, tmp_path: Path, trips: list[Wire]
) -> None:
    def count(server: str, schema: str) -> list[int]:
        url = made(with_option(server, f"metadata_schema={schema}"), tmp_path / schema)
        with forklake.connect(url) as lake:
            table = lake.catalog("shop").table("sales")
            counts: list[int] = []
            for work in (
                lambda: table.append([{"client": 1, "turn": 1}]),
                lambda: table.append([{"client": 1, "turn": 1}]),
                lambda: lake.fork("shop", "fork"),
                lambda: lake.catalog("fork").table("sales").delete("client = 1"),
                lambda: lake.merge("fork", "shop"),
                lambda: list(lake),
            ):
                trips.clear()
                work()
                counts.append(len(trips))
            return counts

    assert count(start().through(postgres_database), "pooled") == count(postgres_database, "direct")


def test_a_direct_connection_is_opened_in_one_round_trip_and_a_pooled_one_in_three(
    start: Start, postgres_schema_url: str, tmp_path: Path, trips: list[Wire]
) -> None:
    url = made(postgres_schema_url, tmp_path)
    with forklake.connect(url) as direct, forklake.connect(start().through(url)) as pooled:
        for lake, expected in ((direct, 1), (pooled, 3)):
            trips.clear()
            database: Any = lake._database
            database._open_wire().close()
            assert len(trips) == expected
