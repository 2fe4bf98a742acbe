"""Running the program in this process, and what came of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from forklake.cli.app import app


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORKLAKE_LAKE", "FORKLAKE_CATALOG", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str, **env: str) -> Any:
    return CliRunner().invoke(app, arguments, env=env, prog_name="forklake", catch_exceptions=False)


def done(*arguments: str, **env: str) -> str:
    result = run(*arguments, **env)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def data(*arguments: str, **env: str) -> Any:
    return json.loads(done("--json", *arguments, **env))


def refusal(*arguments: str, **env: str) -> str:
    result = run(*arguments, **env)
    assert (result.exit_code, result.stdout) == (1, "")
    return the_line(result.stderr)


def the_line(stderr: str) -> str:
    (line,) = stderr.splitlines()
    assert line.startswith("forklake: ")
    return line.removeprefix("forklake: ")


def rows(text: str) -> list[list[str]]:
    """The cells of a table whose cells hold no two blanks in a row."""
    return [[part.strip() for part in line.split("  ") if part.strip()] for line in text.splitlines()]
