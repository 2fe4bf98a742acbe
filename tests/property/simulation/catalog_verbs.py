"""What clients do to whole catalogs: make, fork, merge, drop them and bring them back."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from forklake.errors import CatalogNotFound, MergeConflict
from tests.property.simulation.client import Client, Effect
from tests.property.simulation.database import Written
from tests.property.simulation.faults import Violation
from tests.property.simulation.model import CatalogModel, State
from tests.property.simulation.row_verbs import changing, new_event, same

MOST_CATALOGS = 6
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def create(client: Client, random: Random) -> None:
    world = client.world
    if len(world.live()) >= MOST_CATALOGS:
        return
    name = f"c{next(world.numbers)}"

    def effect(written: Written) -> None:
        ((owner, snapshot, time),) = written.snapshots
        world.add(CatalogModel(owner, name, State(), {snapshot: State()}, {snapshot: time}, owner))

    client.effect = effect
    catalog = client.lake.create_catalog(name)
    made = next(found for found in world.live() if found.name == name)
    first, second = (new_event(client, table, special=True) for table in "tu")

    def define(state: State) -> State:
        return state.defined(first, exists=True).defined(second, exists=True)

    client.effect = changing(made, define)
    with catalog.transaction() as tx:
        tx.create_table("t", "k BIGINT, v BIGINT")
        tx.create_table("u", "k BIGINT, v BIGINT").set_option("data_inlining_row_limit", 0)


def fork(client: Client, random: Random) -> None:
    world = client.world
    if len(world.live()) >= MOST_CATALOGS:
        return
    parent = world.some_catalog(random)
    name = f"c{next(world.numbers)}"
    options: dict[str, Any] = {}
    if random.random() < 0.4:
        options["at"] = random.choice(sorted(parent.history))
    if random.random() < 0.15:
        options["mode"] = "copy"
    if random.random() < 0.2:
        options["ttl"] = random.choice((HOUR, DAY))
    if random.random() < 0.15:
        options["data_path"] = str(world.folder / "own" / name)
    client.effect = _forking(client, parent, name, options.get("ttl"))
    client.lake.fork(parent.name, name, **options)


def _forking(client: Client, parent: CatalogModel, name: str, ttl: timedelta | None) -> Effect:
    """What a commit that makes a fork does to the model."""
    world = client.world

    def effect(written: Written) -> None:
        ((owner, snapshot, time),) = written.snapshots
        (point,) = {row[2] if row[4] is None else row[4] for row in written.lineages if row[1] == parent.id}
        if point not in parent.history:
            raise Violation(f"{name} was forked at {point}, which {parent.name} has expired")
        made = parent.forked(owner, name, point, snapshot, time)
        made.expires = None if ttl is None else world.now + ttl
        world.add(made)

    return effect


def succeed(client: Client, random: Random) -> None:
    """A fork takes the place of its parent, and its fork the place of that."""
    world = client.world
    parent = world.some_catalog(random)
    for _ in range(random.randint(1, 4)):
        if len(world.live()) >= MOST_CATALOGS:
            return
        made = _forked(client, parent)
        if random.random() < 0.2:
            _forked(client, made)
        client.effect = dropping(client)
        client.lake.drop_catalog(parent.name)
        parent = made


def _forked(client: Client, parent: CatalogModel) -> CatalogModel:
    name = f"c{next(client.world.numbers)}"
    client.effect = _forking(client, parent, name, None)
    client.lake.fork(parent.name, name)
    return next(found for found in client.world.live() if found.name == name)


def merge(client: Client, random: Random) -> None:
    world = client.world
    target, source = world.some_catalog(random), world.some_catalog(random)
    if target is source or target.root != source.root:
        return
    alone = not world.scheduler.is_shared
    may_be_refused = not alone or target.state.may_refuse(source.state)

    def effect(written: Written) -> None:
        if not written.snapshots:
            return
        ((owner, snapshot, time),) = written.snapshots
        assert owner == target.id
        up_to = max(row[5] for row in written.merges if row[2] == source.id)
        merged = source.history.get(up_to)
        if merged is None:
            raise Violation(f"{source.name} was merged at {up_to}, which is expired")
        if target.state.differs(merged):
            raise Violation(f"a conflict of {source.name} at {up_to} with {target.name} was passed over")
        target.commit(snapshot, time, target.state.merged(merged))

    client.effect = effect
    try:
        client.lake.merge(source.name, target.name)
    except MergeConflict as error:
        if not may_be_refused:
            raise Violation(f"{source.name} and {target.name} are not in conflict: {error}") from error


def materialize(client: Client, random: Random) -> None:
    catalog = client.world.some_catalog(random)
    client.effect = changing(catalog, same)
    client.lake.catalog(catalog.name).materialize()


def dropping(client: Client) -> Any:
    """What a commit that drops catalogs does to the model."""

    def effect(written: Written) -> None:
        for owner, snapshot, time in written.snapshots:
            catalog = client.world.catalogs[owner]
            catalog.commit(snapshot, time, catalog.state)
            catalog.dropped = time

    return effect


def drop(client: Client, random: Random) -> None:
    if len(client.world.live()) < 3:
        return
    catalog = client.world.some_catalog(random)
    client.effect = dropping(client)
    client.lake.drop_catalog(catalog.name)


def undrop(client: Client, random: Random) -> None:
    world = client.world
    dropped = [catalog for catalog in world.catalogs.values() if catalog.dropped is not None]
    if not dropped or len(world.live()) >= MOST_CATALOGS:
        return
    catalog = random.choice(dropped)

    def effect(written: Written) -> None:
        ((owner, snapshot, time),) = written.snapshots
        assert owner == catalog.id
        catalog.commit(snapshot, time, catalog.state)
        catalog.dropped, catalog.expires, catalog.may_be_forgotten = None, None, False
        world.undropped.setdefault(owner, []).append(snapshot)

    client.effect = effect
    try:
        client.lake.undrop_catalog(catalog.name)
    except CatalogNotFound as error:
        if not catalog.may_be_forgotten and not world.scheduler.is_shared:
            raise Violation(f"{catalog.name} cannot be brought back: {error}") from error
