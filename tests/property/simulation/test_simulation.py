"""Whatever clients do at the same time and whatever goes wrong, nothing is lost, and nothing is left."""

from __future__ import annotations

import pytest

from tests.property.simulation.backends import lakes
from tests.property.simulation.broken import CAUGHT, broken, without_locks
from tests.property.simulation.program import Round, Step, program
from tests.property.simulation.runs import Runs, Total

STEPS = 60
SQLITE = [range(start, start + 32) for start in range(0, 160, 32)]


def _run(
    backend: str, seeds: range, *, clients: int = 3, steps: int = STEPS, server: str | None = None
) -> Total:
    total = Total()
    with lakes(backend, server) as found:
        runs = Runs(found, steps, clients)
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
@pytest.mark.parametrize(("seed", "steps"), [(200, STEPS), (600000, 200)])
def test_what_once_failed_is_mended(seed: int, steps: int) -> None:
    _run("sqlite", range(seed, seed + 1), steps=steps)


def test_a_copy_that_was_flushed_and_cleaned_brings_no_row_twice() -> None:
    """What seed 500019 was shrunk to."""
    lanes = (
        (("row.append", 1104736683), ("catalog.fork", 2446251709)),
        (("row.compact", 2880872779),),
        (("catalog.fork", 1213079361),),
        (("cleaning.expire_all", 3491602789),),
        (("cleaning.collect", 359050698),),
        (("catalog.merge", 1396349196),),
    )
    rounds = tuple(Round((tuple(Step(*step) for step in lane),), number) for number, lane in enumerate(lanes))
    with lakes("sqlite") as found:
        assert Runs(found, STEPS).failure(500019, rounds) is None


@pytest.mark.timeout(900)
def test_nothing_is_lost_and_nothing_is_left_on_duckdb() -> None:
    assert _run("duckdb", range(200, 201)).steps >= STEPS


@pytest.mark.timeout(900)
def test_nothing_is_lost_and_nothing_is_left_on_postgresql(postgres_server: str) -> None:
    seeds = range(300, 306)
    assert _run("postgresql", seeds, server=postgres_server).steps >= len(seeds) * STEPS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CAUGHT)
def test_what_cleans_too_much_is_caught(name: str) -> None:
    seeds, focus, share = CAUGHT[name]
    with lakes("sqlite") as found, broken(name) as prepare:
        runs = Runs(found, STEPS, prepare=prepare)
        assert any(
            runs.failure(seed, program(seed, STEPS, focus=focus, only=focus != "all", share=share))
            for seed in seeds
        )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", [("hold_lineages", "share_lineages"), ("share_lineages",)], ids=str)
def test_a_lock_against_forks_that_nobody_takes_is_missed_on_postgresql(
    names: tuple[str, ...], postgres_server: str
) -> None:
    with lakes("postgresql", postgres_server) as found:
        runs = Runs(found, STEPS, prepare=without_locks(*names))
        assert any(
            runs.failure(seed, program(seed, STEPS, focus="races", only=True, share=0.9))
            for seed in range(20)
        )


def test_a_program_that_fails_is_told_with_its_seed_and_shrunk() -> None:
    total, seed = Total(), 1
    with lakes("sqlite") as found, broken("live data files only") as prepare:
        Runs(found, STEPS, prepare=prepare).one(seed, total)
    (told,) = total.violations
    assert f"--seed {seed} --backend sqlite --steps {STEPS}" in told
    assert int(told.partition("shrunk to ")[2].partition(" steps")[0]) < STEPS / 3
