"""Odd names of files are read, listed and deleted; names that lead elsewhere are refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forklake import StorageError
from forklake.data.storage.storage import Storage, open_storage
from forklake.engine.remote_files import attach_storage, literal
from tests.contract.storage.files import numbers, paths, write, write_table
from tests.moto_server import S3Server

ODD_NAMES = [
    "with space.parquet",
    "ümläut €.parquet",
    "percent%20.parquet",
    "a+b=c&d.parquet",
    "hash#.parquet",
    "quote'\".parquet",
    "star*.parquet",
    "br[a]cket.parquet",
    "$dollar {x}.parquet",
    ".hidden",
    "n" * 200,
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_read_listed_and_deleted(
    storage: Storage, connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    attach_storage(connection, storage)
    path = f"main/{name}"
    address = write_table(storage, path, numbers(0, 3))
    # What a pattern would find as well.
    write_table(storage, f"main/{name.replace('*', 'more').replace('[a]', 'a')}.also", numbers(3, 3))
    found = "SELECT DISTINCT filename FROM read_parquet($files, filename = true)"
    assert connection.execute(found, {"files": [literal(address)]}).fetchall() == [(address,)]
    assert path in paths(storage)
    storage.delete([path])
    assert path not in paths(storage)


_names = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0?\\", exclude_categories=["Cc"]),
    min_size=1,
    max_size=20,
).filter(lambda name: name not in (".", ".."))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(names=st.lists(_names, min_size=1, max_size=3, unique=True), content=st.binary(max_size=20))
def test_any_name_is_a_name(storage: Storage, names: list[str], content: bytes) -> None:
    path = "/".join(["any", *names])
    write(storage, path, content)
    try:
        assert paths(storage, "any") == [path]
        assert storage.read_bytes(storage.address(path), relative=False) == content
    finally:
        storage.delete([path])
    assert paths(storage) == []


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\0b", "\ud800"]
)
def test_a_path_that_does_not_lead_below_the_data_path_is_refused(storage: Storage, path: str) -> None:
    for attempt in (storage.read_bytes, storage.info, storage.address, lambda path: storage.delete([path])):
        with pytest.raises(StorageError):
            attempt(path)
    with pytest.raises(StorageError):
        write(storage, path)


def test_a_name_that_no_query_could_read_is_not_written(storage: Storage) -> None:
    for name in ("back\\slash", "what?") if not storage.is_local else ("back\\slash",):
        with pytest.raises(StorageError, match="choose a name without"):
            write(storage, f"main/{name}.parquet")
    assert paths(storage) == []


@pytest.mark.parametrize("folder", ["back\\slash", "st*r", "br[a]cket"])
def test_duckdb_reads_below_a_folder_with_an_odd_name(
    s3_server: S3Server, tmp_path: Path, connection: duckdb.DuckDBPyConnection, folder: str
) -> None:
    for data_path in (s3_server.url(s3_server.new_bucket(), folder), str(tmp_path / folder)):
        storage = open_storage(data_path)
        attach_storage(connection, storage)
        address = write_table(storage, "a.parquet", numbers(4, 1))
        assert connection.execute("SELECT n FROM read_parquet($f)", {"f": [literal(address)]}).fetchall() == [
            (4,)
        ]


def test_absolute_paths_lead_anywhere(storage: Storage, tmp_path: Path, s3_server: S3Server) -> None:
    elsewhere = str(tmp_path / "elsewhere/a")
    write(storage, elsewhere, b"disk", relative=False)
    assert Path(elsewhere).read_bytes() == b"disk" == storage.read_bytes(elsewhere, relative=False)
    assert storage.info(elsewhere, relative=False).path == elsewhere
    storage.delete([elsewhere], relative=False)
    assert not Path(elsewhere).exists()
    if not storage.is_local:
        address = f"s3://{s3_server.new_bucket()}/elsewhere/a"
        write(storage, address, b"bucket", relative=False)
        assert storage.read_bytes(address, relative=False) == b"bucket"
    assert paths(storage) == []
    for odd in ("relative/path", "gs://bucket/key", "s3://", "s3://bucket//x", "s3://bucket/../x"):
        with pytest.raises(StorageError):
            storage.address(odd, relative=False)


def test_arrow_finds_what_resolve_says(storage: Storage) -> None:
    write_table(storage, "main/a.parquet", numbers(5, 2))
    filesystem, path = storage.resolve("main/a.parquet")
    assert pq.read_table(path, filesystem=filesystem)["n"].to_pylist() == [5, 6]


def test_a_file_whose_name_is_no_text_is_not_ours(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet")).write_bytes(b"")
    storage = open_storage(str(tmp_path))
    write(storage, "a")
    assert paths(storage) == ["a"]


def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(
    storage: Storage, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(storage, "main/a")

    def deny(path: str) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    # Root may list everything, so permissions of the folder would not do.
    monkeypatch.setattr(os, "scandir", deny)
    with s3_server.refusing(lambda request: request.method == "GET"), pytest.raises(StorageError):
        paths(storage)
