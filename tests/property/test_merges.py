"""Whatever forks did, a merge brings what the other side has not seen, or is refused and leaves no trace.

The model knows no snapshots and no bases. Every row has a version that is written nowhere else, and every
catalog remembers which versions and deeds it has ever held; forks inherit that memory and merges unite it. So
a version that the other side has seen was given up there on purpose, and one that it has not seen is news.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, NamedTuple
from uuid import uuid4

import forklake
from forklake.errors import MergeConflict
from tests.invariants import check_files
from tests.property.merge_checks import Rows, check_feed, merged, rows_of
from tests.property.told import play_seeds

STEPS = 25
PROGRAMS = {"sqlite": 20, "duckdb": 2, "postgresql": 8}
MOST_CATALOGS = 5
VERBS = {
    "append": 8,
    "append_file": 4,
    "delete": 5,
    "update": 5,
    "upsert": 2,
    "overwrite": 1,
    "flush": 2,
    "compact": 3,
    "rewrite_deletes": 2,
    "add_column": 2,
    "drop_column": 1,
    "create": 2,
    "drop": 1,
    "comment": 1,
    "fork": 6,
    "merge": 14,
    "materialize": 1,
}


class Deed(NamedTuple):
    """What was done to a table."""

    verb: str
    name: str
    table: int
    """The deed that created it: one of the same name may be another table."""


@dataclass
class Memory:
    """What a catalog holds, and what it has ever held."""

    tables: dict[str, Rows] = field(default_factory=dict)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    """The deeds that created the tables."""
    seen: set[int] = field(default_factory=set)
    """Versions."""
    seen_columns: set[str] = field(default_factory=set)
    """Names of columns that were added: each is given once."""
    deeds: dict[int, Deed] = field(default_factory=dict)
    """What was done, by a number of its own."""

    def copy(self) -> Memory:
        return Memory(
            {name: dict(rows) for name, rows in self.tables.items()},
            dict(self.columns),
            dict(self.comments),
            dict(self.made),
            set(self.seen),
            set(self.seen_columns),
            dict(self.deeds),
        )

    def do(self, number: int, verb: str, name: str) -> None:
        if verb == "create":
            self.made[name] = number
        self.deeds[number] = Deed(verb, name, self.made[name])

    def forget(self, name: str) -> None:
        for of_tables in (self.tables, self.columns, self.comments, self.made):
            of_tables.pop(name, None)


class Run:
    """One program on one lake."""

    def __init__(self, lake: forklake.Lake, random: Random) -> None:
        self.lake = lake
        self.random = random
        self.numbers = count(1)
        self.prefix = uuid4().hex[:8]
        self.known: dict[str, Memory] = {}
        root = f"{self.prefix}_0"
        self.known[root] = Memory()
        catalog = lake.create_catalog(root)
        for name in ("a", "b"):
            self.create(catalog, name)

    # ---- What happens ---

    def step(self) -> None:
        verb = self.random.choices(list(VERBS), list(VERBS.values()))[0]
        name = self.random.choice(list(self.known))
        if verb == "fork":
            self.fork(name)
        elif verb == "merge":
            self.merge(name)
        else:
            catalog = self.lake.catalog(name)
            tables = list(self.known[name].tables)
            if verb == "create":
                self.create(catalog, self.random.choice("abcd"))
            elif verb == "materialize":
                catalog.materialize()
            elif tables:
                self.change(catalog, self.random.choice(tables), verb)
        self.compare(name)

    def create(self, catalog: forklake.Catalog, name: str) -> None:
        memory = self.known[catalog.name]
        if name in memory.tables:
            return
        made = catalog.create_table(name, "k BIGINT, ver BIGINT")
        if self.random.random() < 0.5:
            made.set_option("data_inlining_row_limit", self.random.choice((0, 2)))
        memory.tables[name] = {}
        memory.columns[name] = ("k", "ver")
        memory.do(next(self.numbers), "create", name)

    def fork(self, name: str) -> None:
        if len(self.known) < MOST_CATALOGS:
            made = f"{self.prefix}_{next(self.numbers)}"
            mode: Any = "copy" if self.random.random() < 0.15 else "reference"
            self.lake.fork(name, made, mode=mode)
            self.known[made] = self.known[name].copy()

    def change(self, catalog: forklake.Catalog, name: str, verb: str) -> None:
        memory, table = self.known[catalog.name], catalog.table(name)
        before = dict(memory.tables[name])
        match verb:
            case "append" | "append_file":
                table.append(self.fresh(3 if verb == "append" else 120))
            case "delete":
                table.delete(f"ver % {self.random.randint(2, 7)} = 0")
            case "update":
                table.update(
                    {"ver": f"ver + {next(self.numbers) * 10**9}"}, f"k % 5 = {self.random.randint(0, 4)}"
                )
            case "upsert":
                table.merge(self.fresh(2), "k")
            case "overwrite":
                table.overwrite(self.fresh(2), where=f"k % 3 = {self.random.randint(0, 2)}")
            case "flush":
                catalog.flush_inlined()
            case "compact":
                catalog.compact()
            case "rewrite_deletes":
                catalog.rewrite_deletes(0)
            case "add_column":
                column = f"c{next(self.numbers)}"
                table.add_column(column, "INT", default=str(self.random.randint(1, 9)))
                memory.columns[name] = (*memory.columns[name], column)
                memory.seen_columns.add(column)
            case "drop_column":
                if len(memory.columns[name]) == 2:
                    return
                column = self.random.choice(memory.columns[name][2:])
                table.drop_column(column)
                memory.columns[name] = tuple(c for c in memory.columns[name] if c != column)
            case "drop":
                table.drop()
                memory.do(next(self.numbers), "drop", name)
                memory.forget(name)
                return
            case "comment":
                memory.comments[name] = f"said {next(self.numbers)}"
                table.comment(memory.comments[name])
            case _:
                raise AssertionError(verb)
        if verb in ("flush", "compact", "rewrite_deletes"):
            for other in memory.tables:
                memory.do(next(self.numbers), "move", other)
            return
        memory.tables[name] = found = rows_of(table)
        memory.seen.update(found.values())
        kinds = {"append_file": "append", "drop_column": "alter", "add_column": "alter"}
        if found != before or verb in ("add_column", "drop_column", "comment"):
            memory.do(next(self.numbers), kinds.get(verb, verb), name)

    def fresh(self, rows: int) -> list[dict[str, int]]:
        # Each key once: a merge refuses two rows for one.
        keys = self.random.sample(range(max(50, rows)), rows)
        return [{"k": key, "ver": next(self.numbers) * 10**3} for key in keys]

    # ---- Merges ---

    def merge(self, into: str) -> None:
        others = [name for name in self.known if name != into]
        if not others:
            return
        source = self.random.choice(others)
        ours, theirs = self.known[source], self.known[into]
        target = self.lake.catalog(into)
        before = target.snapshot
        past = {name: rows_of(target.table(name)) for name in theirs.tables}
        result = merged(self.lake, source, target)
        if isinstance(result, MergeConflict):
            assert not self.must_go_well(ours, theirs), (source, into, str(result))
            return
        self.known[into] = self.united(ours, theirs)
        self.compare(into)
        assert [rows_of(target.table(name, at=before)) for name in past] == list(past.values())
        if result.snapshot is not None:
            for name, rows in self.known[into].tables.items():
                check_feed(target.table(name), past.get(name, {}), before, rows)
            again = self.lake.merge(source, into)
            assert again.snapshot is None
            assert again.changes == ()

    def must_go_well(self, ours: Memory, theirs: Memory) -> bool:
        """Appends stand beside anything but another definition, and what is done elsewhere beside all.

        Rows that were only moved stand beside appends.
        """
        mine = [deed for number, deed in ours.deeds.items() if number not in theirs.deeds]
        yours = [deed for number, deed in theirs.deeds.items() if number not in ours.deeds]
        touched = {deed.name for deed in mine} & {deed.name for deed in yours}
        met = [deed.verb for deed in mine if deed.name in touched]
        found = [deed.verb for deed in yours if deed.name in touched]
        appends = all(verb == "append" for verb in met)
        moves = set(met) <= {"append", "move"} and set(found) <= {"append"}
        return not touched or moves or (appends and not {"alter", "drop", "create"} & set(found))

    def united(self, ours: Memory, theirs: Memory) -> Memory:
        united = theirs.copy()
        news = [deed for number, deed in ours.deeds.items() if number not in theirs.deeds]
        for verb, name, table in news:
            if verb == "drop" and united.made.get(name) == table:
                united.forget(name)
        for verb, name, table in news:
            if ours.made.get(name) == table and verb in ("create", "alter"):
                united.tables.setdefault(name, {})
                united.columns[name] = self.columns_united(name, ours, theirs)
                united.made[name] = table
            if ours.made.get(name) == table and verb in ("create", "comment") and name in ours.comments:
                united.comments[name] = ours.comments[name]
        for name, rows in ours.tables.items():
            if name in united.tables:
                united.tables[name] = self.rows_united(rows, united.tables[name], ours, theirs)
        united.seen |= ours.seen
        united.seen_columns |= ours.seen_columns
        united.deeds |= ours.deeds
        return united

    def columns_united(self, name: str, ours: Memory, theirs: Memory) -> tuple[str, ...]:
        """Columns that one side added and dropped again change nothing for the other."""
        mine = ours.columns[name]
        yours = theirs.columns.get(name, ()) if theirs.made.get(name) == ours.made[name] else ()
        kept = [column for column in yours if column in mine or column not in ours.seen_columns]
        news = [column for column in mine if column not in yours and column not in theirs.seen_columns]
        return (*kept, *news)

    def rows_united(self, rows: Rows, others: Rows, ours: Memory, theirs: Memory) -> Rows:
        found: Rows = {}
        for row in rows.keys() | others.keys():
            mine, yours = rows.get(row), others.get(row)
            if mine == yours or (mine is not None and mine in theirs.seen):
                chosen = yours
            elif yours is None or yours in ours.seen:
                chosen = mine
            else:
                assert mine is None, "both changed a row, and nobody noticed"
                chosen = yours
            if chosen is not None:
                found[row] = chosen
        return found

    # ---- Looking ---

    def compare(self, name: str) -> None:
        memory, catalog = self.known[name], self.lake.catalog(name)
        assert {table.name for table in catalog.tables()} == memory.tables.keys()
        for table_name, rows in memory.tables.items():
            table = catalog.table(table_name)
            assert tuple(column.name for column in table.columns) == memory.columns[table_name]
            assert table.tags().get("comment") == memory.comments.get(table_name)
            assert rows_of(table) == rows
            assert table.count() == table.stats().record_count == len(rows)
            self.check_pruning(table, memory.columns[table_name])

    def check_pruning(self, table: forklake.Table, columns: tuple[str, ...]) -> None:
        found = table.scan().to_pylist()
        for column in columns[2:]:
            for value in {row[column] for row in found}:
                expected = sum(row[column] == value for row in found)
                assert table.scan(f"{column} = {value}").count() == expected


def test_a_merge_brings_exactly_what_the_other_side_has_not_seen(lake: forklake.Lake, backend: str) -> None:
    def play(random: Random) -> None:
        run = Run(lake, random)
        for _ in range(STEPS):
            run.step()
        check_files(lake, run.known)

    play_seeds(play, programs=PROGRAMS[backend])


def test_a_table_that_its_maker_dropped_again_leaves_another_of_its_name_alone(lake: forklake.Lake) -> None:
    run = Run(lake, Random(1))
    (root,) = run.known
    run.fork(root)
    fork = next(name for name in run.known if name != root)
    for name in (fork, root):
        run.create(lake.catalog(name), "d")
        run.change(lake.catalog(name), "d", "append")
    run.change(lake.catalog(fork), "d", "drop")
    run.merge(root)
    assert lake.catalog(root).table("d").count() == 3
