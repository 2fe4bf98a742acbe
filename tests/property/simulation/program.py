"""Programs: what is done in which order, drawn from a seed; and running them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from tests.property.simulation import (
    catalog_verbs,
    cleaning_verbs,
    distributed_verbs,
    index_verbs,
    reading_verbs,
    row_verbs,
)
from tests.property.simulation.client import Client
from tests.property.simulation.faults import Violation, draw
from tests.property.simulation.world import World, determined

Verb = Callable[[Client, Random], None]
VERBS: dict[Verb, int] = {
    row_verbs.append: 16,
    row_verbs.delete: 10,
    row_verbs.update: 8,
    row_verbs.upsert: 3,
    row_verbs.overwrite: 3,
    row_verbs.transact: 4,
    row_verbs.import_files: 4,
    row_verbs.create_table: 3,
    row_verbs.drop_table: 3,
    row_verbs.restore: 4,
    row_verbs.flush: 3,
    row_verbs.compact: 5,
    row_verbs.rewrite_deletes: 3,
    catalog_verbs.create: 1,
    catalog_verbs.fork: 12,
    catalog_verbs.merge: 12,
    catalog_verbs.materialize: 2,
    catalog_verbs.drop: 5,
    catalog_verbs.undrop: 3,
    cleaning_verbs.expire: 9,
    cleaning_verbs.expire_all: 5,
    cleaning_verbs.collect: 14,
    cleaning_verbs.remove_orphans: 5,
    cleaning_verbs.expire_reservations: 2,
    distributed_verbs.begin: 4,
    distributed_verbs.write: 8,
    distributed_verbs.commit: 6,
    distributed_verbs.cancel: 1,
    reading_verbs.read: 4,
    reading_verbs.plan: 4,
    reading_verbs.read_planned: 5,
    reading_verbs.follow: 6,
    cleaning_verbs.checkpoint: 0,
    catalog_verbs.succeed: 0,
    row_verbs.undo: 0,
    index_verbs.create: 0,
    index_verbs.drop: 0,
    index_verbs.build: 0,
    index_verbs.look_up: 0,
}
"""How often each is drawn; one that is not drawn otherwise has a focus of its own."""
BY_NAME = {
    f"{verb.__module__.rpartition('.')[2].removesuffix('_verbs')}.{verb.__name__}": verb for verb in VERBS
}
WEIGHTS = dict(zip(BY_NAME, VERBS.values(), strict=True))
FOCUSES: dict[str, tuple[str, ...]] = {
    "all": (),
    "readers": ("reading.plan", "reading.read_planned", "row.overwrite", "cleaning.expire"),
    "distributed": (
        "distributed.begin", "distributed.write", "distributed.commit", "cleaning.remove_orphans",
        "cleaning.expire_reservations",
    ),
    "forks": (
        "row.append", "row.update", "row.delete", "row.overwrite", "catalog.fork", "cleaning.expire",
        "cleaning.collect",
    ),
    "races": ("row.append", "catalog.fork", "catalog.drop", "cleaning.expire"),
    "merges": (
        "catalog.fork", "catalog.merge", "row.append", "row.delete", "cleaning.collect", "catalog.drop",
    ),
    "relatives": (
        "row.append", "row.update", "row.delete", "row.compact", "catalog.fork", "catalog.merge",
        "cleaning.expire_all", "cleaning.collect",
    ),
}  # fmt: skip
"""Verbs that some programs keep to more than others do, so that they meet."""
OF_ITS_OWN = {
    "checkpoints": ("row.append", "row.delete", "catalog.fork", "catalog.merge", "cleaning.checkpoint"),
    "chains": (
        "catalog.succeed",
        "catalog.merge",
        "row.overwrite",
        "row.delete",
        "cleaning.expire_all",
        "cleaning.collect",
    ),
    "undos": (
        "row.undo",
        "row.append",
        "row.update",
        "row.delete",
        "row.compact",
        "catalog.fork",
        "catalog.merge",
    ),
    "indexes": (
        "index.create",
        "index.build",
        "index.look_up",
        "index.drop",
        "row.append",
        "row.compact",
        "catalog.merge",
        "cleaning.collect",
    ),
}
OWN_WEIGHTS = {"index.create": 5, "index.build": 6, "index.look_up": 8, "index.drop": 2}
"""How often verbs are drawn that have a focus of their own, if it is not once."""
EVERY = 8
"""Of so many seeds, one each is for what is of its own; programs of others do not depend on it."""
MORE = 4
PAUSES = (
    *[timedelta(seconds=1)] * 4,
    timedelta(minutes=5),
    timedelta(hours=2),
    timedelta(days=1),
)


@dataclass(frozen=True, slots=True)
class Step:
    """Something that one client does; what exactly follows from its seed and from what is there."""

    verb: str
    seed: int


@dataclass(frozen=True, slots=True)
class Round:
    """Steps of one client after the other, or of several at the same time."""

    lanes: tuple[tuple[Step, ...], ...]
    seed: int

    @property
    def steps(self) -> int:
        return sum(map(len, self.lanes))


Program = tuple[Round, ...]


def program(
    seed: int,
    steps: int,
    *,
    clients: int = 3,
    share: float = 0.5,
    focus: str | None = None,
    only: bool = False,
) -> Program:
    """A program of about so many steps; several clients are at work in some share of its rounds.

    It keeps to the verbs of a focus more than to others, or `only` to them.
    """
    random = Random(seed)
    if focus is None:
        own = {
            EVERY - 4: "indexes",
            EVERY - 3: "checkpoints",
            EVERY - 2: "chains",
            EVERY - 1: "undos",
        }.get(seed % EVERY)
        focus = own or random.choice(list(FOCUSES))
    chosen = (FOCUSES | OF_ITS_OWN)[focus]
    others = 0 if only else 1
    weights = [
        (weight or OWN_WEIGHTS.get(verb, 1)) * MORE if verb in chosen else weight * others
        for verb, weight in WEIGHTS.items()
    ]

    def step() -> Step:
        (verb,) = random.choices(list(WEIGHTS), weights)
        return Step(verb, random.randrange(2**32))

    rounds: list[Round] = []
    while steps > 0:
        lanes = random.randint(2, clients) if clients > 1 and random.random() < share else 1
        made = Round(
            tuple(tuple(step() for _ in range(random.randint(1, 3))) for _ in range(lanes)),
            random.randrange(2**32),
        )
        rounds.append(made)
        steps -= made.steps
    return tuple(rounds)


def run(world: World, rounds: Sequence[Round], *, seed: int = 0, faults: float = 0.2) -> None:
    """Run a program, check after each step, clean up, and see that nothing is left."""
    with determined(seed):
        world.clients[0].run(catalog_verbs.create, Random(seed), None)
        for number, made in enumerate(rounds):
            _run_round(world, number, made, faults)
        finish(world)


def _run_round(world: World, number: int, made: Round, faults: float) -> None:
    random = Random(made.seed)
    world.now += random.choice(PAUSES)

    def lane(client: Client, steps: Sequence[Step]) -> Callable[[], None]:
        def work() -> None:
            for step in steps:
                _run_step(client, number, step, faults)

        return work

    clients = random.sample(world.clients, len(made.lanes))
    world.scheduler.run(
        [lane(client, steps) for client, steps in zip(clients, made.lanes, strict=True)], random
    )


def _run_step(client: Client, number: int, step: Step, faults: float) -> None:
    random = Random(step.seed)
    fault = draw(random, faults)
    try:
        client.run(BY_NAME[step.verb], random, fault)
        client.world.checker.check()
    except Exception as error:
        error.add_note(f"in round {number}: {step}, {fault}")
        raise


def finish(world: World) -> None:
    """Clean with no retention: what is left is what can be reached; and nothing, when nobody is left."""
    world.now += timedelta(days=30)
    client = world.clients[0]
    _clean(client)
    world.checker.check_exact()
    found = world.reader.check()
    if not found.is_clean:
        raise Violation(f"the lake does not hold together: {found.differences}")
    client.effect = catalog_verbs.dropping(client)
    client.lake.drop_catalogs([catalog.name for catalog in world.live()])
    _clean(client)
    world.checker.check_nothing()


def _clean(client: Client) -> None:
    """Twice: what tells where files were stays until they are gone."""
    now = timedelta(0)
    for _ in range(2):
        client.world.now += timedelta(days=1)
        client.effect = cleaning_verbs.expiring_all(client, client.world.now, 1)
        client.lake.expire(older_than=now)
        kept = client.lake.collect_garbage(older_than=now).kept
        client.lake.remove_orphans(older_than=now)
    failed = [file for file in kept if file.failed]
    if failed:
        raise Violation(f"files could not be removed: {failed}")
