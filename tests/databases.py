"""Draws one database for each test that runs on several, so that a run of the whole suite takes a third.

Which one is drawn by the test's name: over all tests each database has about as many, and a test stays where
it is from run to run. What is about the databases themselves runs on all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from zlib import crc32

import pytest

ON_EVERY = ("tests/contract/store/", "tests/contract/bad_stores/", "tests/contract/schema_files/")
"""Folders of tests that are about the databases themselves."""


def on_one_database(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The items that run, and those whose turn is another database's."""
    groups: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        groups[_without_database(item)].append(item)
    drawn = {id(group[crc32(name.encode()) % len(group)]) for name, group in groups.items()}
    return [item for item in items if id(item) in drawn], [item for item in items if id(item) not in drawn]


def _without_database(item: pytest.Item) -> str:
    """What the same test has in common on all databases: its name without theirs."""
    spec = getattr(item, "callspec", None)
    if spec is None or "lake_url" not in spec.params or item.nodeid.startswith(ON_EVERY):
        return item.nodeid
    name, _, ids = item.nodeid.partition("[")
    others = [part for part in ids.removesuffix("]").split("-") if part != spec.params["lake_url"]]
    return f"{name}[{'-'.join(others)}]"
