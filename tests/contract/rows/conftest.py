"""Fixtures of the contract of rows; `lake`, `catalog`, `raw`, `reopen` come from the suite around it.

`anywhere`    a catalog on every backend, with files on a disk and in a bucket
`table`       a table `t(id BIGINT, v VARCHAR)` without rows
`stored`      the names of all Parquet files below the data path, whether anything refers to them or not
`hidden`      a block in which the files of the lake are out of reach: whoever reads one fails
`counted`     a block that collects the statements that the lake runs: `with counted() as names`
`fork`        makes a catalog that sees another as it is now, by writing the lineage that a fork would write
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake.store.row_sets import RowSet
from tests.contract.conftest import leave_unsaved

Fork = Callable[[forklake.Catalog, str], forklake.Catalog]


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    return catalog.create_table("t", "id BIGINT, v VARCHAR")


@pytest.fixture
def stored(lake: forklake.Lake) -> Callable[[], list[str]]:
    folder = Path(lake.data_path)
    return lambda: sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))


@pytest.fixture
def hidden(lake: forklake.Lake) -> Callable[[], AbstractContextManager[None]]:
    @contextmanager
    def hide() -> Generator[None]:
        folder = Path(lake.data_path)
        away = folder.with_name("hidden")
        folder.rename(away)
        try:
            yield
        finally:
            away.rename(folder)

    return hide


@pytest.fixture
def counted(
    lake: forklake.Lake, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], AbstractContextManager[list[str]]]:
    database = lake._database
    with database.transaction() as session:
        session_type = type(session)
    names: list[str] = []
    inside: list[str] = []

    def noting(name: str, kind: type) -> None:
        original = getattr(kind, name)

        def run(self: Any, first: str | RowSet, *args: Any, **named: Any) -> Any:
            # Some are made of others, and a set without rows is no statement.
            if not inside and not (name == "insert" and not args[0]):
                names.append(first.table if isinstance(first, RowSet) else first)
            inside.append(name)
            try:
                return original(self, first, *args, **named)
            finally:
                inside.pop()

        monkeypatch.setattr(kind, name, run)

    noting("rows", type(database))
    for method in ("rows", "execute", "insert", "end_rows"):
        noting(method, session_type)

    @contextmanager
    def count() -> Generator[list[str]]:
        seen: list[str] = []
        start = len(names)
        yield seen
        seen += names[start:]

    return count


@pytest.fixture
def anywhere(lake_url: str, data_path: str) -> Iterator[forklake.Catalog]:
    """A catalog on each backend with its files on each kind of storage; for a few broad stories."""
    with forklake.connect(lake_url, data_path=data_path, create=True) as lake:
        yield lake.create_catalog("main_catalog")
        leave_unsaved(lake)
