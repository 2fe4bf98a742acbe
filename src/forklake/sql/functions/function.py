"""What a function of SQL is: a name, its parameters, what it does, and the rows that it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from forklake.api.scoped import scope_of
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.sql.functions.answers import Columns
from forklake.sql.functions.values import Value

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog
    from forklake.api.lake import Lake
    from forklake.api.transaction import Transaction
    from forklake.model.entities import CatalogInfo, View

Values = Mapping[str, Any]
"""Checked values by the names of parameters; those that were not given are missing."""


class Reach(Protocol):
    """What a caller may name beside its own catalog; it refuses all else."""

    def check_file(self, path: str, what: str) -> None:
        """A file that is read."""
        ...

    def check_folder(self, path: str, what: str) -> None:
        """A folder that is written to."""
        ...

    def check_fork(self, name: str) -> None:
        """The catalog itself or a fork of it."""
        ...

    def check_relative(self, name: str) -> None:
        """One of these, or a catalog that it was forked from."""
        ...

    def sees(self, listed: list[CatalogInfo]) -> list[CatalogInfo]:
        """Of a listing, those that it may know of."""
        ...


def _unknown(view: View) -> None:
    """Nobody knows what a view returns without running it."""


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
    is_read_only: bool = False
    view_columns: Callable[[View], Sequence[tuple[str, str]] | None] = _unknown
    """Names and types of the columns of a view; None if it cannot be read as it is."""
    reach: Reach | None = None
    """None for the program itself, which may name everything."""

    @property
    def base(self) -> int:
        """The snapshot that is read."""
        return scope_of(self.work).read().head.snapshot_id

    @property
    def last_committed(self) -> int | None:
        """The last snapshot of the catalog that this program committed through this lake."""
        return scope_of(self.catalog).context.committed.get(self.catalog.id)

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return hasattr(self.work, "rollback")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Values that a function is called with, as Python has them."""

    positional: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By their names in lower case."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function."""

    name: str
    value: Value
    """What it may be."""
    is_required: bool = False
    means: Literal["value", "file", "folder", "fork", "relative"] = "value"
    """What it names, for `Reach` to check: files, or catalogs."""

    def check(self, reach: Reach, value: Any, function: str) -> None:
        """Refuse a value that names what the caller may not reach."""
        for one in value if isinstance(value, list | tuple) else [value]:
            match self.means:
                case "file":
                    reach.check_file(one, f"{function}()")
                case "folder":
                    reach.check_folder(one, f"{function}()")
                case "fork":
                    reach.check_fork(one)
                case "relative":
                    reach.check_relative(one)
                case "value":
                    pass


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A function of SQL. `ducklake_<name>('catalog', …)` calls it too."""

    name: str
    summary: str
    body: Callable[[Caller, Values], pa.Table]
    parameters: tuple[Parameter, ...] = ()
    forms: tuple[tuple[str, ...], ...] = ((),)
    """The names of parameters that may be given without a name, in order: each entry is a way to do so."""
    columns: Columns | None = None
    """Names and types of what it returns; None if that depends on the arguments."""
    hidden: tuple[str, ...] = ()
    """Columns of the result, the last ones, that `*` does not mean."""
    is_change: bool = False
    """Whether it changes something: refused where only reading is allowed, and run in FROM only once."""
    of_lake: bool = False
    """Whether it is about the lake, so that no catalog is named first."""
    in_transaction: bool = True
    """Whether it can be part of a transaction."""

    def run(self, caller: Caller, arguments: Arguments) -> pa.Table:
        """Check the arguments and call it."""
        values = self.checked(arguments)
        if caller.is_in_transaction and not self.in_transaction:
            raise InvalidArgument(f"{self.name} cannot be part of a transaction: COMMIT or ROLLBACK first")
        if caller.reach is not None:
            for parameter in self.parameters:
                if values.get(parameter.name) is not None:
                    parameter.check(caller.reach, values[parameter.name], self.name)
        return self.body(caller, values)

    def checked(self, arguments: Arguments) -> Values:
        """The arguments by the names of parameters, of the types that these have."""
        given = dict(zip(self._form(len(arguments.positional)), arguments.positional, strict=False))
        for name, value in arguments.named.items():
            if name in given:
                raise InvalidArgument(f"{self.name}: {name} is given twice")
            given[name] = value
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise InvalidArgument(f"{self.name} has no parameter {name}: {self._called()}")
        for parameter in self.parameters:
            if parameter.is_required and parameter.name not in given:
                raise InvalidArgument(f"{self.name} needs {parameter.name}: {self._called()}")
        return {name: known[name].value.checked(value, self.name, name) for name, value in given.items()}

    def _form(self, count: int) -> tuple[str, ...]:
        """What arguments without names mean, by their number."""
        fitting = [form for form in self.forms if len(form) >= count]
        if not fitting:
            raise InvalidArgument(f"{self.name} is given too many arguments, {count}: {self._called()}")
        return min(fitting, key=len)

    def signatures(self) -> tuple[str, ...]:
        """How it is called, for messages and documentation: `list_files(table, schema => text)`."""
        required = {parameter.name for parameter in self.parameters if parameter.is_required}
        shown: list[str] = []
        for form in self.forms:
            parts = [name if name in required else f"[{name}]" for name in form]
            parts += [
                f"{parameter.name} => {parameter.value.type}"
                for parameter in self.parameters
                if not any(parameter.name in other for other in self.forms)
            ]
            shown.append(f"{self.name}({', '.join(parts)})")
        return tuple(shown)

    def _called(self) -> str:
        return f"it is called as {' or '.join(self.signatures())}"
