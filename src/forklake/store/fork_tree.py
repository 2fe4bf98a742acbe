"""Reading the tree of forks: two queries, however many catalogs there are, and a bounded number of rows."""

from __future__ import annotations

import json

from forklake.errors import InvalidArgument
from forklake.model.fork_tree import ForkNode, ForkTree, in_order
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database, as_time
from forklake.store.catalogs import catalog_named

MOST_FORKS = 20
"""How many forks of one catalog are shown, if nobody says otherwise."""
MOST_CATALOGS = 2000
"""How many catalogs are shown in all; those near the root come first."""
_WHOLE_LAKE = -1
_DEEPEST = 2**31 - 1


def fork_tree(
    database: Database, root: str | None, *, depth: int | None, limit: int, dropped: bool
) -> ForkTree:
    """The catalogs below one, or all, with at most so many forks of each."""
    _check("depth", depth, least=0)
    _check("limit", limit, least=1)
    start = _WHOLE_LAKE if root is None else catalog_named(database, root).id
    deepest = _DEEPEST if depth is None else min(depth, _DEEPEST)
    shown = database.rows(
        "fork_tree",
        root=start,
        deepest=deepest,
        dropped=int(dropped),
        siblings=min(limit, MOST_CATALOGS),
        most=MOST_CATALOGS,
    )
    known = {
        row[0]: row[1:]
        for row in database.rows("fork_tree_nodes", catalogs=json.dumps([row[0] for row in shown]))
    }
    visible = [row for row in shown if row[0] in known]
    ids = {row[0] for row in visible}
    below: dict[int, int] = {}
    for _, _, parent, *_ in visible:
        below[parent] = below.get(parent, 0) + 1
    nodes = [
        _node(catalog, level, parent, forks - below.get(catalog, 0), known[catalog])
        for catalog, level, parent, _, forks in visible
    ]
    roots = [row for row in visible if row[2] not in ids]
    return ForkTree(in_order(nodes), roots[0][3] - len(roots) if roots else 0)


def _node(
    catalog: int, level: int, parent: int | None, more: int, row: tuple[object, ...] | list[object]
) -> ForkNode:
    name, parent_name, point, created, expires, snapshot, ended, commits, merged = row
    return ForkNode(
        str(name),
        CatalogId(catalog),
        None if parent_name is None else str(parent_name),
        None if parent is None else CatalogId(parent),
        level,
        _snapshot(point),
        as_time(created),
        None if expires is None else as_time(expires),
        SnapshotId(int(str(snapshot))),
        int(str(commits)),
        _snapshot(merged),
        _snapshot(ended),
        more,
    )


def _snapshot(number: object) -> SnapshotId | None:
    return None if number is None else SnapshotId(int(str(number)))


def _check(name: str, number: object, *, least: int) -> None:
    if number is None and name == "depth":
        return
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise InvalidArgument(f"the {name} of a tree is a whole number of at least {least}, not {number!r}")
