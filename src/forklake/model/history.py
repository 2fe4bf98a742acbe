"""What a commit did, in words and with names: for people, where DuckLake's notation has ids. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from forklake.model.changes import REWRITTEN, Change, Verb, from_footprint
from forklake.model.names import QualifiedName

_OTHER_CATALOGS = re.compile(r"\b(forked|merged)_from:(\d+)")
_ACTIONS = {
    "create": "created",
    "drop": "dropped",
    "alter": "altered",
    "require": "altered",
    "copy": "materialized",
    "restore": "restored",
    "undrop": "brought back",
    "build": "built",
}
_ROWS = {
    Verb.INSERT: "inserted into",
    Verb.DELETE: "deleted from",
    Verb.COMPACT: "compacted",
    Verb.FLUSH: "flushed inlined rows of",
}


def other_catalogs(changes: str) -> Iterator[int]:
    """The ids of the catalogs that a commit forked from or merged."""
    return (int(number) for _, number in _OTHER_CATALOGS.findall(changes))


def summary_of(changes: str, footprint: str | None, catalogs: Mapping[int, str]) -> str:
    """What a commit did: `inserted into sales.orders, created view main.recent`.

    `catalogs` are the names of those that it forked from or merged. Without a footprint, as in a history that
    something else has written, there is nothing but DuckLake's notation.
    """
    if footprint is None:
        return changes
    taken = [
        f"{'forked from' if how == 'forked' else 'merged'} {catalogs.get(int(number), f'catalog {number}')}"
        for how, number in _OTHER_CATALOGS.findall(changes)
    ]
    done = [change for change in from_footprint(footprint) if change.verb is not Verb.MERGE_CATALOG]
    return ", ".join(dict.fromkeys([*taken, *_phrases(done)]))


def _phrases(changes: Iterable[Change]) -> Iterator[str]:
    listed = list(changes)
    updated = {change.object_id for change in listed if change.detail == REWRITTEN}
    for change in listed:
        # An update is stored as rows that went and rows that came.
        is_update = change.verb in (Verb.INSERT, Verb.DELETE) and change.object_id in updated
        yield f"updated {_name(change)}" if is_update else _phrase(change)


def _phrase(change: Change) -> str:
    if change.verb in _ROWS:
        return f"{_ROWS[change.verb]} {_name(change)}"
    action, _, noun = change.verb.partition("_")
    if noun == "index":
        return f"{_ACTIONS[action]} index {change.detail} of {_name(change)}"
    noun = "table" if noun == "column" else noun
    if action == "rename":
        return f"renamed a {noun} to {_name(change)}"
    if action == "tag":
        action = "commented" if (change.detail or "").endswith(":comment") else "tagged"
    return f"{_ACTIONS.get(action, action)} {noun} {_name(change)}"


def _name(change: Change) -> str:
    if change.name is None:
        return str(change.object_id)
    return change.name if change.schema is None else str(QualifiedName(change.schema, change.name))
