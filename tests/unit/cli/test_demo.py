"""The demo shows what it claims, cleans up, and fails when a claim does not hold."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake.api.catalog import Catalog
from forklake.api.lake import Lake
from forklake.api.transaction import Transaction
from forklake.cli import demo
from forklake.commit import publish
from forklake.demo.catalogs import STEPS, Step, checked
from forklake.demo.cleaning import STEPS as LAST_STEPS
from forklake.localpg import LocalPostgres
from tests.unit.cli.program import script, seen_at_a_terminal
from tests.unit.command_line import data, done, refusal, run, the_line


def test_the_demo_tells_its_story_and_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = done("demo", "--no-spark")
    for number, title in enumerate(
        ["A lake on SQLite", *(step.title for step in (*STEPS, *LAST_STEPS))], start=1
    ):
        assert f"{number}. {title}  " in text
    assert "refresh and run it again" in text
    assert "All of it was checked" in text
    assert "2 files were not:" in text
    assert text.count(".parquet, because ") == 2
    assert "snapshot 0 of no catalog: the empty lake" in text
    assert "The demo's lake is removed now; forklake demo --keep keeps it." in text
    assert "\x1b" not in text
    assert list(tmp_path.iterdir()) == []


def test_the_demo_tells_the_same_as_json() -> None:
    story = data("demo", "--no-spark")
    assert [step["title"] for step in story["steps"]] == [
        "A lake on SQLite",
        *(step.title for step in (*STEPS, *LAST_STEPS)),
    ]
    assert all(step["lines"] and step["milliseconds"] >= 0 for step in story["steps"])
    agents = {f"agent_{number:04}" for number in range(1, 29)} | {"one_more"}
    assert {snapshot["catalog"] for snapshot in story["snapshots"]} == {None, "shop", "lab", "bikes"} | agents
    assert story["kept"] is None


def test_the_demo_keeps_its_lake_when_asked(tmp_path: Path) -> None:
    place = tmp_path / "a b?c"
    text = done("demo", "--no-spark", "--keep", "--folder", str(place))
    assert f"Kept in {place}" in text
    assert "removed" not in text
    story_lake = text.split("   sqlite:")[1].split("\n")[0]
    assert [c["name"] for c in data("--lake", f"sqlite:{story_lake}", "catalogs")] == ["bikes", "lab", "shop"]
    assert "is not an empty folder" in refusal("demo", "--no-spark", "--folder", str(place))
    with forklake.connect(f"sqlite:{story_lake}") as lake:
        # Nothing is left that nobody reads, and a snapshot of each catalog.
        assert lake.check(data=True).is_clean
        assert lake.checkpoint(dry_run=True).files == 0
        assert [len(lake.catalog(name).snapshots()) for name in lake] == [1, 1, 1]


def test_the_demo_leaves_a_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done("demo", "--no-spark", "--folder", str(tmp_path / "empty"))
    done("demo", "--no-spark", "--folder", str(tmp_path / "new"))
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_the_demo_refuses_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    assert "is not an empty folder" in refusal("demo", "--no-spark", "--folder", str(tmp_path / "file"))
    assert "is not an empty folder" in refusal("demo", "--no-spark", "--folder", str(tmp_path))
    assert (tmp_path / "file").read_text() == "precious"
    assert refusal("demo", "--no-spark", "--folder", str(tmp_path / "file" / "below"))


def test_a_claim_that_does_not_hold_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_: Lake) -> Iterator[str]:
        yield checked(False, "pigs fly")

    monkeypatch.setattr(demo, "STEPS", (*STEPS, Step("A false claim", wrong)))
    result = run("demo", "--no-spark", "--folder", str(tmp_path / "lake"))
    assert result.exit_code == 1
    assert the_line(result.stderr) == "the demo expected otherwise: pigs fly"
    assert "All of it was checked" not in result.stdout
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("target", "attribute", "broken"),
    [
        (publish, "conflicts", lambda *_: []),
        (Transaction, "rollback", lambda tx: tx.commit()),
        (Catalog, "at", lambda catalog, _: catalog),
    ],
)
def test_the_demo_notices_a_lake_that_is_broken(
    target: Any, attribute: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, attribute, broken)
    result = run("demo", "--no-spark")
    assert result.exit_code == 1
    assert "the demo expected otherwise" in the_line(result.stderr)


def test_the_demo_runs_on_a_real_postgresql_and_cleans_up(open_folder: Path) -> None:
    env = {**os.environ, "TMPDIR": str(open_folder)}
    result = script("demo", "--no-spark", "--postgres", env=env)
    assert (result.returncode, result.stderr) == (0, "")
    assert "1. A lake on a real PostgreSQL server  " in result.stdout
    assert "   postgresql://postgres@127.0.0.1:" in result.stdout
    assert "All of it was checked" in result.stdout
    assert list(open_folder.iterdir()) == []


def test_the_demo_keeps_a_postgresql_that_can_be_started_again(open_folder: Path) -> None:
    place = open_folder / "kept"
    result = script("demo", "--no-spark", "--postgres", "--keep", "--folder", str(place), "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["kept"] == str(place)
    with LocalPostgres(place / "postgres") as server, forklake.connect(server.url) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["bikes", "lab", "shop"]


def test_the_demo_shows_on_a_terminal_what_goes_on(tmp_path: Path) -> None:
    text = seen_at_a_terminal("stdout", "demo", "--no-spark", "--folder", str(tmp_path / "lake"))
    for number, title in enumerate(["A lake on SQLite", *(step.title for step in STEPS)], start=1):
        assert f"{number}. {title}" in text
    # A mark turns before it while it goes on.
    assert f" 2. {STEPS[0].title}" in text


def no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be one where PySpark is not installed."""
    known = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "pyspark" else known(name, *more)
    )
    for name in [name for name in sys.modules if name.split(".")[:2] == ["forklake", "spark"]]:
        monkeypatch.delitem(sys.modules, name)


def test_without_pyspark_the_demo_says_how_to_get_it_and_shows_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_pyspark(monkeypatch)
    text = done("demo", "--folder", str(tmp_path / "lake"))
    number = len(STEPS) + 2
    assert f"{number}. Spark is passed over" in text
    assert "   PySpark is not installed: run pip install '" in text and "[spark]'" in text
    assert f"{number + 1}. {LAST_STEPS[0].title}" in text
    assert "All of it was checked" in text


def test_whoever_names_a_master_needs_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    no_pyspark(monkeypatch)
    assert "PySpark is not installed: run pip install" in refusal("demo", "--master", "local[2]")


def test_a_cluster_needs_a_folder_that_its_executors_reach() -> None:
    for master in ("spark://host:7077", "yarn", "k8s://https://host", "sc://host"):
        assert "--folder" in refusal("demo", "--master", master)
    assert "give one" in refusal("demo", "--master", "local[2]", "--no-spark")
