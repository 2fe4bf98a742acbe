"""How a refusal reads, what it leaves untouched, and on which backends something is refused."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pytest

from forklake.errors import ForklakeError

RunSql = Callable[..., list[tuple[Any, ...]]]
InThreads = Callable[..., list[Any]]

embedded = pytest.mark.parametrize("lake_url", ["sqlite", "duckdb"], indirect=True)
only_duckdb = pytest.mark.parametrize("lake_url", ["duckdb"], indirect=True)
only_postgresql = pytest.mark.parametrize("lake_url", ["postgresql"], indirect=True)

SECRET = "s3cr3t"
"""A password that no error may show."""
INIT = r"forklake .*init"
"""The command that helps somebody who has no lake, or not one of ours."""


def check_sentence(said: str) -> None:
    """One line for people: no traceback, no class names, no second line from a driver."""
    assert said
    assert said == said.strip()
    assert "\n" not in said
    assert not re.search(r"Traceback|\b(psycopg|sqlite3|duckdb)\.\w*(Error|Exception)|\[Errno", said), said


@contextmanager
def refused(*kinds: type[ForklakeError], says: str = "", hides: str | None = None) -> Iterator[None]:
    with pytest.raises(ForklakeError) as caught:
        yield
    assert isinstance(caught.value, kinds), repr(caught.value)
    check_sentence(str(caught.value))
    assert re.search(says, str(caught.value)), str(caught.value)
    assert hides is None or hides not in repr(caught.value), str(caught.value)


@contextmanager
def nothing_written(folder: Path) -> Iterator[None]:
    """Every file below the folder keeps its bytes, and none appears or goes."""
    before = contents(folder)
    yield
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes]:
    found = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


def path_of(url: str) -> Path:
    return Path(urlsplit(url).path.removeprefix("/"))


def make_foreign(url: str) -> None:
    text = "CREATE TABLE accounts (id INTEGER)"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(path_of(url))) as connection:
            connection.execute(text)
    else:
        with duckdb.connect(str(path_of(url))) as connection:
            connection.execute(text)
