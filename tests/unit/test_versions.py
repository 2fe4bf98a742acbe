"""What is locked is what pyproject.toml allows, and what it allows is what CONTRIBUTING says was tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ALLOWED = [
    Requirement(text)
    for listed in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for text in listed
]


@pytest.mark.parametrize("profile", ["demo", "test", "bench"])
def test_every_locked_version_is_allowed(profile: str) -> None:
    text = (ROOT / "requirements" / f"{profile}.txt").read_text(encoding="utf-8")
    pins = {canonicalize_name(name): found for name, found in re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M)}
    known = [one for one in ALLOWED if canonicalize_name(one.name) in pins]
    assert {"duckdb", "psycopg", "pyarrow", "sqlglot", "typer"} <= {one.name for one in known}
    for one in known:
        assert pins[canonicalize_name(one.name)] in one.specifier, f"{one} and {profile}.txt"


@pytest.mark.parametrize("package", ALLOWED, ids=str)
def test_every_package_has_a_lowest_version(package: Requirement) -> None:
    assert {part.operator for part in package.specifier} & {">=", "=="}


def test_the_table_of_versions_names_every_python_and_lowest_version() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text[text.index("## Versions") :]
    for classifier in PROJECT["classifiers"]:
        if found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier):
            assert f"| {found[1]} |" in table
    for package in PROJECT["dependencies"]:
        one = Requirement(package)
        (lowest,) = (part.version for part in one.specifier if part.operator == ">=")
        assert f"{one.name} {lowest}" in table, package
