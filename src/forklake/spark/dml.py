"""Deleting and updating rows with Spark: each task takes some files, and does what the local engine would.

Conditions and new values are run by that engine, in Spark's Python workers, so they mean the same. Only the
names of files cross the network: rows are read, and written anew, where a task runs, and delete files are
written by those who found the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from forklake.distributed import write_part
from forklake.engine.condition import condition_of
from forklake.engine.dml import Found, find_rows, updated_rows
from forklake.model.manifest import Manifest
from forklake.scan.scan_plan import ScanPlan, plan_scan
from forklake.spark.jobs import each
from forklake.spark.plan_splits import parts_of
from forklake.spark.task_results import Done
from forklake.spark.task_writes import TaskWriter

if TYPE_CHECKING:
    from forklake.spark.commit import Writing


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some files of a plan, and what is to be done to their rows."""

    writer: TaskWriter
    number: int
    plan: ScanPlan
    values: Mapping[str, str] | None
    """New values by column; None if rows are deleted."""

    def done(self) -> Done:
        return self._deleted() if self.values is None else self._updated(self.values)

    def _deleted(self) -> Done:
        found = find_rows(self.writer.engine, self.plan)
        # An overwrite has parts with rows beside these.
        manifest = self.writer.delete(found, f"delete-{self.number}")
        return Done(manifest.to_json(), deleted=_count(found))

    def _updated(self, values: Mapping[str, str]) -> Done:
        places, batches = updated_rows(self.writer.engine, self.plan, values)
        written = self.writer.write(batches, self.number)
        found = places.found()
        manifest = Manifest.joined([written, self.writer.delete(found, self.number)])
        return Done(manifest.to_json(), updated=_count(found))


def _count(found: Found) -> int:
    return sum(len(positions) for _, positions in found.values())


def delete_rows(spark: SparkSession, writing: Writing, where: str) -> list[Done]:
    """Delete the rows that meet a condition."""
    return _all(spark, writing, where, None)


def update_rows(
    spark: SparkSession, writing: Writing, values: Mapping[str, str], where: str | None
) -> list[Done]:
    """Give columns new values, in the rows that meet a condition; they keep their ids."""
    return _all(spark, writing, where, values)


def clear(writing: Writing) -> Done:
    """Take all rows away, without looking at them."""
    plan = plan_scan(writing.draft.source(writing.table))
    files = [place.file.id for place in (*plan.files, *plan.rows)]
    manifest = write_part(
        writing.ds, writing.name, part="clear", remove=files, storage_options=writing.options
    )
    return Done(manifest.to_json())


def _all(
    spark: SparkSession, writing: Writing, where: str | None, values: Mapping[str, str] | None
) -> list[Done]:
    predicate = condition_of(writing.context.engine, where, writing.table.columns)
    plan = plan_scan(writing.draft.source(writing.table), predicate, writing.context.storage)
    writer = TaskWriter.of(writing)
    pieces = [_Piece(writer, number, part, values) for number, part in enumerate(parts_of(plan))]
    return each(spark, pieces, _Piece.done)
