"""A disk that fills, and storage that fails half-way: nothing is committed, and no file stays."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.data.storage.local import LocalDisk
from forklake.errors import StorageError

MANY = pa.table({"id": pa.array(range(100, 5100), pa.int32()), "name": [f"name {n}" for n in range(5000)]})


class Disk:
    """A disk with so much room; without a number it has room for all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.code = errno.ENOSPC
        original = LocalDisk.output

        @contextmanager
        def output(disk: LocalDisk, path: str) -> Iterator[pa.NativeFile]:
            with original(disk, path) as stream:
                yield pa.PythonFile(_Limited(self, stream), mode="w")

        monkeypatch.setattr(LocalDisk, "output", output)

    def take(self, size: int) -> None:
        if self.room is not None:
            self.room -= size
            if self.room < 0:
                raise OSError(self.code, "No space left on device")


class _Limited:
    closed = False

    def __init__(self, disk: Disk, stream: pa.NativeFile) -> None:
        self._disk = disk
        self._stream = stream

    def write(self, data: Any) -> int:
        self._disk.take(len(data))
        return self._stream.write(data)

    def tell(self) -> int:
        return self._stream.tell()

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


VERBS: dict[str, Callable[[forklake.Table], Any]] = {
    "append": lambda t: t.append(MANY),
    "overwrite": lambda t: t.overwrite(MANY, where="id > 10"),
    "update": lambda t: t.update({"name": "name || '!'"}),
    "merge": lambda t: t.merge(MANY, on="id"),
}
AT_COMMIT: dict[str, Callable[[forklake.Table], Any]] = {
    "delete": lambda t: t.delete("id % 2 = 0"),
    "small appends that become a file": lambda t: [t.append([{"id": n}, {"id": -n}]) for n in range(50, 53)],
}


def test_a_full_disk_leaves_the_table_as_it_was(refuse, table, disk, tmp_path) -> None:
    words = ("no room for", str(tmp_path / "files"), ".parquet", "make room")
    for room in (0, 100, 2000):
        for name, verb in VERBS.items():
            if name == "update" and room > 100:
                continue

            def do(t: forklake.Table, verb: Any = verb, room: int = room) -> None:
                disk.room = room
                verb(t)

            refuse(do, StorageError, *words)
    disk.room = 0
    refuse(AT_COMMIT["delete"], StorageError, *words, at_commit=True)
    # With room again, all of it works.
    disk.room = None
    for verb in (*VERBS.values(), *AT_COMMIT.values()):
        verb(table)
    assert table.count() == len(table.scan().to_arrow()) > 2000


def test_a_disk_that_fills_while_a_transaction_commits_undoes_all_of_it(catalog, table, state, disk) -> None:
    before = state()
    for room in (0, 2000):
        for verb in AT_COMMIT.values():
            with pytest.raises(StorageError, match="no room for"), catalog.transaction() as tx:
                tx.table("t").append(MANY)
                tx.create_table("other", "id INT").append(MANY.select(["id"]))
                verb(tx.table("t"))
                disk.room = room if room == 0 else 200
            disk.room = None
            assert state() == before
            assert [info.name for info in catalog.tables()] == ["t"]
    catalog.create_table("other", "id INT")


def test_inlined_rows_stay_where_they_are_when_there_is_no_room_to_flush(catalog, state, table, disk) -> None:
    before = state()
    disk.room = 0
    with pytest.raises(StorageError, match="no room for"):
        catalog.flush_inlined()
    assert state() == before
    disk.room = None
    assert catalog.flush_inlined() == 1
    assert state()[1] == before[1]


def test_other_errors_of_the_disk_are_told_with_the_file(refuse, table, disk) -> None:
    for code, word in ((errno.EACCES, "not allowed"), (errno.EIO, "writing")):
        disk.code, disk.room = code, 0
        refuse(VERBS["append"], StorageError, word, ".parquet")


# ---- Buckets ---


@pytest.fixture
def bucket_table(lake_url: str, s3_url: str) -> Iterator[forklake.Table]:
    with forklake.connect(lake_url, data_path=s3_url, create=True) as lake:
        table = lake.create_catalog("c").create_table("t", "id INT, name VARCHAR")
        table.set_option("data_inlining_row_limit", 3)
        table.append(MANY.slice(0, 100))
        yield table


def test_a_bucket_that_refuses_to_be_written_leaves_the_table_as_it_was(bucket_table, s3_server) -> None:
    table = bucket_table
    storage = table._scope.context.storage

    def state() -> Any:
        rows = table.scan(row_ids=True).to_arrow().sort_by("row_id")
        return table._scope.head().snapshot_id, rows, {file.path for file in storage.files()}

    before = state()
    with s3_server.refusing(lambda request: request.method in ("PUT", "POST")):
        for verb in (*VERBS.values(), AT_COMMIT["delete"]):
            with pytest.raises(StorageError) as caught:
                verb(table)
            assert "s3://" in str(caught.value) and ".parquet" in str(caught.value)
            assert "secret" not in str(caught.value)
    assert state() == before
    refusing = s3_server.refusing(lambda request: request.method in ("GET", "HEAD"))
    with refusing, pytest.raises(StorageError, match="s3://"):
        table.update({"name": "'x'"})
    assert state() == before
    assert table.update({"name": "'x'"}) == 100
