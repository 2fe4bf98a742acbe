"""A standalone cluster of Spark, with its workers as processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from forklake.spark.java import java_home

pytestmark = pytest.mark.skipif(
    os.environ.get("FORKLAKE_HYPOTHESIS") != "soak", reason="five Javas take minutes: `make soak` runs this"
)
_CLASSES = "org.apache.spark.deploy"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a driver finds it."""

    master: str
    workers: tuple[int, ...]
    """Their processes."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers with one core each."""
    home = Path(pyspark.__path__[0])
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home(os.environ)),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    host = ("--host", "127.0.0.1", "--webui-port", "0")
    log = tmp_path / "cluster.log"

    with ExitStack() as stack, log.open("wb") as output:

        def start(*arguments: str) -> int:
            # The script ends by becoming Java, so this is the process of Java.
            process = subprocess.Popen(
                [home / "bin" / "spark-class", *arguments], env=environment, stdout=output, stderr=output
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process.pid

        def said(pattern: str, times: int = 1) -> list[str]:
            for _ in range(1200):
                found = re.findall(pattern, log.read_text())
                if len(found) >= times:
                    return found
                time.sleep(0.25)
            pytest.fail(log.read_text())

        start(f"{_CLASSES}.master.Master", *host, "--port", "0")
        (address, *_) = said(r"Starting Spark master at (spark://[\d.:]+)")
        size = ("--cores", "1", "--memory", "512m", "--work-dir", str(tmp_path / "work"))
        workers = [start(f"{_CLASSES}.worker.Worker", *host, *size, address) for _ in range(2)]
        said("Registering worker", len(workers))
        yield Cluster(address, tuple(workers))


def test_executors_may_die_during_every_verb(cluster: Cluster, postgres_database: str, s3_url: str) -> None:
    # A process has one Spark, and that of the other tests is here.
    program = [sys.executable, "-m", "tests.spark.cluster_story", postgres_database, s3_url, cluster.master]
    told = subprocess.run(
        [*program, *map(str, cluster.workers)], capture_output=True, text=True, timeout=3600, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
