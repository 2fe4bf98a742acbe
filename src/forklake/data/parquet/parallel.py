"""Several threads that write files of one table, each its own, from rows that they share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TypeAlias

from forklake.lazy.arrow import pa
from forklake.model.table.files import WrittenFile

_MOST = 8
"""More threads would only make smaller files: what they read comes from one."""

Write: TypeAlias = "Callable[[pa.RecordBatchReader], list[WrittenFile]]"
Discard = Callable[[list[WrittenFile]], None]


def write_in_threads(rows: pa.RecordBatchReader, write: Write, discard: Discard) -> list[WrittenFile]:
    """Let each thread write what it gets hold of; if one fails, no file of the others stays either."""
    shared = _Shared(rows)

    def work() -> list[WrittenFile]:
        try:
            return write(pa.RecordBatchReader.from_batches(rows.schema, shared.batches()))
        except BaseException:
            shared.is_over = True
            raise

    threads = min(os.cpu_count() or 1, _MOST)
    running: list[Future[list[WrittenFile]]] = []
    try:
        with ThreadPoolExecutor(threads) as pool:
            running += [pool.submit(work) for _ in range(threads)]
            try:
                return [file for one in running for file in one.result()]
            except BaseException:
                # All come to an end before anything is removed, after an interrupt too.
                shared.is_over = True
                raise
    except BaseException:
        discard([file for one in running if one.exception() is None for file in one.result()])
        raise


class _Shared:
    """Batches, each of which one thread takes."""

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self._rows = iter(rows)
        self._lock = Lock()
        self.is_over = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            with self._lock:
                batch = None if self.is_over else next(self._rows, None)
                self.is_over = batch is None
            if batch is None:
                return
            yield batch
