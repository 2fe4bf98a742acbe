"""What an empty lake holds, and what its first commits make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import forklake
from forklake.store.statements import Dialect, schema_script
from tests.contract.schema_files.structures import DIALECTS


def test_an_empty_lake_has_its_version_and_snapshot_zero(
    lake: forklake.Lake, raw: Callable[..., Any]
) -> None:
    assert raw("SELECT value, scope, scope_id FROM ducklake_metadata WHERE key = 'version'") == [
        ("0.5-dev6", None, None)
    ]
    numbers = "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot"
    assert raw(numbers) == [(0, 0, 0, 0)]
    assert [snapshot.id for snapshot in lake.snapshots()] == [0]
    assert lake.catalogs() == []


def test_the_first_catalog_is_snapshot_one_and_user_work_starts_at_two(
    lake: forklake.Lake, raw: Callable[..., Any]
) -> None:
    catalog = lake.create_catalog("first")
    assert (catalog.id, catalog.snapshot) == (0, 1)
    catalog.create_schema("sales")
    assert catalog.snapshot == 2
    assert raw("SELECT max(snapshot_id), max(next_catalog_id), max(next_file_id) FROM ducklake_snapshot") == [
        (2, 3, 0)
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_version_is_the_last_thing_that_a_schema_file_writes(dialect: Dialect) -> None:
    last = schema_script(dialect).strip().splitlines()[-1]
    assert last == "INSERT INTO ducklake_metadata (key, value) VALUES ('version', '0.5-dev6');"
