"""The data source `format("forklake")`: reading and writing tables, in batches and as streams."""

from typing import TYPE_CHECKING

from forklake.lazy import attach

if TYPE_CHECKING:
    from forklake.spark.source.source import ForklakeDataSource
else:
    __getattr__, __dir__ = attach(__name__, {"forklake.spark.source.source": ("ForklakeDataSource",)})

__all__ = ["ForklakeDataSource"]
