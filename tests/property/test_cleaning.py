"""Whatever is expired and collected in between, merges give what they would have given, and nothing is lost.

The programs are those of merges, whose model knows neither snapshots nor files. In between, catalogs expire
parts of their history, are dropped, and garbage is collected at once. What each catalog retains is read again
and again; in the end everything is dropped, and then nothing may be left, neither rows nor files.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import forklake
from forklake.store.tables import TABLES
from tests.property.merge_checks import Rows, rows_of
from tests.property.test_merges import Run
from tests.property.told import play_seeds

STEPS = 30
PROGRAMS = {"sqlite": 12, "duckdb": 1, "postgresql": 4}
NOW = timedelta(0)
LEFT = {"ducklake_metadata", "ducklake_snapshot", "ducklake_counter"}
"""What a lake without catalogs has: settings, its last snapshot, and where its counters stand."""
SQL = Callable[[str], list[tuple[Any, ...]]]


class CleaningRun(Run):
    """A program of merges with cleaning in between."""

    def __init__(self, lake: forklake.Lake, random: Random, raw: SQL) -> None:
        super().__init__(lake, random)
        self.raw = raw
        self.past: dict[str, dict[int, dict[str, Rows]]] = {}
        self.remember()

    def step(self) -> None:
        match self.random.randrange(8):
            case 0:
                self.expire()
            case 1:
                self.collect()
            case 2 if len(self.known) > 2 and self.random.random() < 0.4:
                self.drop()
            case _:
                super().step()
        self.remember()

    def fork(self, name: str) -> None:
        before = set(self.known)
        super().fork(name)
        for made in set(self.known) - before:
            self.past[made] = dict(self.past[name])

    def remember(self) -> None:
        """The present state of every catalog becomes part of its past."""
        for name, memory in self.known.items():
            snapshot = self.lake.catalog(name).snapshot
            states = self.past.setdefault(name, {})
            states[snapshot] = {table: dict(rows) for table, rows in memory.tables.items()}

    def expire(self) -> None:
        name = self.random.choice(list(self.known))
        catalog = self.lake.catalog(name)
        if self.random.random() < 0.3:
            middle = [snapshot.id for snapshot in catalog.snapshots()][1:-1]
            gone = set(self.random.sample(middle, min(len(middle), 2)))
            if gone:
                assert set(catalog.expire(versions=gone).snapshots) == gone
                self.past[name] = {s: state for s, state in self.past[name].items() if s not in gone}
            return
        oldest = catalog.expire(older_than=NOW, keep_last=self.random.randint(1, 6)).oldest
        self.past[name] = {s: state for s, state in self.past[name].items() if s >= oldest}

    def collect(self) -> None:
        if self.random.random() < 0.3:
            self.lake.expire(older_than=NOW, keep_last=2)
            for name, states in self.past.items():
                kept = {snapshot.id for snapshot in self.lake.catalog(name).snapshots()}
                self.past[name] = {s: state for s, state in states.items() if s in kept}
        assert not self.lake.collect_garbage(older_than=NOW).kept
        self.look()

    def drop(self) -> None:
        name = self.random.choice(list(self.known))
        self.lake.drop_catalog(name)
        del self.known[name], self.past[name]

    def look(self) -> None:
        """Everything that is retained is what it was."""
        for name, states in self.past.items():
            self.compare(name)
            catalog = self.lake.catalog(name)
            for snapshot, tables in states.items():
                past = catalog.at(snapshot)
                assert {table.name for table in past.tables()} == tables.keys()
                assert {table: rows_of(past.table(table)) for table in tables} == tables

    def finish(self, folder: Path) -> None:
        """What is left after the last cleaning is what somebody names; and nothing when nobody is left."""
        self.lake.expire(older_than=NOW)
        self.lake.collect_garbage(older_than=NOW)
        for name in self.known:
            self.compare(name)
        named = {path for (path,) in self.raw("SELECT path FROM ducklake_data_file WHERE path <> ''")}
        named |= {path for (path,) in self.raw("SELECT path FROM ducklake_delete_file")}
        assert {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")} == named
        self.lake.drop_catalogs(list(self.known))
        self.lake.expire(older_than=NOW)
        self.lake.collect_garbage(older_than=NOW)
        assert not list(folder.rglob("*.parquet"))
        left = {name: self.raw(f"SELECT count(*) FROM {name}")[0][0] for name in TABLES}
        assert {name: number for name, number in left.items() if number and name not in LEFT} == {}


@pytest.mark.timeout(600)
def test_cleaning_loses_nothing_and_leaves_nothing(
    lake: forklake.Lake, backend: str, raw: SQL, tmp_path: Path
) -> None:
    def play(random: Random) -> None:
        run = CleaningRun(lake, random, raw)
        for _ in range(STEPS):
            run.step()
        run.look()
        run.finish(tmp_path / "files")

    play_seeds(play, programs=PROGRAMS[backend])
