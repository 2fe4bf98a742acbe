"""Distributed snapshots: begun by one client, written by others, committed by any, or given up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from unittest.mock import patch

from forklake.data.storage.storage import Storage
from forklake.distributed import DistributedSnapshot, Manifest, work, write_part
from forklake.errors import CommitConflict, ReservationError
from tests.property.simulation.catalog_verbs import DAY, HOUR
from tests.property.simulation.client import Client
from tests.property.simulation.faults import Violation
from tests.property.simulation.model import CatalogModel, State
from tests.property.simulation.row_verbs import as_rows, changing, fresh, new_event

_storage: ContextVar[Storage] = ContextVar("storage")


@contextmanager
def faulty_workers() -> Iterator[None]:
    """Let workers write to the storage of their client, which may fail.

    Clients take turns in the middle of a write: each has its own, in what is patched once for all of them.
    """
    with patch.object(work, "storage_of", lambda *_: _storage.get()):
        yield


@dataclass(slots=True)
class Shared:
    """A distributed snapshot that has begun."""

    ds: DistributedSnapshot
    catalog: CatalogModel
    written: list[tuple[Manifest, str, dict[int, int]]] = field(default_factory=list)
    is_over: bool = False
    """Whether somebody committed or cancelled it."""


def begin(client: Client, random: Random) -> None:
    world = client.world
    if len(world.shared) >= 3:
        world.shared = [shared for shared in world.shared if not shared.is_over][-3:]
    catalog = world.some_catalog(random)
    ttl = random.choice((HOUR, DAY, timedelta(days=3)))
    ds = client.lake.catalog(catalog.name).begin_distributed(["t", "u"], ttl=ttl)
    world.shared.append(Shared(ds, catalog))


def write(client: Client, random: Random) -> None:
    """One part, by a worker that knows only the storage."""
    open_ones = [shared for shared in client.world.shared if not shared.is_over]
    if not open_ones:
        return
    shared = random.choice(open_ones)
    table, values = random.choice("tu"), fresh(client, random)
    number = len(shared.written)
    keep = random.choice(("value", "file"))
    _storage.set(client.storage)
    manifest = write_part(shared.ds, table, as_rows(values), part=f"{number}", manifest=keep)
    # Others may have written meanwhile: of one part, one manifest counts.
    if number == len(shared.written) and not shared.is_over:
        shared.written.append((manifest, table, values))


def commit(client: Client, random: Random) -> None:
    world = client.world
    if not world.shared:
        return
    shared = random.choice(world.shared)
    ds, catalog, parts = shared.ds, shared.catalog, list(shared.written)
    events = [new_event(client, table) for _, table, _ in parts]

    def change(state: State) -> State:
        for event, (_, _, values) in zip(events, parts, strict=True):
            state = state.written(event, values)
        shared.is_over = True
        return state

    over = shared.is_over or ds.expires_at <= world.now
    if catalog.dropped is not None:
        return
    client.effect = changing(catalog, change)
    handle = client.lake.catalog(catalog.name)
    if handle.id != catalog.id:
        return
    try:
        handle.commit_distributed(ds, [manifest for manifest, _, _ in parts])
        shared.is_over = True
    except ReservationError as error:
        # Whoever brings a catalog back ends what was open.
        revived = any(at > ds.parent_snapshot_id for at in world.undropped.get(catalog.id, ()))
        if not (over or shared.is_over or revived or world.scheduler.is_shared):
            raise Violation(f"{catalog.name} lost a distributed snapshot: {error}") from error
        shared.is_over = True
    except CommitConflict as error:
        if catalog.head == ds.parent_snapshot_id:
            raise Violation(f"nobody is in the way of a distributed snapshot: {error}") from error


def cancel(client: Client, random: Random) -> None:
    shared = [one for one in client.world.shared if not one.is_over and one.catalog.dropped is None]
    if not shared:
        return
    one = random.choice(shared)
    one.is_over = True
    client.lake.catalog(one.catalog.name).cancel_distributed(one.ds)
