"""Files in buckets of S3 or of a server that speaks like it."""

from __future__ import annotations

import errno
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cached_property

from forklake.data.storage.file_info import StoredFile, modified_at
from forklake.data.storage.paths import S3Options
from forklake.lazy.arrow import fs, pa

# Amazon's library gives up after one second and three, which a busy server needs at times.
_CONNECT_SECONDS = 10
_REQUEST_SECONDS = 30
_LEVELS = 3
"""How many levels of folders are listed one by one."""


class S3:
    """Buckets that one set of credentials reaches; a path is bucket/key."""

    def __init__(self, options: S3Options, bucket: str) -> None:
        """Nothing is contacted yet. The bucket, if it has a name, tells the region when nobody else does."""
        self.options = options
        self.bucket = bucket
        self._made: set[str] = set()
        self._making = threading.Lock()

    @cached_property
    def region(self) -> str | None:
        """Where the bucket is, if anybody knows."""
        if self.options.region is None and self.bucket:
            with suppress(OSError):
                return fs.resolve_s3_region(self.bucket)
        return self.options.region

    @cached_property
    def filesystem(self) -> fs.FileSystem:
        """For those who read and write through Arrow."""
        return fs.S3FileSystem(
            access_key=self.options.access_key,
            secret_key=self.options.secret_key,
            session_token=self.options.session_token,
            anonymous=self.options.anonymous,
            region=self.region,
            endpoint_override=self.options.endpoint,
            scheme="https" if self.options.secure else "http",
            allow_bucket_creation=self.options.allow_bucket_creation,
            # A small file is then one request instead of three.
            allow_delayed_open=True,
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=_REQUEST_SECONDS,
        )

    @contextmanager
    def output(self, path: str) -> Generator[pa.NativeFile]:
        """Write a file. It stays only if the block ends well, and nobody sees it before."""
        self._make_bucket(path.partition("/")[0])
        stream = self.filesystem.open_output_stream(path)
        try:
            yield stream
            stream.close()
        except BaseException:
            # Arrow cannot give up an upload: one that is dropped is finished all the same, so it is deleted.
            with suppress(OSError, ValueError):
                stream.close()
            with suppress(OSError):
                self.filesystem.delete_file(path)
            raise

    def sync(self, path: str) -> None:
        """What is in a bucket stays."""

    def info(self, path: str) -> StoredFile:
        """What is known of a file."""
        found = self.filesystem.get_file_info(path)
        if found.type != fs.FileType.File:
            raise FileNotFoundError(errno.ENOENT, "no such object", path)
        return _stored(found)

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        with suppress(FileNotFoundError):
            self.filesystem.delete_file(path)

    def remove_folder(self, path: str) -> None:
        """Remove the empty objects that Arrow leaves in place of folders, if there is no file."""
        with suppress(FileNotFoundError):
            listed = self.filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            if all(found.type != fs.FileType.File for found in listed):
                self.filesystem.delete_dir(path)

    def files(self, folder: str) -> Generator[StoredFile]:
        """Every file whose key begins with a folder.

        A listing is in memory as a whole, so folders of catalogs, schemas and tables are listed one by one.
        """
        folders = [(folder.rstrip("/"), _LEVELS)]
        while folders:
            place, levels = folders.pop()
            listed: list[fs.FileInfo] = []
            # Not Arrow's allow_not_found: it takes a missing bucket for an empty one.
            with suppress(FileNotFoundError):
                listed = self.filesystem.get_file_info(fs.FileSelector(place, recursive=not levels))
            for found in listed:
                if found.type == fs.FileType.File:
                    yield _stored(found)
                elif levels:
                    folders.append((found.path, levels - 1))

    def _make_bucket(self, bucket: str) -> None:
        if not self.options.allow_bucket_creation or bucket in self._made:
            return
        with self._making:
            if bucket not in self._made:
                self.filesystem.create_dir(bucket)
                self._made.add(bucket)


def _stored(found: fs.FileInfo) -> StoredFile:
    return StoredFile(found.path, found.size, modified_at(found.mtime_ns / 1e9))
