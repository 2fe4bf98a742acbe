"""How long programs take that do almost nothing: imports, and a command that lists catalogs.

Each is a process of its own with compiled modules, in turns, so that noise hits all alike. The best of many
is what the work takes; the rest is what the machine did beside it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OURS = {
    "import forklake": ["-c", "import forklake"],
    "forklake.connect(sqlite)": ["-c", "import sys, forklake; forklake.connect(sys.argv[1]).close()", "LAKE"],
    "forklake catalogs (sqlite)": ["-m", "forklake", "--lake", "LAKE", "catalogs"],
    "forklake --version": ["-m", "forklake", "--version"],
}
OTHERS = ("duckdb", "pyarrow", "pyiceberg.catalog", "deltalake")


@dataclass(slots=True)
class Program:
    """A program, and what its runs took."""

    title: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    wall: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])

    def run(self) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, *self.arguments], env=self.environment, stdout=subprocess.DEVNULL, check=True
        )
        self.wall.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how often each program runs")
    parser.add_argument(
        "--against", type=Path, metavar="SRC", help="the folder src of another version of forklake"
    )
    given = parser.parse_args()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        programs = [
            Program("python, nothing else", ["-c", "pass"], environment),
            *_ours(f"sqlite:///{folder}/lake.db", "", environment),
        ]
        if given.against is not None:
            other = {**environment, "PYTHONPATH": str(given.against.resolve())}
            programs += _ours(f"sqlite:///{folder}/other.db", f"{given.against}: ", other)
        programs += [
            Program(f"import {name}", ["-c", f"import {name}"], environment)
            for name in OTHERS
            if importlib.util.find_spec(name.partition(".")[0])
        ]
        for program in programs:
            program.run()  # Compiles the modules.
            program.wall.clear()
            program.cpu.clear()
        for _ in range(given.rounds):
            for program in programs:
                program.run()
    width = max(len(program.title) for program in programs)
    print(f"{'':{width}}  best wall   best CPU")
    for program in programs:
        print(
            f"{program.title:{width}}  {min(program.wall) * 1000:6.0f} ms  {min(program.cpu) * 1000:6.0f} ms"
        )


def _ours(url: str, prefix: str, environment: Mapping[str, str]) -> list[Program]:
    """What is measured of forklake, on a lake with two catalogs."""
    for command in (["init"], ["create", "shop"], ["create", "bikes"]):
        subprocess.run(
            [sys.executable, "-m", "forklake", "--lake", url, *command],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return [
        Program(prefix + title, [url if word == "LAKE" else word for word in words], environment)
        for title, words in OURS.items()
    ]


if __name__ == "__main__":
    main()
