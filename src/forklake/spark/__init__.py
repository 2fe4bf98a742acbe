"""forklake on Spark: `session()`, `SparkCatalog`, and the format "forklake".

Needs the extra `spark`: `pip install '.[spark]'` in a clone.
"""

from importlib.util import find_spec

from forklake.extras import missing

if find_spec("pyspark") is None:
    raise missing("PySpark is not installed", "spark")

from forklake.spark.catalog import SparkCatalog
from forklake.spark.session import session
from forklake.spark.source import ForklakeDataSource

__all__ = ["ForklakeDataSource", "SparkCatalog", "session"]
