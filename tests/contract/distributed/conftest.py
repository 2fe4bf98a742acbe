"""Fixtures of the contract of distributed snapshots; `lake`, `catalog`, `raw` come from the suite around it.

`table`     a table `t(id BIGINT, v VARCHAR)` without rows
`stored`    the names of all files below the data path, whether anything refers to them or not
`unchanged` a block in which nobody may change what the lake holds, whatever it raises
`overdue`   lets the time of a distributed snapshot run out: `ds = overdue(ds)`
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import forklake
from forklake.distributed import DistributedSnapshot
from tests.contract.rows.shown import content


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    return catalog.create_table("t", "id BIGINT, v VARCHAR")


@pytest.fixture
def stored(lake: forklake.Lake) -> Callable[[], list[str]]:
    folder = Path(lake.data_path)
    return lambda: sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def unchanged(lake: forklake.Lake, catalog: forklake.Catalog) -> Callable[[], AbstractContextManager[None]]:
    def seen() -> object:
        tables = {info.name: content(catalog.table(info.name)) for info in catalog.tables()}
        return tables, lake.snapshots(), catalog.snapshot

    @contextmanager
    def block() -> Generator[None]:
        before = seen()
        yield
        assert seen() == before

    return block


@pytest.fixture
def overdue(raw) -> Callable[[DistributedSnapshot], DistributedSnapshot]:
    """Nobody has to wait for it, and no slow machine comes too late."""

    def expire(ds: DistributedSnapshot) -> DistributedSnapshot:
        past = datetime(2020, 1, 1, tzinfo=UTC)
        raw(
            "UPDATE ducklake_snapshot_reservation SET expires_at = '2020-01-01 00:00:00.000000+00:00' "
            f"WHERE reservation_id = '{ds.reservation_id}'"
        )
        return replace(ds, expires_at=past)

    return expire
