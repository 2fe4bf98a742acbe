"""What indexes cost and save, against scans of the same rows.

`python -m benchmarks.index` measures part by part and prints each as soon as it is there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.index_keys import keys
from benchmarks.index_places import places
from benchmarks.program import begin

PARTS = ("keys", "places")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    files: int
    rows_per_file: int
    boxes: int
    rounds: int


FULL = Scale(100, 100_000, 1_000_000, 5)
QUICK = Scale(20, 50_000, 100_000, 3)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print the report."""
    program = begin("index", __doc__, PARTS, arguments)
    scale = QUICK if program.quick else FULL
    with tempfile.TemporaryDirectory(prefix="forklake-bench-") as name:
        for part in program.parts:
            program.progress(part)
            if part == "keys":
                section = keys(Path(name), scale.files, scale.rows_per_file, rounds=scale.rounds)
            else:
                section = places(Path(name), scale.boxes, rounds=scale.rounds)
            print(f"{section}\n", flush=True)


if __name__ == "__main__":
    main()
