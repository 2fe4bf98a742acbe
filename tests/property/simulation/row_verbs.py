"""What clients do to rows and tables of one catalog."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import forklake
from forklake.errors import SnapshotNotFound
from tests.property.simulation.client import Client
from tests.property.simulation.database import Written
from tests.property.simulation.model import CatalogModel, Event, State

Change = Callable[[State], State]
MILLION = 10**6


def changing(catalog: CatalogModel, change: Change) -> Callable[[Written], None]:
    """What a commit to a catalog does to the model."""

    def effect(written: Written) -> None:
        for owner, snapshot, time in written.snapshots:
            assert owner == catalog.id, f"a commit to catalog {owner} instead of {catalog.id}"
            catalog.commit(snapshot, time, change(catalog.state))

    return effect


def same(state: State) -> State:
    """What only moves rows."""
    return state


def chosen(client: Client, random: Random) -> tuple[CatalogModel, str, forklake.Catalog]:
    """Some catalog, and one of its tables."""
    catalog = client.world.some_catalog(random)
    table = random.choice(sorted(catalog.state.live()))
    return catalog, table, client.lake.catalog(catalog.name)


def some_keys(catalog: CatalogModel, table: str, random: Random) -> list[int]:
    """Up to two keys of rows that are there."""
    there = sorted(catalog.state.live()[table])
    return sorted(random.sample(there, min(len(there), random.randint(1, 2))))


def among(keys: list[int]) -> str:
    """A condition on keys."""
    return f"k IN ({', '.join(map(str, keys))})" if keys else "false"


def new_event(client: Client, table: str, *, special: bool = False) -> Event:
    return Event(next(client.world.numbers), table, special)


def fresh(client: Client, random: Random, most: int = 3) -> dict[int, int]:
    """Values of new keys."""
    world = client.world
    return {next(world.numbers): next(world.numbers) for _ in range(random.randint(1, most))}


def as_rows(values: dict[int, int]) -> list[dict[str, Any]]:
    return [{"k": key, "v": value} for key, value in values.items()]


def append(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    event, values = new_event(client, table), fresh(client, random)
    client.effect = changing(catalog, lambda state: state.written(event, values))
    handle.table(table).append(as_rows(values))


def delete(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    event, keys = new_event(client, table), some_keys(catalog, table, random)
    client.effect = changing(catalog, lambda state: state.updated(event, dict.fromkeys(keys)))
    handle.table(table).delete(among(keys))


def update(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    event, keys = new_event(client, table), some_keys(catalog, table, random)
    base = next(client.world.numbers) * MILLION
    values = {key: base + key for key in keys}
    client.effect = changing(catalog, lambda state: state.updated(event, values))
    handle.table(table).update({"v": f"{base} + k"}, among(keys))


def upsert(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    event, values = new_event(client, table, special=True), fresh(client, random, 1)
    updates = {key: next(client.world.numbers) for key in some_keys(catalog, table, random)}
    if client.world.scheduler.is_shared and updates and random.random() < 0.5:
        client.effect = changing(catalog, lambda state: state.updated(event, updates))
        handle.table(table).merge(as_rows(updates), "k", when_not_matched="ignore")
        return
    if not client.world.scheduler.is_shared:
        # What others delete meanwhile would be inserted again, and whoever deletes it then need not see it.
        values |= updates
    client.effect = changing(catalog, lambda state: state.written(event, values))
    handle.table(table).merge(as_rows(values), "k")


def overwrite(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    event, values = new_event(client, table, special=True), fresh(client, random, 2)
    if client.world.scheduler.is_shared or random.random() < 0.5:
        # Of all rows, it would replace those that were there when it began.
        keys = some_keys(catalog, table, random)
        client.effect = changing(
            catalog,
            lambda state: state.updated(event, dict.fromkeys(keys)).written(event, values),
        )
        handle.table(table).overwrite(as_rows(values), where=among(keys))
        return

    def change(state: State) -> State:
        gone = dict.fromkeys(state.live()[table])
        return state.updated(event, gone).written(event, values)

    client.effect = changing(catalog, change)
    handle.table(table).overwrite(as_rows(values))


def transact(client: Client, random: Random) -> None:
    """Rows of two tables, in one commit."""
    catalog = client.world.some_catalog(random)
    tables = sorted(catalog.state.live())
    into, of = random.choice(tables), random.choice(tables)
    adding, removing = new_event(client, into), new_event(client, of)
    values, keys = fresh(client, random), some_keys(catalog, of, random)
    client.effect = changing(
        catalog,
        lambda state: state.written(adding, values).updated(removing, dict.fromkeys(keys)),
    )
    with client.lake.catalog(catalog.name).transaction() as tx:
        tx.table(into).append(as_rows(values))
        tx.table(of).delete(among(keys))


def import_files(client: Client, random: Random) -> None:
    """Files of others become part of a table: they are not the lake's to remove."""
    catalog, table, handle = chosen(client, random)
    world = client.world
    event, values = new_event(client, table), fresh(client, random)
    folder = world.folder / ("files/theirs" if random.random() < 0.3 else "theirs")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"import {event.number}.parquet"
    pq.write_table(pa.table({"k": list(values), "v": list(values.values())}), path)
    world.imports.add(str(path))
    world.file_times[str(path)] = world.now
    client.effect = changing(catalog, lambda state: state.written(event, values))
    handle.table(table).add_files(path, mapping="by_name")


def create_table(client: Client, random: Random) -> None:
    catalog = client.world.some_catalog(random)
    name = f"x{next(client.world.numbers)}"
    event = new_event(client, name, special=True)
    client.effect = changing(catalog, lambda state: state.defined(event, exists=True))
    with client.lake.catalog(catalog.name).transaction() as tx:
        made = tx.create_table(name, "k BIGINT, v BIGINT")
        if random.random() < 0.7:
            made.set_option("data_inlining_row_limit", 0)


def drop_table(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    if table in ("t", "u"):
        return
    event = new_event(client, table, special=True)
    client.effect = changing(catalog, lambda state: state.defined(event, exists=False))
    handle.drop_table(table)


def restore(client: Client, random: Random) -> None:
    """Rows of a table as they were at some retained snapshot."""
    catalog, table, handle = chosen(client, random)
    snapshot = random.choice(sorted(catalog.history))
    past = catalog.history[snapshot]
    if table not in past.live():
        return
    event = new_event(client, table, special=True)
    client.effect = changing(catalog, lambda state: state.restored(event, past))
    handle.table(table).restore(snapshot)


def undo(client: Client, random: Random) -> None:
    """Take back a commit that only changed rows, and rows that are still as it left them."""
    found = [
        (catalog, snapshot, event)
        for catalog in client.world.live()
        for before, snapshot in pairwise(sorted(catalog.history))
        for event in [catalog.history[snapshot].only_since(catalog.history[before])]
        if event is not None and catalog.state.is_as_left_by(event, catalog.history[snapshot])
    ]
    if not found:
        return
    catalog, snapshot, done = random.choice(found)
    event = new_event(client, done.table)
    client.effect = changing(catalog, lambda state: state.undone(event, done))
    try:
        client.lake.catalog(catalog.name).undo(snapshot)
    except SnapshotNotFound:
        # What was there before the commit may be expired.
        if snapshot - 1 in catalog.history:
            raise


def flush(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    client.effect = changing(catalog, same)
    handle.table(table).flush_inlined()


def compact(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    client.effect = changing(catalog, same)
    handle.table(table).compact()


def rewrite_deletes(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    client.effect = changing(catalog, same)
    handle.table(table).rewrite_deletes(0)
