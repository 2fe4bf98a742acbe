"""What tests of importing share.

`put`       writes an Arrow table as a Parquet file below a folder of its own: `put("a.parquet", table)`
`rows`      the rows of a table as dicts, sorted, so that the order of files makes no difference
`refused`   what `add_files` says when it refuses; nothing may have changed then
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    """A folder outside the data path."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


@pytest.fixture
def put(incoming: Path) -> Callable[..., Path]:
    def write(name: str, table: pa.Table, **options: Any) -> Path:
        path = incoming / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **options)
        return path

    return write


@pytest.fixture
def rows() -> Callable[..., list[dict[str, Any]]]:
    def read(table: forklake.Table, where: str | None = None, **options: Any) -> list[dict[str, Any]]:
        return sorted(table.scan(where, **options).to_arrow().to_pylist(), key=str)

    return read


@pytest.fixture
def refused(catalog: forklake.Catalog) -> Callable[..., str]:
    def add(
        table: forklake.Table, paths: Any, error: type[Exception] = forklake.InvalidData, **how: Any
    ) -> str:
        before = catalog.snapshot, table.scan().to_arrow()
        with pytest.raises(error) as caught:
            table.add_files(paths, **how)
        assert type(caught.value) is error
        assert (catalog.snapshot, table.scan().to_arrow()) == before
        with catalog.transaction() as tx:
            with pytest.raises(error) as again:
                tx.table(table.name).add_files(paths, **how)
            assert tx.table(table.name).scan().to_arrow() == before[1]
        assert str(again.value) == str(caught.value)
        assert catalog.snapshot == before[0]
        return str(caught.value)

    return add
