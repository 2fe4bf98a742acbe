"""The files of a lake: read, written, listed and deleted, on a local disk or in a bucket."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from forklake.data.storage import paths as addresses
from forklake.data.storage.file_cache import FileCache
from forklake.data.storage.file_info import StoredFile
from forklake.data.storage.local import LocalDisk
from forklake.data.storage.local_copies import LocalCopies
from forklake.data.storage.paths import S3Options, is_plain, is_storable, s3_options, split_data_path
from forklake.data.storage.s3 import S3
from forklake.errors import FileMissing, StorageError, raise_alone
from forklake.lazy.arrow import fs, pa

__all__ = ["Storage", "StoredFile", "open_storage", "split_data_path"]

_DELETING_THREADS = 16
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class _Place(Protocol):
    """Where files are. Its errors are those of the operating system and of Arrow."""

    @property
    def filesystem(self) -> fs.FileSystem: ...
    def output(self, path: str) -> AbstractContextManager[pa.NativeFile]: ...
    def info(self, path: str) -> StoredFile: ...
    def sync(self, path: str) -> None: ...
    def delete(self, path: str) -> None: ...
    def remove_folder(self, path: str) -> None: ...
    def files(self, folder: str) -> Iterable[StoredFile]: ...


class Storage:
    """The folder or bucket of a lake's files, and any other place that absolute paths lead to.

    A path is relative to the data path, or with `relative=False` one of its own: `/folder/file`, `s3://bucket/key`.
    Every method may be called from many threads at once.
    """

    def __init__(self, data_path: str, options: S3Options) -> None:
        """Use `open_storage`."""
        self.data_path = data_path
        """As it is stored: without options, with a slash at the end."""
        self.is_local = not data_path.startswith(addresses.S3)
        bucket = "" if self.is_local else data_path.removeprefix(addresses.S3).partition("/")[0]
        self.s3 = S3(options, bucket)
        """The way to every bucket, also for a lake that keeps its files on a disk."""
        self.cache = FileCache()
        """What small files hold that are read again and again."""
        self.copies = LocalCopies.from_environment(os.environ)
        """Files of buckets that libraries read from a disk."""
        self._disk = LocalDisk()

    def __repr__(self) -> str:
        """The data path."""
        return f"<Storage {self.data_path}>"

    def address(self, path: str, relative: bool = True) -> str:
        """A file as DuckDB, Spark and people write it: `/folder/file`, `s3://bucket/key`."""
        if not is_storable(path):
            raise StorageError(f"{path!r} cannot be the name of a file")
        if relative:
            # A path from the metadata must not lead to the files of others.
            if not is_plain(path):
                raise StorageError(f'"{path}" is not a path below {self.data_path}')
            return self.data_path + path
        if path.startswith("/") or (
            path.startswith(addresses.S3) and is_plain(path.removeprefix(addresses.S3))
        ):
            return path
        raise StorageError(
            f'"{path}" is neither a path on this machine nor an address that begins with s3://'
        )

    def resolve(self, path: str, relative: bool = True) -> tuple[fs.FileSystem, str]:
        """A file as Arrow wants it: a file system, and the path in it."""
        place, inner = self._placed(self.address(path, relative))
        return place.filesystem, inner

    @contextmanager
    def open_input(self, path: str, relative: bool = True) -> Generator[pa.NativeFile]:
        """Open a file to read any part of it."""
        address = self.address(path, relative)
        place, inner = self._placed(address)
        with (
            self._translated("reading", address, inner),
            place.filesystem.open_input_file(inner) as stream,
        ):
            yield stream

    def opened(self, path: str, relative: bool = True) -> pa.NativeFile:
        """The same, for whoever closes it later; errors of reading it are those of Arrow."""
        address = self.address(path, relative)
        place, inner = self._placed(address)
        with self._translated("reading", address, inner):
            return place.filesystem.open_input_file(inner)

    def is_on_disk(self, path: str, relative: bool = True) -> bool:
        """Whether a file lies on this machine, and in no bucket."""
        return not self.address(path, relative).startswith(addresses.S3)

    def local_copy(self, path: str, size: int, relative: bool = True) -> Path:
        """A file on this machine that is the same: itself, or a copy of what is in a bucket."""
        address = self.address(path, relative)
        if self.is_on_disk(path, relative):
            return Path(address)
        server = self.s3.options.endpoint or ""
        return self.copies.get(address, size, self.open_input(path, relative), server=server)

    def read_bytes(self, path: str, relative: bool = True) -> bytes:
        """All of a file."""
        with self.open_input(path, relative) as stream:
            return stream.read()

    @contextmanager
    def open_output(self, path: str, relative: bool = True) -> Generator[pa.NativeFile]:
        """Write a new file. When the block has ended it is there for good; if the block fails, nothing is."""
        address = self.address(path, relative)
        if "\\" in path or ("?" in path and address.startswith(addresses.S3)):
            raise StorageError(f"DuckDB could not read {address}: choose a name without backslash and ?")
        place, inner = self._placed(address)
        with self._translated("writing", address, inner), place.output(inner) as stream:
            yield stream

    def make_folder(self, path: str, relative: bool = True) -> None:
        """Make a folder on a disk, where people may put files of their own; buckets have none."""
        # Of a bucket, a path that ends in a slash is no file.
        address = self.address(path.rstrip("/") or path, relative)
        if address.startswith("/"):
            with self._translated("making", address, address):
                Path(address).mkdir(parents=True, exist_ok=True)

    def info(self, path: str, relative: bool = True) -> StoredFile:
        """Size and age of a file, under the path that was given."""
        address = self.address(path, relative)
        place, inner = self._placed(address)
        with self._translated("looking at", address, inner):
            return replace(place.info(inner), path=path)

    def sync(self, paths: Iterable[str], relative: bool = True) -> None:
        """Make files stay that another engine has written; those that `open_output` wrote do already."""
        for path in paths:
            address = self.address(path, relative)
            place, inner = self._placed(address)
            with self._translated("writing", address, inner):
                place.sync(inner)

    def files(self, folder: str = "", relative: bool = True) -> Generator[StoredFile]:
        """Every file below the data path, or in one folder there; paths are relative to the data path.

        With `relative=False`, every file in any folder, and paths are addresses.
        """
        inside = folder.rstrip("/")
        address = self.address(inside, relative) if inside else self.data_path
        place, inner = self._placed(address)
        root = len(self._placed(self.data_path)[1]) if relative else 0
        scheme = "" if relative else address.removesuffix(inner)
        with self._translated("listing", address, inner):
            for found in place.files(inner):
                yield replace(found, path=scheme + found.path[root:])

    def delete(self, paths: Iterable[str], relative: bool = True) -> None:
        """Delete files. One that is gone already is fine; one that cannot be deleted stops no other."""
        for failure in self.delete_each(paths, relative).values():
            raise failure

    def delete_each(self, paths: Iterable[str], relative: bool = True) -> dict[str, StorageError]:
        """Delete files, many at a time; gives those that could not be deleted, and why."""
        found = list(paths)
        if not found:
            return {}
        with ThreadPoolExecutor(min(_DELETING_THREADS, len(found)), "forklake-delete") as pool:
            failures = pool.map(lambda path: self._failure_to_delete(path, relative), found)
            return {path: failure for path, failure in zip(found, failures, strict=True) if failure}

    def remove_folders(self, folders: Iterable[str]) -> dict[str, StorageError]:
        """Remove folders below the data path that nobody uses, if no file is left in them.

        Gives those that could not be removed, and why.
        """
        found = list(folders)
        if not found:
            return {}
        with ThreadPoolExecutor(min(_DELETING_THREADS, len(found)), "forklake-delete") as pool:
            failures = pool.map(self._failure_to_remove, found)
            return {path: failure for path, failure in zip(found, failures, strict=True) if failure}

    def _failure_to_remove(self, folder: str) -> StorageError | None:
        try:
            address = self.address(folder.rstrip("/"))
            place, inner = self._placed(address)
            with self._translated("removing", address, inner):
                place.remove_folder(inner)
        except StorageError as error:
            return error
        return None

    def _failure_to_delete(self, path: str, relative: bool) -> StorageError | None:
        try:
            address = self.address(path, relative)
            self.cache.forget(address)
            place, inner = self._placed(address)
            with self._translated("deleting", address, inner):
                place.delete(inner)
        except StorageError as error:
            return error
        return None

    def _placed(self, address: str) -> tuple[_Place, str]:
        if address.startswith(addresses.S3):
            return self.s3, address.removeprefix(addresses.S3)
        return self._disk, address

    @contextmanager
    def _translated(self, doing: str, address: str, inner: str) -> Generator[None]:
        """Errors of the place become ours. One that names some other file is the caller's own."""
        try:
            yield
        except OSError as error:
            named = inner if error.filename is None else str(error.filename)
            if not inner.startswith(named) and not named.startswith(inner):
                raise
            taken = isinstance(error, FileExistsError) and named == inner
            # A traceback shows the cause as well.
            translation = self._translation(doing, address, error, taken=taken)
            if self.s3.options.hidden(str(error)) != str(error):
                raise_alone(translation)
            raise translation from error

    def _translation(self, doing: str, address: str, error: OSError, *, taken: bool) -> StorageError:
        # Arrow's own words are in the text; the operating system's are short.
        reason = self.s3.options.hidden(error.strerror or str(error))
        if isinstance(error, FileNotFoundError):
            return FileMissing(
                f"{address} is missing: restore it, or see whether the data path is the right one; "
                "if the lake has moved, connect once with data_path=… and moved=True"
            )
        if taken:
            return StorageError(
                f"{address} is there already: files are never overwritten, choose another name"
            )
        if error.errno in _FULL:
            return StorageError(f"no room for {address} ({reason}): make room and run it again")
        if error.errno in _DENIED or "ACCESS_DENIED" in reason:
            return StorageError(f"{doing} {address} is not allowed ({reason}): ask for the permission")
        if "NO_SUCH_BUCKET" in reason:
            return StorageError(
                f"{doing} {address} failed, there is no such bucket: create it, "
                "or add the option allow_bucket_creation=true"
            )
        return StorageError(f"{doing} {address} failed: {reason}")


def open_storage(data_path: str, options: Mapping[str, str] | None = None) -> Storage:
    """The storage at a data path; nothing is touched or contacted before it is used.

    A folder, or `s3://bucket/prefix`. A bucket takes options, in the URL (`?region=eu-west-1`) or apart
    from it, and finds the others in the usual AWS variables; see `split_data_path`.
    """
    stored, given = split_data_path(data_path)
    return Storage(stored, s3_options({**given, **(options or {})}, os.environ))
