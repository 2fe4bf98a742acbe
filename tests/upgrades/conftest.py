"""Lakes of every earlier version on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import forklake
from tests.upgrades.lakes import BACKENDS, VERSIONS, OldLake, split_schema, unpack

EVERY = [
    pytest.param((version, backend), id=f"{version}-{backend}")
    for version in VERSIONS
    for backend in BACKENDS
]


@pytest.fixture(params=EVERY)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> OldLake:
    """A lake of an earlier version, as it was made."""
    version, backend = request.param
    url = request.getfixturevalue("postgres_schema_url") if backend == "postgresql" else None
    return unpack(version, backend, tmp_path, url)


@pytest.fixture(scope="module", params=EVERY)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldLake]:
    """One that was upgraded; the tests of a module share it, and only read."""
    version, backend = request.param
    url = None
    if backend == "postgresql":
        url = f"{request.getfixturevalue('postgres_server')}?metadata_schema=upgraded_{version}"
    lake = unpack(version, backend, tmp_path_factory.mktemp("upgraded"), url)
    assert forklake.upgrade(lake.url).done
    yield lake
    if url is not None:
        server, schema = split_schema(url)
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())
