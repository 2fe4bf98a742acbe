"""Points in time that are travelled to: what a caller gives, as a snapshot id or a time in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from forklake.errors import InvalidArgument

AsOf = int | datetime | str
"""A point in time to travel to: the id of a snapshot, a datetime, or a date or time as ISO 8601 writes it."""


def parse_as_of(at: object) -> int | datetime:
    """A snapshot id or a time; what is neither is refused. A time without a zone is local, also in text."""
    match at:
        case int() if not isinstance(at, bool):
            return at
        case datetime():
            return at
        case str():
            return _parse_timestamp(at)
        case date():
            return datetime.combine(at, time())
        case _:
            raise InvalidArgument(
                f"a point in time is a snapshot id, a datetime or ISO text, not {type(at).__name__}"
            )


def _parse_timestamp(text: str) -> datetime:
    if text.strip().isdecimal() and len(text.strip()) != len("20240131"):
        raise InvalidArgument(f"{text!r} is a string: give the id of a snapshot as a number, {text.strip()}")
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidArgument(
            f"{text[:80]!r} is no time: write 2024-01-31 or 2024-01-31T12:00:00+00:00, or give a snapshot id"
        ) from None


def to_utc(timestamp: datetime) -> datetime:
    """A time without a zone is meant as local time, as everywhere in Python."""
    try:
        return timestamp.astimezone(UTC)
    except (ValueError, OverflowError):
        # At the very ends of the calendar there is no other zone.
        return timestamp.replace(tzinfo=UTC)
