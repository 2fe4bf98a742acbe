"""Programs of many catalogs in which no row is changed by two who do not know of each other.

So every merge must go well, in whatever direction and whatever came through third catalogs before; what may
be refused is said by `Known.refusals`: what was written for an older definition, and rows that two changed in
programs which do that on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import count, pairwise
from random import Random
from typing import Any
from uuid import uuid4

import forklake
from forklake.errors import MergeConflict
from tests.property.merge_checks import Rows, check_difference, check_feed, check_positions, counted, merged
from tests.property.merge_model import Event, Known, Prefer
from tests.property.merge_taken_back import NOBODY, TAKEN_BACK, Written

LEAST_CATALOGS, MOST_CATALOGS = 8, 11
LIMITS = {"files": 0, "mixed": 10, "inlined": None}
"""Tables by what their option `data_inlining_row_limit` is: every write in a file, some, and few."""
FIRST_ROWS = {"files": 80, "mixed": 80, "inlined": 150}
VERBS = {
    "insert": 12,
    "delete": 14,
    "update": 14,
    "add_column": 2,
    "rename_column": 2,
    "fork": 10,
    "fork_past": 4,
    "drop": 1,
    "materialize": 1,
    "merge": 16,
    "merge_up": 8,
    "merge_through": 4,
    "detour": 4,
    "relay": 4,
}
MOVES = {"flush": 3, "compact": 3, "rewrite_deletes": 3}
"""In every other program."""
FURTHER = {
    "prefer": {"contest": 8},
    "tables": {"merge_tables": 8},
    "restore": {"restore": 4},
    "undo": {"undo": 4},
    "replay": {"replay": 4},
}
"""Verbs by what they need, such as `merge(prefer=)` and `merge(tables=)`."""
ENABLED: frozenset[str] = frozenset(FURTHER)
"""What of that programs use."""
LOOK_CLOSELY = 0.3
"""The share of merges before which differences are read, and the feed afterwards."""


class Program:
    """One program on a lake and on the model."""

    def __init__(self, lake: forklake.Lake, seed: int) -> None:
        self.lake = lake
        self.random = random = Random(seed)
        self.numbers, self.keys, self.names = count(1), count(), count(1)
        self.prefix = uuid4().hex[:8]
        self.story: list[str] = []
        self.verbs = VERBS | (MOVES if seed % 2 else {})
        for feature in sorted(ENABLED):
            self.verbs |= FURTHER[feature]
        self.known: dict[str, Known] = {}
        self.past: dict[str, dict[int, Known]] = {}
        self.written: dict[str, dict[int, Written]] = {}
        """What commits did to rows, by catalog and snapshot."""
        self.parents: dict[str, str] = {}
        self.latest: dict[tuple[str, int], int] = {}
        """The event that wrote each row last, whoever knows of it."""
        self.defined: dict[str, int] = {}
        self.ids: dict[tuple[str, int], int] = {}
        """The id that each row was given."""
        root = lake.create_catalog(f"{self.prefix}_0")
        self.known[root.name], self.past[root.name], self.written[root.name] = Known(), {}, {}
        for table in random.sample(list(LIMITS), 2):
            self.create(root, table)
        self.defining = self.random.choice(sorted(self.defined))
        # Who forks the past finds both tables there.
        self.past[root.name] = {root.snapshot: self.known[root.name].copy()}
        while len(self.known) < 3:
            self.fork(root.name)

    def create(self, root: forklake.Catalog, table: str) -> None:
        made = root.create_table(table, "k BIGINT, ver BIGINT, note VARCHAR")
        made.set_option("data_inlining_row_limit", LIMITS[table])
        known = self.known[root.name]
        event = Event(next(self.numbers), table, "definition")
        known.rows[table] = {}
        known.define(event, ("k", "ver", "note"))
        self.defined[table] = event.number
        self.append(root.name, table, FIRST_ROWS[table])

    # ---- What happens ---

    def step(self, number: int) -> None:
        self.random = random = Random(number)
        verb = random.choices(list(self.verbs), list(self.verbs.values()))[0]
        if len(self.known) < LEAST_CATALOGS and random.random() < 0.3:
            verb = "fork"
        name = random.choice(list(self.known))
        if verb in ("fork", "fork_past") and len(self.known) >= MOST_CATALOGS:
            verb = "merge"
        if verb in TAKEN_BACK:
            TAKEN_BACK[verb](self, name)
        else:
            getattr(self, verb)(name)

    def fork(self, name: str, at: int | None = None) -> str:
        made = f"{self.prefix}_{next(self.names)}"
        mode: Any = "copy" if self.random.random() < 0.15 else "reference"
        self.say(f"fork {name} at {at} as {made}, {mode}")
        forked = self.lake.fork(name, made, at=at, mode=mode)
        inherited = self.past[name]
        self.known[made] = (self.known[name] if at is None else inherited[at]).copy()
        self.past[made] = {
            timestamp: old for timestamp, old in inherited.items() if at is None or timestamp <= at
        }
        self.past[made][forked.snapshot] = self.known[made].copy()
        self.written[made] = {
            timestamp: old for timestamp, old in self.written[name].items() if at is None or timestamp <= at
        }
        self.parents[made] = name
        return made

    def fork_past(self, name: str) -> None:
        timestamps = sorted(self.past[name])
        self.fork(name, self.random.choice(timestamps[-8:]))

    def drop(self, name: str) -> None:
        """What others know through it stays known."""
        if len(self.known) > LEAST_CATALOGS:
            self.say(f"drop {name}")
            self.lake.drop_catalog(name)
            del self.known[name], self.past[name], self.written[name]

    def materialize(self, name: str) -> None:
        self.say(f"materialize {name}")
        self.lake.catalog(name).materialize()
        self.committed(name, self.known[name].rows)

    # ---- Rows ---

    def insert(self, name: str) -> None:
        self.append(name, self.table_of(name), self.random.choice((1, 3, 30)))

    def append(self, name: str, table: str, number: int) -> None:
        keys = [next(self.keys) for _ in range(number)]
        self.say(f"insert {number} rows from {keys[0]} into {table} of {name}")
        text = self.known[name].columns[table].names[2]
        rows = [{"k": key, "ver": key, text: f"row {key}"} for key in keys]
        self.write(name, table, {key: key for key in keys}, lambda found: found.append(rows))

    def delete(self, name: str) -> None:
        table = self.table_of(name)
        self.delete_keys(name, table, self.some_keys(name, table))

    def delete_keys(self, name: str, table: str, keys: list[int]) -> None:
        self.say(f"delete {keys} from {table} of {name}")
        self.write(name, table, dict.fromkeys(keys), lambda found: found.delete(listed(keys)))

    def update(self, name: str) -> None:
        table = self.table_of(name)
        self.update_keys(name, table, self.some_keys(name, table))

    def update_keys(self, name: str, table: str, keys: list[int]) -> None:
        live, more = self.known[name].live(table), next(self.numbers) * 10**6
        self.say(f"update {keys} of {table} of {name} by {more}")
        values: dict[int, int | None] = {key: live[key] + more for key in keys}
        self.write(name, table, values, lambda found: found.update({"ver": f"ver + {more}"}, listed(keys)))

    def contest(self, name: str) -> None:
        """Change rows that somebody else has changed, which this catalog does not know."""
        table, known = self.table_of(name), self.known[name]
        keys = [
            key
            for key in known.live(table)
            if self.latest[table, key] != NOBODY and self.latest[table, key] not in known.events
        ]
        keys = sorted(self.random.sample(keys, min(len(keys), self.random.choice((1, 3)))))
        self.random.choice((self.delete_keys, self.update_keys))(name, table, keys)
        self.latest |= {(table, key): NOBODY for key in keys}

    def some_keys(self, name: str, table: str) -> list[int]:
        """Rows that nobody has changed without this catalog knowing; near each other, or anywhere."""
        versions = self.known[name].rows[table]
        free = [
            key
            for key, version in versions.items()
            if version.value is not None and self.latest[table, key] == version.event
        ]
        number = min(len(free), self.random.choice((1, 3, 12, 40)))
        if self.random.random() < 0.5:
            return sorted(self.random.sample(free, number))
        start = self.random.randint(0, len(free) - number)
        return sorted(free)[start : start + number]

    def write(
        self,
        name: str,
        table: str,
        values: dict[int, int | None] | dict[int, int],
        work: Callable[[forklake.Table], object],
    ) -> None:
        if values:
            work(self.lake.catalog(name).table(table))
            event = Event(next(self.numbers), table, "rows", frozenset(values))
            live = self.known[name].live(table)
            self.known[name].write(event, dict(values))
            self.latest |= {(table, key): event.number for key in values}
            self.committed(name, [table])
            before = {key: live.get(key) for key in values}
            self.written[name][self.lake.catalog(name).snapshot] = Written(event.number, table, before)

    def table_of(self, name: str) -> str:
        return self.random.choice(sorted(self.known[name].rows))

    # ---- Definitions, and files ---

    def add_column(self, name: str) -> None:
        """Once in a program."""
        self.define(name, "extra", lambda table: table.add_column("extra", "INT", default="5"))

    def rename_column(self, name: str) -> None:
        """Once in a program."""
        self.define(name, "remark", lambda table: table.rename_column("note", "remark"))

    def define(self, name: str, column: str, work: Callable[[forklake.Table], object]) -> None:
        # Of one table only: of two, each side might have the newer one, and neither could be merged first.
        table = self.defining
        event, names = self.known[name].columns[table]
        if event != self.defined[table] or column in names:
            return
        self.say(f"{column} in {table} of {name}")
        work(self.lake.catalog(name).table(table))
        named = (*names, column) if column == "extra" else (*names[:2], column, *names[3:])
        self.defined[table] = next(self.numbers)
        self.known[name].define(Event(self.defined[table], table, "definition"), named)
        self.committed(name, [table])

    def flush(self, name: str) -> None:
        self.move(name, lambda found, table: found.flush_inlined(table))

    def compact(self, name: str) -> None:
        self.move(name, lambda found, table: found.compact(table))

    def rewrite_deletes(self, name: str) -> None:
        self.move(name, lambda found, table: found.rewrite_deletes(0, table))

    def move(self, name: str, work: Callable[[forklake.Catalog, str], object]) -> None:
        table, catalog = self.table_of(name), self.lake.catalog(name)
        before = catalog.snapshot
        work(catalog, table)
        if catalog.snapshot != before:
            self.say(f"move rows of {table} of {name}")
            keys = frozenset(self.known[name].live(table))
            event = Event(next(self.numbers), table, "move", keys)
            self.known[name].events[event.number] = event
            self.committed(name, [table])

    # ---- Merges ---

    def merge(self, into: str) -> None:
        self.merge_of(self.random.choice([name for name in self.known if name != into]), into)

    def merge_up(self, name: str) -> None:
        """Into the parent, or what the parent has into the fork."""
        parent = self.parents.get(name)
        if parent in self.known:
            self.merge_of(*((name, parent) if self.random.random() < 0.7 else (parent, name)))

    def detour(self, name: str) -> None:
        """A fork of a merged fork is merged past the one that it is of; a fork from between meets that."""
        first = self.other_than(name)
        self.change_and_merge(first, name)
        between = self.fork(name)
        self.change_and_merge(self.fork(first), name)
        self.change(between)
        self.merge_of(*self.random.sample((name, between), 2))

    def relay(self, name: str) -> None:
        """What both know came through others, who then bring more, to one of both by another way."""
        first, second, third = (self.other_than(name) for _ in range(3))
        if len({first, second, third}) < 3:
            return
        self.change_and_merge(second, first, name)
        between = self.fork(name)
        self.change_and_merge(third, second, name)
        self.merge_of(third, between)
        self.change(between)
        self.merge_of(*self.random.sample((name, between), 2))

    def change_and_merge(self, *names: str) -> None:
        """The first changes rows, and what it did goes from each to the next."""
        self.change(names[0])
        for source, into in pairwise(names):
            self.merge_of(source, into)

    def change(self, name: str) -> None:
        self.random.choice((self.insert, self.delete, self.update))(name)

    def other_than(self, name: str) -> str:
        """A new fork of a catalog, or any other."""
        others = [other for other in self.known if other != name]
        is_full = len(self.known) >= MOST_CATALOGS
        return self.random.choice(others) if is_full or self.random.random() < 0.3 else self.fork(name)

    def merge_through(self, name: str) -> None:
        """From one to the next, and sometimes back to the first."""
        names = [name, *self.random.sample([other for other in self.known if other != name], 2)]
        if self.random.random() < 0.5:
            names.append(name)
        for source, into in pairwise(names):
            self.merge_of(source, into)

    def merge_tables(self, into: str) -> None:
        """Only one table; whatever is merged later brings the rest."""
        source = self.random.choice([name for name in self.known if name != into])
        self.try_merge(source, into, tables=[self.table_of(into)])

    def replay(self, name: str) -> None:
        """Put what a fork did on top of its parent, or of another; where both changed a row, without it."""
        parent = self.parents.get(name)
        others = [other for other in self.known if other != name]
        onto = parent if parent in self.known and self.random.random() < 0.7 else self.random.choice(others)
        ours, theirs = self.known[name], self.known[onto]
        contested, differing = theirs.contested(ours), theirs.differing(ours)
        self.say(f"replay {name} onto {onto}")
        before = self.lake.catalog(onto).snapshot
        refused = {conflict.ours.name for conflict in self.lake.replay(name, onto).refused}
        assert {table for table, _ in differing} <= refused <= {table for table, _ in contested}
        assert self.lake.catalog(onto).snapshot == before
        changed = {event.table for event in theirs.unknown_to(ours)}
        ours.take(theirs, None, "source", self.decisions(differing))
        self.committed(name, changed)
        assert not self.lake.merge(name, onto, dry_run=True).conflicts

    def decisions(self, differing: Collection[tuple[str, int]]) -> dict[str, Event]:
        """What was decided of rows, by table: some are written anew as they were, which changes files."""
        return {
            table: Event(
                next(self.numbers),
                table,
                "move",
                frozenset(key for where, key in differing if where == table),
            )
            for table in {table for table, _ in differing}
        }

    def merge_of(self, source: str, into: str) -> None:
        """Merge, and where the target has a newer definition, the other way round before.

        Where both changed a row, one side is preferred.
        """
        ours, theirs = self.known[source], self.known[into]
        reasons = {reason for reason, _ in theirs.refusals(ours)}
        if self.try_merge(source, into):
            return
        if reasons == {"definition"}:
            assert self.try_merge(into, source), "definitions have one history"
            assert self.try_merge(source, into)
        if reasons == {"row"}:
            assert self.try_merge(source, into, prefer=self.random.choice(("source", "target")))

    def try_merge(
        self, source: str, into: str, tables: list[str] | None = None, prefer: Prefer | None = None
    ) -> bool:
        """Whether it went well; it must, unless there are reasons to refuse."""
        ours, theirs, target = self.known[source], self.known[into], self.lake.catalog(into)
        contested = ours.contested(theirs, tables)
        refusals = {entry for entry in theirs.refusals(ours, tables) if prefer is None or entry[0] != "row"}
        options = {"tables": tables, "prefer": prefer}
        options = {name: value for name, value in options.items() if value is not None}
        self.say(f"merge {source} into {into} {options}, may be refused for {sorted(refusals)}")
        if is_close := self.random.random() < LOOK_CLOSELY:
            self.compare_differences(source, into)
        before, past = target.snapshot, {table: self.rows_by_id(into, table) for table in theirs.rows}
        result = merged(self.lake, source, target, **options)
        if isinstance(result, MergeConflict):
            excused = {table for _, table in refusals}
            if any(conflict.ours.name not in excused for conflict in result.conflicts):
                raise result
            return False
        differing = ours.differing(theirs, tables)
        assert not differing or prefer is not None, "both changed a row, and nobody noticed"
        changed = {event.table for event in ours.unknown_to(theirs, tables)}
        expected = dict.fromkeys(theirs.rows, (0, 0)) | {
            table: counted(ours.net(theirs, table)) for table in changed
        }
        # Rows that were decided of are written anew.
        undecided = theirs.rows.keys() - {table for table, _ in contested}
        moved = {event.table for event in ours.unknown_to(theirs) if event.kind == "move"}
        found = {entry.name.split(".")[1]: (entry.rows_added, entry.rows_removed) for entry in result.tables}
        for table in undecided - moved:
            assert found.get(table, (0, 0)) == expected[table], f"the merge counts rows of {table}"
        theirs.take(ours, tables, prefer or "source", self.decisions(differing))
        self.committed(into, changed)
        for table in changed if is_close else ():
            check_feed(target.table(table), past[table], before, self.rows_by_id(into, table))
        again = self.lake.merge(source, into, **options)
        assert (again.snapshot, again.changes) == (None, ())
        assert tables is not None or self.lake.catalog(source).diff(into).is_empty
        return True

    # ---- Looking ---

    def committed(self, name: str, tables: Collection[str]) -> None:
        """Compare tables that have changed, and remember how the catalog is now."""
        self.compare(name, tables)
        self.past[name][self.lake.catalog(name).snapshot] = self.known[name].copy()

    def rows_by_id(self, name: str, table: str) -> Rows:
        return {self.ids[table, key]: value for key, value in self.known[name].live(table).items()}

    def compare(self, name: str, tables: Collection[str]) -> None:
        known, catalog = self.known[name], self.lake.catalog(name)
        for table in tables:
            handle, (_, columns) = catalog.table(table), known.columns[table]
            assert tuple(column.name for column in handle.columns) == columns
            found = handle.scan(row_ids=True).to_arrow().to_pydict()
            assert dict(zip(found["k"], found["ver"], strict=True)) == known.live(table), f"{table} of {name}"
            assert len(found["k"]) == len(set(found["k"])) == len(set(found["row_id"])), "a row twice"
            assert handle.count() == handle.stats().record_count == len(found["k"]), "the count is wrong"
            assert found[columns[2]] == [f"row {key}" for key in found["k"]]
            assert set(found.get("extra", ())) <= {5}
            for key, number in zip(found["k"], found["row_id"], strict=True):
                assert self.ids.setdefault((table, key), number) == number, "a row has another id"
            check_positions(self.lake, catalog, handle)

    def compare_differences(self, one: str, other: str) -> None:
        for left, right in ((one, other), (other, one)):
            ours, theirs = self.known[left], self.known[right]
            difference = self.lake.catalog(left).diff(right)
            moves = {event.table for event in ours.unknown_to(theirs) if event.kind == "move"}
            for table in ours.rows:
                # Of rows that both changed, there is more than one way to tell it.
                if ("row", table) not in theirs.refusals(ours):
                    net = ours.net(theirs, table)
                    check_difference(difference.table(table), net, counts=table not in moves)

    def finish(self) -> None:
        """All is gathered in one catalog and given to all; and no row changes when files are rewritten."""
        names = list(self.known)
        one = self.random.choice(names)
        others = [name for name in names if name != one]
        for source, into in [*((name, one) for name in others), *((one, name) for name in others)]:
            self.merge_of(source, into)
        for name in names:
            self.compare(name, self.known[name].rows)
            ours, theirs = self.known[one], self.known[name]
            if not ours.unknown_to(theirs) and not theirs.unknown_to(ours):
                assert all(ours.live(table) == theirs.live(table) for table in ours.rows)
        for name in self.random.sample(names, 2):
            catalog = self.lake.catalog(name)
            catalog.compact()
            catalog.rewrite_deletes(0)
            self.compare(name, self.known[name].rows)

    def say(self, text: str) -> None:
        self.story.append(text.replace(f"{self.prefix}_", "catalog "))


def play(lake: forklake.Lake, program: Sequence[int]) -> None:
    """Run a program: what a failure prints can be given here again."""
    run = Program(lake, program[0] if program else 0)
    try:
        for number in program:
            run.step(number)
        run.finish()
    except Exception as error:
        error.add_note("\n".join(run.story))
        raise


def listed(keys: Collection[int]) -> str:
    return f"k IN ({', '.join(map(str, keys))})"
