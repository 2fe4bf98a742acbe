"""Expiring, collecting and removing, by any client."""

from __future__ import annotations

from collections.abc import Iterable
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

    client.effect = expiring(client, catalog, before, keep_last, versions)
    expected = catalog.expirable(before, keep_last, None) | set(versions)
    bound = floor(client, catalog)
    result = client.lake.catalog(catalog.name).expire(**options)
    expected = {snapshot for snapshot in expected if bound is None or snapshot < bound}
    if not world.scheduler.is_shared and set(result.snapshots) != expected:
        raise Violation(f"{catalog.name} expired {result.snapshots} and not {sorted(expected)}")


def expiring(
    client: Client, catalog: CatalogModel, before: datetime, keep_last: int, versions: Iterable[int] = ()
) -> Effect:
    """What the expiry of one catalog does to the model: what it decides upon is what it has read."""
    gone: set[int] = set()

    def note_history() -> None:
        gone.clear()
        gone.update(catalog.expirable(before, keep_last, None), versions)

    def note_floor() -> None:
        bound = floor(client, catalog)
        gone.intersection_update([snapshot for snapshot in gone if bound is None or snapshot < bound])

    def effect(written: Written) -> None:
        if "retained_snapshots" in written.statements:
            catalog.keep(catalog.history.keys() - gone)

    client.on_read |= {"retained_snapshots": note_history, "oldest_reserved": note_floor}
    return effect


def expiring_all(client: Client, before: datetime, keep_last: int) -> Effect:
    """What the expiry of a whole lake does to the model."""
    world, drop = client.world, dropping(client)
    gone: dict[int, set[int]] = {}

    def note_old() -> None:
        live = world.live()
        gone.clear()
        gone.update((one.id, one.expirable(before, 1, floor(client, one))) for one in live)

    def note_last() -> None:
        for catalog, snapshots in gone.items():
            snapshots.intersection_update(sorted(world.catalogs[catalog].history)[:-keep_last])

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
                catalog.keep(catalog.history.keys() - gone.get(catalog.id, set()))
                if catalog.dropped is not None and catalog.dropped < before:
                    catalog.may_be_forgotten = True

    client.on_read |= {"expirable_catalogs": note_old, "last_snapshots": note_last}
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
    expire_only = None if only is None else expiring(client, only, before, keep_last)

    def effect(written: Written) -> None:
        if expire_only is not None:
            expire_only(written)
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
