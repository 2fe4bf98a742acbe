"""What functions of a session may name beside its catalog: files, and catalogs of its family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forklake.errors import CatalogNotFound, InvalidSql
from forklake.model.entities import CatalogInfo
from forklake.store.lineages import shared_histories

if TYPE_CHECKING:
    from forklake.sql.statement import Running


@dataclass(frozen=True, slots=True)
class SessionReach:
    """A session of a catalog reaches its own forks, and one of a lake all catalogs."""

    running: Running

    def check_file(self, path: str, what: str) -> None:
        """Refuse a file that nobody allowed."""
        self.running.access.check_read(path, what)

    def check_folder(self, path: str, what: str) -> None:
        """Refuse a folder to write to that nobody allowed."""
        self.running.access.check_written(path, what)

    def check_fork(self, name: str) -> None:
        """Refuse all but the catalog itself and forks of it."""
        self._check(name, is_parent_allowed=False)

    def check_relative(self, name: str) -> None:
        """Refuse all but the catalog itself, forks of it, and those that it was forked from."""
        self._check(name, is_parent_allowed=True)

    def sees(self, listed: list[CatalogInfo]) -> list[CatalogInfo]:
        """Of a listing, the catalogs that may be named."""
        session = self.running.session
        if session.is_of_lake or session.handle is None:
            return listed
        own = session.handle.id
        histories = shared_histories(self.running.context.database, [own, *(one.id for one in listed)])
        above = histories.get(own, {})
        return [one for one in listed if one.id in above or own in histories.get(one.id, {})]

    def _check(self, name: str, *, is_parent_allowed: bool) -> None:
        session = self.running.session
        own = session.handle
        if session.is_of_lake or own is None or session.is_catalog(name):
            return
        try:
            other = session.lake.catalog(name).id
        except CatalogNotFound:
            # Whoever asked says so, or takes it as a name that is free.
            return
        histories = shared_histories(self.running.context.database, [own.id, other])
        is_fork = own.id in histories.get(other, {})
        if not is_fork and not (is_parent_allowed and other in histories.get(own.id, {})):
            raise InvalidSql(
                f'"{name}" is no fork of "{own.name}", which this is run in: lake.sql() reaches all catalogs'
            )
