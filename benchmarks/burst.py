"""Many commits at once from the threads of one process, all into one catalog, each of a table of its own."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import forklake
from benchmarks.contenders import COLUMNS, lake_url
from benchmarks.counting import calls
from forklake.store.postgres import PostgresDatabase

_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Burst:
    """How it went."""

    threads: int
    seconds: float
    stand: int
    """Tables that are there afterwards."""
    transactions: int
    """Database transactions: one for each commit unless some had to be tried again."""
    failed: int
    errors: dict[str, int]


def burst(server: str, folder: Path, *, threads: int) -> Burst:
    """Release all threads at one timestamp and wait for the last commit."""
    errors: Counter[str] = Counter()
    barrier = threading.Barrier(threads + 1, timeout=_SECONDS)
    with (
        forklake.connect(lake_url(server, "burst"), data_path=folder / "burst", create=True) as lake,
        calls(PostgresDatabase, "transaction") as transactions,
    ):
        catalog = lake.create_catalog("shared")
        before = transactions()

        def commit(number: int) -> None:
            barrier.wait()
            try:
                catalog.create_table(f"table_{number:03}", COLUMNS)
            except Exception as error:  # noqa: BLE001 - a failed commit is a result
                errors[f"{type(error).__name__}: {error}"] += 1

        started = [
            threading.Thread(target=commit, args=(number,), name=f"commit-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in started:
            thread.start()
        barrier.wait()
        begin = time.perf_counter()
        for thread in started:
            thread.join(max(0.0, begin + _SECONDS - time.perf_counter()))
        seconds = time.perf_counter() - begin
        late = sum(thread.is_alive() for thread in started)
        if late:
            errors[f"not done after {_SECONDS:.0f} seconds"] += late
        return Burst(
            threads, seconds, len(catalog.tables()), transactions() - before, errors.total(), dict(errors)
        )
