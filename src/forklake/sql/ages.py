"""Lengths of time as SQL has them: '7 days', '12h', INTERVAL '1 day'."""

from __future__ import annotations

from datetime import timedelta

from forklake.errors import InvalidSql
from forklake.model.options import parse_age


def age(value: object) -> timedelta:
    """A length of time."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        return parse_age("a length of time", value)
    raise InvalidSql(f"a length of time is written like '7 days', not {value!r}")
