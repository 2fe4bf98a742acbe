"""At a terminal, the program asks before it drops, shows progress and folds long cells."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.cli.program import SCRIPT, script, seen_at_a_terminal, wear
from tests.unit.command_line import data, done, run, the_line


@pytest.fixture
def at_a_terminal(url: str) -> Iterator[Callable[..., tuple[subprocess.Popen[str], int]]]:
    """Starts the program with a terminal as stdin, and waits for its question."""
    ours, theirs = pty.openpty()
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], int]:
        process = subprocess.Popen(
            [SCRIPT, "--lake", url, *arguments],
            stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stderr is not None
        question = 'Drop catalog "shop" with 2 tables? [y/N] '
        assert process.stderr.read(len(question)) == question
        return process, ours

    yield start
    for process in started:
        process.kill()
        process.communicate()
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("answer", ["y", "YES"])
def test_at_a_terminal_drop_asks_first(answer: str, at_a_terminal: Any, url: str) -> None:
    process, terminal = at_a_terminal("--json", "drop", "shop")
    assert len(data("--lake", url, "catalogs")) == 2
    os.write(terminal, f"{answer}\n".encode())
    stdout, _ = process.communicate(timeout=240)
    assert (process.returncode, json.loads(stdout)[0]["dropped"]) == (0, True)
    assert len(data("--lake", url, "catalogs")) == 1


@pytest.mark.parametrize("answer", ["n\n", "\n", "yet\n", "\x04"])
def test_at_a_terminal_any_other_answer_is_no(answer: str, at_a_terminal: Any, url: str) -> None:
    process, terminal = at_a_terminal("drop", "shop")
    os.write(terminal, answer.encode())
    stdout, stderr = process.communicate(timeout=240)
    assert (process.returncode, stdout) == (1, "")
    assert "nothing was dropped" in the_line(stderr.removeprefix(answer).lstrip("\n"))
    assert len(data("--lake", url, "catalogs")) == 2


def test_an_interrupt_is_told_in_one_line(at_a_terminal: Any, url: str) -> None:
    process, _ = at_a_terminal("drop", "shop")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=240)
    assert (process.returncode, stdout) == (130, "")
    assert the_line(stderr.lstrip("\n")) == "interrupted"
    assert len(data("--lake", url, "catalogs")) == 2


def test_yes_and_dry_run_ask_nothing_at_a_terminal(url: str) -> None:
    ours, theirs = pty.openpty()
    try:
        for option in ("--dry-run", "--yes"):
            result = script("--lake", url, "drop", "shop", option, stdin=theirs)
            assert (result.returncode, result.stderr) == (0, "")
    finally:
        os.close(ours)
        os.close(theirs)
    assert len(data("--lake", url, "catalogs")) == 1


def test_a_terminal_shows_how_far_a_compaction_is(url: str) -> None:
    wear(url)
    shown = seen_at_a_terminal("stderr", "--lake", url, "--catalog", "shop", "compact")
    assert "main.worn" in shown
    assert "3/3" in shown


def test_a_terminal_shows_how_far_other_commands_are(url: str) -> None:
    shown = seen_at_a_terminal("stderr", "--lake", url, "fork", "shop", "copied", "--copy")
    assert "fork shop" in shown
    assert "catalogs" in shown
    assert "drop catalogs" in seen_at_a_terminal("stderr", "--lake", url, "drop", "copied", "--yes")


def test_programs_see_no_bar(url: str) -> None:
    wear(url)
    arguments = ("--lake", url, "--catalog", "shop", "compact")
    assert run(*arguments, "--dry-run").stderr == ""
    assert seen_at_a_terminal("stderr", "--json", *arguments) == ""


def test_a_narrow_terminal_folds_long_cells_and_cuts_nothing(url: str) -> None:
    name = "".join(chr(0x4E00 + number) for number in range(60))
    done("--lake", url, "create", name)
    shown = seen_at_a_terminal("stdout", "--lake", url, "catalogs")
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "…" not in text
    assert set(name) <= set(text)
    assert max(len(line) for line in text.splitlines()) <= 60
