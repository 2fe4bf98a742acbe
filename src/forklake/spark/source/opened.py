"""The table that options name, opened in whichever process of Spark needs it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from forklake.catalog import Catalog
from forklake.lake import connect
from forklake.spark.source.options import SourceOptions


@contextmanager
def opened(options: SourceOptions) -> Generator[Catalog]:
    """The catalog, for as long as the block takes."""
    with connect(options.lake, data_path=options.data_path) as lake:
        yield lake.catalog(options.catalog)
