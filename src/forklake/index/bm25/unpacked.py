"""Segments as files of tantivy, in a folder of the cache: unpacked once, for all processes."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from forklake.data.storage.local_copies import LocalCopies
from forklake.errors import StorageError
from forklake.index.archive import Archive

_CHUNK = 8 << 20
_WORK = ".work-"
_ABANDONED = 3600.0


class Unpacked:
    """Folders by segment; those that were used longest ago make room for others."""

    def __init__(self, folder: Path, size: int) -> None:
        """Nothing is made before there is something to keep."""
        self._folder = folder
        self._size = size

    @classmethod
    def from_environment(cls) -> Unpacked:
        """Beside the copies of files in buckets, and as large as those may be."""
        copies = LocalCopies.from_environment(os.environ)
        return cls(copies.folder / "unpacked", copies.size)

    @contextmanager
    def work(self) -> Generator[Path]:
        """An empty folder that can hold links to what is unpacked, and goes with the block."""
        with _told(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder = Path(tempfile.mkdtemp(prefix=_WORK, dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def get(self, archive: Archive) -> Path:
        """The members of a segment as files."""
        # Its path too: nobody's segment stands for that of another lake, whatever it says of itself.
        mark = f"{archive.path.resolve()} {archive.manifest.get('segment')}"
        folder = self._folder / sha256(mark.encode()).hexdigest()
        if not folder.is_dir():
            with self.work() as made, _told(self._folder):
                self._make_room(sum(size for _, size in archive.members.values()))
                _extract(archive, made)
                # Somebody else may have been faster. What is there is whole.
                with suppress(OSError):
                    made.rename(folder)
        with suppress(FileNotFoundError):
            os.utime(folder)
        return folder

    def _make_room(self, needed: int) -> None:
        """Remove what was used longest ago. Files that are linked elsewhere, or open, stay readable."""
        found: list[tuple[float, int, Path]] = []
        for folder in self._folder.iterdir():
            with suppress(FileNotFoundError):
                used = folder.stat().st_mtime
                if not folder.name.startswith(_WORK):
                    found.append((used, sum(file.stat().st_size for file in folder.iterdir()), folder))
                elif used < time.time() - _ABANDONED:
                    # Of a process that was ended.
                    shutil.rmtree(folder, ignore_errors=True)
        total = needed + sum(size for _, size, _ in found)
        for _, size, folder in sorted(found):
            if total <= self._size:
                return
            with self.work() as grave, suppress(OSError):
                # Others see all of it, or nothing.
                folder.rename(grave)
            total -= size


def _extract(archive: Archive, folder: Path) -> None:
    with archive.path.open("rb") as source:
        for name, (offset, size) in archive.members.items():
            source.seek(offset)
            left = size
            with (folder / name).open("wb") as target:
                while left:
                    chunk = source.read(min(left, _CHUNK))
                    if not chunk:
                        raise StorageError(f"{archive.key} became shorter while it was read: restore it")
                    target.write(chunk)
                    left -= len(chunk)


@contextmanager
def _told(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"an index cannot be unpacked in {folder} ({error}): make room there, "
            "or let FORKLAKE_CACHE name another folder"
        ) from error
