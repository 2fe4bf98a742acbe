"""What indexes cost and save, against scans of the same rows.

`python -m benchmarks.index` measures part by part and prints each as soon as it is there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import index_search, index_tables
from benchmarks.index_keys import keys
from benchmarks.index_place_rows import place_rows
from benchmarks.index_places import places
from benchmarks.program import Program, begin
from benchmarks.report import Section

PARTS = ("keys", "places", "place_rows", "bm25", "vector", "find", "append", "held", "requests")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    files: int
    rows_per_file: int
    boxes: int
    rounds: int
    documents: int
    vectors: int
    in_bucket: tuple[int, int]
    """How many files there, and the rows of each."""


FULL = Scale(100, 100_000, 1_000_000, 5, 200_000, 100_000, (100, 20_000))
QUICK = Scale(20, 50_000, 100_000, 3, 20_000, 20_000, (10, 1_000))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print the report."""
    program = begin("index", __doc__, PARTS, arguments)
    scale = QUICK if program.quick else FULL
    with tempfile.TemporaryDirectory(prefix="forklake-bench-") as name:
        for part in program.parts:
            program.progress(part)
            for section in _measured(part, Path(name), scale, program):
                print(f"{section}\n", flush=True)


def _measured(part: str, folder: Path, scale: Scale, program: Program) -> Sequence[Section]:
    files, rows, rounds = scale.files, scale.rows_per_file, scale.rounds
    os.environ["FORKLAKE_CACHE"] = f"{folder}/cache"
    match part:
        case "keys":
            return [keys(folder, files, rows, rounds=rounds)]
        case "places":
            return [places(folder, scale.boxes, rounds=rounds)]
        case "place_rows":
            return [place_rows(folder, scale.boxes, rounds=rounds)]
        case "bm25":
            return [index_search.bm25(folder, scale.documents, rounds, program)]
        case "vector":
            return [index_search.vector(folder, scale.vectors, rounds, program)]
        case "find":
            return index_tables.find(folder, files, rows, rounds=rounds)
        case "append":
            return [index_tables.append(folder, files, rows, rounds=rounds)]
        case "held":
            return [index_tables.held(folder, rows * 10)]
        case _:
            return [index_tables.requests(folder, *scale.in_bucket)]


if __name__ == "__main__":
    main()
