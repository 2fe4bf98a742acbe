"""A lake that somebody made by running a schema file opens, works, and is like any other."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import psycopg
import pytest

import forklake
from forklake import localpg
from forklake.errors import DataPathMismatch, MetadataNotFound
from tests.contract.schema_files.structures import DIALECTS, schema_text


def make_by_hand(url: str) -> None:
    """Run a schema file's whole text, as its first lines tell people to."""
    address = urlsplit(url)
    path = address.path.removeprefix("/")
    match address.scheme:
        case "sqlite":
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript(schema_text("sqlite"))
        case "duckdb":
            with duckdb.connect(path) as connection:
                connection.execute(schema_text("duckdb"))
        case _:
            psql(url)


def psql(url: str) -> None:
    script = files("forklake.store").joinpath("sql", "postgresql.sql")
    command = [find_psql(), url, "-X", "-v", "ON_ERROR_STOP=1", "-f", str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240)
    if ran.returncode:
        raise RuntimeError(ran.stderr)


def find_psql() -> str:
    installed = shutil.which("psql")
    return installed or str(localpg.find_programs() / "psql")


@pytest.fixture(params=DIALECTS)
def made_by_hand(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a lake that a schema file has made."""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_database")
    else:
        url = f"{request.param}:///{tmp_path / 'by_hand.db'}"
    make_by_hand(url)
    return url


def test_a_lake_made_by_hand_opens_and_works(made_by_hand: str, tmp_path: Path) -> None:
    with forklake.connect(made_by_hand, data_path=tmp_path / "files") as lake:
        catalog = lake.create_catalog("first")
        catalog.create_table("t", "id BIGINT")
        assert (catalog.id, catalog.snapshot) == (0, 2)
    with forklake.connect(made_by_hand) as lake:
        assert lake.data_path == f"{tmp_path / 'files'}/"
        assert [table.name for table in lake.catalog("first").tables()] == ["t"]


def test_a_lake_made_by_hand_asks_once_where_its_files_are(made_by_hand: str, tmp_path: Path) -> None:
    with pytest.raises(MetadataNotFound, match="where its files are"):
        forklake.connect(made_by_hand)
    forklake.connect(made_by_hand, data_path=tmp_path / "files").close()
    with pytest.raises(DataPathMismatch):
        forklake.connect(made_by_hand, data_path=tmp_path / "elsewhere")


def test_a_lake_made_by_hand_keeps_the_first_path_when_many_say_one_at_once(
    made_by_hand: str,
    tmp_path: Path,
    in_threads: Callable[..., list[Any]],
    sql_on: Callable[[str], Callable[..., Any]],
) -> None:
    def connect(number: int) -> str | None:
        try:
            with forklake.connect(made_by_hand, data_path=tmp_path / f"files{number}") as lake:
                return lake.data_path
        except DataPathMismatch:
            return None

    everybody = [lambda number=number: connect(number) for number in range(8)]
    if made_by_hand.startswith("postgresql"):
        # Here others may look before one has written: let all of them look before any of them writes.
        with psycopg.connect(made_by_hand) as connection:
            connection.execute("LOCK TABLE ducklake.ducklake_metadata IN SHARE ROW EXCLUSIVE MODE")
            _, *given = in_threads(lambda: (time.sleep(1), connection.commit()), *everybody)
    else:
        given = in_threads(*everybody)
    stored = sql_on(made_by_hand)("SELECT value FROM ducklake_metadata WHERE key = 'data_path'")
    assert stored == [(path,) for path in given if path is not None]


def test_a_schema_file_run_twice_fails_and_leaves_the_lake_alone(made_by_hand: str, tmp_path: Path) -> None:
    with forklake.connect(made_by_hand, data_path=tmp_path / "files") as lake:
        lake.create_catalog("first")
    with pytest.raises((RuntimeError, sqlite3.Error, duckdb.Error, psycopg.Error), match="already exists"):
        make_by_hand(made_by_hand)
    with forklake.connect(made_by_hand) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["first"]


def test_a_lake_made_by_hand_is_the_same_as_one_that_forklake_makes(
    made_by_hand: str, tmp_path: Path, sql_on: Callable[[str], Callable[..., Any]], postgres_server: str
) -> None:
    if made_by_hand.startswith("postgresql"):
        other = made_by_hand + "?metadata_schema=by_forklake"
        objects = "SELECT relname, relkind FROM pg_class WHERE relnamespace = '{}'::regnamespace ORDER BY 1"
        texts = (objects.format("ducklake"), objects.format("by_forklake"))
    else:
        other = made_by_hand.replace("by_hand", "by_forklake")
        texts = ("SELECT type, name, tbl_name FROM sqlite_master ORDER BY 2, 1",) * 2
    forklake.connect(other, data_path=tmp_path / "files", create=True).close()
    by_hand, by_forklake = sql_on(made_by_hand)(texts[0]), sql_on(other)(texts[1])
    assert len(by_hand) > 60
    assert by_hand == by_forklake
