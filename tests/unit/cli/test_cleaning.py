"""Cleaning on the command line: expire, gc, orphans, checkpoint, check."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import forklake
from tests.unit.command_line import data, done, refusal, rows, run, the_line


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


def test_a_checkpoint_does_all_of_it(url: str, tmp_path: Path) -> None:
    with forklake.connect(url) as lake:
        for name in ("expire_older_than", "delete_older_than", "orphans_older_than"):
            lake.set_option(name, "0 seconds")
        table = lake.catalog("shop").create_table("cleaned", "id INT")
        table.append([{"id": 1}])
        lake.fork("shop", "fork").table("cleaned").append([{"id": 2}])
    tried = data("--lake", url, "checkpoint", "--dry-run")
    assert tried["dry_run"] and {one["catalog"] for one in tried["flush"]} == {"shop", "fork"}
    found = data("--lake", url, "--catalog", "fork", "checkpoint", "--message", "hourly")
    assert [one["rows"] for one in found["flush"]] == [1] and found["collect"] is None
    assert data("--lake", url, "--catalog", "fork", "snapshots")[-1]["message"] == "hourly"
    lines = rows(done("--lake", url, "checkpoint"))
    assert [line[0] for line in lines[1:]] == [
        "flush", "expire", "compact", "rewrite", "index", "collect", "orphans", "freed",
    ]  # fmt: skip
    assert data("--lake", url, "checkpoint")["failures"] == []


def test_what_a_checkpoint_cannot_do_is_said(url: str, tmp_path: Path) -> None:
    path = break_file(url)
    output = run("--lake", url, "checkpoint")
    assert output.exit_code == 1
    assert "failed" in output.stdout and path.name in output.stdout
    assert "1 parts of the checkpoint failed, such as compact shop main.broken" in output.stderr


def break_file(url: str) -> Path:
    with forklake.connect(url) as lake:
        table = lake.catalog("shop").create_table("broken", "id INT")
        table.set_option("data_inlining_row_limit", 0)
        for number in range(2):
            table.append([{"id": number}])
        path = Path(lake.data_path) / table.files()[0].path
    path.unlink()
    return path


def test_differences_are_listed_and_repaired(url: str, tmp_path: Path) -> None:
    assert data("--lake", url, "check")["found"] == 0
    assert done("--lake", url, "check", "--data") == "(none)\n"
    with forklake.connect(url) as lake:
        table = lake.catalog("shop").create_table("counted", "id INT")
        table.append([{"id": 1}])
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE ducklake_table_stats SET record_count = 5 WHERE record_count = 1")
        connection.commit()
    output = run("--lake", url, "check", "--json")
    assert output.exit_code == 1 and '"main.counted"' in output.stdout
    assert "5 rows were counted" in output.stderr
    (repaired,) = data("--lake", url, "check", "--repair")["differences"]
    assert repaired["repaired"] and repaired["catalog"] == "shop"
    assert data("--lake", url, "check")["found"] == 0
    path = break_file(url)
    assert f"such as {path}" in the_line(run("--lake", url, "check", "--repair").stderr)


def test_what_is_not_said_is_asked_for(url: str) -> None:
    assert "--catalog NAME" in refusal("--lake", url, "expire")
    assert "--catalog NAME" in refusal("--lake", url, "expire", "--version", "1")
    assert "90s, 30m" in refusal("--lake", url, "gc", "--older-than", "soon")
