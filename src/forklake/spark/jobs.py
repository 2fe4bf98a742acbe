"""Work that Spark's Python workers do: pieces of it go out, and what came of them comes back.

Each executor needs forklake installed, and reaches the storage. Spark may do a piece again, after a failure
or beside another that is slow; of all that do the same, one result comes back.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from forklake import errors
from forklake.data.storage.paths import S3Options
from forklake.data.storage.storage import Storage
from forklake.engine.local import Engine
from forklake.errors import EngineError, ForklakeError, InvalidData
from forklake.lazy.arrow import pa

T = TypeVar("T")
R = TypeVar("R")

_FOUND = "found BINARY"
_OURS = re.compile(r"^forklake\.errors\.(\w+): (.*)$", re.MULTILINE)
_ABORTED = re.compile(r"Job aborted.*")
_MISSING = "No module named 'forklake'"
_LONGEST = 2_000
"""How much of Spark's own words an error keeps."""


def _forget(found: object) -> None:
    """What came of the others is of no use."""


def each(
    spark: SparkSession,
    pieces: Sequence[T],
    work: Callable[[T], R],
    failed: Callable[[list[R]], object] = _forget,
) -> list[R]:
    """Do every piece, each in a task of its own; results come in any order.

    If some cannot be done, `failed` gets what came of the others before the error is raised.
    """
    if not pieces:
        return []
    table = pa.table(
        {
            "number": pa.array(range(len(pieces)), pa.int64()),
            "piece": pa.array([pickle.dumps(piece) for piece in pieces], pa.binary()),
        }
    )
    known = spark.createDataFrame(table, "number BIGINT, piece BINARY")
    # Only a range has as many tasks as it is told to have, whatever Spark thinks of so few rows.
    tasks = spark.range(0, len(pieces), 1, len(pieces)).join(
        F.broadcast(known), F.expr("id = number"), "inner"
    )

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[R]:
        for batch in batches:
            for piece in batch.column("piece"):
                yield work(pickle.loads(piece.as_py()))  # noqa: S301

    return through(tasks.select("piece"), run, failed)


def through(
    df: DataFrame,
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[R]],
    failed: Callable[[list[R]], object] = _forget,
) -> list[R]:
    """Give the rows of a DataFrame to workers, task by task, and only what they say of them comes back."""
    names = df.columns
    # Spark takes names with dots for more than one, and backticks for its own.
    df = df.toDF(*(f"c{at}" for at in range(len(names))))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            found: list[Any] = list(work(batch.rename_columns(names) for batch in batches))
        except ForklakeError as error:
            # Told instead of raised: Spark would try again what cannot be, and hide it in a text of its own.
            found = [error]
        yield pa.record_batch({"found": pa.array([pickle.dumps(one) for one in found], pa.binary())})

    with failures("run this"):
        messages_back = df.mapInArrow(run, _FOUND).toArrow().column("found").to_pylist()
    message = [pickle.loads(one) for one in messages_back]  # noqa: S301
    found: list[R] = [one for one in message if not isinstance(one, ForklakeError)]
    for one in message:
        if isinstance(one, ForklakeError):
            failed(found)
            raise one
    return found


def task_number() -> int:
    """Which task of a job this worker does; the same if it does so again."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


@contextmanager
def failures(what: str) -> Generator[None]:
    """Errors of Spark as ours: of the rows if Spark says what is wrong with them, else of the machinery."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        message = str(error)
        ours = _OURS.search(message)
        if ours is not None:
            # A worker had to raise it in the midst of a query, where Spark can only quote it.
            raise getattr(errors, ours[1], EngineError)(ours[2]) from error
        if _MISSING in message:
            raise EngineError(
                f"Spark could not {what}, and nothing has changed: the Python of its workers has no "
                "forklake. Install it there, and let PYSPARK_PYTHON name that Python before Spark starts"
            ) from error
        state = error.getSqlState() if isinstance(error, PySparkException) else None
        # Of data, of a statement, or raised by the DataFrame itself.
        if (state or "").startswith(("2", "4", "P0")):
            raise InvalidData(f"Spark could not {what}: {message[:_LONGEST]}") from error
        aborted = _ABORTED.search(message)
        cause = message[:_LONGEST] if aborted is None else aborted[0][:_LONGEST]
        raise EngineError(f"Spark could not {what}, and nothing has changed: {cause}") from error


@lru_cache(8)
def engine_of(data_path: str, options: S3Options) -> Engine:
    """The local engine of a worker, for all pieces that it does. A task has one core, and others the rest."""
    return Engine(Storage(data_path, options), threads=1)
