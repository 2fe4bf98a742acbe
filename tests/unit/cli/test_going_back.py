"""The commands that go back: restore, undo, undrop."""

from __future__ import annotations

from pathlib import Path

import pytest

import forklake
from tests.unit.command_line import data, refusal, run


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of a lake with a catalog `shop`: a table in snapshot 3, less of it in 4, and gone in 5."""
    address = f"sqlite:///{tmp_path}/lake.db"
    with forklake.init(address) as lake:
        shop = lake.create_catalog("shop")
        table = shop.create_table("orders", "id BIGINT")
        table.append([{"id": number} for number in range(5)])
        table.delete("id < 3")
        shop.drop_table("orders")
    return address


def count(url: str, table: str = "orders", catalog: str = "shop") -> int:
    with forklake.connect(url) as lake:
        return lake.catalog(catalog).table(table).count()


def test_a_table_is_restored(url: str) -> None:
    shown = data("--lake", url, "--catalog", "shop", "restore", "orders", "--at", "4", "--message", "back")
    assert (shown["name"], shown["snapshot"]) == ("shop", 6)
    assert count(url) == 2
    data("--lake", url, "--catalog", "shop", "restore", "orders", "--at", "3", "--author", "me")
    assert count(url) == 5
    said = data("--lake", url, "--catalog", "shop", "snapshots")[-2:]
    assert [(one["author"], one["message"]) for one in said] == [(None, "back"), ("me", None)]
    data("--lake", url, "--catalog", "shop", "restore", "orders", "--at", "4", "--as", "old")
    assert count(url, "old") == 2


def test_a_catalog_is_restored(url: str) -> None:
    data("--lake", url, "--catalog", "shop", "restore", "--all", "--at", "3")
    assert count(url) == 5
    wrong = (["--at", "3"], ["orders", "--all", "--at", "3"], ["orders"], ["--all", "--as", "x", "--at", "3"])
    for arguments in wrong:
        assert run("--lake", url, "--catalog", "shop", "restore", *arguments).exit_code == 2
    assert "there is no snapshot" in refusal(
        "--lake", url, "--catalog", "shop", "restore", "--all", "--at", "99"
    )
    assert "--catalog" in refusal("--lake", url, "restore", "--all", "--at", "3")


def test_a_commit_is_undone(url: str) -> None:
    data("--lake", url, "--catalog", "shop", "undo", "5", "--message", "was needed")
    assert count(url) == 2
    data("--lake", url, "--catalog", "shop", "undo", "4", "--author", "me")
    assert count(url) == 5
    assert "it is there again" in refusal("--lake", url, "--catalog", "shop", "undo", "5")


def test_a_catalog_is_brought_back(url: str) -> None:
    data("--lake", url, "drop", "shop", "--yes")
    assert "was dropped" in refusal("--lake", url, "undrop", "other")
    assert data("--lake", url, "undrop", "shop", "--as", "old", "--ttl", "1h")["name"] == "old"
    (listed,) = data("--lake", url, "catalogs")
    assert listed["expires_at"] is not None
    data("--lake", url, "drop", "old", "--yes")
    data("--lake", url, "create", "old")
    assert "as_name" in refusal("--lake", url, "undrop", "old")
