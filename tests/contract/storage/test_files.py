"""Files on a disk and in a bucket are written, read, listed and deleted alike."""

from __future__ import annotations

import os
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forklake import FileMissing, StorageError
from forklake.data.storage.storage import Storage, open_storage
from tests.contract.storage.files import LARGE, SMALL, paths, write
from tests.moto_server import S3Server


@pytest.mark.parametrize("size", [0, SMALL, LARGE])
def test_what_was_written_is_read(storage: Storage, size: int) -> None:
    content = os.urandom(size)
    write(storage, "main/orders/a.parquet", content)
    assert storage.read_bytes("main/orders/a.parquet") == content
    assert storage.info("main/orders/a.parquet").size == size


def test_any_part_of_a_file_is_read_alone(storage: Storage) -> None:
    content = os.urandom(LARGE)
    write(storage, "a", content)
    with storage.open_input("a") as stream:
        stream.seek(11_000_000)
        assert stream.read(10) == content[11_000_000:11_000_010]
        assert stream.size() == LARGE


def test_nothing_is_touched_before_the_first_use(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "files"))
    assert not (tmp_path / "files").exists()
    assert list(storage.files()) == []
    # Nobody listens at port 1.
    open_storage("s3://bucket/lake?endpoint_override=http://127.0.0.1:1").address("x")


def test_a_missing_file_is_told_by_name(storage: Storage) -> None:
    for attempt in (storage.read_bytes, storage.info, lambda path: storage.open_input(path).__enter__()):
        with pytest.raises(FileMissing, match=r"main/none\.parquet is missing: "):
            attempt("main/none.parquet")


def test_a_folder_is_not_a_file(storage: Storage) -> None:
    write(storage, "main/orders/a")
    with pytest.raises(FileMissing):
        storage.info("main/orders")
    with pytest.raises(StorageError):
        storage.read_bytes("main/orders")


def test_a_listing_has_path_size_and_age(storage: Storage) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    write(storage, "main/orders/a", b"abc")
    write(storage, "main/orders/deep/er/b")
    write(storage, "main/orders2/c")
    write(storage, "d", b"")
    assert paths(storage) == ["d", "main/orders/a", "main/orders/deep/er/b", "main/orders2/c"]
    for folder in ("main/orders", "main/orders/"):
        assert paths(storage, folder) == ["main/orders/a", "main/orders/deep/er/b"]
    assert paths(storage, "none") == []
    for file in storage.files():
        assert file == storage.info(file.path)
        assert before <= file.modified <= datetime.now(UTC) + timedelta(seconds=2)
    assert {file.path: file.size for file in storage.files()}["main/orders/a"] == 3


def test_a_listing_shows_only_what_lies_below_the_data_path(s3_server: S3Server, tmp_path: Path) -> None:
    bucket = s3_server.new_bucket()
    for data_path, beside, above in (
        (s3_server.url(bucket, "lake"), s3_server.url(bucket, "lake2"), s3_server.url(bucket)),
        (f"{tmp_path}/lake", f"{tmp_path}/lake2", f"{tmp_path}"),
    ):
        write(open_storage(data_path), "a")
        write(open_storage(beside), "b")
        assert paths(open_storage(data_path)) == ["a"]
        assert paths(open_storage(above)) == ["lake/a", "lake2/b"]


def test_deleting_leaves_the_others_and_forgives_what_is_gone(storage: Storage) -> None:
    names = [f"main/t{index % 3}/{index}" for index in range(60)]
    for name in [*names, "main/t1/kept"]:
        write(storage, name)
    storage.delete([*names, "main/none", names[0]])
    assert paths(storage) == ["main/t1/kept"]
    storage.delete(names)
    storage.delete([])


def test_a_file_that_cannot_be_deleted_stops_no_other(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    (tmp_path / "folder").mkdir()
    write(storage, "a")
    write(storage, "b")
    with pytest.raises(StorageError, match="folder"):
        storage.delete(["a", "folder", "b"])
    assert paths(storage) == []


def test_an_object_that_cannot_be_deleted_stops_no_other(bucket: Storage, s3_server: S3Server) -> None:
    for name in ("a", "held", "b"):
        write(bucket, name)
    held = s3_server.refusing(lambda request: request.method == "DELETE" and "held" in request.path)
    with held, pytest.raises(StorageError, match=r"deleting s3://\S+/lake/held is not allowed"):
        bucket.delete(["a", "held", "b"])
    assert paths(bucket) == ["held"]


def test_a_folder_is_listed_without_all_of_its_names_in_memory(tmp_path: Path) -> None:
    for number in range(5_000):
        (tmp_path / f"{number:060}").touch()
    storage = open_storage(str(tmp_path))
    next(storage.files())
    tracemalloc.start()
    try:
        found = sum(1 for _ in storage.files())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == 5_000
    # The names alone take more.
    assert peak < 5_000 * 60
