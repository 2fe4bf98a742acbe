"""How statements are run: what they may do, and how much they may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forklake.data.input.inferred_columns import table_of
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.options import parse_size

_LEAST_MEMORY = 32 * 2**20


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """The options of `sql`, checked."""

    read_only: bool = False
    allow: tuple[str, ...] = ()
    one_transaction: bool = False
    max_rows: int | None = None
    max_seconds: float | None = None
    max_memory: int | str | None = None
    """Bytes, or text such as `512MiB`."""
    data: Mapping[str, pa.Table] = field(default_factory=dict[str, "pa.Table"])
    """Rows that statements may read, by names in lower case."""

    @property
    def memory(self) -> int | None:
        """How many bytes a statement may take."""
        return None if self.max_memory is None else parse_size("max_memory", self.max_memory)

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("max_rows", "max_seconds"):
            value = getattr(self, name)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or value <= 0
            ):
                raise InvalidArgument(f"{name} is a positive number, not {value!r}")
        if self.memory is not None and self.memory < _LEAST_MEMORY:
            raise InvalidArgument("max_memory is at least 32MiB: DuckDB itself needs some")


def checked_options(given: Mapping[str, Any]) -> SqlOptions:
    """The options that somebody gave."""
    unknown = given.keys() - SqlOptions.__dataclass_fields__.keys()
    if unknown:
        raise InvalidArgument(f"sql() has no option {', '.join(sorted(unknown))}")
    allow = given.get("allow", ())
    if isinstance(allow, str):
        raise InvalidArgument("what is allowed is given as a list of folders: allow=['/data/in']")
    checked: dict[str, Any] = {**given, "allow": tuple(map(str, allow)), "data": _tables(given.get("data"))}
    return SqlOptions(**checked)


def _tables(given: Any) -> dict[str, pa.Table]:
    """Rows that were handed over, as Arrow tables: a query may read them twice."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidArgument(f"data is a dict of rows by their names, not {type(given).__name__}")
    made: dict[str, pa.Table] = {}
    for name, rows in (given or {}).items():
        if not isinstance(name, str) or name.lower() in made:
            raise InvalidArgument(f"data: {name!r} is no name, or is there twice; case makes no difference")
        made[name.lower()] = table_of(rows)
    return made
