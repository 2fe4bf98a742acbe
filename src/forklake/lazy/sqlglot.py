"""sqlglot, loaded at first use: the package, its errors, and `exp` for the nodes of its trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forklake.lazy import LazyModule

if TYPE_CHECKING:
    import sqlglot
    from sqlglot import errors as sqlglot_errors
    from sqlglot import exp
else:
    exp = LazyModule("sqlglot.expressions")
    sqlglot = LazyModule("sqlglot")
    sqlglot_errors = LazyModule("sqlglot.errors")

__all__ = ["exp", "sqlglot", "sqlglot_errors"]
