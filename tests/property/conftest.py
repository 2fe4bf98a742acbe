import pytest

from tests.contract.conftest import lake, lake_url, raw, sql_on

__all__ = ["backend", "lake", "lake_url", "raw", "sql_on"]


@pytest.fixture
def backend(lake_url: str) -> str:
    """The name of the database that the lake is on."""
    return lake_url.partition(":")[0]
