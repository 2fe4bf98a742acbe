"""What a function of SQL is: a name, what it does, and the rows that it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forklake.lazy.arrow import pa

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog
    from forklake.api.lake import Lake
    from forklake.api.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the session that a statement runs in."""

    lake: Lake
    catalog: Catalog
    """The catalog that the function is asked about."""
    work: Catalog | Transaction
    """Where changes take effect: the open transaction, or the catalog itself."""
    schema: str = "main"
    """The schema that unqualified names mean."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Values that a function is called with, as Python has them."""

    positional: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By their names in lower case."""


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A function of SQL. `ducklake_<name>('catalog', …)` calls it too."""

    name: str
    run: Callable[[Caller, Arguments], pa.Table]
    is_change: bool = False
    """Whether it changes something: refused where only reading is allowed, and run in FROM only once."""
    of_lake: bool = False
    """Whether it is about the lake, so that no catalog is named first."""
