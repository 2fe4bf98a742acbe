"""Running a write until it stands or fails for a reason of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from forklake.errors import ForklakeError
from forklake.model.ids import SnapshotId
from forklake.store.backend import PAUSES, Database, Interrupted, Session
from forklake.store.snapshots import snapshot_exists

T = TypeVar("T")


Stands = Callable[[Database | Session, SnapshotId], bool]
"""Whether a commit that was in doubt has gone through."""


def commit_once(
    database: Database,
    write: Callable[[Session], tuple[SnapshotId, T]],
    *,
    stands: Stands = snapshot_exists,
) -> T:
    """Write one snapshot and commit it, again if the database gave up, and never twice.

    `write` first takes the lock that orders its commit. A connection that breaks during COMMIT leaves in
    doubt whether it went through; the next attempt waits for that lock, so by then the doubtful snapshot is
    there or never will be.
    """
    doubtful: tuple[SnapshotId, T] | None = None
    for pause in (*PAUSES, None):
        try:
            with database.transaction() as session:
                written = write(session)
                # A number that could be used again shows that the doubtful attempt left nothing.
                again = doubtful is not None and doubtful[0] == written[0]
                if doubtful is not None and not again and stands(session, doubtful[0]):
                    return doubtful[1]
                doubtful = written
                session.commit()
                return written[1]
        except Interrupted:
            if pause is not None:
                time.sleep(pause)
            elif doubtful is not None and stands(database, doubtful[0]):
                return doubtful[1]
            else:
                raise
        except ForklakeError:
            # What stands in the way may be our own commit.
            if doubtful is not None and stands(database, doubtful[0]):
                return doubtful[1]
            raise
    raise AssertionError("the last attempt returns or raises")
