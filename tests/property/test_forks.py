"""Whatever happens in a lake of many catalogs, each is what a real copy would be, now and before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import note, settings

import forklake
from tests.invariants import check_files
from tests.property.fork_checks import (
    Fingerprints,
    Marks,
    Rows,
    check_bounds,
    check_changes,
    check_rows,
    check_structure,
)
from tests.property.fork_model import KEYS, AsOf, Catalog, Key, Object, State, thawed
from tests.property.fork_programs import Act, Author
from tests.property.told import tell

MOST_CATALOGS = 7
STEPS = 60
"""How long a program is."""
SHARES = 3
"""Each backend's programs are told in parts, for processes to take turns."""
PROGRAMS = {"sqlite": 30, "duckdb": 1, "postgresql": 4}
"""How many a part tells; a soak tells two hundred times as many."""
LEAST = 6_000
ACTIONS = {
    "change": 62,
    "transaction": 10,
    "rollback": 3,
    "fork": 9,
    "fork_many": 2,
    "copy": 3,
    "materialize": 4,
    "drop": 4,
    "rename": 2,
    "expire": 1,
    "restore": 4,
    "restore_table": 4,
    "undo": 3,
    "undrop": 2,
}
LOOK_AROUND = 8
"""So many steps, and somebody is compared in full who need not have been touched."""
SOON = timedelta(microseconds=1)


class Lakes:
    """Two handles on one lake, and what stands in its store."""

    def __init__(self, lake: forklake.Lake, url: str, raw: Callable[..., Any]) -> None:
        self.backend = url.partition(":")[0]
        self.handles = (lake, forklake.connect(url))
        self.prints = Fingerprints(raw, self.backend)
        self.steps = 0
        for handle in self.handles:
            # A few rows are read fastest by one thread, and other tests run at the same time.
            handle._context.engine._open().execute("SET threads = 1")


@pytest.fixture
def lakes(lake: forklake.Lake, lake_url: str, raw: Callable[..., Any]) -> Iterator[Lakes]:
    lakes = Lakes(lake, lake_url, raw)
    yield lakes
    lakes.handles[1].close()


class Run:
    """One program, done to catalogs of a lake and to the model."""

    def __init__(self, lakes: Lakes, seed: int) -> None:
        self.lakes = lakes
        self.prefix = uuid4().hex[:8]
        name = f"{self.prefix}_0"
        root = lakes.handles[0].create_catalog(name)
        self.catalogs = [Catalog(root.id, name, State({next(KEYS): Object("schema", "main")}))]
        self.first = root.id
        check_structure(root, self.catalogs[0].state)
        self.catalogs[0].record(root.snapshot)
        self.dropped: list[Catalog] = []
        """In the order in which they were dropped."""
        self.marks: Marks = {}
        self.random = Random(seed)
        self.handle = 0
        self._furnish()

    def _furnish(self) -> None:
        """Begin with a table that has a few rows, in one program out of three in a file."""
        root = self.catalogs[0]
        author, before = Author(self.random, root.state), root.state.copied()
        first = (author.create_table,) if self.random.randrange(3) else (author.create_table, author.to_files)
        with self.doing.catalog(root.name).transaction() as tx:
            for make in (*first, author.append, author.append):
                self._do(root, make(), tx)
        self._compare(root, before, author.touched)
        self.marks = self.lakes.prints.take(self.first)

    # ---- Doing ---

    def step(self, number: int) -> None:
        self.random = random = Random(number)
        self.lakes.steps += 1
        self.handle = random.randrange(2)
        live = [catalog for catalog in self.catalogs if catalog.is_live]
        action = random.choices(list(ACTIONS), list(ACTIONS.values()))[0]
        catalog = random.choice(live)
        if len(live) > MOST_CATALOGS and action in ("fork", "fork_many", "copy"):
            action = "drop"
        if len(live) == 1 and action == "drop":
            action = "fork"
        touched = getattr(self, f"_{action}")(catalog)
        self._settle(touched, is_copy=action == "materialize")

    @property
    def doing(self) -> forklake.Lake:
        return self.lakes.handles[self.handle]

    @property
    def looking(self) -> forklake.Lake:
        return self.lakes.handles[1 - self.handle]

    def _change(self, catalog: Catalog) -> list[Catalog]:
        return self._commit(catalog, 1)

    def _transaction(self, catalog: Catalog) -> list[Catalog]:
        return self._commit(catalog, self.random.randrange(2, 5))

    def _commit(self, catalog: Catalog, count: int) -> list[Catalog]:
        before = catalog.state.copied()
        author = Author(self.random, catalog.state)
        real = self.doing.catalog(catalog.name)
        if count == 1:
            self._act(catalog, author, real)
        else:
            with real.transaction() as tx:
                for _ in range(count):
                    self._act(catalog, author, tx)
        self._compare(catalog, before, author.touched)
        return [catalog]

    def _act(self, catalog: Catalog, author: Author, scope: Any) -> None:
        self._do(catalog, author.act(), scope)

    def _do(self, catalog: Catalog, chosen: Act | None, scope: Any) -> None:
        assert chosen is not None
        text, act = chosen
        note(f"{catalog.name}: {text}")
        assert not act(scope), f"{text} is said to have changed more rows or fewer"

    def _rollback(self, catalog: Catalog) -> list[Catalog]:
        author = Author(self.random, catalog.state.copied())
        tx = self.doing.catalog(catalog.name).transaction()
        for _ in range(self.random.randrange(1, 4)):
            self._act(catalog, author, tx)
        note("rolled back")
        tx.rollback()
        return []

    def _fork(self, parent: Catalog) -> list[Catalog]:
        point, name, ttl = self._point(parent), self._new_name(), self._ttl()
        note(f"fork {parent.name} at {point.snapshot} as {name}, time to live {ttl}")
        made = self.doing.fork(parent.name, name, at=self._at(parent, point), ttl=ttl)
        return self._forked(parent, point, [made], ttl)

    def _copy(self, parent: Catalog) -> list[Catalog]:
        point, name = self._point(parent), self._new_name()
        note(f"copy {parent.name} at {point.snapshot} as {name}")
        made = self.doing.fork(parent.name, name, at=self._at(parent, point), mode="copy")
        return self._forked(parent, point, [made], None)

    def _fork_many(self, parent: Catalog) -> list[Catalog]:
        point, ttl = self._point(parent), self._ttl()
        names: list[str] = []
        for _ in range(2):
            names.append(self._new_name(names))
        note(f"fork {parent.name} at {point.snapshot} as {names}, time to live {ttl}")
        made = self.doing.fork_many(parent.name, names, at=self._at(parent, point), ttl=ttl)
        return self._forked(parent, point, made, ttl)

    def _forked(
        self, parent: Catalog, point: AsOf, made: list[forklake.Catalog], ttl: timedelta | None
    ) -> list[Catalog]:
        forks = [
            parent.forked(fork.id, fork.name, point, self.looking.catalog(fork.name).snapshot)
            for fork in made
        ]
        self.catalogs += forks
        for fork in forks:
            fork.has_ttl = ttl is not None
            self._look(fork, fork.state.tables.keys() if fork is forks[-1] else set())
        return forks

    def _materialize(self, catalog: Catalog) -> list[Catalog]:
        note(f"materialize {catalog.name}")
        self.doing.catalog(catalog.name).materialize()
        snapshot = self._look(catalog, catalog.state.tables.keys())
        if snapshot != catalog.snapshot:
            catalog.record(snapshot)
        return [catalog]

    def _drop(self, catalog: Catalog) -> list[Catalog]:
        note(f"drop {catalog.name}")
        self.doing.drop_catalog(catalog.name)
        catalog.is_live = False
        self.dropped.append(catalog)
        return [catalog]

    def _rename(self, catalog: Catalog) -> list[Catalog]:
        old, catalog.name = catalog.name, self._new_name()
        note(f"rename {old} to {catalog.name}")
        self.doing.rename_catalog(old, catalog.name)
        catalog.record(self.looking.catalog(catalog.name).snapshot)
        return [catalog]

    def _expire(self, _: Catalog) -> list[Catalog]:
        note("drop what has expired")
        live = [catalog for catalog in self.catalogs if catalog.is_live]
        if all(catalog.has_ttl for catalog in live):
            self.doing.set_ttl(live[0].name, None)
            live[0].has_ttl = False
        due = [catalog for catalog in live if catalog.has_ttl]
        gone = [name for name in self.doing.drop_expired() if name.startswith(self.prefix)]
        assert sorted(gone) == sorted(catalog.name for catalog in due)
        for catalog in due:
            catalog.is_live = False
        self.dropped += due
        return [live[0], *due]

    # ---- Going back ---

    def _restore(self, catalog: Catalog) -> list[Catalog]:
        """All as it was, at once or in a transaction that does more."""
        before, timestamp = catalog.state.copied(), self.random.choice(catalog.history)
        real = self.doing.catalog(catalog.name)
        note(f"{catalog.name}: restore {timestamp.snapshot}")
        if self.random.randrange(3):
            real.restore(self._time_of(catalog, timestamp))
            catalog.state = thawed(timestamp.state)
        else:
            with real.transaction() as tx:
                if self.random.randrange(2):
                    self._act(catalog, Author(self.random, catalog.state), tx)
                tx.restore(timestamp.snapshot)
                catalog.state = thawed(timestamp.state)
                if self.random.randrange(2):
                    self._act(catalog, Author(self.random, catalog.state), tx)
        self._compare(catalog, before, set(catalog.state.tables))
        return [catalog]

    def _restore_table(self, catalog: Catalog) -> list[Catalog]:
        """One table as it was, whether it is there now or not."""
        before, timestamp = catalog.state.copied(), self.random.choice(catalog.history)
        past, state = thawed(timestamp.state), catalog.state
        taken = {(item.schema, item.name): key for key, item in (*state.tables.items(), *state.views.items())}
        free = [
            key
            for key, table in past.tables.items()
            if table.schema in state.schemas and taken.get((table.schema, table.name), key) == key
        ]
        if not free:
            return self._restore(catalog)
        key = self.random.choice(free)
        name, real = past.name(past.tables[key]), self.doing.catalog(catalog.name)
        note(f"{catalog.name}: restore {name} of {timestamp.snapshot}")
        with_more = key in state.tables and self.random.randrange(3) == 0
        if with_more:
            with real.transaction() as tx:
                tx.table(state.name(state.tables[key])).restore(timestamp.snapshot)
                state.tables[key] = past.tables[key]
                self._act(catalog, Author(self.random, state), tx)
        else:
            real.restore_table(name, timestamp.snapshot)
            state.tables[key] = past.tables[key]
        self._compare(catalog, before, {key, *(state.tables if with_more else ())})
        return [catalog]

    def _undo(self, catalog: Catalog) -> list[Catalog]:
        """The last commit, if it is not about the catalog itself."""
        before = catalog.state.copied()
        note(f"{catalog.name}: undo {catalog.snapshot}")
        try:
            self.doing.catalog(catalog.name).undo(catalog.snapshot)
        except forklake.InvalidArgument:
            return []
        catalog.state = thawed(catalog.history[-2].state)
        self._compare(catalog, before, set(catalog.state.tables))
        return [catalog]

    def _undrop(self, catalog: Catalog) -> list[Catalog]:
        """One that was dropped lives again, if nobody has its name."""
        live = {known.name for known in self.catalogs if known.is_live}
        names = [known.name for known in self.dropped]
        last = {name: at for at, name in enumerate(names) if name not in live}
        if not last or len(live) > MOST_CATALOGS:
            return self._undo(catalog)
        back = self.dropped.pop(self.random.choice(sorted(last.values())))
        note(f"undrop {back.name}")
        real = self.doing.undrop_catalog(back.name)
        assert real.id == back.id
        dropped, now = [snapshot.id for snapshot in real.snapshots()[-2:]]
        back.is_live, back.has_ttl = True, False
        back.history.append(AsOf(dropped, back.state.frozen(), back.name, False))
        back.record(now)
        self._look(back, back.state.tables)
        return [back]

    # ---- Choices ---

    def _point(self, parent: Catalog) -> AsOf:
        return self.random.choice(parent.history if self.random.randrange(5) < 2 else parent.history[-1:])

    def _at(self, parent: Catalog, point: AsOf) -> Any:
        """The timestamp as it may be given."""
        if point is parent.history[-1] and self.random.randrange(4):
            return None
        return self._time_of(parent, point)

    def _time_of(self, catalog: Catalog, timestamp: AsOf) -> Any:
        """A snapshot by its number or its time."""
        if self.random.randrange(4):
            return timestamp.snapshot
        snapshots = self.looking.snapshots(catalog.name)
        return next(snapshot.time for snapshot in snapshots if snapshot.id == timestamp.snapshot)

    def _ttl(self) -> timedelta | None:
        return None if self.random.randrange(5) else SOON

    def _new_name(self, but: Sequence[str] = ()) -> str:
        """A name that nobody has, though one that was dropped may have had it."""
        taken = {catalog.name for catalog in self.catalogs if catalog.is_live} | set(but)
        names = [f"{self.prefix}_{number}" for number in range(MOST_CATALOGS + 5)]
        return self.random.choice([name for name in names if name not in taken])

    # ---- Checking ---

    def _compare(self, catalog: Catalog, before: State, touched: set[Key]) -> None:
        """The catalog that changed is what the model is; what is new gets the ids that it has there."""
        start, end = catalog.snapshot, self._look(catalog, touched)
        if start == end:
            assert catalog.state == before, "what changed something made no snapshot"
            return
        catalog.record(end)
        real = self.looking.catalog(catalog.name)
        both = touched & before.tables.keys() & catalog.state.tables.keys()
        for key in both if self.random.randrange(2) else ():
            after = catalog.state.tables[key]
            check_changes(real.table(catalog.state.name(after)), before.tables[key], after, start, end)

    def _look(self, catalog: Catalog, keys: Iterable[Key]) -> int:
        """Compare everything but rows, and the rows of some tables; gives the snapshot that was seen."""
        # What a transaction reads is read once.
        tx = self.looking.catalog(catalog.name).transaction()
        check_structure(tx, catalog.state)
        self._check_rows(tx, catalog.state, keys)
        tx.rollback()
        return tx.base

    def _check_rows(self, scope: Any, state: State, keys: Iterable[Key]) -> None:
        for table in [state.tables[key] for key in keys if key in state.tables]:
            found = scope.table(state.name(table))
            check_rows(found, table)
            if self.random.randrange(6) == 0:
                check_bounds(found, table, self.random.choice(table.columns))

    def _settle(self, touched: list[Catalog], *, is_copy: bool) -> None:
        """Nobody else sees any difference."""
        before, self.marks = self.marks, self.lakes.prints.take(self.first)
        changed = {catalog.id for catalog in touched}
        still = {catalog.id for catalog in self.catalogs if is_copy or catalog.id not in changed}
        for view, catalog in before.keys() | self.marks.keys():
            old, new = before.get((view, catalog), []), self.marks.get((view, catalog), [])
            if old != new and catalog in still and not (is_copy and may_differ(view, catalog in changed)):
                assert_same(view, old, new, sources=not is_copy)

    def look_around(self) -> None:
        """Somebody, as it is and as it was."""
        self._check(self.random.choice(self.catalogs))

    def finish(self) -> None:
        """Everybody, as they are and as they were; then all of them leave."""
        listed = {info.id: info for info in self.looking.catalogs() if info.id >= self.first}
        assert listed.keys() == {catalog.id for catalog in self.catalogs if catalog.is_live}
        for catalog in self.catalogs:
            if catalog.is_live:
                self._check_info(catalog, listed[catalog.id])
            self._check(catalog)
        check_files(self.looking, [catalog.name for catalog in self.catalogs if catalog.is_live])
        for catalog in self.catalogs:
            if catalog.is_live:
                self.doing.drop_catalog(catalog.name)

    def _check(self, catalog: Catalog) -> None:
        if not catalog.is_live:
            timestamp = self.random.choice([past for past in catalog.history if past.is_own])
            self._check_past(self.looking.catalog(timestamp.name, at=timestamp.snapshot), timestamp)
            return
        self._look(catalog, catalog.state.tables)
        real = self.looking.catalog(catalog.name)
        assert [known.id for known in real.snapshots()] == [past.snapshot for past in catalog.history]
        # One of anybody's snapshots: the catalog stands at its own last one before that.
        everybody = [timestamp.snapshot for other in self.catalogs for timestamp in other.history]
        snapshot = self.random.choice([at for at in everybody if at >= catalog.history[0].snapshot])
        self._check_past(real.at(snapshot), catalog.at(snapshot))

    def _check_info(self, catalog: Catalog, info: Any) -> None:
        parent = None if catalog.parent is None else catalog.parent.name
        assert (info.name, info.parent) == (catalog.name, parent)
        assert (info.fork_snapshot, info.depth) == (catalog.fork_snapshot, catalog.depth)
        assert (info.expires_at is not None) == catalog.has_ttl

    def _check_past(self, past: forklake.Catalog, timestamp: AsOf | None) -> None:
        assert timestamp is not None
        state = thawed(timestamp.state)
        check_structure(past, state)
        assert state == thawed(timestamp.state), "something of the past has no id"
        if state.tables:
            table = self.random.choice(list(state.tables.values()))
            check_rows(past.table(state.name(table)), table)


def may_differ(view: str, is_copied: bool) -> bool:
    """What a copy changes: where rows come from, and that the catalog has made one more snapshot."""
    return (
        view in ("ducklake_catalog_lineage", "visible_mask")
        or view.endswith("_unmasked")
        or (is_copied and view in ("visible_snapshot", "ducklake_catalog_head", "visible_table_stats"))
    )


def assert_same(view: str, old: Rows, new: Rows, *, sources: bool) -> None:
    """The same rows in any order."""
    if not sources:
        old, new = ([row[1:] for row in rows] for rows in (old, new))
    came, went = Counter(new) - Counter(old), Counter(old) - Counter(new)
    assert not came and not went, f"another catalog sees {view} change: {came} came and {went} went"


def play(lakes: Lakes, program: Sequence[int]) -> None:
    """Run a program: what a failure prints can be given here again."""
    story = Run(lakes, program[0] if program else 0)
    for at, number in enumerate(program):
        story.step(number)
        if at % LOOK_AROUND == 0:
            story.look_around()
    story.finish()


def programs_of(backend: str) -> int:
    return PROGRAMS[backend] * (200 if settings.default.max_examples > 1000 else 1)


def test_a_run_has_many_steps() -> None:
    assert SHARES * STEPS * sum(map(programs_of, PROGRAMS)) >= LEAST


@pytest.mark.timeout(900)
@pytest.mark.parametrize("share", range(SHARES))
def test_catalogs_are_what_copies_of_their_own_would_be(lakes: Lakes, share: int) -> None:
    tell(partial(play, lakes), programs=programs_of(lakes.backend), steps=STEPS, share=share)
    assert lakes.steps >= STEPS * programs_of(lakes.backend)
