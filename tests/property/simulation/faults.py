"""What may go wrong at a statement or a file operation, and how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

Kind = Literal["before", "after", "crash before", "crash after", "torn", "late"]
KINDS: tuple[Kind, ...] = ("before", "after", "crash before", "crash after", "torn", "late")
Operation = Literal["statement", "file", "write", "list"]
ONLY: dict[Kind, Operation] = {"torn": "write", "late": "list"}
"""Faults that only one kind of operation can have: they wait for the next of these."""
MEAN = 12
"""How many operations a step does before a fault, on average."""


class Crash(BaseException):
    """The client is gone. Whatever it would still do, to clean up or to retry, does not happen."""


class Violation(AssertionError):
    """Something that must never happen."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong at one operation of a step, counted from one."""

    at: int
    kind: Kind


def draw(random: Random, share: float) -> Fault | None:
    """A fault for some share of all steps. One that comes too late for its step does nothing."""
    if random.random() >= share:
        return None
    return Fault(1 + int(random.expovariate(1 / MEAN)), random.choice(KINDS))
