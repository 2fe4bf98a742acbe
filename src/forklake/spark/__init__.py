"""forklake on Spark: `session()`, `SparkCatalog`, `checkpoint()`, and the format "forklake".

Needs the extra `spark`: `pip install '.[spark]'` in a clone.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from forklake.extras import missing
from forklake.lazy import attach

if find_spec("pyspark") is None:
    raise missing("PySpark is not installed", "spark")

from pyspark.version import __version__ as _pyspark

from forklake.spark.versions import check_version

check_version(_pyspark, "PySpark")

if TYPE_CHECKING:
    from forklake.spark.catalog import SparkCatalog
    from forklake.spark.lake_checkpoint import checkpoint
    from forklake.spark.sessions import session
    from forklake.spark.source.source import ForklakeDataSource
else:
    # A Python worker of Spark comes by here too, and needs none of these.
    __getattr__, __dir__ = attach(
        __name__,
        {
            "forklake.spark.catalog": ("SparkCatalog",),
            "forklake.spark.lake_checkpoint": ("checkpoint",),
            "forklake.spark.sessions": ("session",),
            "forklake.spark.source.source": ("ForklakeDataSource",),
        },
    )

__all__ = ["ForklakeDataSource", "SparkCatalog", "checkpoint", "session"]
