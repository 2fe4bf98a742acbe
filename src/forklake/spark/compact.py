"""Rewrites of a compaction, each run by a task of Spark; planned and committed as they are locally."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from forklake.compact.plan import Rewrite
from forklake.compact.run import Rewritten, run
from forklake.data.storage.paths import S3Options
from forklake.data.storage.storage import Storage
from forklake.model.names import is_absolute
from forklake.spark.jobs import each, engine_of

if TYPE_CHECKING:
    from forklake.compact.compaction import Runner


@dataclass(frozen=True, slots=True)
class _Piece:
    """A rewrite, and how a worker gets to the files."""

    data_path: str
    s3: S3Options
    rewrite: str

    def done(self) -> str:
        engine = engine_of(self.data_path, self.s3)
        rewrite = Rewrite.from_json(self.rewrite)
        written: list[str] = []
        try:
            return run(rewrite, engine, written).to_json()
        except BaseException:
            engine.storage.delete(written, not is_absolute(rewrite.target.write.folder))
            raise


def runner_on(spark: SparkSession, storage: Storage) -> Runner:
    """What runs rewrites on Spark."""

    def runner(rewrites: Sequence[Rewrite], written: list[str]) -> Iterable[Rewritten]:
        pieces = [_Piece(storage.data_path, storage.s3.options, one.to_json()) for one in rewrites]

        def note(texts: list[str]) -> list[Rewritten]:
            done = [Rewritten.from_json(text) for text in texts]
            written.extend(path for one in done for path in one.paths)
            return done

        return note(each(spark, pieces, _Piece.done, failed=note))

    return runner
