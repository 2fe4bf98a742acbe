"""Whom catalogs descend from, and how far they share the history of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from forklake.model.ids import FOREVER, CatalogId, SnapshotId
from forklake.model.progress import OnProgress, Steps
from forklake.store.backend import Database, Row, Session, as_time
from forklake.store.built_statements import COPIED


class Ancestor(NamedTuple):
    """A catalog that another one descends from; each is an ancestor of its own."""

    catalog: CatalogId
    bound: SnapshotId
    """Up to here its rows are read; below zero if they were copied."""
    depth: int
    copied: SnapshotId | None
    """Up to here they were copied, if so."""

    def at(self, snapshot: SnapshotId) -> Ancestor:
        """As it was at a snapshot of the descendant."""
        copied = None if self.copied is None else min(self.copied, snapshot)
        return Ancestor(self.catalog, min(self.bound, snapshot), self.depth, copied)


class ForkOf(NamedTuple):
    """A live catalog, and the one that it was forked from."""

    name: str
    id: CatalogId
    parent: CatalogId | None


@dataclass(frozen=True, slots=True)
class ForkParent:
    """A live catalog, where it stands, and whom it descends from, all as of one snapshot."""

    catalog: CatalogId
    snapshot: SnapshotId
    schema_version: int
    time: datetime
    lineage: tuple[Ancestor, ...]
    oldest: SnapshotId | None = None
    """The oldest snapshot that is not expired, if any is."""
    has_gaps: bool = False
    """Whether single snapshots are expired."""


def share_lineages(session: Session) -> None:
    """Let nobody change lineages until the transaction ends; many may hold this at a time."""
    session.execute("share_lineages")


def hold_lineages(session: Session) -> None:
    """Let nobody read lineages for a fork until the transaction ends."""
    session.execute("hold_lineages")


def ask_parent(session: Session, name: str) -> Callable[[], ForkParent | None]:
    """A live catalog that forks are made of; the answer may come with that to later questions."""
    answer = session.ask("lineage_by_name", name=name)
    return lambda: _parent(answer())


def _parent(rows: Sequence[Row]) -> ForkParent | None:
    if not rows:
        return None
    catalog, snapshot, schema_version, time, oldest, gaps, *_ = rows[0]
    lineage = tuple(Ancestor(*row[6:]) for row in rows)
    return ForkParent(
        CatalogId(catalog), SnapshotId(snapshot), schema_version, as_time(time), lineage, oldest, bool(gaps)
    )


def ask_named(session: Session, names: Sequence[str]) -> Callable[[], list[ForkOf]]:
    """Those of some names that live catalogs have; the answer may come with that to later questions."""
    answer = session.ask("catalogs_by_names", names=json.dumps(names))
    return lambda: [ForkOf(*row) for row in answer()]


def named(reader: Database | Session, names: Sequence[str]) -> list[ForkOf]:
    """Those of some names that live catalogs have."""
    return [ForkOf(*row) for row in reader.rows("catalogs_by_names", names=json.dumps(names))]


def lineage_of_fork(fork: CatalogId, inherited: Sequence[Ancestor]) -> list[Ancestor]:
    """Whom a fork descends from: its parent, whom that descends from, and itself."""
    depth = 1 + max(ancestor.depth for ancestor in inherited)
    return [*inherited, Ancestor(fork, FOREVER, depth, None)]


def parent_of(database: Database, catalog: CatalogId) -> tuple[CatalogId, str] | None:
    """The catalog that another one was forked from, dropped or not, with its latest name."""
    for parent, name in database.rows("parent_catalog", catalog=catalog):
        return CatalogId(parent), name
    return None


def fork_point(database: Database, catalog: CatalogId) -> SnapshotId | None:
    """The snapshot of its parent that a catalog began with; None if it was not forked."""
    found = database.rows("fork_point", catalog=catalog)
    return SnapshotId(found[0][0]) if found else None


def shared_histories(
    database: Database, catalogs: Iterable[CatalogId]
) -> dict[CatalogId, dict[CatalogId, SnapshotId]]:
    """For each catalog, whom it descends from, itself included, and up to where it shares their history."""
    found: dict[CatalogId, dict[CatalogId, SnapshotId]] = {}
    for catalog, ancestor, bound in database.rows("lineages", catalogs=json.dumps(sorted(catalogs))):
        found.setdefault(catalog, {})[ancestor] = bound
    return found


def reads_ancestors(reader: Database | Session, catalog: CatalogId) -> bool:
    """Whether a catalog reads rows of others beside its own."""
    return bool(reader.rows("live_ancestors", catalog=catalog))


def copying(progress: OnProgress | None, name: str, catalogs: int = 1) -> Steps:
    """What counts the tables of the metadata that are copied."""
    return Steps(progress, f"copy metadata of {name}", "metadata tables", catalogs * len(COPIED))


def copy_ancestors(session: Session, catalog: CatalogId, steps: Steps) -> None:
    """Give a catalog rows of its own for everything that it sees of others, its past included.

    Rows keep the snapshots at which they began and ended, so nothing looks different afterwards, neither to
    the catalog nor to its forks, which from now on read the copies too.
    """
    for table in steps.over(COPIED):
        session.execute(f"copy_{table}", catalog=catalog)
    # Only now, and until the commit: making a fork waits for as long as this is held.
    hold_lineages(session)
    session.execute("leave_ancestors", catalog=catalog)
    session.execute("forget_masks", catalog=catalog)
