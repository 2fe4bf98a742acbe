"""What tests of the dialect share: `engine`, on the catalog `shop` of a fresh lake."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

import forklake


def engine_url(lake_url: str, catalog: str = "shop", **options: str) -> str:
    asked = "&".join(f"{name}={value}" for name, value in {"catalog": catalog, **options}.items())
    return f"forklake+{lake_url}{'&' if '?' in lake_url else '?'}{asked}"


@pytest.fixture
def engine(lake: forklake.Lake, lake_url: str) -> Iterator[sa.Engine]:
    lake.create_catalog("shop")
    made = sa.create_engine(engine_url(lake_url))
    yield made
    made.dispose()
