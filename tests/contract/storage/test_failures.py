"""What fails while it is written leaves nothing behind, and the error says why by name."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from forklake import StorageError
from forklake.data.storage import local
from forklake.data.storage.storage import Storage, open_storage
from tests.contract.storage.files import LARGE, SMALL, paths, write
from tests.moto_server import SECRET_KEY, Request, S3Server


@pytest.mark.parametrize("size", [0, SMALL, LARGE])
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
def test_a_failure_half_way_leaves_nothing(storage: Storage, size: int, error: BaseException) -> None:
    expected = StorageError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected), storage.open_output("main/orders/a") as stream:
        stream.write(bytes(size))
        raise error
    assert paths(storage) == []
    write(storage, "main/orders/a", b"again")
    assert storage.read_bytes("main/orders/a") == b"again"


def test_a_full_disk_is_told_by_name(storage: Storage) -> None:
    with (
        pytest.raises(StorageError, match=r"no room for .*main/a \(No space left on device\): make room"),
        storage.open_output("main/a") as stream,
    ):
        stream.write(b"x")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_table_that_does_not_fit_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
        import resource
        import pyarrow as pa, pyarrow.parquet as pq
        from forklake.data.storage.storage import open_storage
        from forklake.errors import StorageError
        storage = open_storage({str(tmp_path)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            with storage.open_output("main/a.parquet") as stream:
                pq.write_table(pa.table({{"n": range(1_000_000)}}), stream, compression="none")
        except StorageError as error:
            print(error)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert f"no room for {tmp_path}/main/a.parquet" in ended.stdout
    assert paths(open_storage(str(tmp_path))) == []


def test_a_disk_that_fails_to_sync_has_written_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(str(tmp_path))

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    write(storage, "before")
    monkeypatch.setattr(local.os, "fsync", fail)
    with pytest.raises(StorageError, match=r"writing .*/a failed: Input/output error"):
        write(storage, "a")
    monkeypatch.undo()
    assert paths(storage) == ["before"]


def test_a_written_file_and_every_folder_above_it_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, int]] = []

    def remember(handle: int) -> None:
        synced.append((str(Path(f"/proc/self/fd/{handle}").readlink()), os.fstat(handle).st_size))

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to see which file a handle belongs to")
    monkeypatch.setattr(local.os, "fsync", remember)
    storage = open_storage(f"{tmp_path}/lake")
    write(storage, "main/orders/a", b"12345")
    names = [name for name, _ in synced]
    assert (f"{tmp_path}/lake/main/orders/a", 5) in synced
    assert names[-1] == f"{tmp_path}/lake/main/orders"
    assert {f"{tmp_path}/lake/main", f"{tmp_path}/lake", f"{tmp_path}", "/"} <= set(names)
    synced.clear()
    write(storage, "main/orders/b")
    assert [name for name, _ in synced] == [f"{tmp_path}/lake/main/orders/b", f"{tmp_path}/lake/main/orders"]


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    write(storage, "main/orders/a")
    storage.delete(["main/orders/a"])
    (tmp_path / "main/orders").rmdir()
    write(storage, "main/orders/a")
    assert paths(storage) == ["main/orders/a"]


def test_a_file_on_disk_is_never_overwritten(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    write(storage, "a", b"first")
    with pytest.raises(StorageError, match="is there already"):
        write(storage, "a", b"second")
    assert storage.read_bytes("a") == b"first"


def test_a_file_where_a_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("no folder")
    for path in ("a", "main/a"):
        with pytest.raises(StorageError, match=rf"writing {tmp_path}/files/{path} failed: "):
            write(open_storage(f"{tmp_path}/files"), path)
    assert (tmp_path / "files").read_text() == "no folder"


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(path: str, *_: Any) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    write(open_storage(str(tmp_path)), "before")
    # Root may write everywhere, so permissions of the folder would not do.
    monkeypatch.setattr(local, "_created", deny)
    with pytest.raises(StorageError, match=rf"writing {tmp_path}/a is not allowed \(Permission denied\)"):
        write(open_storage(str(tmp_path)), "a")


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_an_upload_that_is_refused_is_told_and_leaves_nothing(
    bucket: Storage, s3_server: S3Server, size: int
) -> None:
    def is_upload(request: Request) -> bool:
        return request.method in ("PUT", "POST") and "orders" in request.path

    with (
        s3_server.refusing(is_upload),
        pytest.raises(StorageError, match=r"writing s3://\S+/main/orders/a is not allowed") as caught,
    ):
        write(bucket, "main/orders/a", bytes(size))
    assert SECRET_KEY not in str(caught.value)
    assert paths(bucket) == []


def test_the_bodys_own_errors_stay_what_they_are(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), storage.open_output("a"):
        (tmp_path / "not there").read_bytes()
    with pytest.raises(pa.ArrowInvalid), storage.open_output("a"):
        pa.array(["no number"]).cast(pa.int64())
    assert paths(storage) == []
