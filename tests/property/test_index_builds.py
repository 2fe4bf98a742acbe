"""After any history of a table and its forks, what was built has every row of every data file once."""

from __future__ import annotations

from random import Random
from unittest.mock import patch
from uuid import uuid4

import forklake
from forklake.index import coverage
from tests.index_checks import check_entries, segments_of, uncovered_files
from tests.property.told import play_seeds

STEPS = 16
PROGRAMS = {"sqlite": 5, "duckdb": 1, "postgresql": 3}
VERBS = {
    "append": 6,
    "insert": 2,
    "delete": 2,
    "update": 2,
    "upsert": 2,
    "compact": 1,
    "flush": 1,
    "fork": 2,
    "merge": 1,
    "build": 3,
}


class Story:
    """A table with an index that commits build and one that they do not, and forks of it."""

    def __init__(self, lake: forklake.Lake, random: Random) -> None:
        self.random = random
        self.catalogs = [lake.create_catalog(uuid4().hex)]
        table = self.catalogs[0].create_table("t", "id BIGINT, name VARCHAR")
        table.set_option("data_inlining_row_limit", 3)
        for maintain in ("commit", "later"):
            table.create_index(maintain, kind="hash", columns=["id"], include=["name"], maintain=maintain)

    def step(self, number: int) -> None:
        catalog = self.random.choice(self.catalogs)
        table, key = catalog.table("t"), self.random.randrange(40)
        rows = [{"id": key + at, "name": f"n{number}"} for at in range(5)]
        match self.random.choices(list(VERBS), list(VERBS.values()))[0]:
            case "append":
                table.append([*rows, {"id": None, "name": "none"}])
            case "insert":
                table.append(rows[:1])
            case "delete":
                table.delete(f"id BETWEEN {key} AND {key + 9}")
            case "update":
                table.update({"name": f"'u{number}'"}, f"id > {key}")
            case "upsert":
                table.merge(rows, on="id")
            case "compact":
                table.compact()
            case "flush":
                table.flush_inlined()
            case "fork":
                self.catalogs.append(catalog.fork(uuid4().hex))
            case "merge" if catalog is not self.catalogs[0]:
                catalog.merge_into(self.catalogs[0], prefer="source")
            case _:
                catalog.build_indexes()

    def check(self) -> None:
        for catalog in self.catalogs:
            table = catalog.table("t")
            inherited = uncovered_files(table, "later")
            built = catalog.build_indexes()
            assert sum(one.files for one in built.indexes if one.index == "later") == inherited
            for index in ("commit", "later"):
                assert uncovered_files(table, index) == 0
                check_entries(table, index, "id", "name")
                own = [one for one in segments_of(table, index) if one.source == catalog.id]
                assert coverage.merges(own, catalog.id, coverage.MOST_ROWS) == []
            assert catalog.build_indexes().indexes == ()


def test_indexes_are_complete_after_any_history(lake: forklake.Lake, backend: str) -> None:
    def play(random: Random) -> None:
        story = Story(lake, random)
        with patch.object(coverage, "FAN_IN", 3):
            for number in range(STEPS):
                story.step(number)
            story.check()
        assert lake.check().differences == ()

    play_seeds(play, programs=PROGRAMS[backend])
