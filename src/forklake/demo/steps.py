"""Steps of the demo's story: each changes the lake, and says only what it has checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from forklake.api.lake import Lake
from forklake.errors import ForklakeError


class ClaimFailed(ForklakeError):
    """Something that the demo was about to say is not true."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the story: it changes the lake, and yields what it found to be true."""

    title: str
    run: Callable[[Lake], Iterator[str]]
    notice: str = ""
    """What is said before it, if it takes long."""


def checked(holds: bool, claim: str) -> str:
    """The claim, if it holds."""
    if not holds:
        raise ClaimFailed(f"the demo expected otherwise: {claim}")
    return claim
