"""An interrupt around the commit never costs a committed row its file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import forklake
import forklake.context.committer
from forklake.commit.publish import publish


@pytest.fixture
def interrupted_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits go through, and the interrupt comes before anybody hears of it."""

    def commit_then_interrupt(*arguments: Any, **options: Any) -> None:
        publish(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(forklake.context.committer, "publish", commit_then_interrupt)


@pytest.fixture
def interrupted_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forklake.context.committer, "publish", interrupt)


def many(first: int = 0) -> pa.Table:
    return pa.table({"id": range(first, first + 1000)})


def test_an_append_that_was_committed_keeps_its_files(
    catalog: forklake.Catalog, request: pytest.FixtureRequest
) -> None:
    table = catalog.create_table("t", "id BIGINT")
    request.getfixturevalue("interrupted_after")
    with pytest.raises(KeyboardInterrupt):
        table.append(many())
    assert table.scan().to_arrow()["id"].to_pylist() == list(range(1000))


def test_a_transaction_that_was_committed_keeps_its_files(
    catalog: forklake.Catalog, request: pytest.FixtureRequest
) -> None:
    table = catalog.create_table("t", "id BIGINT")
    table.append(many())
    request.getfixturevalue("interrupted_after")
    tx = catalog.transaction()
    tx.table("t").append(many(1000))
    tx.table("t").delete("id % 2 = 0")
    with pytest.raises(KeyboardInterrupt):
        tx.commit()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(1, 2000, 2))


def test_an_append_that_was_interrupted_before_its_commit_changes_nothing(
    catalog: forklake.Catalog, request: pytest.FixtureRequest
) -> None:
    table = catalog.create_table("t", "id BIGINT")
    table.append(many())
    before = catalog.snapshot
    request.getfixturevalue("interrupted_before")
    with pytest.raises(KeyboardInterrupt):
        table.append(many(1000))
    assert (catalog.snapshot, table.count()) == (before, 1000)
