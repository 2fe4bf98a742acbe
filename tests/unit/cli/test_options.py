"""Options, the environment and help of the command line, and its reference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import forklake
from forklake.cli.app import app
from forklake.cli.reference import RESULTS, reference
from tests.unit.command_line import data, done, run

ROOT = Path(__file__).parents[3]


# ---- Options ---


def test_the_environment_stands_in_for_the_options(url: str) -> None:
    assert len(data("tables", FORKLAKE_LAKE=url, FORKLAKE_CATALOG="shop")) == 2


def test_an_option_counts_more_than_the_environment(url: str) -> None:
    env = {"FORKLAKE_LAKE": "sqlite:////no/such.db", "FORKLAKE_CATALOG": "nobody"}
    assert len(data("--lake", url, "--catalog", "shop", "tables", **env)) == 2
    assert len(data("tables", "--lake", url, "--catalog", "shop", **env)) == 2


def test_global_options_may_stand_after_the_command(url: str) -> None:
    before = done("--lake", url, "--catalog", "shop", "--json", "tables")
    assert done("tables", "--lake", url, "--json", "--catalog", "shop") == before
    assert (
        done("--lake", "nowhere", "--catalog", "lab", "tables", "--catalog=shop", f"--lake={url}", "--json")
        == before
    )


def test_the_version_is_printed() -> None:
    assert done("--version") == f"forklake {forklake.__version__}\n"


@pytest.mark.parametrize("name", ["", *RESULTS])
def test_every_command_and_option_has_help(name: str) -> None:
    program: Any = get_command(app)
    command = program.commands[name] if name else program
    assert command.help
    assert all(param.help for param in command.params)
    text = done(*filter(None, [name]), "--help")
    assert "Usage: forklake" in text
    for param in command.params:
        assert (param.opts[0] if param.param_type_name == "option" else param.metavar) in text
    assert "<bool>" not in text
    assert "{" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("catalogs", "--nonsense"),
        ("catalogs", "surplus"),
        ("create",),
        ("drop",),
        ("drop", "shop", "--expired"),
        ("--lake",),
        ("catalogs", "--at", "yesterday"),
        ("catalogs", "--at", "-1"),
        ("catalogs", "--at", ""),
        ("catalogs", "--at", str(2**63)),
        ("catalogs", "--at", "9" * 5000),
        ("catalogs", "--at", "0001-01-01T00:00:00+14:00"),
        ("compact", "--deletes", "1.1"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...], url: str) -> None:
    result = run(*arguments, FORKLAKE_LAKE=url)
    assert result.exit_code == 2
    assert "Usage: forklake" in result.output or "Error" in result.stderr


# ---- The reference ---


def test_the_reference_is_fresh() -> None:
    page = ROOT / "docs" / "cli.md"
    assert page.read_text() == reference(), "run: python -m forklake.cli.reference > docs/cli.md"


def test_the_reference_is_printed_by_its_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "forklake.cli.reference"],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert result.stdout == reference()
