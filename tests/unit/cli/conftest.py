"""What tests of the command line share.

`url`          the URL of a lake with a catalog `shop` that has a past, and an empty catalog `lab`
`open_folder`  a folder that PostgreSQL's user may enter

For every test, `no_settings_from_outside` clears the environment of what the program would read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import forklake
from tests.unit.command_line import no_settings_from_outside

__all__ = ["no_settings_from_outside"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a lake with a catalog `shop` that has a past, and an empty catalog `lab`."""
    address = f"sqlite:///{tmp_path}/lake.db"
    with forklake.init(address) as lake:
        shop = lake.create_catalog("shop")
        with shop.transaction(author="me", message="load", extra={"run": 7}) as tx:
            tx.create_schema("sales")
            tx.create_table(
                "sales.orders",
                "id BIGINT NOT NULL, at TIMESTAMPTZ DEFAULT now(), status VARCHAR DEFAULT 'it''s new', "
                "customer STRUCT(name VARCHAR, homes STRUCT(zip INTEGER)[]) COMMENT 'who', "
                "m MAP(VARCHAR, DOUBLE)",
                comment="one row for each order",
            )
            tx.create_table("notes", "id INTEGER")
        shop.table("sales.orders").set_tag("owner", "sales", column="customer.name")
        shop.table("sales.orders").set_tag("class", "internal")
        lake.create_catalog("lab")
        shop.table("sales.orders").add_column("later", "varchar")
    return address


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user may enter, unlike `tmp_path` when root runs the tests."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
