"""The files of a lake as a client of the simulation sees them: each operation may go wrong, halfway too."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from forklake.data.storage.file_info import StoredFile
from forklake.data.storage.paths import s3_options
from forklake.data.storage.storage import Storage
from forklake.errors import StorageError
from forklake.lazy.arrow import pa as lazy_pa
from tests.property.simulation.faults import Operation

if TYPE_CHECKING:
    from tests.property.simulation.client import Client

LATE = timedelta(minutes=30)
"""How old a file is that a listing shows in any case."""


class SimulatedStorage(Storage):
    """A folder, seen by one client. Times of files are those of the simulation."""

    def __init__(self, data_path: str, client: Client) -> None:
        super().__init__(data_path, s3_options({}, {}))
        self.client = client

    @contextmanager
    def open_output(self, path: str, relative: bool = True) -> Generator[lazy_pa.NativeFile]:
        address = self.address(path, relative)
        fault = self._fault("write")
        stream = pa.BufferOutputStream()
        yield stream
        content = stream.getvalue().to_pybytes()
        if fault == "torn":
            self._write(address, content[: len(content) // 2])
            self.client.die()
        self._write(address, content)
        self._finish(fault, address)

    def _write(self, address: str, content: bytes) -> None:
        file = Path(address)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as output:
            output.write(content)
        self.client.world.file_times[address] = self.client.world.now

    @contextmanager
    def open_input(self, path: str, relative: bool = True) -> Generator[lazy_pa.NativeFile]:
        fault = self._fault()
        with super().open_input(path, relative) as stream:
            yield stream
        self._finish(fault, path)

    def opened(self, path: str, relative: bool = True) -> lazy_pa.NativeFile:
        fault = self._fault()
        stream = super().opened(path, relative)
        try:
            self._finish(fault, path)
        except BaseException:
            stream.close()
            raise
        return stream

    def local_copy(self, path: str, size: int, relative: bool = True) -> Path:
        fault = self._fault()
        found = super().local_copy(path, size, relative)
        self._finish(fault, path)
        return found

    def info(self, path: str, relative: bool = True) -> StoredFile:
        fault = self._fault()
        found = self._timed(super().info(path, relative), self.address(path, relative))
        self._finish(fault, path)
        return found

    def sync(self, paths: Iterable[str], relative: bool = True) -> None:
        self._finish(self._fault(), "")

    def files(self, folder: str = "", relative: bool = True) -> Generator[StoredFile]:
        fault = self._fault("list")
        found = sorted(super().files(folder, relative), key=lambda file: file.path)
        shown = [self._timed(file, self.address(file.path, relative)) for file in found]
        if fault == "late":
            shown = [file for file in shown if file.modified < self.client.world.now - LATE]
        yield from shown
        self._finish(fault, folder)

    def delete_each(self, paths: Iterable[str], relative: bool = True) -> dict[str, StorageError]:
        failures: dict[str, StorageError] = {}
        for path in paths:
            address = self.address(path, relative)
            try:
                fault = self._fault()
                Path(address).unlink(missing_ok=True)
                self._finish(fault, address)
            except StorageError as error:
                failures[path] = error
        return failures

    def remove_folders(self, folders: Iterable[str]) -> dict[str, StorageError]:
        failures: dict[str, StorageError] = {}
        for folder in folders:
            try:
                fault = self._fault()
                failures |= super().remove_folders([folder])
                self._finish(fault, folder)
            except StorageError as error:
                failures[folder] = error
        return failures

    def _timed(self, file: StoredFile, address: str) -> StoredFile:
        return replace(file, modified=self.client.world.file_times[os.path.normpath(address)])

    def _fault(self, doing: Operation = "file") -> str | None:
        fault = self.client.point(doing)
        if fault == "before":
            raise StorageError("injected")
        if fault == "crash before":
            self.client.die()
        return fault

    def _finish(self, fault: str | None, path: str) -> None:
        if fault == "after":
            raise StorageError(f"injected after {path}")
        if fault == "crash after":
            self.client.die()
