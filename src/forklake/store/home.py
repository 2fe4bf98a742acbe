"""Where the metadata of a lake are at home, so that a copy of them is told from the original.

A copied database still names the data path of the original, and must not write there. So a lake remembers
its place by name and by identity, and one that is found where neither fits is only read until somebody says
whether it moved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from forklake.errors import ReadOnlyStore
from forklake.model.ids import SnapshotId
from forklake.store.backend import Database, Home, Row, SchemaSession, Session
from forklake.store.settings import add_setting, remove_setting, setting
from forklake.store.statements import Dialect

_KEY = "home"


def home_of_file(path: Path) -> Home:
    """The home of an embedded database: the path of its file, and which file of the disk that is."""
    real = path.resolve()
    found = real.stat()
    return Home(str(real), f"{found.st_dev}:{found.st_ino}")


def remember_home(session: Session, home: Home | None) -> None:
    """Note that the lake is at home where it is now."""
    remove_setting(session, _KEY)
    if home is not None:
        add_setting(session, _KEY, json.dumps([home.name, home.identity]))


def former_home(database: Database) -> str | None:
    """Where the lake was at home, if that is neither this place nor this database under another name."""
    found = setting(database, _KEY)
    here = None if found is None else database.home()
    if found is None or here is None:
        return None
    name, identity = json.loads(found)
    return None if here.name == name or here.identity == identity else name


@dataclass(frozen=True, slots=True)
class ReadOnlyDatabase:
    """A database that may be read, and refuses all else with a reason."""

    _database: Database
    _reason: str

    @property
    def dialect(self) -> Dialect:
        """Which SQL it speaks."""
        return self._database.dialect

    @property
    def url(self) -> str:
        """Its URL, without a password."""
        return self._database.url

    def home(self) -> Home | None:
        """Where it is."""
        return self._database.home()

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run one query outside any transaction."""
        return self._database.rows(statement, **params)

    def check_writable(self) -> NoReturn:
        """Refuse."""
        raise ReadOnlyStore(self._reason)

    def transaction(self) -> Session:
        """Refuse."""
        self.check_writable()

    def now(self) -> datetime:
        """The time on the database's clock."""
        return self._database.now()

    def wait_for_commits(self, at: SnapshotId | datetime) -> None:
        """Wait for commits in flight."""
        self._database.wait_for_commits(at)

    def exists(self) -> bool:
        """Whether there is a lake."""
        return self._database.exists()

    def create_schema(self, settings: Mapping[str, str]) -> None:
        """Refuse."""
        self.check_writable()

    def begin_upgrade(self) -> SchemaSession:
        """Refuse."""
        self.check_writable()

    def close(self) -> None:
        """Give back every connection."""
        self._database.close()
