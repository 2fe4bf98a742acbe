"""What clients do with indexes of tables: define, build and drop them, and find rows by them."""

from __future__ import annotations

from random import Random

from forklake.errors import SnapshotNotFound
from tests.property.simulation.client import Client
from tests.property.simulation.faults import Violation
from tests.property.simulation.model import State
from tests.property.simulation.reading_verbs import values_of
from tests.property.simulation.row_verbs import changing, chosen, new_event

KINDS = ("hash", "btree")


def create(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    event, name = new_event(client, table, special=True), f"i{next(client.world.numbers)}"
    client.effect = changing(catalog, lambda state: state.touched(event))
    include = ["v"] if random.random() < 0.5 else []
    maintain = "commit" if random.random() < 0.5 else "later"
    handle.table(table).create_index(
        name, kind=random.choice(KINDS), columns=["k"], include=include, maintain=maintain
    )


def drop(client: Client, random: Random) -> None:
    catalog, table, handle = chosen(client, random)
    event, found = new_event(client, table, special=True), handle.table(table).indexes()
    if not found:
        return
    client.effect = changing(catalog, lambda state: state.touched(event))
    handle.table(table).drop_index(random.choice(found).name)


def build(client: Client, random: Random) -> None:
    """All that indexes of a catalog lack, one table after the other."""
    catalog, _, handle = chosen(client, random)
    events = [new_event(client, table, special=True) for table in sorted(catalog.state.live())]

    def change(state: State) -> State:
        for event in events:
            state = state.touched(event)
        return state

    client.effect = changing(catalog, change)
    handle.build_indexes()


def look_up(client: Client, random: Random) -> None:
    """Rows by their keys, as they are or as they were: an index changes no answer."""
    catalog = client.world.some_catalog(random)
    snapshot = random.choice(sorted(catalog.history)) if random.random() < 0.5 else catalog.head
    known = catalog.history[snapshot].live()
    last = next(client.world.numbers)
    try:
        handle = client.lake.catalog(catalog.name).at(snapshot)
        for name, expected in sorted(known.items()):
            keys = {random.randint(1, last), *random.sample(sorted(expected), min(len(expected), 2))}
            low, high = min(keys), max(keys)
            for where, wanted in (
                (f"k IN ({', '.join(map(str, sorted(keys)))})", keys),
                (f"k BETWEEN {low} AND {high}", range(low, high + 1)),
            ):
                scan = handle.table(name).scan(where, columns=["k", "v"], row_ids=True)
                found = values_of(scan.to_pylist())
                if found != {key: value for key, value in expected.items() if key in wanted}:
                    raise Violation(f"{name} of {catalog.name} at {snapshot} where {where} is {found}")
    except SnapshotNotFound as error:
        if snapshot in catalog.history:
            raise Violation(f"{catalog.name} has a snapshot {snapshot}: {error}") from error
