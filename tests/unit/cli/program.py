"""The installed program, run as a process, and a table for it to compact."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import forklake

SCRIPT = Path(sys.executable).with_name("forklake")


def script(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=240, **options
    )


def wear(url: str) -> None:
    """Give the catalog a table of small files, one of which has lost rows."""
    with forklake.connect(url) as lake:
        table = lake.catalog("shop").create_table("worn", "id BIGINT")
        table.set_option("data_inlining_row_limit", 0)
        for start in (0, 10, 20):
            table.append([{"id": n} for n in range(start, start + 10)])
        table.delete("id BETWEEN 11 AND 15")


def seen_at_a_terminal(stream: str, *arguments: str) -> str:
    """What the program shows on one of its streams if that is a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        env = {**os.environ, "COLUMNS": "60", "TERM": "xterm"}
        streams: dict[str, int] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
        process = subprocess.Popen([SCRIPT, *arguments], env=env, **streams)
        os.close(theirs)
        shown = b""
        try:
            while piece := terminal.read(4096):
                shown += piece
        except OSError:
            pass  # Linux ends a terminal whose other side is closed with an error.
        assert process.wait(240) == 0
    return shown.decode()
