"""Expiring, collecting and removing, by any client."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.property.simulation.catalog_verbs import DAY, HOUR, dropping
from tests.property.simulation.client import Client, Effect
from tests.property.simulation.database import Written
from tests.property.simulation.faults import Violation
from tests.property.simulation.model import CatalogModel

NOW = timedelta(0)


def floor(client: Client, catalog: CatalogModel) -> int | None:
    """The oldest snapshot that an open distributed snapshot was begun from."""
    ((found,),) = client.world.query(
        "SELECT min(parent_snapshot_id) FROM ducklake_snapshot_reservation "
        f"WHERE state = 'open' AND catalog_id = {catalog.id}"
    )
    return found


def expire(client: Client, random: Random) -> None:
    """Snapshots of one catalog, by age or by number."""
    world = client.world
    catalog = world.some_catalog(random)
    keep_last = random.randint(1, 5)
    options: dict[str, Any] = {"older_than": random.choice((NOW, NOW, HOUR, DAY)), "keep_last": keep_last}
    versions: list[int] = []
    if random.random() < 0.4:
        middle = sorted(catalog.history)[1:-1]
        versions = random.sample(middle, min(len(middle), 2))
        options = {"versions": versions}
        if not versions:
            return
    before = world.now - options.get("older_than", timedelta(days=36500))

    def gone() -> set[int]:
        bound = floor(client, catalog)
        listed = {snapshot for snapshot in versions if bound is None or snapshot < bound}
        return catalog.expirable(before, keep_last, bound) | listed

    def effect(written: Written) -> None:
        if "retained_snapshots" in written.statements:
            catalog.keep(catalog.history.keys() - gone())

    expected = gone()
    client.effect = effect
    result = client.lake.catalog(catalog.name).expire(**options)
    if not world.scheduler.is_shared and set(result.snapshots) != expected:
        raise Violation(f"{catalog.name} expired {result.snapshots} and not {sorted(expected)}")


def expiring_all(client: Client, before: datetime, keep_last: int) -> Effect:
    """What the expiry of a whole lake does to the model."""
    world, drop = client.world, dropping(client)

    def effect(written: Written) -> None:
        if written.snapshots:
            early = [
                owner
                for owner, _, _ in written.snapshots
                if (expires := world.catalogs[owner].expires) is None or expires > world.now
            ]
            if early:
                raise Violation(f"catalogs {early} were dropped before their time")
            drop(written)
        if "expirable_catalogs" in written.statements:
            for catalog in world.catalogs.values():
                if catalog.dropped is None:
                    gone = catalog.expirable(before, keep_last, floor(client, catalog))
                    catalog.keep(catalog.history.keys() - gone)
                elif catalog.dropped < before:
                    catalog.may_be_forgotten = True

    return effect


def expire_all(client: Client, random: Random) -> None:
    age, keep_last = random.choice((NOW, HOUR, DAY)), random.randint(1, 4)
    client.effect = expiring_all(client, client.world.now - age, keep_last)
    client.lake.expire(older_than=age, keep_last=keep_last)


def collect(client: Client, random: Random) -> None:
    """While others are at work, files stay for a while: they may be reading them."""
    ages = (HOUR, DAY) if client.world.scheduler.is_shared else (NOW, HOUR, HOUR, DAY)
    age = random.choice(ages)
    client.world.readers_until(client.world.now - age)
    client.lake.collect_garbage(older_than=age, dry_run=random.random() < 0.1)


def remove_orphans(client: Client, random: Random) -> None:
    ages = (HOUR, DAY) if client.world.scheduler.is_shared else (NOW, HOUR)
    client.lake.remove_orphans(older_than=random.choice(ages))


OPTIONS: dict[str, timedelta | int | float] = {
    "expire_older_than": HOUR,
    "keep_last_snapshots": 2,
    "delete_older_than": DAY,
    "orphans_older_than": DAY,
    "rewrite_delete_threshold": 0.3,
}
"""What the lake says of its checkpoints."""


def checkpoint(client: Client, random: Random) -> None:
    """Everything at once, of the lake or of one catalog, as the options of the lake say."""
    world = client.world
    if not world.has_options:
        # Nobody else writes now, as the reader does not take turns.
        client.wait_for_database()
        world.has_options = True
        for name, value in OPTIONS.items():
            world.reader.set_option(name, value)
    before, keep_last = world.now - HOUR, 2
    expire = expiring_all(client, before, keep_last)
    only = world.some_catalog(random) if random.random() < 0.3 else None

    def effect(written: Written) -> None:
        if only is not None and "retained_snapshots" in written.statements:
            only.keep(only.history.keys() - only.expirable(before, keep_last, floor(client, only)))
        elif written.statements & {"expirable_catalogs", "lock_expired"}:
            expire(written)
        for owner, snapshot, time in written.snapshots:
            catalog = world.catalogs[owner]
            if catalog.dropped is None:
                catalog.commit(snapshot, time, catalog.state)

    client.effect = effect
    if only is not None:
        done = client.lake.catalog(only.name).checkpoint()
    else:
        world.readers_until(world.now - DAY)
        done = client.lake.checkpoint(dry_run=random.random() < 0.1)
    if not (done.succeeded or client.fired or world.scheduler.is_shared):
        raise Violation(f"a checkpoint failed: {done}")


def expire_reservations(client: Client, random: Random) -> None:
    client.lake.expire_reservations()
