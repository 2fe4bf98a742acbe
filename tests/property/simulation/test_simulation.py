"""Whatever clients do at the same time and whatever goes wrong, nothing is lost, and nothing is left."""

from __future__ import annotations

import pytest

from tests.property.simulation.backends import lakes
from tests.property.simulation.broken import CAUGHT, broken
from tests.property.simulation.program import program
from tests.property.simulation.runs import Runs, Total

STEPS = 60
SQLITE = [range(start, start + 32) for start in range(0, 160, 32)]


def _run(backend: str, seeds: range, *, clients: int = 3, server: str | None = None) -> Total:
    total = Total()
    with lakes(backend, server) as found:
        runs = Runs(found, STEPS, clients)
        for seed in seeds:
            runs.one(seed, total)
    assert not total.violations, "\n\n".join(total.violations)
    return total


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", SQLITE, ids=str)
def test_nothing_is_lost_and_nothing_is_left_on_sqlite(seeds: range) -> None:
    total = _run("sqlite", seeds)
    assert total.steps >= len(seeds) * STEPS
    assert total.faults > len(seeds)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [200])
def test_what_once_failed_is_mended(seed: int) -> None:
    _run("sqlite", range(seed, seed + 1))


@pytest.mark.timeout(900)
def test_nothing_is_lost_and_nothing_is_left_on_duckdb() -> None:
    assert _run("duckdb", range(200, 201)).steps >= STEPS


@pytest.mark.timeout(900)
def test_nothing_is_lost_and_nothing_is_left_on_postgresql(postgres_server: str) -> None:
    seeds = range(300, 306)
    assert _run("postgresql", seeds, clients=1, server=postgres_server).steps >= len(seeds) * STEPS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CAUGHT)
def test_what_cleans_too_much_is_caught(name: str) -> None:
    seeds, focus = CAUGHT[name]
    with lakes("sqlite") as found, broken(name) as prepare:
        runs = Runs(found, STEPS, prepare=prepare)
        assert any(
            runs.failure(seed, program(seed, STEPS, focus=focus, only=focus != "all", share=0.9))
            for seed in seeds
        )


def test_a_program_that_fails_is_told_with_its_seed_and_shrunk() -> None:
    total, seed = Total(), 1
    with lakes("sqlite") as found, broken("live data files only") as prepare:
        Runs(found, STEPS, prepare=prepare).one(seed, total)
    (told,) = total.violations
    assert f"--seed {seed} --backend sqlite --steps {STEPS}" in told
    assert int(told.partition("shrunk to ")[2].partition(" steps")[0]) < STEPS / 3
