"""Segments of indexes, each built or merged by a task of Spark; planned and committed as they are locally."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from forklake.data.storage.paths import S3Options
from forklake.data.storage.storage import Storage
from forklake.engine.index_segments import Work
from forklake.model.index import WrittenSegment
from forklake.model.names import is_absolute
from forklake.spark.jobs import each, engine_of

if TYPE_CHECKING:
    from forklake.maintenance.build_indexes import Runner


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is to be done, with its number, and how a worker gets to the files."""

    data_path: str
    s3: S3Options
    number: int
    work: Work

    def done(self) -> tuple[int, WrittenSegment | None]:
        engine = engine_of(self.data_path, self.s3)
        written: list[str] = []
        try:
            return self.number, self.work.run(engine, written)
        except BaseException:
            engine.storage.delete(written, not is_absolute(self.work.folder))
            raise


def builder_on(spark: SparkSession, storage: Storage) -> Runner:
    """What builds and merges segments on Spark."""

    def runner(work: Sequence[Work], written: list[str]) -> Iterable[tuple[Work, WrittenSegment | None]]:
        pieces = [_Piece(storage.data_path, storage.s3.options, at, one) for at, one in enumerate(work)]

        def note(done: list[tuple[int, WrittenSegment | None]]) -> None:
            written.extend(made.path for _, made in done if made is not None)

        done = each(spark, pieces, _Piece.done, failed=note)
        note(done)
        return [(work[number], made) for number, made in done]

    return runner
