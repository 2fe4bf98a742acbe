"""The prompt of `forklake sql`, driven as a person drives it: in a terminal, key by key."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.cli.program import SCRIPT
from tests.unit.command_line import data

SECONDS = 60.0
"""After which what is waited for never comes, however busy the machine is."""
_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r|\x1b\][^\x07]*\x07")
CTRL_D, TAB, UP = "\x04", "\t", "\x1b[A"


class Terminal:
    """The program in a terminal of 24 lines: what is typed, and what is seen."""

    def __init__(self, url: str, history: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        env = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "FORKLAKE_HISTORY": str(history)}
        self._process = subprocess.Popen(
            [SCRIPT, "--lake", url, "--catalog", "shop", "sql"],
            stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self._seen = ""
        self._told = 0

    def begins(self) -> None:
        """Wait for the first prompt."""
        self.sees("for help")
        self.sees("shop>")

    def types(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def enters(self, text: str) -> None:
        """Type a line."""
        self.types(f"{text}\r")

    def sees(self, wanted: str) -> str:
        """Wait for a text, after what was waited for before. Returns all up to it."""
        return self._until(lambda text: text.find(wanted), wanted, len(wanted))

    def ends(self) -> int:
        """Wait for the end of the program. Returns its exit code."""
        until = time.monotonic() + SECONDS
        while self._read(SECONDS):
            assert time.monotonic() < until, f"it never ended: {self._shown()[-2000:]!r}"
        return self._process.wait(SECONDS)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)

    def _until(self, place: Callable[[str], int], wanted: str, length: int) -> str:
        until = time.monotonic() + SECONDS
        while (at := place(self._shown()[self._told :])) < 0:
            left = until - time.monotonic()
            assert left > 0, f"{wanted!r} never came after {self._shown()[self._told :][-2000:]!r}"
            assert self._read(left), f"it ended before {wanted!r}: {self._shown()[self._told :][-2000:]!r}"
        begin, self._told = self._told, self._told + at + length
        return self._shown()[begin : self._told]

    def _shown(self) -> str:
        return _CODES.sub("", self._seen)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], min(seconds, 0.5))
        if not ready:
            return self._process.poll() is None
        try:
            piece = os.read(self._ours, 65536)
        except OSError:
            return False  # Linux ends a terminal whose other side is closed with an error.
        self._seen += piece.decode(errors="replace")
        return bool(piece)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "history"


@pytest.fixture
def open_terminal(url: str, history: Path) -> Iterator[Callable[[], Terminal]]:
    opened: list[Terminal] = []

    def start() -> Terminal:
        opened.append(Terminal(url, history))
        opened[-1].begins()
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


@pytest.fixture
def terminal(open_terminal: Callable[[], Terminal]) -> Terminal:
    return open_terminal()


def test_a_statement_has_as_many_lines_as_it_needs(terminal: Terminal) -> None:
    terminal.enters("SELECT 6 *")
    terminal.sees("->")
    terminal.enters("700 AS answer")
    terminal.sees("->")
    terminal.enters("; SELECT upper('second;') AS other;")
    terminal.sees("4200")
    terminal.sees("SECOND;")
    terminal.sees("shop>")
    terminal.types(CTRL_D)
    assert terminal.ends() == 0


def test_backslash_commands_look_around(terminal: Terminal) -> None:
    terminal.enters("\\dt")
    terminal.sees("notes")
    terminal.sees("shop>")
    terminal.enters("\\d sales.orders")
    terminal.sees("customer")
    terminal.sees("shop>")
    terminal.enters("\\h trunc")
    terminal.sees("TRUNCATE [ TABLE ] table;")
    terminal.sees("shop>")
    terminal.enters("\\h nothing")
    terminal.sees("there is no statement NOTHING")
    terminal.sees("shop>")
    terminal.enters("\\nonsense")
    terminal.sees("lists what there is")
    terminal.sees("shop>")
    terminal.enters("\\x")
    terminal.sees("Rows as blocks: on.")
    terminal.sees("shop>")
    terminal.enters("\\c lab")
    terminal.sees("lab>")
    terminal.enters("\\q")
    assert terminal.ends() == 0


def test_timing_is_shown_if_it_is_asked_for(terminal: Terminal) -> None:
    terminal.enters("SELECT 40 + 2;")
    assert "Time:" not in terminal.sees("(1 row")
    terminal.sees("shop>")
    terminal.enters("\\timing")
    assert "Time:" not in terminal.sees("Timing: on.")
    terminal.sees("shop>")
    terminal.enters("SELECT 1;")
    terminal.sees("Time: ")
    assert re.fullmatch(r"[\d.]+ ms", terminal.sees(" ms"))


def test_tab_completes_keywords_tables_and_columns(terminal: Terminal) -> None:
    terminal.types(f"SELECT count(*) + 4200 AS n FROM sales.ord{TAB}")
    terminal.sees("ers")
    terminal.types(f" WHERE stat{TAB}")
    terminal.sees("us")
    terminal.enters(" IS NULL;")
    terminal.sees("4200")
    terminal.sees("shop>")
    terminal.types(f"TRUNC{TAB}")
    terminal.sees("ATE")


def test_what_was_typed_is_there_again_in_the_next_prompt(
    open_terminal: Callable[[], Terminal], history: Path
) -> None:
    first = open_terminal()
    first.enters("SELECT 4200 + 42 AS found;")
    first.sees("4242")
    first.sees("shop>")
    first.types(CTRL_D)
    assert first.ends() == 0
    assert history.stat().st_mode & 0o077 == 0
    second = open_terminal()
    second.types(UP)
    second.sees("AS found;")
    second.enters("")
    second.sees("4242")


def test_an_open_transaction_is_rolled_back_at_the_end(terminal: Terminal, url: str) -> None:
    terminal.enters("SELEC 2;")
    terminal.sees("line 1, column 1")
    terminal.sees("shop>")
    terminal.enters("BEGIN; DROP TABLE notes;")
    terminal.sees("shop*>")
    terminal.types(CTRL_D)
    terminal.sees("is rolled back")
    assert terminal.ends() == 0
    assert "notes" in {row["name"] for row in data("--lake", url, "--catalog", "shop", "tables")}
