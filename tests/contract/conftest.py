"""Fixtures of the contract suite: one behaviour, every metadata database.

`lake_url`    the address of a lake that does not exist yet; a test that uses it runs once for each backend
`lake`        a fresh, empty lake there, closed afterwards
`catalog`     the catalog "main_catalog" of that lake
`database`    the store underneath the lake: transactions and named statements
`raw`         runs SQL text on the same database through the ordinary driver, returns rows: `raw("SELECT 1")`
`reopen`      opens a lake that exists, the same or another; closed afterwards: `reopen()`, `reopen(url)`
`sql_on`      `raw` for any address, whatever stands there: `sql_on(url)("SELECT 1")`
`in_threads`  runs callables at the same time and returns what they returned, or raises what they raised
`program`     starts Python text as another process, as an ordinary user if it says so; see `Program`
`fork`        makes a catalog that sees another as it is now: `fork(catalog, "name")`
`forked`      runs a callable in a forked child and returns what it returned there, or raises what it raised
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import duckdb
import psycopg
import pytest
from psycopg import sql

import forklake
from forklake.model.names import quoted
from forklake.store.backend import Database
from forklake.store.duckdb import DuckDBDatabase
from tests.pgbouncer import direct

BACKENDS = ("sqlite", "duckdb", "postgresql")
THROUGH_PGBOUNCER = {
    "store",
    "test_transactions.py",
    "forks/test_many.py",
    "distributed/test_commit.py",
}
"""Modules and folders whose tests run on PostgreSQL behind a pooler as well."""
LONG = 240.0
"""Seconds after which something hangs, however busy the machine is: no test depends on being faster."""

Rows = list[tuple[Any, ...]]
RunSql = Callable[..., Rows]


class Reopen(Protocol):
    def __call__(self, url: str | None = None, /, **options: Any) -> forklake.Lake: ...


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let tests of some modules run through PgBouncer too, unless they name their backends themselves."""
    here = metafunc.definition.path.relative_to(Path(__file__).parent)
    chosen = not THROUGH_PGBOUNCER.isdisjoint({here.as_posix(), here.parent.as_posix()})
    named = any(mark.args[0] == "lake_url" for mark in metafunc.definition.iter_markers("parametrize"))
    if chosen and "lake_url" in metafunc.fixturenames and not named:
        every = pytest.mark.parametrize("lake_url", [*BACKENDS, "pgbouncer"], indirect=True)
        metafunc.definition.add_marker(every)


@pytest.fixture(params=BACKENDS)
def lake_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a lake that does not exist yet, on each backend in turn.

    For a test that asks for `lake` too, there is an empty lake, copied from a template.
    """
    is_made = "lake" in request.fixturenames
    if request.param in ("postgresql", "pgbouncer"):
        url = request.getfixturevalue("postgres_lake_url" if is_made else "postgres_schema_url")
        return url if request.param == "postgresql" else request.getfixturevalue("pgbouncer").through(url)
    path = tmp_path / "lake.db"
    if is_made:
        request.getfixturevalue("lake_templates").copy(request.param, path)
    return f"{request.param}:///{path}"


@pytest.fixture
def lake(lake_url: str, tmp_path: Path) -> Iterator[forklake.Lake]:
    """A fresh lake without catalogs."""
    with forklake.connect(lake_url, data_path=tmp_path / "files", create=True) as lake:
        yield lake
        leave_unsaved(lake)


def leave_unsaved(lake: forklake.Lake) -> None:
    """Spare DuckDB the work of writing its log into a file that is deleted next."""
    if isinstance(lake._database, DuckDBDatabase):
        with suppress(duckdb.Error):  # The test has closed it.
            lake._database._database.execute("PRAGMA disable_checkpoint_on_shutdown")


@pytest.fixture
def catalog(lake: forklake.Lake) -> forklake.Catalog:
    """A catalog that holds nothing but its schema `main`."""
    return lake.create_catalog("main_catalog")


@pytest.fixture
def database(lake: forklake.Lake) -> Database:
    """The open store of the lake."""
    return lake._database


@pytest.fixture
def sql_on() -> Iterator[Callable[[str], RunSql]]:
    """For an address, what runs one SQL text there and returns rows; parameters are the driver's own."""
    with ExitStack() as opened:
        yield lambda url: _runner(url, opened)


@pytest.fixture
def raw(lake: forklake.Lake, lake_url: str, sql_on: Callable[[str], RunSql]) -> RunSql:
    """Direct SQL on the lake's database: every statement commits by itself."""
    return sql_on(lake_url)


@pytest.fixture
def fork(lake: forklake.Lake, raw: RunSql) -> Callable[[forklake.Catalog, str], forklake.Catalog]:
    """Make a catalog that sees another one as it is now, by writing the lineage that a fork would write."""

    def make(parent: forklake.Catalog, name: str) -> forklake.Catalog:
        child = lake.create_catalog(name)
        at = parent.snapshot
        raw(f"DELETE FROM ducklake_schema WHERE catalog_id = {child.id}")
        raw(f"DELETE FROM ducklake_snapshot_changes WHERE catalog_id = {child.id}")
        raw(
            "INSERT INTO ducklake_catalog_lineage (catalog_id, source_catalog_id, max_snapshot, depth) "
            f"SELECT {child.id}, source_catalog_id, "
            f"CASE WHEN max_snapshot < {at} THEN max_snapshot ELSE {at} END, depth "
            f"FROM ducklake_catalog_lineage WHERE catalog_id = {parent.id}"
        )
        raw(
            "UPDATE ducklake_catalog_lineage SET depth = "
            f"(SELECT max(depth) + 1 FROM ducklake_catalog_lineage WHERE catalog_id = {parent.id}) "
            f"WHERE catalog_id = {child.id} AND source_catalog_id = {child.id}"
        )
        (row,) = raw(f"SELECT schema_version FROM ducklake_catalog_head WHERE catalog_id = {parent.id}")
        raw(f"UPDATE ducklake_catalog_head SET schema_version = {row[0]} WHERE catalog_id = {child.id}")
        return lake.catalog(name)

    return make


@pytest.fixture
def reopen(lake_url: str) -> Iterator[Reopen]:
    """Another handle on the lake, as another program would get it; or on the lake of another address."""
    with ExitStack() as opened:

        def connect(url: str | None = None, /, **options: Any) -> forklake.Lake:
            return opened.enter_context(forklake.connect(lake_url if url is None else url, **options))

        yield connect


@pytest.fixture
def in_threads() -> Callable[..., list[Any]]:
    """Run callables at once, each in a thread; all start together."""

    def run(*work: Callable[[], Any], seconds: float = LONG) -> list[Any]:
        start = threading.Barrier(len(work))

        def begin(task: Callable[[], Any]) -> Any:
            start.wait(seconds)
            return task()

        with ThreadPoolExecutor(len(work)) as pool:
            running: list[Future[Any]] = [pool.submit(begin, task) for task in work]
            return [task.result(seconds) for task in running]

    return run


@pytest.fixture
def program() -> Iterator[Callable[..., Program]]:
    """Start Python text as another process; it is ended with the test."""
    started: list[Program] = []

    def start(text: str, *arguments: str) -> Program:
        started.append(Program(text, *arguments))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture
def forked() -> Callable[..., Any]:
    """Run a callable in a child made by `os.fork`, which inherits every open handle."""
    return _in_child


def _runner(url: str, opened: ExitStack) -> RunSql:
    address = urlsplit(url)
    path = unquote(address.path).removeprefix("/")
    options = dict(parse_qsl(address.query))
    schema = options.pop("metadata_schema", "ducklake")
    if address.scheme == "sqlite":
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=LONG)
        opened.callback(connection.close)
    elif address.scheme == "duckdb":
        # In one process, DuckDB gives every connection to a file the same database.
        connection = opened.enter_context(duckdb.connect(path))
        known = "SELECT 1 FROM duckdb_schemas() WHERE schema_name = ? AND NOT internal"
        if schema != "main" and connection.execute(known, [schema]).fetchall():
            connection.execute(f"USE {quoted(schema)}")
    else:
        server = direct(address._replace(query=urlencode(options)).geturl())
        connection = opened.enter_context(psycopg.connect(server, autocommit=True))
        name = sql.Identifier(schema).as_string(connection)
        connection.execute("SELECT set_config('search_path', %s, false)", [name])

    def run(text: str, parameters: Any = None) -> Rows:
        cursor = connection.execute(text) if parameters is None else connection.execute(text, parameters)
        return cursor.fetchall() if cursor.description else []

    return run


def _in_child(work: Callable[[], Any], *, seconds: float = LONG) -> Any:
    with tempfile.TemporaryFile() as answer:
        with warnings.catch_warnings():
            # Newer Pythons warn that forking a process with threads is risky: that risk is tested here.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _answer_and_end(work, answer.fileno())
        if not _ends(child, seconds):
            pytest.fail(f"the forked child was still busy after {seconds:.0f} seconds")
        answer.seek(0)
        content = answer.read()
    if not content:
        pytest.fail("the forked child died without an answer")
    succeeded, outcome = pickle.loads(content)  # noqa: S301 - our own child wrote it
    if not succeeded:
        raise outcome
    return outcome


def _answer_and_end(work: Callable[[], Any], answer: int) -> None:
    try:
        try:
            outcome = (True, work())
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            outcome = (False, error)
        try:
            content = pickle.dumps(outcome)
        except Exception:  # noqa: BLE001 - then its text must do
            content = pickle.dumps((False, AssertionError(f"the child: {outcome[1]!r}")))
        os.write(answer, content)
    finally:
        # Not sys.exit: the child must not run the clean-up of pytest.
        os._exit(0)


def _ends(child: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.01)
    return True


_PRELUDE = """
import json, os, sys, threading, time
import forklake
def drop_privileges():
    # What has to be read from disk is read before: the environment may belong to root alone.
    import importlib, pkgutil
    import duckdb, psycopg, pytz, sqlglot, sqlite3, uuid
    import pyarrow.compute, pyarrow.fs, pyarrow.json, pyarrow.parquet
    for module in pkgutil.walk_packages(forklake.__path__, "forklake."):
        if module.name.split(".")[1] not in ("spark", "demo", "cli", "__main__"):
            importlib.import_module(module.name)
    from forklake.store.statements import schema_script, statements
    for dialect in ("sqlite", "duckdb", "postgresql"):
        statements(dialect), schema_script(dialect)
    if os.geteuid() == 0:
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
def say(value):
    print(json.dumps(value), flush=True)
def outcome(work):
    try:
        return ["returned", work()]
    except Exception as error:
        return [type(error).__name__, str(error)]
"""


class Program:
    """A Python program in another process. It may `say(value)`, `input()`, `drop_privileges()`."""

    def __init__(self, text: str, *arguments: str) -> None:
        script = _PRELUDE + textwrap.dedent(text)
        self._process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> Any:
        """The next value that the program says."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            pytest.fail(f"the program ended with code {self._process.wait()} and said nothing more")
        return json.loads(line)

    def go_on(self) -> None:
        """Let the program return from `input()`."""
        if self._process.stdin:
            self._process.stdin.write("\n")
            self._process.stdin.flush()

    def tell(self, value: Any) -> None:
        """Send a value as one line, which the program reads from its input."""
        if self._process.stdin:
            self._process.stdin.write(json.dumps(value) + "\n")
            self._process.stdin.flush()

    def wait(self, seconds: float = LONG) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait(seconds)

    def kill(self) -> None:
        """End it if it still runs."""
        self._process.kill()
        self._process.communicate()
