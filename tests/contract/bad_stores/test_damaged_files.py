"""A file that is no database, or a damaged one, is named as such and left alone."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import forklake
from forklake.errors import InvalidUrl, MetadataNotFound, StoreError, StoreUnavailable
from tests.contract.bad_stores.refusals import embedded, make_foreign, nothing_written, path_of, refused


def write_text(path: Path) -> None:
    path.write_text("this is not a database\n" * 1000)


def write_noise(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 100)


def write_short(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0"[:10])


def cut_to_the_header(path: Path) -> None:
    os.truncate(path, 4000)


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 + 7)


def overwrite_the_middle(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 8192))


def swap_for_the_other_kind(path: Path) -> None:
    header = path.read_bytes()[:16]
    path.unlink()
    make_foreign(f"{'duckdb' if header.startswith(b'SQLite') else 'sqlite'}:///{path}")


# A name with "lock" in it must not make a broken file look like a busy one.
@pytest.mark.parametrize("name", ["lake.db", "locked_blocks.db"])
@pytest.mark.parametrize(
    "damage",
    [
        write_text,
        write_noise,
        write_short,
        cut_to_the_header,
        cut_in_half,
        overwrite_the_middle,
        swap_for_the_other_kind,
    ],
)
@embedded
def test_a_file_that_is_no_database_or_damaged_is_named_as_such_and_left_alone(
    closed_lake: str, tmp_path: Path, damage: Callable[[Path], None], name: str
) -> None:
    path_of(closed_lake).rename(tmp_path / name)
    url = closed_lake.replace("lake.db", name)
    damage(tmp_path / name)
    before = (tmp_path / name).read_bytes()
    for create in (False, True):
        with (
            refused(StoreUnavailable, says=re.escape(name), hides="download"),
            forklake.connect(url, create=create) as lake,
        ):
            lake.catalogs()
        assert (tmp_path / name).read_bytes() == before


@embedded
def test_a_folder_is_no_database(lake_url: str, tmp_path: Path) -> None:
    path_of(lake_url).mkdir()
    for create in (False, True):
        with nothing_written(tmp_path), refused(InvalidUrl, says="folder"):
            forklake.connect(lake_url, create=create)


@embedded
@pytest.mark.parametrize("create", [False, True], ids=["open", "create"])
@pytest.mark.parametrize("name", ["taken/lake.db", "n" * 300 + ".db", "loop/lake.db"])
def test_a_path_that_cannot_be_is_refused(lake_url: str, tmp_path: Path, name: str, create: bool) -> None:
    (tmp_path / "taken").write_text("a file where a folder would have to be")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    url = lake_url.replace("lake.db", name)
    with nothing_written(tmp_path), refused(StoreUnavailable, MetadataNotFound):
        forklake.connect(url, create=create)


@embedded
def test_a_device_is_no_database(lake_url: str) -> None:
    kind = lake_url.partition(":")[0]
    for create in (False, True):
        with refused(StoreError):
            forklake.connect(f"{kind}:////dev/null", create=create)
