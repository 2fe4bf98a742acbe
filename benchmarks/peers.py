"""Table formats on Spark, each with the same few verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark_shared import CATALOG
from forklake.api.lake import Lake
from forklake.spark import SparkCatalog

_ICEBERG = "iceberg.db"
_EXTENSIONS = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)
_MERGE_ON_READ = {"format-version": "3"} | {
    f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")
}
_MERGED = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def settings(warehouse: Path) -> dict[str, str]:
    """What a session needs for Iceberg and Delta at once."""
    return {
        "spark.sql.extensions": ",".join(_EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": str(warehouse),
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    }


class Peer(Protocol):
    """A table format. Verbs answer with nothing, as they do not count alike."""

    name: str
    changes: bool
    """Whether rows can be merged, deleted, and added to a few at a time."""

    def create(self, like: DataFrame, table: str) -> None:
        """An empty table."""
        ...

    def append(self, df: DataFrame, table: str) -> None:
        """Insert rows."""
        ...

    def read(self, table: str, where: str | None = None) -> DataFrame:
        """Rows of a table."""
        ...

    def merge(self, df: DataFrame, table: str) -> None:
        """Upsert by `id`."""
        ...

    def delete(self, table: str, where: str) -> None:
        """Delete rows."""
        ...

    def branch(self, table: str) -> None:
        """Branch off, the table or more than that."""
        ...


def _filtered(df: DataFrame, where: str | None) -> DataFrame:
    return df if where is None else df.where(where)


class ForklakePeer:
    """A catalog of a lake."""

    name, changes = "forklake", True

    def __init__(self, lake: Lake, on: SparkCatalog) -> None:
        self._lake, self._on = lake, on

    def create(self, like: DataFrame, table: str) -> None:
        self._on.create_table(table, like.schema)

    def append(self, df: DataFrame, table: str) -> None:
        self._on.append(df, table)

    def read(self, table: str, where: str | None = None) -> DataFrame:
        return self._on.read(table, where)

    def merge(self, df: DataFrame, table: str) -> None:
        self._on.merge(df, table, "id")

    def delete(self, table: str, where: str) -> None:
        self._on.delete(table, where)

    def branch(self, table: str) -> None:
        self._lake.fork(CATALOG, f"branch_of_{table}")


class IcebergPeer:
    """Tables of format version 3, whose changes are merged when they are read."""

    name, changes = "Iceberg", True

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {_ICEBERG}")

    def create(self, like: DataFrame, table: str) -> None:
        writer = like.limit(0).writeTo(f"{_ICEBERG}.{table}").using("iceberg")
        for name, value in _MERGE_ON_READ.items():
            writer = writer.tableProperty(name, value)
        writer.create()

    def append(self, df: DataFrame, table: str) -> None:
        df.writeTo(f"{_ICEBERG}.{table}").append()

    def read(self, table: str, where: str | None = None) -> DataFrame:
        return _filtered(self._spark.table(f"{_ICEBERG}.{table}"), where)

    def merge(self, df: DataFrame, table: str) -> None:
        _merge(self._spark, df, f"{_ICEBERG}.{table}")

    def delete(self, table: str, where: str) -> None:
        self._spark.sql(f"DELETE FROM {_ICEBERG}.{table} WHERE {where}")

    def branch(self, table: str) -> None:
        self._spark.sql(f"ALTER TABLE {_ICEBERG}.{table} CREATE BRANCH other")


class DeltaPeer:
    """Tables with deletion vectors."""

    name, changes = "Delta", True

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder

    def create(self, like: DataFrame, table: str) -> None:
        like.limit(0).write.format("delta").save(str(self._folder / table))

    def append(self, df: DataFrame, table: str) -> None:
        df.write.format("delta").mode("append").save(str(self._folder / table))

    def read(self, table: str, where: str | None = None) -> DataFrame:
        return _filtered(self._spark.read.format("delta").load(str(self._folder / table)), where)

    def merge(self, df: DataFrame, table: str) -> None:
        _merge(self._spark, df, self._named(table))

    def delete(self, table: str, where: str) -> None:
        self._spark.sql(f"DELETE FROM {self._named(table)} WHERE {where}")

    def branch(self, table: str) -> None:
        self._spark.sql(f"CREATE TABLE {self._named(f'{table}_branch')} SHALLOW CLONE {self._named(table)}")

    def _named(self, table: str) -> str:
        return f"delta.`{self._folder / table}`"


class ParquetPeer:
    """A folder of files: it can be appended to and read, and nothing else."""

    name, changes = "Parquet", False

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder

    def create(self, like: DataFrame, table: str) -> None:
        """Folders are made by the first append."""

    def append(self, df: DataFrame, table: str) -> None:
        df.write.mode("append").parquet(str(self._folder / table))

    def read(self, table: str, where: str | None = None) -> DataFrame:
        return _filtered(self._spark.read.parquet(str(self._folder / table)), where)

    def merge(self, df: DataFrame, table: str) -> Any:
        raise NotImplementedError

    def delete(self, table: str, where: str) -> Any:
        raise NotImplementedError

    def branch(self, table: str) -> Any:
        raise NotImplementedError


def _merge(spark: SparkSession, df: DataFrame, table: str) -> None:
    df.createOrReplaceTempView("changes")
    spark.sql(f"MERGE INTO {table} t USING changes s ON t.id = s.id {_MERGED}")
