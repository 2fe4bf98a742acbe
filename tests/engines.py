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
    spare: list[duckdb.DuckDBPyConnection] = []
    owner = os.getpid()
    open_new, close = Engine._open, Engine.close

    def may_share(engine: Engine) -> bool:
        # In a forked child, the threads of the parent's are gone.
        return engine.storage.is_local and engine._threads is None and os.getpid() == owner

    def take(engine: Engine) -> duckdb.DuckDBPyConnection:
        if may_share(engine):
            with engine._opening:
                if engine._database is None and spare:
                    engine._database = spare.pop()
        return open_new(engine)

    def leave(engine: Engine) -> None:
        if may_share(engine):
            with engine._opening:
                database, engine._database = engine._database, None
            if database is not None:
                if _as_new(database) and len(spare) < 4:
                    spare.append(database)
                else:
                    database.close()
        close(engine)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "_open", take)
        patch.setattr(Engine, "close", leave)
        yield
    for database in spare:
        database.close()


def _as_new(database: duckdb.DuckDBPyConnection) -> bool:
    try:
        database.execute("RESET GLOBAL threads")
    except duckdb.Error:
        # A test broke it, or closed it.
        return False
    return True
