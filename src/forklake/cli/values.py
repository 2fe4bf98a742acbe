"""Values of rows as JSON has them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import inf, isfinite, isnan
from typing import Any

from forklake.lazy.msgspec import msgspec

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def json_of(value: Any) -> Any:
    """A value in types that JSON has. Numbers keep their digits, and what JSON has no type for is text."""
    match value:
        case None | bool() | int() | str() | Decimal():
            return value
        case float():
            if isfinite(value):
                return value
            return "NaN" if isnan(value) else "Infinity" if value == inf else "-Infinity"
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return "".join(map(_byte, value))
        case list() if value and all(isinstance(pair, tuple) for pair in value):
            # Arrow gives the entries of a MAP as pairs.
            return {str(json_of(key)): json_of(one) for key, one in value}
        case list() | tuple():
            return [json_of(one) for one in value]
        case Mapping():
            return {str(json_of(key)): json_of(one) for key, one in value.items()}
        case timedelta():
            return str(value)
        case _:
            return str(value)


def _byte(value: int) -> str:
    """A byte as DuckDB writes it."""
    return chr(value) if 32 <= value < 127 and chr(value) != "\\" else f"\\x{value:02X}"


def objects_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows as objects, for `write_rows_json`. Of columns with one name, the last counts."""
    return [{name: json_of(value) for name, value in zip(names, row, strict=True)} for row in rows]


def json_text(plain: Any) -> str:
    """A document in ASCII, as all JSON of the program is."""
    encoded = msgspec.json.Encoder(decimal_format="number").encode(plain)
    text = msgspec.json.format(encoded, indent=2).decode()
    # Only strings and keys have characters beyond ASCII.
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
