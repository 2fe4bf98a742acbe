"""Loading at first use what takes long to load: `LazyModule` for packages, `attach` for names of our own.

The modules in here hold the packages that the rest of forklake takes from here rather than by an import of
its own. For a type checker these names are the modules themselves. Nothing of them is asked for while a
module of ours is loaded: tables of Arrow types and the like are functions with a cache, and type aliases are
text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["LazyModule", "attach"]


class LazyModule:
    """Stands for a module, and loads it when something in it is first asked for."""

    __slots__ = ("_module", "_name")

    def __init__(self, name: str) -> None:
        """Load nothing yet."""
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        """What the module has under this name."""
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, name)

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        """By name: Spark sends functions together with the modules that they use."""
        return import_module, (self._name,)

    def __repr__(self) -> str:
        """The name, and whether the module has been loaded."""
        return f"<lazy module {self._name!r}{'' if self._module is None else ', loaded'}>"


def attach(
    package: str, homes: Mapping[str, Sequence[str]], submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package that loads its names when they are first used.

    `homes` has the names, or `name as other`, by the modules that define them. Type checkers take no
    part in this: for them the same names are imported under TYPE_CHECKING. No name is that of a module in the
    package, which an import would put in its place.
    """
    found: dict[str, tuple[str, str]] = {}
    for home, names in homes.items():
        for name in names:
            original, _, shown = name.partition(" as ")
            found[shown or original] = (home, original)

    def load(name: str) -> Any:
        if name in submodules:
            # The import puts it into the package.
            return import_module(f"{package}.{name}")
        if name not in found:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, original = found[name]
        value = getattr(import_module(home), original)
        setattr(sys.modules[package], name, value)
        return value

    def public() -> list[str]:
        return sorted({*sys.modules[package].__all__, *submodules})

    return load, public
