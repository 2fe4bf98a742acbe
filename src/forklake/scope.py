"""Where the verbs of a handle take effect: at once, inside a transaction, or nowhere in the past."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from forklake.commit.draft import Draft


class Edit:
    """A draft that is being changed, and, once it is committed, the ids that new objects got."""

    def __init__(self, draft: Draft) -> None:
        """Ids stay as they are unless a commit replaces them."""
        self.draft = draft
        self.final_id: Callable[[int], int] = lambda given: given


class Scope(Protocol):
    """What a table handle needs to know of the catalog or transaction it came from."""

    def read(self) -> Draft:
        """The catalog as it is to be seen now."""
        ...

    def edit(self) -> AbstractContextManager[Edit]:
        """Change the catalog; what was done counts when the block is left without an exception."""
        ...
