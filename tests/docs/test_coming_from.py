"""The statements beside those of DuckLake, Iceberg and Delta run one after the other, as the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import forklake

PAGES = sorted((Path(__file__).parents[2] / "docs").glob("from-*.md"))
ROW = re.compile(r"^\| (.*) \| (.*) \|$", re.MULTILINE)


def statements(page: Path) -> list[str]:
    (_, head), *rows = ROW.findall(page.read_text(encoding="utf-8"))
    assert head == "forklake"
    return [statement for _, ours in rows for statement in re.findall(r"`([^`]+)`", ours)]


def test_there_are_three_pages() -> None:
    assert [page.stem for page in PAGES] == ["from-delta", "from-ducklake", "from-iceberg"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_statements_run_as_they_stand(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = statements(page)
    assert len(found) > 15
    with forklake.connect("sqlite:///lake.db", create=True) as lake:
        shop = lake.create_catalog("shop")
        before = shop.snapshot
        for statement in found:
            shop.sql(statement, allow=[str(tmp_path)]).close()
        assert shop.snapshot > before
        assert lake.catalog("agent_1").snapshot > before
