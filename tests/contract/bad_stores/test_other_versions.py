"""Lakes of another version or format are refused with the command that helps, and left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from psycopg.conninfo import make_conninfo

import forklake
from forklake.errors import MetadataNotFound, UnsupportedVersion
from tests.contract.bad_stores.refusals import INIT, RunSql, nothing_written, refused
from tests.extensions import load


def test_a_lake_without_a_version_was_never_finished(lake: forklake.Lake, lake_url: str, raw: RunSql) -> None:
    raw("DELETE FROM ducklake_metadata WHERE key = 'version'")
    before = raw("SELECT key, value FROM ducklake_metadata")
    for create in (False, True):
        with refused(UnsupportedVersion, says=INIT):
            forklake.connect(lake_url, create=create)
    assert raw("SELECT key, value FROM ducklake_metadata") == before


@pytest.mark.parametrize("version", ["1.0", "0.4", "0.5", "0.5-dev", "0.5-dev02", "", "it's 'new'\nand odd"])
def test_a_lake_of_another_format_is_refused_with_the_command_that_helps(
    lake: forklake.Lake, lake_url: str, raw: RunSql, version: str
) -> None:
    literal = version.replace("'", "''")
    raw(f"UPDATE ducklake_metadata SET value = '{literal}' WHERE key = 'version'")
    before = raw("SELECT key, value FROM ducklake_metadata")
    for create in (False, True):
        with refused(UnsupportedVersion, says=INIT):
            forklake.connect(lake_url, create=create)
    assert raw("SELECT key, value FROM ducklake_metadata") == before


def test_metadata_of_the_first_ducklake_is_another_version(
    lake_url: str, sql_on: Callable[[str], RunSql]
) -> None:
    # DuckLake 0.1 had settings without a scope.
    schema = "" if lake_url.startswith("sqlite") else f"{lake_url.rpartition('=')[2]}."
    if lake_url.startswith("duckdb"):
        schema = "ducklake."
    raw = sql_on(lake_url)
    if schema:
        raw(f"CREATE SCHEMA {schema[:-1]}")
    raw(f"CREATE TABLE {schema}ducklake_metadata (key VARCHAR NOT NULL, value VARCHAR NOT NULL)")
    raw(f"INSERT INTO {schema}ducklake_metadata VALUES ('version', '0.1')")
    for create in (False, True):
        with refused(UnsupportedVersion, says=INIT):
            forklake.connect(lake_url, data_path="files", create=create)
    assert raw(f"SELECT * FROM {schema}ducklake_metadata") == [("version", "0.1")]


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def stock_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a real DuckLake 1.0 with one row in it, made by the stock extension."""
    path = tmp_path / "stock.db"
    with duckdb.connect() as connection:
        load(connection, "ducklake")
        if request.param == "postgresql":
            load(connection, "postgres_scanner")
            server = request.getfixturevalue("postgres_database")
            place = f"postgres:{make_conninfo(server)}"
            url = f"{server}?metadata_schema=public"
        elif request.param == "sqlite":
            load(connection, "sqlite_scanner")
            place, url = f"sqlite:{path}", f"sqlite:///{path}"
        else:
            place, url = str(path), f"duckdb:///{path}?metadata_schema=main"
        connection.execute(f"ATTACH 'ducklake:{place}' AS stock (DATA_PATH '{tmp_path / 'data'}')")
        connection.execute("CREATE TABLE stock.t AS SELECT 7 AS seven")
        connection.execute("DETACH stock")
    return url


@pytest.mark.parametrize("create", [False, True], ids=["open", "create"])
def test_a_stock_ducklake_is_another_version_and_is_left_alone(
    stock_url: str, tmp_path: Path, create: bool
) -> None:
    with nothing_written(tmp_path), refused(UnsupportedVersion, says=f"'1.0'.*{INIT}"):
        forklake.connect(stock_url, data_path=tmp_path / "data", create=create)


# SQLite has no schemas: there the stock tables stand where the lake's would.
@pytest.mark.parametrize("stock_url", ["duckdb", "postgresql"], indirect=True)
def test_a_stock_ducklake_is_not_found_where_a_lake_would_be(stock_url: str, tmp_path: Path) -> None:
    url = stock_url.partition("?")[0]
    with nothing_written(tmp_path), refused(MetadataNotFound, says=INIT):
        forklake.connect(url)
