"""What comes back from a worker, and how long it may take. Workers load this rather than what commits it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

DAY = timedelta(days=1)
"""For so long a snapshot is reserved, unless the caller says something else."""


@dataclass(frozen=True, slots=True)
class Done:
    """What one piece of work did, as it comes back from a worker."""

    manifest: str
    added: int = 0
    updated: int = 0
    deleted: int = 0
