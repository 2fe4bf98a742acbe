"""Where no lake is, none is found, none is made by accident, and what others have stored is left alone."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import forklake
from forklake.errors import InvalidUrl, MetadataExists, MetadataNotFound, StoreUnavailable
from tests.contract.bad_stores.refusals import (
    INIT,
    embedded,
    make_foreign,
    nothing_written,
    only_postgresql,
    path_of,
    refused,
)


@embedded
@pytest.mark.parametrize("name", ["missing.db", "no/such/folder/missing.db"])
def test_a_missing_file_is_not_found_and_not_made(lake_url: str, tmp_path: Path, name: str) -> None:
    url = lake_url.replace("lake.db", name)
    with nothing_written(tmp_path), refused(MetadataNotFound, says=INIT):
        forklake.connect(url)
    with nothing_written(tmp_path), refused(MetadataNotFound):
        forklake.connect(url, data_path=tmp_path)


@only_postgresql
def test_a_missing_schema_is_not_found_and_not_made(lake_url: str, postgres_server: str) -> None:
    with refused(MetadataNotFound, says=INIT):
        forklake.connect(lake_url)
    schema = lake_url.rpartition("=")[2]
    with psycopg.connect(postgres_server) as connection:
        query = "SELECT count(*) FROM pg_namespace WHERE nspname = %s"
        assert connection.execute(query, [schema]).fetchone() == (0,)


@only_postgresql
def test_a_new_lake_on_a_server_needs_a_data_path(lake_url: str) -> None:
    with refused(InvalidUrl, says="data path"):
        forklake.connect(lake_url, create=True)
    with refused(MetadataNotFound):
        forklake.connect(lake_url)


def test_a_lake_is_not_created_twice_by_init(closed_lake: str, tmp_path: Path) -> None:
    with refused(MetadataExists):
        forklake.init(closed_lake, data_path=tmp_path / "files")
    with forklake.connect(closed_lake) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]


@embedded
def test_a_database_of_somebody_else_holds_no_lake_and_is_left_alone(lake_url: str, tmp_path: Path) -> None:
    make_foreign(lake_url)
    with nothing_written(tmp_path), refused(MetadataNotFound, says=INIT):
        forklake.connect(lake_url)


@embedded
def test_an_empty_file_holds_no_lake_and_stays_empty(lake_url: str, tmp_path: Path) -> None:
    path_of(lake_url).touch()
    with nothing_written(tmp_path), refused(MetadataNotFound, StoreUnavailable):
        forklake.connect(lake_url)
