"""A checkpoint of a whole lake whose files are rewritten on Spark."""

from __future__ import annotations

from typing import Unpack

from pyspark.sql import SparkSession

from forklake.api.lake import Lake, context_of
from forklake.errors import InvalidArgument
from forklake.maintenance.checkpoint import CheckpointResult
from forklake.maintenance.checkpoint import checkpoint as run_checkpoint
from forklake.model.progress import OnProgress
from forklake.model.snapshots import CommitInfo
from forklake.spark.compact import runner_on
from forklake.spark.index_work import builder_on
from forklake.spark.sessions import prepare


def checkpoint(
    spark: SparkSession,
    lake: Lake,
    *,
    dry_run: bool = False,
    progress: OnProgress | None = None,
    **info: Unpack[CommitInfo],
) -> CheckpointResult:
    """Do what `Lake.checkpoint` does; files are rewritten, and indexes built, by tasks of Spark."""
    if not isinstance(lake, Lake):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(f"a lake is needed, such as forklake.connect(url), not {type(lake).__name__}")
    context = context_of(lake)
    storage = context.storage
    runner, builder = runner_on(prepare(spark), storage), builder_on(spark, storage)
    return run_checkpoint(
        context, info=info, runner=runner, builder=builder, dry_run=dry_run, progress=progress
    )
