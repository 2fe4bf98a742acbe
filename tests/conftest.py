"""Fixtures and settings that all tests share."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql
from xdist.scheduler import LoadScopeScheduling

from forklake.localpg import LocalPostgres
from tests.databases import on_one_database
from tests.engines import shared
from tests.extensions import extension
from tests.pgbouncer import PgBouncer, find_program
from tests.templates import EmptyDatabase, LakeTemplates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.moto_server import S3Server

# What helpers of tests compare is shown on both sides when it differs, as in the tests themselves.
pytest.register_assert_rewrite("tests.contract", "tests.property", "tests.unit")

# A slow machine is no reason to fail, and a change that passed here passes elsewhere: it is `make soak` that
# looks for examples that nobody has seen, and prints a blob that repeats them.
_calm = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", **_calm, derandomize=True)
settings.register_profile("soak", **_calm, derandomize=False, print_blob=True, max_examples=5000)
settings.load_profile(os.environ.get("FORKLAKE_HYPOTHESIS", "ci"))


# Java compiles what runs often ever further, which pays after minutes; nothing here runs so long. One thread
# collects garbage: other tests need the cores. Both are said without a word on stderr, which tests read.
SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
for _name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(_name, SHORT_LIVED_JAVA)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--one-database", action="store_true", help="run each test on one of its databases, drawn by its name"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("one_database"):
        items[:], others = on_one_database(items)
        config.hook.pytest_deselected(items=others)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over all that was collected: it stays until the end."""
    gc.collect()
    gc.freeze()


# Tests write and remove a hundred thousand small files and wait for most of them, which memory does at once.
# PostgreSQL, Java and commands that tests start find it too.
_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made in it has names of its own
_MEMORY_ENOUGH = 6 * 2**30
if (
    "TMPDIR" not in os.environ
    and os.access(_MEMORY, os.W_OK)
    and shutil.disk_usage(_MEMORY).free >= _MEMORY_ENOUGH
):
    os.environ["TMPDIR"] = str(_MEMORY)
    # Asked before, it would not look again; processes of xdist get their folder from here.
    tempfile.tempdir = None


class _Scheduling(LoadScopeScheduling):
    """Every process takes the next test, but those of Spark stay together: one Java is enough."""

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith("tests/spark/") or nodeid.endswith("-spark]") else nodeid

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget what is done: after each test, all that a process was ever given is gone through."""
        scope = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]


def pytest_xdist_auto_num_workers() -> int | None:
    """One process more than cores: that of Spark's tests waits for Java, and Java for it."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + 1


# Not by marks: with pytest 9, groups of pytest-xdist 3.8 have no effect.
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _Scheduling(config, log)


SMALL_SPARK = {
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nothing may depend on the zone that a session has.
    "spark.sql.session.timeZone": "America/New_York",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests: a second in another process would only take its time and memory.

    Whoever asks for a session where this one runs gets it, with its few partitions. It stands in a folder
    that stays: in one that is gone, as that of the first test soon is, no worker starts.
    """
    from forklake.spark import session

    with contextlib.chdir(tmp_path_factory.mktemp("spark")):
        running = session("local[2]", conf=SMALL_SPARK)
    yield running
    running.stop()


@pytest.fixture(scope="session", autouse=True)
def shared_engines() -> Iterator[None]:
    """Lakes of one test after the other take over the DuckDB of their local engine."""
    with shared():
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a real PostgreSQL: that of FORKLAKE_TEST_PG, or else one of our own for each test process."""
    given = os.environ.get("FORKLAKE_TEST_PG")
    if given:
        yield given
        return
    with LocalPostgres(fsync=False) as server:
        yield server.url


@pytest.fixture
def postgres_database(postgres_server: str) -> Iterator[str]:
    """URL of a new, empty database."""
    name = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield urlsplit(postgres_server)._replace(path=f"/{name}").geturl()
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def lake_templates(tmp_path_factory: pytest.TempPathFactory) -> LakeTemplates:
    """Empty lakes to be copied, for each test process."""
    return LakeTemplates(tmp_path_factory.mktemp("templates"))


@pytest.fixture(scope="session")
def empty_database(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmptyDatabase]:
    """An empty lake in PostgreSQL, lent to one test after the other."""
    database = EmptyDatabase(postgres_server, tmp_path_factory.mktemp("templates"))
    yield database
    database.close()


@pytest.fixture
def postgres_lake_url(empty_database: EmptyDatabase) -> Iterator[str]:
    """URL of an empty lake in a database of its own."""
    with empty_database.lend() as url:
        yield url


@pytest.fixture
def postgres_schema_url(postgres_server: str) -> Iterator[str]:
    """URL of a lake in a schema of its own: cheaper than a database. The schema is not made here."""
    schema = f"t_{uuid.uuid4().hex}"
    address = urlsplit(postgres_server)
    query = "&".join(filter(None, (address.query, f"metadata_schema={schema}")))
    yield address._replace(query=query).geturl()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


@pytest.fixture(scope="session")
def pgbouncer_program() -> None:
    """Only where there is one."""
    if find_program() is None:
        pytest.skip(
            "there is no pgbouncer on the path: apt-get install pgbouncer, or FORKLAKE_TEST_PGBOUNCER"
        )


@pytest.fixture(scope="session")
def pgbouncer(pgbouncer_program: None, postgres_server: str) -> Iterator[PgBouncer]:
    """A pooler in transaction mode before the server, as it is with its prepared statements."""
    with PgBouncer(postgres_server, pool_size=8, prepared=500) as pooler:
        yield pooler


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3 server of our own for each test process."""
    # moto takes a second to import, and most tests need none.
    from tests.moto_server import S3Server

    # DuckDB reads buckets by these, so there are no lakes in buckets without them.
    extension("httpfs")
    extension("aws")
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def s3_url(s3_server: S3Server) -> str:
    """The data path of a lake in a new bucket: the address with endpoint and credentials as options."""
    return s3_server.url(s3_server.new_bucket(), "lake")


@pytest.fixture(params=("local", "s3"))
def data_path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a lake may keep its files: a folder that does not exist yet, and a bucket."""
    return request.getfixturevalue("s3_url") if request.param == "s3" else f"{tmp_path}/files"
