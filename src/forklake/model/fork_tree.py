"""The tree of forks of a lake, as a value that shows itself as text and as a drawing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from forklake.model import draw_tree
from forklake.model.ids import CatalogId, SnapshotId


@dataclass(frozen=True, slots=True)
class ForkNode:
    """A catalog in the tree."""

    name: str
    id: CatalogId
    parent: str | None
    """The name that its parent has now, or had when it was dropped."""
    parent_id: CatalogId | None
    level: int
    """How far it is below the catalog that the tree begins with."""
    fork_snapshot: SnapshotId | None
    """The snapshot of the parent that it began with; None if it was not forked."""
    created_at: datetime
    expires_at: datetime | None
    snapshot: SnapshotId
    """Where it stands, or where it ended."""
    commits: int
    """Its own, after the one that made it."""
    merged_at: SnapshotId | None
    """The last commit of its parent that merged something of it."""
    dropped_at: SnapshotId | None
    """The snapshot that dropped it; None if it lives."""
    more: int = 0
    """How many of its forks are not shown."""


@dataclass(frozen=True, slots=True)
class ForkTree:
    """Catalogs with their forks below them. `str` draws it as text, `svg` as a picture."""

    nodes: tuple[ForkNode, ...]
    """Each before its forks, and these in the order in which they were made."""
    more: int = 0
    """How many catalogs without a parent are not shown."""

    def __iter__(self) -> Iterator[ForkNode]:
        """The catalogs that are shown."""
        return iter(self.nodes)

    def __len__(self) -> int:
        """How many catalogs are shown."""
        return len(self.nodes)

    def __str__(self) -> str:
        """A line for each catalog."""
        return draw_tree.as_text(self)

    def __repr__(self) -> str:
        """How much is shown."""
        hidden = self.more + sum(node.more for node in self.nodes)
        more = f" and {hidden} more" if hidden else ""
        return f"<ForkTree of {len(self.nodes)} catalogs{more}>"

    def svg(self) -> str:
        """A picture, as the text of an SVG file."""
        return draw_tree.as_svg(self)

    def _repr_svg_(self) -> str:
        """For notebooks."""
        return self.svg()

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f'<div style="overflow:auto">{self.svg()}</div>'


def in_order(nodes: Iterable[ForkNode]) -> tuple[ForkNode, ...]:
    """Nodes that are sorted by level, with each before its forks. A parent that is not there makes a root.

    There may be chains of any length, so this does not recurse.
    """
    known = list(nodes)
    ids = {node.id for node in known}
    below: dict[CatalogId | None, list[ForkNode]] = {}
    for node in known:
        below.setdefault(node.parent_id if node.parent_id in ids else None, []).append(node)
    found: list[ForkNode] = []
    waiting = below.get(None, [])[::-1]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += below.get(node.id, [])[::-1]
    return tuple(found)
