"""Waiting for commits in flight on PostgreSQL, so that what was read of the lake at one point in time stays.

Catalogs commit beside each other, so the snapshot 7 of one may stand while 6, of another, is being written.
Every commit says by an advisory lock which number it has at least, before it draws its own; the locks go with
the transactions, also when a client dies. Whoever reads the lake at 7 waits for those that may be below.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from forklake.errors import StoreBusy
from forklake.model.ids import SnapshotId
from forklake.store.backend import Database, as_time
from forklake.store.pool import WAIT_SECONDS

_SHORTEST, _LONGEST = 0.001, 0.05


class CommitsInFlight:
    """The commits of one lake that have a number and are not there yet."""

    def __init__(self, database: Database) -> None:
        """Look at nothing yet."""
        self._database = database
        self._complete = SnapshotId(-1)
        """No commit will come to stand up to this snapshot any more."""
        self._complete_time = datetime.min.replace(tzinfo=UTC)

    def wait_for_commits(self, at: SnapshotId | datetime) -> None:
        """Wait until no commit can come to stand at or before a snapshot that is there, or a time."""
        if not isinstance(at, datetime):
            if at > self._complete:
                self._wait_below(at)
                self._complete = max(self._complete, at)
        elif at > self._complete_time:
            # Whoever announces a commit later gets a later time as well.
            ((now, above),) = self._database.rows("last_announced")
            if above is not None:
                self._wait_below(SnapshotId(above))
            self._complete_time = max(self._complete_time, as_time(now))

    def _wait_below(self, snapshot: SnapshotId) -> None:
        deadline, pause = time.monotonic() + WAIT_SECONDS, _SHORTEST
        while found := self._database.rows("open_commits", before=snapshot):
            if time.monotonic() > deadline:
                shown = ", ".join(str(pid) for (pid,) in found[:5])
                raise StoreBusy(
                    f"commits to {self._database.url} have been in flight for {WAIT_SECONDS:.0f} seconds, "
                    f"and what is asked for depends on them (server processes {shown}): try again or end them"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
