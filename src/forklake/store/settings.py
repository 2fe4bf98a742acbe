"""Settings of the whole lake, as text by name."""

from __future__ import annotations

from forklake.store.backend import Database, Session
from forklake.store.row_sets import SETTINGS


def settings(reader: Database | Session) -> dict[str, str]:
    """Every setting."""
    return dict(reader.rows("settings"))


def setting(reader: Database | Session, key: str) -> str | None:
    """One setting; None if nobody has set it."""
    found = reader.rows("setting", key=key)
    return found[0][0] if found else None


def add_setting(session: Session, key: str, value: str) -> None:
    """Set what was not set; a key that is taken raises `UniqueViolation`."""
    session.insert(SETTINGS, [(key, value)])


def set_setting(session: Session, key: str, value: str) -> None:
    """Set what may be set already."""
    remove_setting(session, key)
    add_setting(session, key, value)


def remove_setting(session: Session, key: str) -> None:
    """Let nothing be set."""
    session.execute("remove_setting", key=key)
