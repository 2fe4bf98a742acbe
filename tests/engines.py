"""DuckDBs of local engines, handed from one lake of a test process to the next: opening one takes 15 ms."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pytest

from forklake.engine.local import Engine


@contextmanager
def shared() -> Iterator[None]:
    """Let an engine that closes leave its DuckDB to the next one that opens.

    Those of buckets keep their own, for it has credentials, and so do those that are told their threads.
    """
    spare: dict[bool, list[duckdb.DuckDBPyConnection]] = {False: [], True: []}
    owner = os.getpid()
    open_new, close = Engine._open, Engine.close

    def may_share(engine: Engine) -> bool:
        # In a forked child, the threads of the parent's are gone.
        return engine.storage.is_local and engine._threads is None and os.getpid() == owner

    def take(engine: Engine, *, few: bool = False) -> duckdb.DuckDBPyConnection:
        if may_share(engine):
            with engine._opening:
                if few not in engine._databases and spare[few]:
                    engine._databases[few] = spare[few].pop()
        return open_new(engine, few=few)

    def leave(engine: Engine) -> None:
        if may_share(engine):
            with engine._opening:
                databases, engine._databases = engine._databases, {}
            for few, database in databases.items():
                if _as_new(database, few) and len(spare[few]) < 4:
                    spare[few].append(database)
                else:
                    database.close()
        close(engine)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "_open", take)
        patch.setattr(Engine, "close", leave)
        yield
    for database in (*spare[False], *spare[True]):
        database.close()


def _as_new(database: duckdb.DuckDBPyConnection, few: bool) -> bool:
    try:
        database.execute("SET GLOBAL threads = 1" if few else "RESET GLOBAL threads")
    except duckdb.Error:
        # A test broke it, or closed it.
        return False
    return True
