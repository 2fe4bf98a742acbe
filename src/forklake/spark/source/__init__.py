"""The data source `format("forklake")`: reading and writing tables, in batches and as streams."""

from forklake.spark.source.source import ForklakeDataSource

__all__ = ["ForklakeDataSource"]
