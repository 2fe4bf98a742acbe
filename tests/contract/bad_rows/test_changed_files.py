"""Files that vanish or change behind the lake's back: said clearly, with the file, and never read wrongly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import FileMissing, StorageError

READS: list[Callable[[forklake.Table], Any]] = [
    lambda t: t.scan().to_arrow(),
    lambda t: list(t.scan().to_batches()),
    lambda t: t.scan("id > 7").count(),
    lambda t: t.delete("id % 2 = 1"),
    lambda t: t.update({"name": "'x'"}),
    lambda t: t.merge([{"id": 7, "name": "m"}], on="id"),
]


@pytest.fixture
def paths(table, files, tmp_path) -> dict[bool, Path]:
    """The data file and the delete file."""
    return {"delete-" in path: tmp_path / "files" / path for path in files()}


def damaged(content: bytes) -> dict[str, bytes | None]:
    footer = int.from_bytes(content[-8:-4], "little")
    return {
        "missing": None,
        "empty": b"",
        "cut": content[: len(content) // 2],
        "longer": content + b"x",
        "text of the same size": (b"id,name\n" * len(content))[: len(content)],
        "a broken footer of the same size": content[: -8 - footer] + b"\xff" * footer + content[-8:],
        "another footer of the same size": content[:-8] + (footer - 1).to_bytes(4, "little") + content[-4:],
    }


@pytest.mark.parametrize("which", ["data file", "delete file"])
def test_a_damaged_file_is_named_and_nothing_changes(catalog, table, paths, reopen, which) -> None:
    path = paths[which == "delete file"]
    content = path.read_bytes()
    before = catalog.snapshot
    for damage, other in damaged(content).items():
        if other is None:
            path.unlink()
        else:
            path.write_bytes(other)
        # Whoever has read a file does not look at it again, so each damage meets a new reader.
        stale = reopen().catalog("main_catalog").table("t")
        for read in READS:
            with pytest.raises(StorageError) as caught:
                read(stale)
            assert str(path) in str(caught.value), (damage, caught.value)
            assert type(caught.value) is (FileMissing if other is None else StorageError), damage
            if "footer" not in damage:
                assert "restore it" in str(caught.value), damage
        # What the metadata know is still told.
        assert stale.count() == 16 and len(stale.files()) == 2
        path.write_bytes(content)
    assert catalog.snapshot == before
    assert table.scan().to_arrow().num_rows == 16


def test_other_files_are_read_while_one_is_missing(table, paths) -> None:
    table.append([{"id": n} for n in range(100, 110)])
    paths[False].unlink()
    assert table.scan("id >= 100").count() == 10
    with pytest.raises(FileMissing):
        table.scan("id >= 10").count()
    # What is gone can be let go of.
    assert table.delete() == 26
    assert table.scan().to_arrow().num_rows == 0


def test_the_past_stays_readable_when_the_present_is_damaged(catalog, table, files, tmp_path) -> None:
    known, before = files(), catalog.snapshot
    table.append([{"id": n} for n in range(100, 110)])
    (new,) = files() - known
    (tmp_path / "files" / new).write_bytes(b"")
    with pytest.raises(StorageError, match="restore it"):
        table.scan().to_arrow()
    assert catalog.table("t", at=before).scan().to_arrow().num_rows == 16


def test_a_file_that_others_wrote_anew_is_not_read(table, paths, reopen) -> None:
    path = paths[False]
    other = pq.read_table(path).drop_columns(["name"])
    pq.write_table(other, path)
    with pytest.raises(StorageError, match="overwritten") as caught:
        reopen().catalog("main_catalog").table("t").scan().to_arrow()
    assert str(path) in str(caught.value)
