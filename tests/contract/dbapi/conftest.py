"""What tests of the DB-API share.

`connection`  to the catalog `shop` of a fresh lake; a transaction begins with the first statement
`cursor`      of that connection
`rows_of`     what a query gives on another connection, so only what was committed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import forklake
from forklake.dbapi import Connection, Cursor, connect


@pytest.fixture
def connection(lake: forklake.Lake) -> Iterator[Connection]:
    lake.create_catalog("shop")
    opened = connect(lake, "shop")
    yield opened
    if not opened.closed:
        opened.close()


@pytest.fixture
def cursor(connection: Connection) -> Cursor:
    return connection.cursor()


@pytest.fixture
def rows_of(lake: forklake.Lake, connection: Connection) -> Callable[[str], list[tuple[Any, ...]]]:
    def read(query: str) -> list[tuple[Any, ...]]:
        with connect(lake, "shop") as other:
            return other.cursor().execute(query).fetchall()

    return read
