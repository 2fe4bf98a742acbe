"""Fixtures of the contract of compaction; `lake`, `catalog`, `raw`, `reopen` come from the suite around it.

`table`       a table `t(id BIGINT, v VARCHAR)` without rows, which keeps at most two rows inline
`stored`      the names of all Parquet files below the data path, whether anything refers to them or not
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import forklake


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 2)
    return table


@pytest.fixture
def stored(lake: forklake.Lake) -> Callable[[], list[str]]:
    folder = Path(lake.data_path)
    return lambda: sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))
