"""The installed program as a process: exit codes, closed pipes, full disks and locales."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.program import SCRIPT, script
from tests.unit.command_line import data, done, the_line


def test_the_installed_program_works(url: str) -> None:
    env = {**os.environ, "FORKLAKE_LAKE": url, "FORKLAKE_CATALOG": "shop"}
    result = script("--json", "tables", env=env)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == done("--json", "tables", FORKLAKE_LAKE=url, FORKLAKE_CATALOG="shop")


def test_the_installed_program_refuses_in_one_line() -> None:
    result = script("--lake", "sqlite:////no/such/lake.db", "catalogs")
    assert (result.returncode, result.stdout) == (1, "")
    assert the_line(result.stderr)


def test_the_installed_program_exits_with_2_on_wrong_usage() -> None:
    result = script("nonsense")
    assert (result.returncode, result.stdout) == (2, "")


def test_a_reader_that_stops_reading_is_no_reason_to_complain(url: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        result = subprocess.run(
            [SCRIPT, "--lake", url, "snapshots"],
            stdout=theirs,
            stderr=subprocess.PIPE,
            check=False,
            timeout=240,
        )
    finally:
        os.close(theirs)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_reported_in_one_line(url: str) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [SCRIPT, "--lake", url, "--json", "snapshots"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=240,
        )  # fmt: skip
    assert result.returncode == 1
    assert "No space left" in the_line(result.stderr)


def test_streams_that_are_closed_do_no_harm(url: str) -> None:
    command = 'exec "$0" --lake "$1" drop lab <&- >&-'
    result = subprocess.run(
        ["/bin/sh", "-c", command, SCRIPT, url], stderr=subprocess.PIPE, check=False, timeout=240
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert len(data("--lake", url, "catalogs")) == 1


def test_text_is_printed_in_any_locale(url: str) -> None:
    done("--lake", url, "create", "漢字")
    env = {**os.environ, "PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}
    result = script("--lake", url, "create", "漢字", "--if-not-exists", env=env)
    assert (result.returncode, result.stderr) == (0, "")
    assert r"\u6f22\u5b57" in result.stdout
