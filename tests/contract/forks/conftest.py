"""Fixtures of the contract of forks; `lake`, `catalog`, `raw`, `reopen`, `in_threads` come from around it.

`anywhere`    a lake without catalogs on every backend, with files on a disk and in a bucket
`parent`      a catalog "parent" with something of every kind, see `seen.fill`
`row_counts`  how many rows each table of the metadata has: `row_counts()`
`unchanged`   a block that must leave all tables of the metadata as they are: `with unchanged():`
`counted`     a block that collects the statements that the lake runs: `with counted() as names`
`stored`      the names of all Parquet files below the data path
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import forklake
from forklake.store.tables import TABLES
from tests.contract.conftest import leave_unsaved
from tests.contract.forks.seen import fill
from tests.contract.rows.conftest import counted, stored

__all__ = ["counted", "stored"]

# Numbers may be drawn without being used.
_KEPT = sorted(set(TABLES) - {"ducklake_counter"})


@pytest.fixture
def anywhere(lake_url: str, data_path: str) -> Iterator[forklake.Lake]:
    with forklake.connect(lake_url, data_path=data_path, create=True) as lake:
        yield lake
        leave_unsaved(lake)


@pytest.fixture
def parent(lake: forklake.Lake, tmp_path: Path) -> forklake.Catalog:
    return fill(lake.create_catalog("parent"), tmp_path / "elsewhere")


@pytest.fixture
def row_counts(raw) -> Callable[[], dict[str, int]]:
    return lambda: {table: raw(f"SELECT count(*) FROM {table}")[0][0] for table in _KEPT}


@pytest.fixture
def unchanged(raw) -> Callable[[], AbstractContextManager[None]]:
    def everything() -> dict[str, list[str]]:
        return {table: sorted(map(repr, raw(f"SELECT * FROM {table}"))) for table in _KEPT}

    @contextmanager
    def check() -> Generator[None]:
        before = everything()
        yield
        assert everything() == before

    return check
