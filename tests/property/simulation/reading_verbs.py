"""Readers: of the present and the past, of what was planned long ago, and of what changed since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

import forklake
from forklake.engine.select import read_table
from forklake.errors import FileMissing, SnapshotNotFound
from forklake.scan.scan_plan import ScanPlan
from tests.property.simulation.client import Client
from tests.property.simulation.faults import Violation
from tests.property.simulation.model import CatalogModel
from tests.property.simulation.row_verbs import chosen

Values = dict[int, int]


def values_of(rows: list[dict[str, Any]]) -> Values:
    """The values by key; no row and no key is there twice."""
    found = {row["k"]: row["v"] for row in rows}
    if len(found) < len(rows) or len({row["row_id"] for row in rows}) < len(rows):
        raise Violation(f"a row is there twice: {rows}")
    return found


def read_values(table: forklake.Table) -> Values:
    return values_of(table.scan(columns=["k", "v"], row_ids=True).to_pylist())


def read(client: Client, random: Random) -> None:
    """A table as it is, or as it was."""
    catalog = client.world.some_catalog(random)
    snapshot = random.choice(sorted(catalog.history)) if random.random() < 0.5 else catalog.head
    expected = catalog.history[snapshot].live()
    try:
        handle = client.lake.catalog(catalog.name).at(snapshot)
        for name in sorted(expected):
            if read_values(handle.table(name)) != expected[name]:
                raise Violation(f"{catalog.name} at {snapshot} shows another {name}")
    except SnapshotNotFound as error:
        if snapshot in catalog.history:
            raise Violation(f"{catalog.name} has a snapshot {snapshot}: {error}") from error


@dataclass(slots=True)
class LongReader:
    """A scan that was planned, and is read later."""

    catalog: str
    plan: ScanPlan
    selection: Any
    expected: Values
    planned: datetime


def plan(client: Client, random: Random) -> None:
    """Plan scans of a catalog that are read later."""
    catalog, _, handle = chosen(client, random)
    snapshot, planned = catalog.head, client.world.now
    expected = catalog.history[snapshot].live()
    try:
        for name in sorted(expected):
            scan = handle.at(snapshot).table(name).scan(columns=["k", "v"], row_ids=True)
            found = LongReader(catalog.name, scan.plan(), scan.selection, expected[name], planned)
            client.world.readers = [*client.world.readers[-5:], found]
    except SnapshotNotFound as error:
        if snapshot in catalog.history:
            raise Violation(f"{catalog.name} has a snapshot {snapshot}: {error}") from error


def read_planned(client: Client, random: Random) -> None:
    """Read what was planned: within the retention of files it is all there."""
    for reader in list(client.world.readers):
        _read_planned(client, reader)


def _read_planned(client: Client, reader: LongReader) -> None:
    try:
        found = values_of(read_table(client.engine, reader.plan, reader.selection).to_pylist())
    except FileMissing as error:
        if client.fired or not any(other is reader for other in client.world.readers):
            return
        raise Violation(f"a planned scan of {reader.catalog} can no longer be read: {error}") from error
    if found != reader.expected:
        raise Violation(f"a planned scan of {reader.catalog} shows other rows: {found}")


@dataclass(slots=True)
class Stream:
    """Somebody who reads what changed, from time to time."""

    catalog: CatalogModel
    table: str
    since: int
    values: Values


def follow(client: Client, random: Random) -> None:
    """Begin to follow a table, or go on from where one was."""
    world = client.world
    going = [stream for stream in world.streams if stream.catalog.dropped is None]
    if not going or random.random() < 0.3:
        catalog = world.some_catalog(random)
        head = catalog.head
        table = random.choice("tu")
        if table in catalog.state.live():
            world.streams.append(Stream(catalog, table, head, dict(catalog.history[head].live()[table])))
        return
    stream = random.choice(going)
    catalog, end = stream.catalog, stream.catalog.head
    # Another client may follow the same stream meanwhile.
    since, values = stream.since, stream.values
    expected = catalog.history[end].live()[stream.table]
    try:
        table = client.lake.catalog(catalog.name).table(stream.table)
        told = table.changes(since, end).to_pylist()
    except SnapshotNotFound as error:
        between = [at for at in catalog.times if since <= at <= end]
        if all(at in catalog.history for at in between):
            raise Violation(f"{catalog.name} has all of {between}: {error}") from error
        world.streams = [other for other in world.streams if other is not stream]
        return
    if _told(values, told) != expected:
        raise Violation(f"changes of {catalog.name} from {since} to {end} lead elsewhere: {told}")
    stream.since, stream.values = end, dict(expected)


def _told(values: Values, changes: list[dict[str, Any]]) -> Values:
    """Values after changes, one commit after the other."""
    found = dict(values)
    gone = ("delete", "update_preimage")
    for change in sorted(changes, key=lambda told: (told["snapshot_id"], told["change_type"] not in gone)):
        if change["change_type"] in gone:
            if found.pop(change["k"], None) != change["v"]:
                raise Violation(f"{change} was not there")
        elif change["k"] in found:
            raise Violation(f"{change} was there already")
        else:
            found[change["k"]] = change["v"]
    return found
