"""Whatever is done to a table, its rows are those of a table in plain Python, now and at every snapshot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forklake
from tests.property.table_lakes import Lakes
from tests.property.table_programs import programs
from tests.property.table_runs import Run
from tests.property.table_steps import DDL, DML, LAYOUT, Program
from tests.property.table_values import COMMON, FLOATS, types

EXAMPLES = {"sqlite": 12, "duckdb": 4, "postgresql": 6}
"""How many stories a run tells; a soak tells fifty times as many."""


@pytest.fixture
def lakes(lake: forklake.Lake, lake_url: str) -> Iterator[Lakes]:
    lakes = Lakes(lake, lake_url)
    yield lakes
    lakes.close()


def tell(lakes: Lakes, stories: st.SearchStrategy[Program]) -> None:
    @settings(
        max_examples=EXAMPLES[lakes.backend] * settings.default.max_examples // 100,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(stories)
    def run(program: Program) -> None:
        story = Run(lakes, program)
        for step in program.steps:
            story.step(step)
        story.finish()

    run()


# Hypothesis spends up to five minutes on making a failure small.
@pytest.mark.timeout(900)
def test_tables_of_any_type_hold_what_the_model_holds(lakes: Lakes) -> None:
    tell(lakes, programs([types()], (*DML, *DML, *LAYOUT, *DDL), 8))


@pytest.mark.timeout(900)
def test_rows_that_change_often_are_those_of_the_model(lakes: Lakes) -> None:
    plain, floats = st.sampled_from(COMMON), st.sampled_from(FLOATS)
    tell(lakes, programs([plain, plain, floats], (*DML, *DML, *LAYOUT), 10))
