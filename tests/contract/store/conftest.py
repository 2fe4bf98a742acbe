"""What tests of the store share.

`head`  the id of a catalog whose head can be locked
"""

from __future__ import annotations

import pytest

import forklake
from forklake.model.ids import CatalogId
from forklake.store.backend import Database


@pytest.fixture
def head(database: Database, catalog: forklake.Catalog) -> CatalogId:
    """A catalog whose head can be locked."""
    return catalog.id
