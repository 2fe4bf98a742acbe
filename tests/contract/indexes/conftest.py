"""A catalog with a table of three files, and a kind of index that only tests have."""

from __future__ import annotations

import pytest

import forklake
from forklake.index import registry
from tests.index_kinds import Shelf


@pytest.fixture(autouse=True)
def shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kind `shelf` be found."""
    monkeypatch.setitem(registry._loaded, "shelf", Shelf())


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    """The table `t` with files of one row each."""
    table = catalog.create_table("t", "id BIGINT, name VARCHAR, place STRUCT(x DOUBLE)")
    table.set_option("data_inlining_row_limit", 0)
    for number in range(3):
        table.append([{"id": number, "name": f"n{number}", "place": None}])
    return table
