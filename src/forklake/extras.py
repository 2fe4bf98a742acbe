"""Optional packages: how to get one that is missing, by a command that works wherever forklake came from."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from forklake.errors import MissingDependency


def missing(what: str, extra: str) -> MissingDependency:
    """The error for a package that an extra brings: `missing("pandas is not installed", "pandas")`."""
    return MissingDependency(f"{what}: run {install_command(extra)}")


def install_command(extra: str) -> str:
    """What installs an extra: from the clone or the folder that forklake runs or was installed from."""
    return f"pip install {shlex.quote(f'{_source()}[{extra}]')}"


def _source() -> str:
    """Where pip finds forklake."""
    clone = Path(__file__).parents[2]
    if (clone / "pyproject.toml").is_file():
        return str(clone)
    try:
        # What pip notes of a package that did not come from an index.
        noted = distribution("forklake").read_text("direct_url.json")
    except PackageNotFoundError:
        noted = None
    if noted is None:
        return "forklake"
    origin = urlsplit(json.loads(noted)["url"])
    folder = unquote(origin.path)
    return folder if origin.scheme == "file" and Path(folder).exists() else "forklake"
