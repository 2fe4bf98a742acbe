"""Drawing a tree of forks, as lines of text and as SVG. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from forklake.display import literal, short_time

if TYPE_CHECKING:
    from forklake.model.fork_tree import ForkNode, ForkTree

_STEP, _LINE, _LETTER = 22, 22, 7.3
"""In pixels: how far forks are moved in, the height of a line, and about the width of a letter."""

Row = tuple[int, "ForkNode | None", str]
"""The level, the catalog (None for those that are not shown), and what is said of it."""


def as_text(tree: ForkTree) -> str:
    """A line for each catalog, with lines that lead to its forks."""
    lines: list[str] = []
    prefixes = _prefixes([level for level, _, _ in tree_rows(tree)])
    for (_, node, text), prefix in zip(tree_rows(tree), prefixes, strict=True):
        lines.append(prefix + (text if node is None else "  ".join([literal(node.name), *details(node)])))
    return "\n".join(lines) or "(no catalogs)"


def tree_rows(tree: ForkTree) -> Iterator[Row]:
    """The catalogs in order, and where some are not shown, how many."""
    hidden: list[tuple[int, int]] = []
    for node in tree.nodes:
        while hidden and hidden[-1][0] > node.level:
            yield _more(*hidden.pop())
        yield node.level, node, ""
        if node.more:
            hidden.append((node.level + 1, node.more))
    while hidden:
        yield _more(*hidden.pop())
    if tree.more:
        yield _more(0, tree.more)


def _more(level: int, number: int) -> Row:
    return level, None, f"… {number:,} more"


def details(node: ForkNode) -> list[str]:
    """What is said of a catalog beside its name."""
    texts = [f"at {node.snapshot}"] if node.fork_snapshot is None else [f"forked at {node.fork_snapshot}"]
    texts.append(short_time(node.created_at))
    texts.append(f"{node.commits:,} commit{'' if node.commits == 1 else 's'}")
    if node.merged_at is not None:
        texts.append(f"merged into {literal(node.parent or '')} at {node.merged_at}")
    if node.dropped_at is not None:
        texts.append(f"dropped at {node.dropped_at}")
    elif node.expires_at is not None:
        texts.append(f"expires {short_time(node.expires_at)}")
    return texts


def _prefixes(levels: list[int]) -> list[str]:
    """What stands before each line; whether there is a sibling below is known when one comes from the end."""
    prefixes: list[str] = []
    goes_on: list[bool] = []
    """For each level, whether a line of that level comes later below the same parent."""
    for level in reversed(levels):
        del goes_on[level + 1 :]
        goes_on += [False] * (level + 1 - len(goes_on))
        through = "".join("│  " if goes_on[above] else "   " for above in range(1, level))
        branch = "" if level == 0 else ("├─ " if goes_on[level] else "└─ ")
        prefixes.append(through + branch)
        goes_on[level] = True
    return prefixes[::-1]


def as_svg(tree: ForkTree) -> str:
    """A dot for each catalog, and an edge from its parent; names and numbers beside it."""
    rows = list(tree_rows(tree)) or [(0, None, "(no catalogs)")]
    at: list[int] = []
    """For each level, the line of the last catalog there."""
    parts: list[str] = []
    width = 0.0
    for line, (level, node, text) in enumerate(rows):
        x, y = _STEP // 2 + level * _STEP, _LINE // 2 + line * _LINE
        del at[level:]
        at.append(line)
        if level:
            top = _LINE // 2 + at[level - 1] * _LINE
            parts.append(f'<path d="M{x - _STEP} {top}V{y}H{x}"/>')
        label, texts = (text, "") if node is None else (literal(node.name), "  ".join(details(node)))
        parts.append(_dot(x, y, node))
        parts.append(
            f'<text x="{x + 10}" y="{y + 4}">{escape(label)}'
            f'<tspan dx="10" class="f">{escape(texts)}</tspan></text>'
        )
        width = max(width, x + 40 + _LETTER * (len(label) + len(texts)))
    size = f'width="{width:.0f}" height="{len(rows) * _LINE}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="12" '
        'fill="currentColor"><style>path{fill:none;stroke:#8888;stroke-width:1.5}.f{fill:#888}'
        ".d{fill:none;stroke:#888}.m{fill:#2a2}</style>" + "".join(parts) + "</svg>"
    )


def _dot(x: int, y: int, node: ForkNode | None) -> str:
    if node is None:
        return ""
    kind = ' class="d"' if node.dropped_at is not None else ' class="m"' if node.merged_at is not None else ""
    return f'<circle cx="{x}" cy="{y}" r="4.5"{kind}/>'
