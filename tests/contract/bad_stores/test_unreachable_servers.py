"""A server that does not run, answer or let us in is unavailable, and no password is shown."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import forklake
from forklake.errors import StoreUnavailable
from tests.contract.bad_stores.refusals import SECRET, only_postgresql, refused


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """With what PostgreSQL's client was asked to connect, each time."""
    asked: list[dict[str, Any]] = []
    connect = psycopg.connect

    def recorded(conninfo: str, **options: Any) -> Any:
        asked.append({**conninfo_to_dict(conninfo), **options})
        return connect(conninfo, **options)

    monkeypatch.setattr(psycopg, "connect", recorded)
    return asked


def test_a_server_that_does_not_run_is_unavailable_at_once(
    attempts: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("nothing is waited for"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with refused(StoreUnavailable):
            forklake.connect(f"postgresql://user@127.0.0.1:{taken.getsockname()[1]}/db")
    assert len(attempts) == 1


def test_a_server_that_never_answers_is_unavailable_after_the_time_that_the_address_says(
    attempts: list[dict[str, Any]],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with refused(StoreUnavailable):
            forklake.connect(f"postgresql://user@127.0.0.1:{port}/db?connect_timeout=2&sslmode=disable")
    assert [attempt["connect_timeout"] for attempt in attempts] == ["2"]


def test_a_server_that_is_no_postgresql_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        with refused(StoreUnavailable):
            port = server.getsockname()[1]
            forklake.connect(f"postgresql://user@127.0.0.1:{port}/db?sslmode=disable&connect_timeout=5")
        answering.join()


@only_postgresql
def test_a_missing_database_and_a_missing_role_are_unavailable(lake_url: str) -> None:
    parts = urlsplit(lake_url)
    with refused(StoreUnavailable, says="no_such_db"):
        forklake.connect(parts._replace(path="/no_such_db").geturl(), data_path="files", create=True)
    with refused(StoreUnavailable, says="no_such_role"):
        url = parts._replace(netloc=f"no_such_role@{parts.hostname}:{parts.port}").geturl()
        forklake.connect(url, data_path="files", create=True)


def test_a_wrong_password_is_refused_and_never_shown(own_server: str, tmp_path: Path) -> None:
    with psycopg.connect(own_server, autocommit=True) as connection:
        connection.execute("CREATE ROLE careful LOGIN PASSWORD 'the right one'")
        connection.execute("GRANT CREATE ON DATABASE postgres TO careful")
        (rules,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        text = Path(rules).read_text()
        Path(rules).write_text(f"host all careful 127.0.0.1/32 scram-sha-256\n{text}")
        connection.execute("SELECT pg_reload_conf()")
    parts = urlsplit(own_server)

    def url(password: str) -> str:
        return parts._replace(netloc=f"careful{password}@{parts.hostname}:{parts.port}").geturl()

    for wrong in (f":{SECRET}", ""):
        for create in (False, True):
            with refused(StoreUnavailable, says="password", hides=SECRET):
                forklake.connect(url(wrong), data_path=tmp_path, create=create)
    with forklake.connect(url(":the%20right%20one"), data_path=tmp_path, create=True) as lake:
        assert lake.catalogs() == []
        assert "the right one" not in lake.url + repr(lake)
        assert "the%20right" not in lake.url + repr(lake)
        shown = urlsplit(lake.url)
        lake.create_catalog("a")
    # With the password, which the other knows, the address serves another process.
    told = shown._replace(netloc=f"{shown.username}:the%20right%20one@{shown.hostname}:{shown.port}").geturl()
    with forklake.connect(told) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]


def test_the_address_of_a_lake_on_a_server_can_be_handed_on(postgres_server: str, tmp_path: Path) -> None:
    """Whichever way it was written, all but a password is there."""
    parts = urlsplit(postgres_server)
    where = f"host={parts.hostname}&port={parts.port}&user={parts.username}"
    several = f"host={parts.hostname},{parts.hostname}&port={parts.port},{parts.port}&user={parts.username}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute('CREATE ROLE "odd @:/ user" LOGIN SUPERUSER')
    odd = f"{quote('odd @:/ user', safe='')}@{parts.hostname}:{parts.port}"
    given = [
        postgres_server + "?application_name=a%20b%26c&sslmode=disable",
        f"postgresql://{parts.path}?{where}",
        f"postgresql://{parts.path}?{several}",
        f"postgresql://{odd}{parts.path}",
    ]
    try:
        for number, address in enumerate(given):
            url = f"{address}{'&' if '?' in address else '?'}metadata_schema=handed%20on{number}"
            with forklake.connect(url, data_path=tmp_path / "files", create=True) as lake:
                lake.create_catalog(f"c{number}")
                shown = lake.url
            with forklake.connect(shown) as lake:
                assert [catalog.name for catalog in lake.catalogs()] == [f"c{number}"]
                assert lake.url == shown
            if number == 0:
                assert "application_name=a%20b%26c&sslmode=disable&" in shown
    finally:
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            for number in range(len(given)):
                connection.execute(f'DROP SCHEMA IF EXISTS "handed on{number}" CASCADE'.encode())
            connection.execute('DROP ROLE "odd @:/ user"')
