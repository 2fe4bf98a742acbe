"""Rows that tests write into the metadata, and the backends that a test is about."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from forklake.store.backend import Database, Session
from forklake.store.row_sets import SETTINGS, RowSet

RunSql = Callable[..., list[tuple[Any, ...]]]
InThreads = Callable[..., list[Any]]

A_WHILE = 0.4
"""Seconds in which something that should wait may show that it does not. Nothing fails for taking longer."""

many_processes = pytest.mark.parametrize("lake_url", ["sqlite", "postgresql", "pgbouncer"], indirect=True)
"""DuckDB lets only one process open a file, and it does not survive a fork."""
only_postgresql = pytest.mark.parametrize("lake_url", ["postgresql"], indirect=True)

TEXTS = [
    "",
    "'",
    '"',
    "''; DROP TABLE ducklake_schema; --",
    "\\",
    "\\N",
    "%s %% %(x)s $1 $name ? :x",
    "Ünï ✓ 𝄞 \u202e e\u0301",
    "line\nbreak\r\n\ttab\x7f\x01",
    "NULL",
    "null",
    "true",
    "{}",
    '{"a": [1, "2"]}',
    "{1,2,NULL}",
    "0123",
    " spaces ",
    "x" * 300,
    None,
]
INTEGERS = [0, 1, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), None]
TIMES = [
    datetime(2024, 2, 29, 12, 34, 56, 789_012, UTC),
    datetime(2024, 2, 29, 12, 34, 56, 1, UTC),
    datetime(2024, 2, 29, 12, 34, 56, 0, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    datetime(1900, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 30, 23, 59, 59, 999_999, UTC),
    datetime(2024, 6, 1, 0, 0, 0, 5, timezone(timedelta(hours=5, minutes=30))),
    datetime(2024, 6, 1, 23, 0, 0, 5, timezone(-timedelta(hours=9))),
    None,
]

SCHEMA_COLUMNS = (
    "catalog_id",
    "schema_id",
    "begin_snapshot",
    "end_snapshot",
    "schema_uuid",
    "schema_name",
    "path",
    "path_is_relative",
)


def write(session: Session, *keys: str) -> None:
    session.insert(SETTINGS, [(key, "test") for key in keys])


def keyed(table: str, keys: tuple[str, ...]) -> RowSet:
    """Rows that are named by their keys, to be ended."""
    return RowSet(table, keys, len(keys))


def written(raw: RunSql) -> list[str]:
    return [key for (key,) in raw("SELECT key FROM ducklake_metadata WHERE value = 'test' ORDER BY key")]


def commit_one(database: Database, key: str) -> None:
    with database.transaction() as session:
        write(session, key)
        session.commit()


def schema_rows(count: int) -> list[tuple[Any, ...]]:
    """Rows of every kind but times; each column is None in some of them."""
    return [
        (
            900,
            number,
            INTEGERS[number % len(INTEGERS)] or 0,
            INTEGERS[number % len(INTEGERS)],
            None if number % 5 == 4 else str(uuid.UUID(int=number)),
            f"name {number}",
            TEXTS[number % len(TEXTS)],
            (True, False, None)[number % 3],
        )
        for number in range(count)
    ]
