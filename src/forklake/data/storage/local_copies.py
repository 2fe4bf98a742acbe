"""Copies of files in a bucket on the local disk, for libraries that want a file: a folder of limited size.

Files of a lake never change, so a copy that is there is right, and nothing has to be compared.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from forklake.errors import InvalidArgument, StorageError
from forklake.lazy.arrow import pa

_BYTES = 10 << 30
_CHUNK = 8 << 20
_LOCKS = 64

Source: TypeAlias = "AbstractContextManager[pa.NativeFile]"


class LocalCopies:
    """Copies by the address of their file; those that were used longest ago make room for others."""

    def __init__(self, folder: Path, size: int = _BYTES) -> None:
        """Nothing is made before there is something to keep. Processes may share a folder."""
        self.folder = folder
        self.size = size
        self._locks = tuple(Lock() for _ in range(_LOCKS))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> LocalCopies:
        """Those of the user: `FORKLAKE_CACHE` names the folder, `FORKLAKE_CACHE_BYTES` says how large."""
        text = environment.get("FORKLAKE_CACHE_BYTES") or str(_BYTES)
        if not text.isdigit():
            raise InvalidArgument(f"FORKLAKE_CACHE_BYTES is a number of bytes, not {text[:40]!r}")
        return cls(_folder(environment), int(text))

    def get(self, address: str, size: int, source: Source, *, server: str = "") -> Path:
        """A copy of a file of this size, which is read from `source` unless there is one.

        Buckets of other servers may have the same address.
        """
        name = sha256(f"{server} {address}".encode()).hexdigest()
        path = self.folder / name[:2] / name
        with self._locks[int(name[:2], 16) % _LOCKS]:
            if not _is_whole(path, size):
                try:
                    self._copy(path, address, size, source)
                except OSError as error:
                    # Those of the bucket are told by the storage: this one is about our folder.
                    raise StorageError(
                        f"{address} cannot be copied to {self.folder} ({error}): make room there, "
                        "or let FORKLAKE_CACHE name another folder"
                    ) from error
            # What is used stays; somebody else may have made room just now.
            with suppress(FileNotFoundError):
                os.utime(path)
        return path

    def _copy(self, path: Path, address: str, size: int, source: Source) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._make_room(size)
        # A copy appears whole or not at all, also where others make the same one.
        handle, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as copy, source as stream:
                shutil.copyfileobj(stream, copy, _CHUNK)
            found = Path(name).stat().st_size
            if found != size:
                raise StorageError(f"{address} has {found:,} bytes where {size:,} were written: restore it")
            Path(name).replace(path)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(name).unlink()
            raise

    def _make_room(self, needed: int) -> None:
        """Remove what was used longest ago, so that one more fits. A file that is open stays readable."""
        found: list[tuple[float, int, Path]] = []
        for path in self.folder.glob("??/*"):
            with suppress(FileNotFoundError):
                known = path.stat()
                found.append((known.st_mtime, known.st_size, path))
        total = needed + sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.size:
                return
            path.unlink(missing_ok=True)
            total -= size


def _is_whole(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False


def _folder(environment: Mapping[str, str]) -> Path:
    if environment.get("FORKLAKE_CACHE"):
        return Path(environment["FORKLAKE_CACHE"])
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "forklake" / "files"
    if environment.get("HOME"):
        return Path(environment["HOME"]) / ".cache" / "forklake" / "files"
    return Path(tempfile.gettempdir()) / f"forklake-{os.getuid()}" / "files"
