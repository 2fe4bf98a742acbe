"""Run programs of the simulation by their seeds, or new ones for some minutes."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Iterable, Iterator

from tests.property.simulation.backends import BACKENDS, lakes
from tests.property.simulation.runs import Runs, Total

TOLD_EVERY = 60.0
"""Seconds."""


def main() -> int:
    """Exit with 1 if anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.property.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the first program; without it, a new one")
    parser.add_argument("--programs", type=int, default=1, help="how many programs, with seeds that follow")
    parser.add_argument("--minutes", type=float, help="run programs with new seeds for so long")
    parser.add_argument("--backend", choices=BACKENDS, default="sqlite")
    parser.add_argument("--steps", type=int, default=200, help="of each program")
    parser.add_argument("--clients", type=int, default=3, help="that are at work at the same time")
    parser.add_argument(
        "--faults", type=float, default=0.2, help="share of steps in which something goes wrong"
    )
    given = parser.parse_args()
    first = secrets.randbelow(2**31) if given.seed is None else given.seed
    total, due = Total(), time.monotonic() + TOLD_EVERY
    with lakes(given.backend) as found:
        runs = Runs(found, given.steps, given.clients, given.faults, tell=_tell)
        for seed in _seeds(first, given.programs, given.minutes):
            known = len(total.violations)
            runs.one(seed, total)
            for told in total.violations[known:]:
                print(told, flush=True)
            if time.monotonic() >= due:
                # Of a run that is ended, what it had done is known.
                _tell(f"up to seed {seed}: {total}")
                due = time.monotonic() + TOLD_EVERY
    print(f"{given.backend} from seed {first}: {total}")
    return 1 if total.violations else 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _seeds(first: int, programs: int, minutes: float | None) -> Iterable[int]:
    return range(first, first + programs) if minutes is None else _until(first, minutes)


def _until(first: int, minutes: float) -> Iterator[int]:
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        yield first
        first += 1


if __name__ == "__main__":
    sys.exit(main())
