"""How much a batch of a stream may take, as Spark says it; before Spark 4.2 it says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forklake.spark.features import HAS_ADMISSION

if TYPE_CHECKING or HAS_ADMISSION:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxFiles,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:

    class ReadLimit:
        """How much a batch takes."""

    class ReadAllAvailable(ReadLimit):
        """All that there is."""

    @dataclass
    class ReadMaxFiles(ReadLimit):
        """So many files."""

        max_files: int

    @dataclass
    class ReadMaxRows(ReadLimit):
        """About so many rows."""

        max_rows: int

    @dataclass
    class ReadMaxBytes(ReadLimit):
        """About so many bytes."""

        max_bytes: int

    class SupportsTriggerAvailableNow:
        """A stream that can be told to take nothing that comes from now on."""


__all__ = [
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxFiles",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
]
