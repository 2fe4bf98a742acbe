"""Whatever is asked and changed in SQL, the answers are those of DuckDB on plain tables."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import forklake
from tests.property.sql_changes import DEFAULTS, Changes
from tests.property.sql_expressions import Expressions
from tests.property.sql_queries import SHAPES, Queries
from tests.property.sql_twins import Twins

EXAMPLES = {"sqlite": 12, "duckdb": 4, "postgresql": 5}
"""How many worlds a run has; a soak has fifty times as many."""
LAYOUTS = ("", "SET PARTITIONED BY (k)", "SET SORTED BY (k DESC)", "SET PARTITIONED BY (bucket(2, k))")
UPKEEP = (
    "CALL merge_adjacent_files()",
    "CALL flush_inlined_data()",
    "CALL rewrite_data_files(delete_threshold => 0)",
)


def tell(lake: forklake.Lake, backend: str, story: Callable[[Twins, Changes], None]) -> None:
    """Tell so many stories; each is made of a seed."""

    @settings(
        max_examples=EXAMPLES[backend] * settings.default.max_examples // 100,
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.integers(0, 2**32))
    def stories(seed: int) -> None:
        note(f"seed {seed}")
        words = Expressions(Random(seed), may_have_params=False)
        twins = Twins.create(lake)
        try:
            twins.define(words.one(*LAYOUTS), DEFAULTS, words.one(0, 2, 100))
            story(twins, Changes(Queries(words)))
        finally:
            twins.close()

    stories()


def test_queries_answer_as_duckdb_does(lake: forklake.Lake, backend: str) -> None:
    tell(lake, backend, asking)


def test_changes_leave_what_they_leave_in_duckdb(lake: forklake.Lake, backend: str) -> None:
    tell(lake, backend, changing)


def asking(twins: Twins, changes: Changes) -> None:
    """Tables that have a past, and queries of them."""
    words, queries = changes.words, changes.queries
    for table in (*SHAPES, *(words.one(*SHAPES) for _ in words.several(3))):
        twins.do(changes.insert(table))
        if words.chance(30):
            twins.do(words.one(changes.delete, changes.update)(table))
        if words.chance(30):
            twins.catalog.sql(words.one(*UPKEEP))
        if words.chance(30):
            twins.remember()
    if words.chance(30):
        twins.fork()
    queries.versions = list(twins.versions)
    if words.chance(40):
        sql, columns = queries.query(1)
        if twins.do(f"CREATE VIEW seen AS {sql}"):
            queries.views = {"seen": columns}
    words.may_have_params = True
    for _ in range(8):
        words.params = {}
        twins.same(queries.statement())


def changing(twins: Twins, changes: Changes) -> None:
    """Statements one after the other, and what they leave."""
    words = changes.words
    for table in SHAPES:
        twins.do(changes.insert(table))
    for _ in words.several(8):
        if words.chance(30):
            transaction(twins, changes)
        else:
            twins.do(changes.statement())
        twins.check()
        twins.remember()
        if words.chance(15):
            twins.catalog.sql(words.one(*UPKEEP))
            twins.check()
        if words.chance(10):
            twins.fork()
    twins.check_past()


def transaction(twins: Twins, changes: Changes) -> None:
    """Some statements that are committed together, or not at all."""
    before = twins.catalog.snapshot
    twins.do("BEGIN")
    for _ in changes.words.several(4, 0):
        twins.do(changes.statement())
        twins.same(changes.queries.statement())
    is_aborted = isinstance(twins.expected("SELECT 1"), str)
    end = changes.words.one("COMMIT", "COMMIT", "COMMIT", "ROLLBACK")
    if is_aborted and end == "COMMIT":
        # DuckDB rolls back without a word.
        assert not isinstance(twins.expected(end), str)
        assert str(twins.answered(end)).startswith("TransactionClosed")
    else:
        twins.do(end)
    if is_aborted or end == "ROLLBACK":
        assert twins.catalog.snapshot == before
