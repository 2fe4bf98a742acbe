"""Cleaning on the command line: expire, gc, orphans."""

from __future__ import annotations

from pathlib import Path

import forklake
from tests.unit.command_line import data, refusal


def test_a_lake_is_cleaned(url: str, tmp_path: Path) -> None:
    with forklake.connect(url) as lake:
        table = lake.catalog("shop").create_table("cleaned", "id INT")
        table.set_option("data_inlining_row_limit", 0)
        table.append([{"id": 1}])
        table.overwrite([{"id": 2}])
        latest, before = lake.catalog("shop").snapshot, len(lake.catalog("shop").snapshots())
    found = data("--lake", url, "--catalog", "shop", "expire", "--older-than", "0s", "--dry-run")
    assert (len(found["snapshots"]), found["dry_run"]) == (before - 1, True)
    found = data("--lake", url, "--catalog", "shop", "expire", "--version", str(latest - 1))
    assert found["snapshots"] == [latest - 1]
    found = data("--lake", url, "expire", "--older-than", "0s")
    assert (found["catalogs"] > 0, found["forgotten"]) == (True, 0)
    found = data("--lake", url, "gc")
    assert (found["scheduled"], found["removed"]) == (1, 0)
    assert data("--lake", url, "gc", "--older-than", "0s")["removed"] == 1
    assert data("--lake", url, "orphans", "--older-than", "0s")["files"] == 0
    assert [entry["id"] for entry in data("--lake", url, "--catalog", "shop", "snapshots")] == [latest]


def test_what_is_not_said_is_asked_for(url: str) -> None:
    assert "--catalog NAME" in refusal("--lake", url, "expire")
    assert "--catalog NAME" in refusal("--lake", url, "expire", "--version", "1")
    assert "90s, 30m" in refusal("--lake", url, "gc", "--older-than", "soon")
