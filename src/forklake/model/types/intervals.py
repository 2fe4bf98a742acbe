"""Intervals as text, in the plainest of the forms that DuckDB takes. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1_200, "millennium": 12_000}
_DAYS = {"day": 1, "week": 7}
_MICROS = {
    "microsecond": 1,
    "millisecond": 10**3,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
}
_PLURALS = {f"{unit}s": unit for unit in (*_MONTHS, *_DAYS, *_MICROS)} | {"centuries": "century"}
_UNITS = {unit: unit for unit in (*_MONTHS, *_DAYS, *_MICROS)} | _PLURALS
del _UNITS["centurys"]

_PART = re.compile(rf"(-?\d{{1,18}}) +({'|'.join(sorted(_UNITS, reverse=True))}) *", re.ASCII | re.IGNORECASE)
_CLOCK = re.compile(r"(-?)(\d{1,9}):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,6}))?)?", re.ASCII)


class Interval(NamedTuple):
    """What an interval counts; none of the three turns into another."""

    months: int
    days: int
    micros: int


def read_interval(text: str) -> Interval:
    """The interval that a text such as `1 year 2 months 3 days 04:05:06` is."""
    at, total = 0, Interval(0, 0, 0)
    while part := _PART.match(text, at):
        count, unit, at = int(part[1]), _UNITS[part[2].lower()], part.end()
        factors = (_MONTHS.get(unit, 0), _DAYS.get(unit, 0), _MICROS.get(unit, 0))
        total = _sum(total, Interval(*(count * factor for factor in factors)))
    clock = _CLOCK.fullmatch(text, at)
    if clock and not total.micros:
        seconds = (int(clock[2]) * 60 + int(clock[3])) * 60 + int(clock[4] or 0)
        micros = seconds * 10**6 + int(f"{clock[5] or '':0<6}")
        total = _sum(total, Interval(0, 0, -micros if clock[1] else micros))
    elif not text or at < len(text):
        # Among them hours and a clock: DuckDB takes the sign of the clock for both.
        raise ValueError("write it as 1 year 2 months 3 days 04:05:06")
    return total


def _sum(total: Interval, part: Interval) -> Interval:
    """DuckDB wants every sum on the way to fit."""
    both = Interval(*(one + other for one, other in zip(total, part, strict=True)))
    # Arrow counts nanoseconds in 64 bits.
    for months, days, micros in (part, both):
        if abs(months) >= 2**31 or abs(days) >= 2**31 or abs(micros) * 1000 >= 2**63:
            raise ValueError("it is too long")
    return both
