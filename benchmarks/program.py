"""What benchmark programs that consist of parts have in common: their options, their end, their progress."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Program:
    """A run: which parts, how long, and since when."""

    quick: bool
    parts: tuple[str, ...]
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Numbers that were given as options, by their names."""
    began: float = field(default_factory=time.monotonic)

    def progress(self, text: str) -> None:
        """Say how far it is."""
        print(f"{time.monotonic() - self.began:6.0f} s  {text}", file=sys.stderr, flush=True)


def begin(
    name: str,
    description: str | None,
    parts: Sequence[str],
    arguments: Sequence[str] | None,
    numbers: Mapping[str, str] = MappingProxyType({}),
) -> Program:
    """Read the options; from now on, ending by a signal still runs every clean-up.

    `numbers` are options of one program alone, with what they say.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--quick", action="store_true", help="a short run, for a first impression")
    parser.add_argument("--only", nargs="+", action="extend", choices=parts, help="these parts")
    for option, meaning in numbers.items():
        parser.add_argument(f"--{option}", type=int, metavar="NUMBER", help=meaning)
    given = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    found = {option: getattr(given, option) for option in numbers}
    told = {option: number for option, number in found.items() if number is not None}
    return Program(given.quick, tuple(given.only or parts), told)


def _stop(number: int, _: object) -> None:
    raise SystemExit(f"ended by {signal.Signals(number).name}")
