"""Long results, page by page."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

import typer

_USUAL = ("less", "-S", "-R", "-F", "-X")


def show_pages(lines: Sequence[str], *, paged: bool) -> None:
    """Print lines; through the pager of the terminal, if it has one and they do not fit onto it."""
    size = shutil.get_terminal_size()
    fits = len(lines) < size.lines and all(len(line) <= size.columns for line in lines)
    command = _pager() if paged and not fits else None
    text = "\n".join(lines)
    if command is None:
        typer.echo(text)
        return
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, errors="backslashreplace")  # noqa: S603
    try:
        process.communicate(text + "\n")
    except (BrokenPipeError, KeyboardInterrupt):
        # Whoever has seen enough leaves the pager.
        process.wait()


def _pager() -> Sequence[str] | None:
    chosen = os.environ.get("FORKLAKE_PAGER", os.environ.get("PAGER", ""))
    if chosen:
        return shlex.split(chosen)
    found = shutil.which(_USUAL[0])
    return None if found is None else (found, *_USUAL[1:])
