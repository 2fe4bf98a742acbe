"""Files on a local disk, written so that a power loss does not take them back."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from forklake.data.storage.file_info import StoredFile, modified_at
from forklake.data.storage.paths import is_storable
from forklake.lazy.arrow import fs, pa


class LocalDisk:
    """Folders and files; a path is absolute."""

    def __init__(self) -> None:
        """Nothing is touched yet."""
        self._synced: set[Path] = set()

    @property
    def filesystem(self) -> fs.FileSystem:
        """For those who read and write through Arrow."""
        return fs.LocalFileSystem()

    @contextmanager
    def output(self, path: str) -> Generator[pa.NativeFile]:
        """Write a new file and its folders. It stays only if the block ends well, and is on the disk then."""
        folder = Path(path).parent
        if folder not in self._synced:
            self._settle(folder)
        try:
            held = _created(path)
        except FileNotFoundError:
            # Somebody removed a folder that seemed to be there.
            self._settle(folder)
            held = _created(path)
        try:
            # Open while Arrow writes, so that it hears of errors in writing back: the kernel tells each once.
            try:
                with self.filesystem.open_output_stream(path) as stream:
                    yield stream
                os.fsync(held)
            finally:
                os.close(held)
            _sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                Path(path).unlink()
            raise

    def sync(self, path: str) -> None:
        """Make a file stay that somebody else has written, and its folders."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        folder = Path(path).parent
        _sync_folder(folder)
        if folder not in self._synced:
            self._settle(folder)

    def info(self, path: str) -> StoredFile:
        """What is known of a file."""
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a file", path)
        return StoredFile(path, found.st_size, modified_at(found.st_mtime))

    def delete(self, path: str) -> None:
        """Delete a file, if it is there. A power loss may bring it back: then it is an orphan."""
        Path(path).unlink(missing_ok=True)

    def remove_folder(self, path: str) -> None:
        """Remove a folder with all folders in it, as far as there are no files."""
        for place, _, _ in os.walk(path, topdown=False):
            try:
                Path(place).rmdir()
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise

    def files(self, folder: str) -> Generator[StoredFile]:
        """Every file in a folder and the folders below. What vanishes meanwhile is left out."""
        # Not os.walk: it holds all names of a folder.
        folders = [folder]
        while folders:
            place = folders.pop().rstrip("/")
            try:
                with os.scandir(place or "/") as entries:
                    for entry in entries:
                        path = f"{place}/{entry.name}"
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(path)
                        # A name that is not UTF-8 cannot be one of ours.
                        elif not entry.is_dir() and is_storable(path):
                            with suppress(FileNotFoundError):
                                yield self.info(path)
            except FileNotFoundError:
                continue

    def _settle(self, folder: Path) -> None:
        """Make a folder. Another process may be making it too, so all above it are synced in any case."""
        folder.mkdir(parents=True, exist_ok=True)
        for above in folder.parents:
            # A folder that cannot be read is none that we made.
            with suppress(PermissionError):
                _sync_folder(above)
        self._synced.add(folder)


def _created(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems have no such thing for folders.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
