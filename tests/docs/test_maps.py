"""The maps of the code and of the documentation name what is there, and leave nothing out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "forklake"
CODE = re.compile(r"`([^`\n]+)`")
PLACE = re.compile(r"(?:[a-z_]+/)+|(?:[a-z_]+/)*[a-z_]+(?:\.[a-z]+)*\.(?:py|sql)")
TABLE_ROW = re.compile(r"^\| `([a-z0-9_/]+(?:\.py)?)` \| (.*) \|$", re.MULTILINE)
DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def named_in(text: str) -> set[str]:
    """Every folder and file of code that a text names in backticks."""
    return {name for name in CODE.findall(text) if PLACE.fullmatch(name)}


def exists(name: str, *folders: Path) -> bool:
    return any((folder / name).exists() for folder in (ROOT, SOURCE, *folders))


def packages() -> set[str]:
    folders = {path.parent for suffix in ("py", "sql") for path in SOURCE.rglob(f"*.{suffix}")} - {SOURCE}
    return {f"{folder.relative_to(SOURCE).as_posix()}/" for folder in folders}


def contributing() -> str:
    return (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def architecture() -> str:
    return (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_path_in_the_map_of_packages_exists() -> None:
    rows = dict(TABLE_ROW.findall(contributing()))
    assert [name for name in rows if not exists(name)] == []
    # Files in the second column are those of the package in the first.
    missing = {
        f"{package}{name}"
        for package, inside in rows.items()
        for name in named_in(inside)
        if not exists(name, SOURCE / package)
    }
    assert missing == set()


def test_every_package_and_every_module_beside_them_is_in_the_map() -> None:
    rows = dict(TABLE_ROW.findall(contributing()))
    modules = {path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__")}
    assert packages() | modules == set(rows)


def test_every_path_that_says_where_to_add_something_exists() -> None:
    _, _, recipes = contributing().partition("## To add X, go to Y")
    named = named_in(recipes)
    assert len(named) > 20
    assert [name for name in named if not exists(name)] == []


def test_every_module_in_the_diagrams_and_texts_of_the_architecture_exists() -> None:
    drawn = " ".join(DIAGRAM.findall(architecture()))
    found = set(re.findall(r"\b(?:[a-z_]+/)+[a-z_]+\.py\b", drawn)) | named_in(architecture())
    assert len(found) > 15
    assert [name for name in found if not exists(name)] == []


def test_the_diagram_of_layers_shows_every_layer() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    layers = {name.strip() for layer in contract["layers"] for name in layer.split("|")} - {"__main__"}
    section = architecture().split("## Layers")[1]
    diagram = section.split("```mermaid")[1].split("\n## ")[0]
    assert [layer for layer in layers if not re.search(rf"\b{layer}\b", diagram)] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_every_page_is_in_the_index(page: Path) -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert page.name == "README.md" or f"({page.name})" in index
