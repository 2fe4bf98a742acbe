"""What the arguments of functions may be, and how they are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from forklake.errors import InvalidArgument
from forklake.model.options import parse_age

_TRUTH = {"true": True, "false": False, "t": True, "f": False, "1": True, "0": False}


class _Unfit(Exception):
    """A value is not what a parameter takes."""


@dataclass(frozen=True, slots=True)
class Value:
    """What an argument may be."""

    type: str
    """The type in SQL, for signatures."""
    what: str
    """What it is, for messages: `a whole number of at least 1`."""
    read: Callable[[Any], Any]
    allows_null: bool = False

    def checked(self, given: object, function: str, parameter: str) -> Any:
        """The argument as the function takes it; what does not fit is refused."""
        if given is None and self.allows_null:
            return None
        try:
            if given is not None:
                return self.read(given)
        except _Unfit:
            pass
        shown = "NULL" if given is None else repr(given)[:80]
        raise InvalidArgument(f"{function}: {parameter} is {self.what}, not {shown}")


def or_null(value: Value) -> Value:
    """The same, or NULL."""
    return replace(value, what=f"{value.what} or NULL", allows_null=True)


def at_least(least: int) -> Value:
    """A whole number that is not smaller."""

    def read(given: Any) -> int:
        if _whole(given) < least:
            raise _Unfit
        return _whole(given)

    return Value("BIGINT", f"a whole number of at least {least}", read)


def one_of(*words: str) -> Value:
    """One of some words, in any case."""

    def read(given: Any) -> str:
        if not isinstance(given, str) or given.lower() not in words:
            raise _Unfit
        return given.lower()

    return Value("VARCHAR", " or ".join(map(repr, words)), read)


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise _Unfit
    return given


def _texts(given: Any) -> list[str]:
    listed = given if isinstance(given, list | tuple) else [given]
    if not listed:
        raise _Unfit
    return [_text(one) for one in listed]


def _flag(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.lower() in _TRUTH:
        return _TRUTH[given.lower()]
    raise _Unfit


def _whole(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | Decimal) or given != int(given):
        raise _Unfit
    return int(given)


def _versions(given: Any) -> list[int]:
    return [_whole(one) for one in (given if isinstance(given, list | tuple) else [given]) if one is not None]


def _share(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | Decimal) or not 0 <= given <= 1:
        raise _Unfit
    return float(given)


def _time(given: Any) -> datetime:
    match given:
        case datetime():
            return given
        case date():
            return datetime.combine(given, time())
        case str():
            try:
                return datetime.fromisoformat(given.strip())
            except ValueError:
                raise _Unfit from None
        case _:
            raise _Unfit


def _time_or_age(given: Any) -> datetime | timedelta:
    return _age(given) if isinstance(given, timedelta) else _time(given)


def _age(given: Any) -> timedelta:
    if isinstance(given, str):
        try:
            given = parse_age("an age", given)
        except InvalidArgument:
            raise _Unfit from None
    if not isinstance(given, timedelta) or given < timedelta(0):
        raise _Unfit
    return given


def _snapshot_or_time(given: Any) -> int | datetime:
    if isinstance(given, int | Decimal):
        return _whole(given)
    return _time(given)


TEXT = Value("VARCHAR", "a string", _text)
TEXTS = Value("VARCHAR[]", "a string or a list of strings", _texts)
FLAG = Value("BOOLEAN", "true or false", _flag)
WHOLE = Value("BIGINT", "a whole number", _whole)
VERSIONS = Value("BIGINT[]", "a list of whole numbers", _versions, allows_null=True)
"""What an aggregate over snapshots found: NULL if there are none, and it says nothing about any."""
SHARE = Value("DOUBLE", "a number from 0 to 1", _share)
TIME = Value("TIMESTAMPTZ", "a timestamp", _time)
TIME_OR_AGE = Value("TIMESTAMPTZ | INTERVAL", "a timestamp or an interval", _time_or_age)
AGE = Value("INTERVAL", "an interval such as '7 days'", _age)
SNAPSHOT_OR_TIME = Value("BIGINT | TIMESTAMPTZ", "the id of a snapshot or a timestamp", _snapshot_or_time)
ANY = Value("ANY", "a value", lambda given: given)
