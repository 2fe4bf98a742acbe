"""What somebody who waits for a statement sees: how long it has been running."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

from forklake.cli.render import is_terminal

_PATIENCE = 1.0
"""Seconds without a word."""


class Waiting:
    """After a second, a line on stderr counts the seconds, and goes away at the end."""

    def __init__(self) -> None:
        """Say nothing yet."""
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begin to wait."""
        if is_terminal(sys.stderr):
            self._thread = threading.Thread(target=self._count, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """It is over."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _count(self) -> None:
        begun = time.monotonic()
        shown = False
        while not self._done.wait(_PATIENCE):
            sys.stderr.write(f"\r{time.monotonic() - begun:.0f} s … (Ctrl-C ends it) ")
            sys.stderr.flush()
            shown = True
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
