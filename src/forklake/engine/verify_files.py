"""Whether files are still those that were committed, before anything is read from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from forklake.data.parquet.file_names import is_ours
from forklake.data.storage.storage import Storage
from forklake.engine.errors import naming_snapshot
from forklake.errors import StorageError
from forklake.lazy.arrow import pa, pq
from forklake.model.table.files import DataFile, DeleteFile
from forklake.scan.scan_plan import ScanPlan

_THREADS = 16
_MOST = 100_000
"""How many files are remembered. One that was forgotten is looked at again."""
_MAGIC = b"PAR1"


class Verifier:
    """Remembers which files it has looked at: ours are never written twice.

    Files that others wrote may be written again under their name. Those are looked at for every read.
    """

    def __init__(self, storage: Storage) -> None:
        """Nothing was looked at."""
        self._storage = storage
        self._known: set[tuple[str, int]] = set()
        self._seen: dict[tuple[str, int], datetime] = {}
        """When files of others were written last, if they are those that were committed."""

    def check(self, plan: ScanPlan) -> None:
        """Raise if a file of the plan is missing or is not the one that was committed."""
        if len(self._known) + len(self._seen) > _MOST:
            self._known.clear()
            self._seen.clear()
        fresh = [file for file in _files(plan) if (file.path, file.file_size_bytes) not in self._known]
        with naming_snapshot(plan):
            self._check_all(fresh)

    def _check_all(self, fresh: Sequence[DataFile | DeleteFile]) -> None:
        if self._storage.is_local or len(fresh) < 2:
            for file in fresh:
                self._check(file)
        else:
            with ThreadPoolExecutor(_THREADS, "forklake-verify") as pool:
                list(pool.map(self._check, fresh))

    def _check(self, file: DataFile | DeleteFile) -> None:
        found = self._storage.info(file.path, file.path_is_relative)
        size = found.size
        if size != file.file_size_bytes:
            address = self._storage.address(file.path, file.path_is_relative)
            raise StorageError(
                f"{address} has {size} bytes and had {file.file_size_bytes} when it was committed: "
                "it was cut or overwritten, restore it"
            )
        if self._storage.is_local and file.footer_size and not file.path.startswith("s3://"):
            self._check_footer(file, file.footer_size)
        key = file.path, file.file_size_bytes
        if is_ours(file.path, file.path_is_relative):
            self._known.add(key)
        elif isinstance(file, DataFile) and self._seen.get(key) != found.modified:
            self._check_rows(file)
            self._seen[key] = found.modified

    def _check_rows(self, file: DataFile) -> None:
        """Another file may well have the same size; that it has as many rows as well is unlikely."""
        address = self._storage.address(file.path, file.path_is_relative)
        try:
            with self._storage.open_input(file.path, file.path_is_relative) as stream:
                rows = pq.read_metadata(stream).num_rows
        except pa.ArrowException as error:
            raise StorageError(f"{address} cannot be read: {error}; restore it") from error
        if rows != file.record_count:
            raise StorageError(
                f"{address} has {rows} rows and had {file.record_count} when it was committed: "
                "it was overwritten, restore it"
            )

    def _check_footer(self, file: DataFile | DeleteFile, footer_size: int) -> None:
        """Files of one size may still end differently; in a bucket a look would be one more request."""
        address = self._storage.address(file.path, file.path_is_relative)
        try:
            handle = os.open(address, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            # Reading it will say why.
            return
        try:
            end = os.pread(handle, len(_MAGIC) + 4, file.file_size_bytes - len(_MAGIC) - 4)
        finally:
            os.close(handle)
        if end != footer_size.to_bytes(4, "little") + _MAGIC:
            raise StorageError(
                f"{address} is not the file that was committed: it was overwritten, restore it"
            )


def _files(plan: ScanPlan) -> Iterable[DataFile | DeleteFile]:
    for scanned in plan.files:
        yield scanned.file
        if scanned.file.deletes is not None:
            yield scanned.file.deletes
