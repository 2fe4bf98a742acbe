"""What tests of bad stores share.

`closed_lake`  the URL of a lake with one catalog, which nobody has open
`own_server`   the URL of a PostgreSQL that tests may reconfigure and crash
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import forklake
from forklake.localpg import LocalPostgres


@pytest.fixture
def closed_lake(lake: forklake.Lake, lake_url: str) -> str:
    """The URL of a lake with one catalog, which nobody has open."""
    lake.create_catalog("a")
    lake.close()
    return lake_url


@pytest.fixture(scope="session")
def own_server() -> Iterator[str]:
    """A server that tests may reconfigure and crash; it keeps what it has confirmed."""
    with LocalPostgres() as server:
        yield server.url
