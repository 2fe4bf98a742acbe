"""What was to be seen in a lake before an upgrade is to be seen after it: all rows, at all snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import forklake
from tests.upgrades.lakes import OldLake
from tests.upgrades.make_lake import changes_of, rows_at, rows_of


@pytest.fixture(scope="module")
def lake(upgraded: OldLake) -> Iterator[forklake.Lake]:
    with upgraded.open() as opened:
        yield opened


def as_json(value: object) -> Any:
    return json.loads(json.dumps(value, default=str))


def timestamps(expected: dict[str, Any], begun: int) -> Iterator[tuple[int, str, list[Any]]]:
    """When a table had other rows than before, and which; of what a catalog inherited, some."""
    before: dict[str, list[Any]] = {}
    for number, (at, tables) in enumerate(expected["rows"].items()):
        for table, rows in tables.items():
            if rows != before.get(table) and (int(at) >= begun or number % 20 == 0):
                yield int(at), table, rows
        before = tables


def test_every_row_of_every_catalog_is_the_same_at_every_snapshot(
    lake: forklake.Lake, upgraded: OldLake
) -> None:
    catalogs = upgraded.expected["catalogs"]
    begun = {info.name: info.fork_snapshot or 0 for info in lake.catalogs()}
    assert list(begun) == list(catalogs)
    read = 0
    for name, expected in catalogs.items():
        catalog = lake.catalog(name)
        assert catalog.snapshot == expected["snapshot"]
        for at, table, rows in timestamps(expected, begun[name]):
            assert rows_of(catalog.at(at).table(table)) == rows, f"{name}.{table} at {at}"
            read += len(rows)
        assert rows_at(catalog, catalog.snapshot) == expected["rows"][str(catalog.snapshot)]
    assert read > 3000


def test_the_change_feed_and_the_history_are_the_same(lake: forklake.Lake, upgraded: OldLake) -> None:
    for name, expected in upgraded.expected["catalogs"].items():
        catalog = lake.catalog(name)
        first = int(next(iter(expected["rows"])))
        assert changes_of(catalog, first) == expected["changes"]
        history = [[s.id, s.author, s.message, s.extra] for s in catalog.snapshots()]
        assert as_json(history) == expected["snapshots"]


def test_definitions_are_the_same(lake: forklake.Lake, upgraded: OldLake) -> None:
    for name, expected in upgraded.expected["catalogs"].items():
        catalog = lake.catalog(name)
        assert [[view.schema, view.name, view.sql] for view in catalog.views()] == expected["views"]
        assert [[macro.schema, macro.name] for macro in catalog.macros()] == expected["macros"]
        assert list(catalog.table("orders").partitioning) == expected["partitioning"]
        tags = {
            f"{info.schema}.{info.name}": catalog.table((info.schema, info.name)).tags()
            for info in catalog.tables()
        }
        assert tags == expected["tags"]


def test_every_merge_would_do_what_the_earlier_version_would_have_done(
    lake: forklake.Lake, upgraded: OldLake
) -> None:
    assert len(upgraded.expected["merges"]) > 150
    for number, expected in enumerate(upgraded.expected["merges"]):
        # The databases differ in speed, and what they are asked does not: one of them is asked for all.
        if upgraded.backend != "sqlite" and number % 9 and expected["into"] != "main":
            continue
        found = lake.merge(expected["source"], expected["into"], dry_run=True)
        assert {
            "source": expected["source"],
            "into": expected["into"],
            "base": found.base_snapshot,
            "conflicts": len(found.conflicts),
            "tables": sorted([t.name, t.rows_added, t.rows_removed] for t in found.tables),
        } == expected
