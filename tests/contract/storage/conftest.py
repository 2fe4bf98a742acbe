"""What tests of the storage share.

`storage`         an empty storage, on each kind of place
`bucket`          an empty storage in a bucket
`connection`      a DuckDB that gets nothing from the network
`no_credentials`  takes everything out of the environment that would help to reach a bucket
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from forklake.data.storage.storage import Storage, open_storage


@pytest.fixture
def storage(data_path: str) -> Storage:
    """An empty storage, on each kind of place."""
    return open_storage(data_path)


@pytest.fixture
def bucket(s3_url: str) -> Storage:
    """An empty storage in a bucket."""
    return open_storage(s3_url)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that must not get anything from the network."""
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        yield connection


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing in the environment that would help to reach a bucket."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
