"""A catalog and a plain DuckDB that are told the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

import forklake

Told = Callable[..., None]


class Twins:
    """A catalog of a lake, and a DuckDB with the same tables, which says what is right."""

    def __init__(self, catalog: forklake.Catalog, oracle: duckdb.DuckDBPyConnection) -> None:
        self.catalog = catalog
        self.oracle = oracle

    def do(self, text: str, params: Any = None) -> None:
        """Run a statement on both; what it answers is the same."""
        expected = self._expected(text, params)
        found = self.catalog.sql(text, params)
        if expected is not None and found.columns:
            assert _sorted(found.to_rows()) == _sorted(expected), text

    def same(self, text: str, params: Any = None) -> list[tuple[Any, ...]]:
        """Run a query on both: names of columns and rows are the same, their order too if it is said."""
        cursor = self.oracle.execute(text, params) if params is not None else self.oracle.execute(text)
        names = [column[0] for column in cursor.description or ()]
        expected = cursor.fetchall()
        found = self.catalog.sql(text, params)
        assert list(found.columns) == names, text
        rows = found.to_rows()
        if "ORDER BY" in text:
            assert rows == expected, text
        else:
            assert _sorted(rows) == _sorted(expected), text
        return rows

    def _expected(self, text: str, params: Any) -> list[tuple[Any, ...]] | None:
        cursor = self.oracle.execute(text, params) if params is not None else self.oracle.execute(text)
        return cursor.fetchall() if cursor.description else None


def _sorted(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.fixture
def twins(catalog: forklake.Catalog) -> Iterator[Twins]:
    """A catalog and what says what is right."""
    with duckdb.connect(":memory:", config={"threads": 1}) as oracle:
        oracle.execute("SET TimeZone = 'UTC'")
        yield Twins(catalog, oracle)
