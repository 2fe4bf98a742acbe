"""What is missing is said at once, with a command that works."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake import extras
from forklake.engine import remote_files as remote
from tests.extensions import extension

ROOT = Path(forklake.__file__).parents[2]


class Installed:
    def __init__(self, noted: str | None) -> None:
        self.noted = noted

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.noted


def test_in_a_clone_the_command_installs_from_the_clone() -> None:
    assert extras.install_command("s3") == f"pip install '{ROOT}[s3]'"


@pytest.mark.parametrize("origin", ["folder", "index", "git", "gone"])
def test_elsewhere_the_command_installs_from_where_forklake_came(
    origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = {
        "folder": tmp_path.as_uri(),
        "git": "https://example.org/forklake.git",
        "gone": (tmp_path / "gone").as_uri(),
    }.get(origin)
    noted = None if url is None else json.dumps({"url": url})
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "site" / "lib" / "forklake" / "extras.py"))
    monkeypatch.setattr(extras, "distribution", lambda name: Installed(noted))
    expected = str(tmp_path) if origin == "folder" else "forklake"
    assert extras.install_command("pandas") == f"pip install '{expected}[pandas]'"


def test_a_bucket_that_could_not_be_read_is_refused_by_connect_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension("httpfs")
    monkeypatch.setattr(remote, "find_spec", lambda _: None)
    monkeypatch.setenv("HOME", str(tmp_path))
    url = f"sqlite:///{tmp_path}/lake.db"
    with pytest.raises(forklake.MissingDependency, match=r"httpfs .*: run pip install '.*\[s3\]'"):
        forklake.connect(url, data_path="s3://bucket/lake", create=True)
    assert not (tmp_path / "lake.db").exists()
    monkeypatch.undo()
    forklake.connect(url, data_path="s3://bucket/lake", create=True).close()
    monkeypatch.setattr(remote, "find_spec", lambda _: None)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(forklake.MissingDependency):
        forklake.connect(url)


def test_a_driver_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "forklake.store.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(forklake.MissingDependency, match=r"PostgreSQL .*pip install 'psycopg\[binary\]'"):
        forklake.connect("postgresql://nobody@127.0.0.1:1/none")


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_form_that_needs_a_package_names_it(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    with forklake.connect(f"sqlite:///{tmp_path}/lake.db", create=True) as lake:
        table = lake.create_catalog("c").create_table("t", "id INT")
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(forklake.MissingDependency, match=rf"{name} is not installed: .*\[{name}\]'"):
            getattr(table, f"to_{name}")()
