"""URLs and data paths that cannot be: refused without showing a password, and nothing is made."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import forklake
from forklake.errors import DataPathMismatch, ForklakeError, InvalidName, InvalidUrl, MetadataNotFound
from tests.contract.bad_stores.refusals import SECRET, nothing_written, refused

# ---- URLs -----------------------------------------------------------------------------------------------

WRONG_URLS = [
    "",
    " ",
    "lake.db",
    "/var/lake.db",
    "lake",
    "file:///lake.db",
    "https://example.com/lake",
    "mysql://user@host/db",
    "sqlite",
    "sqlite:",
    "sqlite://",
    "sqlite:///",
    "sqlite:////",
    "sqlite://lake.db",
    "sqlite://folder/lake.db",
    "sqlite:lake.db",
    "sqlite:/folder/lake.db",
    "sqlite:///folder/",
    "sqlite:///:memory:",
    "sqlite:///a%00b.db",
    "sqlite:///a\nb.db",
    "sqlite:///a\tb.db",
    "sqlite:///a#b.db",
    "sqlite:///lake.db?mode=ro",
    "sqlite:///lake.db?metadata_schema=a",
    "sqlite3:///lake.db",
    "duckdb",
    "duckdb://",
    "duckdb:///",
    "duckdb:///:memory:",
    "duckdb://lake.db",
    "duckdb:lake.db",
    "duckdb:///lake.db?schema=a",
    "duckdb:///lake.db?pool_size=3",
    "postgresql://host:port/db",
    "postgresql://host:99999/db",
    "postgresql://[::1/db",
    "postgresql://host/db?nonsense=1",
    "postgresql://host/db?pool_size=0",
    "postgresql://host/db?pool_size=-1",
    "postgresql://host/db?pool_size=1001",
    "postgresql://host/db?pool_size=many",
    "postgresql://host/db?pool_size=",
    "postgresql://host/db?pool_size=%C2%B2",
    "postgresql+psycopg://host/db",
]


@pytest.mark.parametrize("url", WRONG_URLS)
@pytest.mark.parametrize("create", [False, True], ids=["open", "create"])
def test_a_url_that_cannot_be_read_is_refused(
    url: str, create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with nothing_written(tmp_path), refused(InvalidUrl):
        forklake.connect(url, data_path=tmp_path, create=create)


@pytest.mark.parametrize("url", [None, 7, b"sqlite:///lake.db", Path("lake.db"), ["sqlite:///lake.db"]])
def test_a_url_that_is_no_string_is_refused(url: Any) -> None:
    with refused(InvalidUrl):
        forklake.connect(url)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_the_error_for_a_wrong_url_shows_how_a_right_one_looks(kind: str) -> None:
    with refused(InvalidUrl, says="sqlite:///"):
        forklake.connect("lake.db")
    with refused(InvalidUrl, says=f"{kind}:///"):
        forklake.connect(f"{kind}://lake.db")


@pytest.mark.parametrize("name", ["", "%20", "a%0Ab", "a%00b", "n" * 256])
@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
def test_a_metadata_schema_that_is_no_name_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    url = f"{kind}:///{tmp_path / 'lake.db'}?metadata_schema={name}"
    with nothing_written(tmp_path), refused(InvalidUrl, InvalidName):
        forklake.connect(url, data_path=tmp_path, create=True)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{SECRET}@127.0.0.1:1/db",
        f"postgresql://user:{SECRET}@host:port/db",
        f"postgresql://user:{SECRET}@host/db?pool_size=0",
        f"postgresql://user:{SECRET}@host/db?nonsense=1",
        f"postgresql://user@127.0.0.1:1/db?password={SECRET}",
        f"postgres+asyncpg://user:{SECRET}@host/db",
        f"mysql://user:{SECRET}@host/db",
        f"sqlite://user:{SECRET}@host/db",
    ],
)
def test_no_error_shows_a_password(url: str) -> None:
    with refused(ForklakeError, hides=SECRET):
        forklake.connect(url, create=True, data_path="files")


@pytest.mark.parametrize("data_path", ["", " ", "a\0b"])
def test_a_data_path_that_is_none_is_refused_before_anything_is_made(
    lake_url: str, tmp_path: Path, data_path: str
) -> None:
    with nothing_written(tmp_path), refused(InvalidUrl):
        forklake.connect(lake_url, data_path=data_path, create=True)
    with refused(MetadataNotFound):
        forklake.connect(lake_url)


def test_odd_but_right_file_names_work(tmp_path: Path) -> None:
    for kind in ("sqlite", "duckdb"):
        for name in ("a b.db", "100%.db", "what?.db", "q#1.db", "ünï ✓.db", 'it\'s "it".db', "a;b&c=d.db"):
            path = tmp_path / kind / name
            url = f"{kind}:///{quote(str(path))}"
            with forklake.connect(url, create=True) as lake:
                lake.create_catalog("a")
                shown = lake.url
            assert path.is_file()
            # What messages and listings show can be pasted.
            for again in (url, shown):
                with forklake.connect(again) as lake:
                    assert [catalog.name for catalog in lake.catalogs()] == ["a"]


# ---- Data paths -----------------------------------------------------------------------------------------


def test_another_data_path_is_refused_and_the_stored_one_stays(
    closed_lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for other in ("elsewhere", tmp_path / "files" / "below", tmp_path, "s3://bucket/files"):
        for create in (False, True):
            with refused(DataPathMismatch, says=re.escape(f"{tmp_path / 'files'}/")):
                forklake.connect(closed_lake, data_path=other, create=create)
    for same in (None, "files", "files/", tmp_path / "files", f"{tmp_path}/files/"):
        with forklake.connect(closed_lake, data_path=same) as lake:
            assert lake.data_path == f"{tmp_path / 'files'}/"
