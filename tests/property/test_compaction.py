"""A table that is compacted now and then is what it would be without: now, at every snapshot, in its feed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from uuid import uuid4

import forklake
from tests.invariants import check_files
from tests.property.told import play_seeds

STEPS = 14
PROGRAMS = {"sqlite": 6, "duckdb": 1, "postgresql": 4}
VERBS = {"append": 8, "delete": 4, "update": 4, "merge": 2, "overwrite": 1, "shape": 3, "layout": 2}
SHAPES = ("a INT", "b VARCHAR DEFAULT 'd'", "n STRUCT(x DOUBLE, y INT[])")
Deed = Callable[[forklake.Table], Any]


class Pair:
    """One history told to two tables, of which only one is compacted."""

    def __init__(self, lake: forklake.Lake, random: Random) -> None:
        self.random = random
        self.number = 0
        self.added = 0
        self.catalogs = [lake.create_catalog(uuid4().hex) for _ in range(2)]
        for catalog in self.catalogs:
            table = catalog.create_table("t", "k BIGINT NOT NULL, v VARCHAR, f DOUBLE, ts TIMESTAMP")
            table.set_option("data_inlining_row_limit", 3)
            table.set_option("parquet_row_group_size", 4)
        self.timestamps = [tuple(catalog.snapshot for catalog in self.catalogs)]

    @property
    def tables(self) -> list[forklake.Table]:
        return [catalog.table("t") for catalog in self.catalogs]

    def step(self) -> None:
        verb = self.random.choices(list(VERBS), list(VERBS.values()))[0]
        deed: Deed = getattr(self, verb)()
        answers = [deed(table) for table in self.tables]
        assert answers[0] == answers[1], verb
        self.timestamps.append(tuple(catalog.snapshot for catalog in self.catalogs))
        if self.random.random() < 0.5:
            self.compact()

    def compact(self) -> None:
        compacted = self.catalogs[1]
        size = self.random.choice((None, None, 1, 2000))
        compacted.table("t").set_option("target_file_size", size)
        before = compacted.snapshot
        if self.random.random() < 0.6:
            compacted.compact()
        else:
            compacted.rewrite_deletes(self.random.choice((0, 0.3, 0.9)))
        assert compacted.table("t").changes(before).count() == 0

    # ---- What happens ---

    def rows(self, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for _ in range(count):
            self.number += 1
            f = self.random.choice((None, 0.5, -1.0, float("nan"), float("inf")))
            found.append({"k": self.number, "v": self.random.choice(("x", "y", None)), "f": f})
        return found

    def where(self) -> str:
        bound = self.random.randint(0, self.number + 1)
        return self.random.choice(
            (f"k < {bound}", f"k % 3 = {bound % 3}", "v = 'x'", f"k = {bound}", "f IS NULL")
        )

    def append(self) -> Deed:
        data = self.rows(self.random.choice((1, 2, 5, 9)))
        return lambda table: table.append(data)

    def delete(self) -> Deed:
        where = self.where()
        return lambda table: table.delete(where)

    def update(self) -> Deed:
        where, text = self.where(), self.random.choice(("v || 'u'", "NULL", "'w'"))
        return lambda table: table.update({"v": text}, where)

    def merge(self) -> Deed:
        known = [{"k": self.random.randint(1, self.number), "v": "m", "f": 1.5}] if self.number else []
        data = [*known, *self.rows(1)]
        return lambda table: table.merge(data, "k")

    def overwrite(self) -> Deed:
        data, where = self.rows(2), self.where()
        return lambda table: table.overwrite(data, where)

    def shape(self) -> Deed:
        if self.added < len(SHAPES):
            name, _, type = SHAPES[self.added].partition(" ")
            self.added += 1
            type, _, default = type.partition(" DEFAULT ")
            return lambda table: table.add_column(name, type, default=default or None)
        self.added += 1
        new = f"y{self.added}"
        return lambda table: table.rename_column(["n", table.columns[-1].children[1].name], new)

    def layout(self) -> Deed:
        parts = self.random.choice(([], ["v"], ["bucket(2, k)"], ["v", "bucket(2, k)"]))
        order = self.random.choice(([], ["f DESC"], ["v NULLS FIRST", "k"]))

        def change(table: forklake.Table) -> None:
            table.set_partitioning(parts)
            table.set_sort_order(order)

        return change

    # ---- Looking ---

    def compare(self) -> None:
        for timestamp in self.timestamps:
            assert same(self.content(at) for at in enumerate(timestamp))
        for start, end in zip(self.timestamps, self.timestamps[1:], strict=False):
            assert same(self.feed(at, start[at], end[at]) for at in range(2))
        first, last = self.timestamps[0], self.timestamps[-1]
        # A step that changed nothing made no snapshot: the first of those that share one made it.
        places = list(enumerate(self.timestamps))[::-1]
        numbers = [{timestamp[at]: place for place, timestamp in places} for at in range(2)]
        assert same(self.feed(at, first[at], last[at], numbers[at]) for at in range(2))
        for column in ("k", "v", "f"):
            assert same((t.scan().min(column), t.scan().max(column)) for t in self.tables)
        for where in (f"k < {self.number // 2}", "v = 'x'", "v IS NULL", "f > 0", f"k IN (1, {self.number})"):
            assert same(table.scan(where).count() for table in self.tables)
        for row in range(0, self.number, 3):
            assert same(table.locate(row) is None for table in self.tables)
        (whole, compacted) = (table.stats() for table in self.tables)
        assert whole.record_count == compacted.record_count

    def content(self, place: tuple[int, int]) -> object:
        at, snapshot = place
        past = self.catalogs[at].table("t", at=snapshot)
        rows = past.scan(row_ids=True).to_pylist()
        return past.count(), sorted(map(repr, rows)), past.arrow_schema

    def feed(self, at: int, start: int, end: int, numbers: dict[int, int] | None = None) -> object:
        """What happened, without the numbers of snapshots, or with the step that they stand for."""
        changes = self.catalogs[at].table("t", at=end).changes(start, end).to_pylist()
        for change in changes:
            snapshot = change.pop("snapshot_id")
            change["step"] = (
                None if numbers is None else next(n for s, n in sorted(numbers.items()) if s >= snapshot)
            )
        return sorted(map(repr, changes))


def same(found: Any) -> bool:
    one, other = found
    assert repr(one) == repr(other)
    return True


def test_a_table_that_is_compacted_is_what_it_would_be_without(lake: forklake.Lake, backend: str) -> None:
    def play(random: Random) -> None:
        pair = Pair(lake, random)
        for _ in range(STEPS):
            pair.step()
        pair.compare()
        check_files(lake, [catalog.name for catalog in pair.catalogs])

    play_seeds(play, programs=PROGRAMS[backend])
