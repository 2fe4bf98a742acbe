"""docs/api.md is what the docstrings say, and leaves nothing public out."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import forklake
import forklake.distributed
import forklake.spark
from scripts.api_reference import INTERNAL, RETURNED, reference

ROOT = Path(__file__).parents[2]
MODULES = (forklake, forklake.spark, forklake.distributed)


def test_the_reference_is_fresh() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert page == reference() + "\n", "run: python -m scripts.api_reference > docs/api.md"


def test_the_reference_is_printed_by_its_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "scripts.api_reference"],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        cwd=ROOT,
    )
    assert result.stdout == reference() + "\n"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_everything_public_is_in_the_reference(module) -> None:
    page = reference()
    assert [name for name in module.__all__ if f"`{name}`" not in page] == []


def test_every_member_that_is_left_out_exists() -> None:
    kinds = {kind.__name__: kind for kind in RETURNED}
    kinds |= {name: getattr(module, name) for module in MODULES for name in module.__all__}
    left_out = [(name, key) for name, keys in INTERNAL.items() for key in keys]
    # A field without a default is no attribute of its class.
    fields = {name: getattr(kind, "__dataclass_fields__", {}) for name, kind in kinds.items()}
    assert [
        (name, key) for name, key in left_out if not (hasattr(kinds[name], key) or key in fields[name])
    ] == []


def test_everything_in_the_reference_has_a_docstring() -> None:
    for module in MODULES:
        for name in module.__all__:
            kind = getattr(module, name)
            if not inspect.isclass(kind):
                continue
            assert inspect.getdoc(kind), name
            for member, value in vars(kind).items():
                if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    hidden = member in INTERNAL.get(name, set())
                    assert hidden or inspect.getdoc(value), f"{name}.{member}"
