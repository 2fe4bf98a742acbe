"""forklake on Spark: `session()`, `SparkCatalog`, and the format "forklake".

Needs `pip install 'forklake[spark]'`.
"""

from importlib.util import find_spec

from forklake.errors import MissingDependency

if find_spec("pyspark") is None:
    raise MissingDependency("PySpark is not installed: run pip install 'forklake[spark]'")

from forklake.spark.catalog import SparkCatalog
from forklake.spark.session import session
from forklake.spark.source import ForklakeDataSource

__all__ = ["ForklakeDataSource", "SparkCatalog", "session"]
