"""An open lake: its metadata database, storage, engine and settings."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from forklake.commit.table_statistics import StatisticsCache
from forklake.data.storage.storage import Storage
from forklake.engine.local import Engine
from forklake.engine.query.workbench import Workbenches
from forklake.errors import StorageError
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import is_absolute
from forklake.model.options import Options, option_text, parse_option
from forklake.store.backend import Database
from forklake.store.cache import StateCache
from forklake.store.settings import set_setting, settings


class LakeContext:
    """What all handles of one open lake share."""

    def __init__(self, database: Database, storage: Storage) -> None:
        """Read nothing yet."""
        self.database = database
        self.states = StateCache(database)
        self.storage = storage
        self.engine = Engine(storage)
        self.workbenches = Workbenches(storage)
        self.statistics = StatisticsCache()
        self.committed: dict[CatalogId, SnapshotId] = {}
        """The last snapshot of each catalog that was committed through this lake."""
        self._options: Options | None = None

    @property
    def options(self) -> Options:
        """The settings of the lake, as they were when they were first needed."""
        if self._options is None:
            self._options = Options().with_settings(settings(self.database))
        return self._options

    def set_option(self, name: str, value: object) -> None:
        """Change a setting of the lake, for tables that have none of their own."""
        parsed = parse_option(name, value)
        with self.database.transaction() as session:
            set_setting(session, name, option_text(parsed))
            session.commit()
        self.forget_options()

    def forget_options(self) -> None:
        """Read the settings of the lake again when they are next needed: others may have changed them."""
        self._options = None

    def discard(self, paths: Iterable[str]) -> None:
        """Remove files that nothing will ever refer to; those that cannot be removed are orphans."""
        files = list(paths)
        for relative in (True, False):
            # The error that led here says more than one of cleaning up.
            with suppress(StorageError):
                self.storage.delete([path for path in files if relative != is_absolute(path)], relative)

    def close(self) -> None:
        """Let go of the engine, and give back every connection."""
        self.workbenches.close()
        self.engine.close()
        self.database.close()
