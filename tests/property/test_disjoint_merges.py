"""Merges of changes to different rows all go well, and a catalog holds what the commits that it knows say."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import settings

import forklake
from tests.property.merge_programs import play
from tests.property.told import tell

STEPS = 40
PROGRAMS = {"sqlite": 2, "duckdb": 1, "postgresql": 1}
"""A soak tells fifty times as many."""


@pytest.mark.timeout(900)
def test_each_catalog_holds_what_the_commits_that_it_knows_say(lake: forklake.Lake, lake_url: str) -> None:
    # A few rows are read fastest by one thread, and other tests run at the same time.
    lake._context.engine._open().execute("SET threads = 1")
    backend = lake_url.partition(":")[0]
    tell(partial(play, lake), programs=PROGRAMS[backend] * settings().max_examples // 100, steps=STEPS)
