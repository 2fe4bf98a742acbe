"""Values that stand in the folders of a path, as Hive and Spark put them there: `region=eu/year=2024/`."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import unquote

from forklake.data.defaults import default_of
from forklake.data.parquet.partition import NULL_FOLDER
from forklake.errors import ForklakeError
from forklake.lazy.arrow import pa
from forklake.model.entities import Column, Default

_WHOLE = r"[+-]?[0-9]+"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_DIGITS = r"[0-9a-fA-F]"
# Python reads more than these as numbers and the like, and DuckDB, which reads the folders later, yet others.
_WRITTEN = {
    "boolean": r"true|false",
    **{f"{sign}int{bits}": _WHOLE for sign in ("", "u") for bits in (8, 16, 32, 64, 128)},
    "decimal": r"[+-]?[0-9]+(\.[0-9]+)?",
    **{f"float{bits}": r"[+-]?([0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?|inf|infinity)|nan" for bits in (32, 64)},
    "date": _DAY,
    "time": _CLOCK,
    **{f"timestamp{unit}": f"{_DAY}([ T]{_CLOCK})?" for unit in ("", "_s", "_ms", "_ns")},
    "timestamptz": f"{_DAY}[ T]{_CLOCK}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)",
    "uuid": rf"{_DIGITS}{{8}}(-{_DIGITS}{{4}}){{3}}-{_DIGITS}{{12}}",
    "varchar": r"(?s:.*)",
    "json": r"(?s:.*)",
}


def hive_values(path: str) -> dict[str, str | None]:
    """The values in the folders of a path, by the names that stand there."""
    folders = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    return {unquote(name): None if value == NULL_FOLDER else unquote(value) for name, _, value in folders}


def value_of(text: str | None, column: Column) -> pa.Array:
    """What a folder says as one value of a column, or `ValueError`."""
    if text is None:
        return pa.nulls(1)
    kind = "decimal" if column.type.startswith("decimal(") else column.type
    if kind not in _WRITTEN or re.fullmatch(_WRITTEN[kind], text, re.IGNORECASE) is None:
        raise ValueError(text)
    plain = text.lower() if kind == "boolean" else text
    try:
        return default_of(replace(column, default=Default(plain, "literal")), 1)
    except (ForklakeError, ArithmeticError, pa.ArrowException) as error:
        raise ValueError(text) from error
