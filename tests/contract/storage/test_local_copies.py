"""Copies of files in a bucket, for libraries that read from a disk: whole, kept, and of limited size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forklake.data.storage.local_copies import LocalCopies
from forklake.data.storage.storage import Storage, open_storage
from forklake.errors import FileMissing, InvalidArgument, StorageError
from forklake.index.segment_files import StoredSegment
from forklake.model.index import SegmentSummary


def segment(storage: Storage, name: str, content: bytes, size: int | None = None) -> StoredSegment:
    with storage.open_output(name) as stream:
        stream.write(content)
    facts = SegmentSummary(1, "test", 1)
    return StoredSegment(storage, name, True, len(content) if size is None else size, facts)


def test_a_segment_is_read_in_ranges_and_as_a_local_file(data_path: str, tmp_path: Path) -> None:
    storage = open_storage(data_path)
    storage.copies = LocalCopies(tmp_path / "copies")
    found = segment(storage, "t/_index/a.index", b"0123456789")
    with found.open() as stream:
        stream.seek(4)
        assert stream.read(3) == b"456"
    assert found.local().read_bytes() == b"0123456789"
    assert found.key == storage.address("t/_index/a.index")
    # On a disk it is the file itself, and nothing is copied.
    assert (found.local() == Path(found.key)) == storage.is_local
    assert (tmp_path / "copies").exists() != storage.is_local


def test_a_missing_segment_is_told_as_missing(data_path: str, tmp_path: Path) -> None:
    storage = open_storage(data_path)
    storage.copies = LocalCopies(tmp_path / "copies")
    found = segment(storage, "t/_index/a.index", b"0123456789")
    storage.delete(["t/_index/a.index"])
    with pytest.raises(FileMissing):
        found.open()


def test_a_copy_is_made_once_and_holds_for_ever(s3_url: str, tmp_path: Path) -> None:
    storage = open_storage(s3_url)
    storage.copies = LocalCopies(tmp_path / "copies")
    found = segment(storage, "a.index", b"0123456789")
    path = found.local()
    storage.delete(["a.index"])
    assert found.local() == path
    # Another process finds it too, and nobody else may read it.
    storage.copies = LocalCopies(tmp_path / "copies")
    assert found.local() == path
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_of_another_size_is_no_copy(s3_url: str, tmp_path: Path) -> None:
    storage = open_storage(s3_url)
    storage.copies = LocalCopies(tmp_path / "copies")
    torn = segment(storage, "torn.index", b"01234", size=10)
    with pytest.raises(StorageError, match="5 bytes where 10"):
        torn.local()
    assert [path for path in (tmp_path / "copies").rglob("*") if path.is_file()] == []
    whole = segment(storage, "whole.index", b"0123456789")
    path = whole.local()
    path.write_bytes(b"012")
    assert whole.local().read_bytes() == b"0123456789"


def test_what_was_used_longest_ago_makes_room(s3_url: str, tmp_path: Path) -> None:
    storage = open_storage(s3_url)
    storage.copies = LocalCopies(tmp_path / "copies", size=30)
    first, second, third = (segment(storage, f"{n}.index", bytes([n]) * 10) for n in range(3))
    for at, one in enumerate((first, second, third)):
        os.utime(one.local(), (1000 + at, 1000 + at))
    first.local()
    place = second.local()
    os.utime(place, (1001, 1001))
    with place.open("rb") as held:
        segment(storage, "3.index", b"3" * 10).local()
        # Whoever has it open reads on.
        assert held.read() == b"\1" * 10
    kept = {path.read_bytes()[:1] for path in (tmp_path / "copies").rglob("*") if path.is_file()}
    assert kept == {b"\0", b"\2", b"3"}


def test_the_environment_says_where_copies_are_and_how_many(tmp_path: Path) -> None:
    copies = LocalCopies.from_environment({"FORKLAKE_CACHE": str(tmp_path), "FORKLAKE_CACHE_BYTES": "77"})
    assert (copies.folder, copies.size) == (tmp_path, 77)
    assert LocalCopies.from_environment({"XDG_CACHE_HOME": "/x", "HOME": "/y"}).folder == Path(
        "/x/forklake/files"
    )
    assert LocalCopies.from_environment({"HOME": "/y"}).folder == Path("/y/.cache/forklake/files")
    with pytest.raises(InvalidArgument, match="number of bytes"):
        LocalCopies.from_environment({"FORKLAKE_CACHE_BYTES": "much"})
