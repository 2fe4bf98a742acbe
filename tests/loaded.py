"""Which modules a program has loaded when it ends, seen in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = frozenset(
    {
        "boto3",
        "botocore",
        "duckdb",
        "numpy",
        "pandas",
        "polars",
        "psycopg",
        "pyarrow",
        "pyspark",
        "rich",
        "sqlglot",
        "typer",
    }
)
"""Packages that take a while to load."""

_REPORT = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
"""


def loaded(program: str, *arguments: str) -> set[str]:
    """The names of all modules."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _REPORT + program, *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return set(json.loads(done.stderr.splitlines()[-1]))


def of_forklake(modules: set[str]) -> set[str]:
    """Those that are our own."""
    return {name for name in modules if name.split(".")[0] == "forklake"}
