"""The demo's chapter on Spark, in the session that all tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import forklake
from forklake.cli import demo
from forklake.demo import spark as story_spark
from forklake.demo.catalogs import STEPS
from forklake.demo.spark import SparkStory
from forklake.spark import SparkCatalog
from tests.unit.command_line import done, no_settings_from_outside, run, the_line

__all__ = ["no_settings_from_outside"]

TITLES = [step.title for step in SparkStory("local[*]", Path()).steps()]


@pytest.fixture(autouse=True)
def a_tenth_of_the_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story_spark, "ROWS", story_spark.ROWS // 10)
    monkeypatch.setattr(story_spark, "PER_DAY", story_spark.PER_DAY // 10)


@pytest.fixture
def spark_alone(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What others than Spark do is told elsewhere."""
    monkeypatch.setattr(demo, "STEPS", ())


def test_the_demo_ingests_with_spark_and_leaves_the_session_of_others_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = done("demo", "--keep", "--folder", str(tmp_path / "lake"))
    for number, title in enumerate(
        ["A lake on SQLite", *(s.title for s in STEPS), *TITLES, "The lake is cleaned"], start=1
    ):
        assert f"{number}. {title}  " in text
    assert "Spark is being started" in text
    assert "8 tasks wrote 100,000 orders to 8 Parquet files" in text
    assert "Spark opens 1 file, and not the other 7" in text
    assert "1,000 orders were corrected and 500 more came" in text
    assert all(f"     {city}: " in text for city in ("Bergen", "Bremen", "Krakow", "Lyon", "Porto"))
    assert "All of it was checked" in text
    assert spark.range(3).count() == 3
    with forklake.connect(f"sqlite:///{tmp_path}/lake/lake.db") as lake:
        market = lake.catalog("market")
        assert market.table("trade.orders").count() == 100_000 + 500 - 400
        assert [catalog.name for catalog in lake.catalogs()] == ["bikes", "lab", "market", "shop"]
        assert len(market.snapshots()) == 1 and lake.check(data=True).is_clean


@pytest.mark.usefixtures("spark_alone")
def test_the_demo_notices_a_spark_that_loses_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkCatalog, "update", lambda *_: 0)
    result = run("demo", "--master", "local[2]", "--folder", str(tmp_path / "lake"))
    assert result.exit_code == 1
    assert "the demo expected otherwise: Spark, the local engine" in the_line(result.stderr)
    assert not (tmp_path / "lake").exists()


@pytest.mark.usefixtures("spark_alone")
def test_executors_that_do_not_reach_the_folder_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(story_spark, "_errors_into", nullcontext)
    result = run("demo", "--folder", str(tmp_path / "lake"))
    assert (result.exit_code, "is not there on" in the_line(result.stderr)) == (1, True)
    assert "--folder" in result.stderr


@pytest.mark.usefixtures("spark_alone")
def test_executors_without_a_package_are_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(_: str) -> None:
        import no_such_package  # noqa: F401

    monkeypatch.setattr(story_spark, "_looks", lambda: look)
    result = run("demo", "--folder", str(tmp_path / "lake"))
    assert result.exit_code == 1
    assert the_line(result.stderr).startswith("executors lack a package (No module named 'no_such_package')")


@pytest.mark.parametrize(
    ("master", "reason"), [("local[no]", "Could not parse Master URL"), ("no", "SparkException")]
)
def test_a_spark_that_does_not_start_is_one_line(master: str, reason: str, tmp_path: Path) -> None:
    """In a process of its own, where no session is. Nothing else that Java writes is to be seen."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "forklake",
            "demo",
            "--json",
            "--master",
            master,
            "--folder",
            str(tmp_path / "a"),
        ],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ},
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert the_line(done.stderr).startswith(f"Spark could not be started on {master}: ")
    assert reason in done.stderr
    assert list(tmp_path.iterdir()) == []
