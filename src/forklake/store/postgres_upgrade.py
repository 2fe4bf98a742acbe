"""The transaction of an upgrade on PostgreSQL: everybody else waits until it ends."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql

from forklake.store.backend import OpenTransaction, Row
from forklake.store.postgres import Connection, translated
from forklake.store.upgrades.script import named

_PATIENCE = "60s"
"""So long it waits for a table that somebody else has locked; all others queue behind it meanwhile."""


class PostgresUpgrade(OpenTransaction):
    """A transaction that has locked every table of the lake. Statements are run as the owner of the lake."""

    def __init__(self, connection: Connection, url: str, metadata_schema: str) -> None:
        """Wait for whoever reads or writes now."""
        self._connection = connection
        self._url = url
        self._open = True
        # What was committed while we waited for the locks must be seen.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        opening = [
            sql.SQL("SET LOCAL search_path TO {}")
            .format(sql.Identifier(metadata_schema))
            .as_string(connection),
            f"SET LOCAL lock_timeout = '{_PATIENCE}'",
        ]
        self.opening: Sequence[str] = ("BEGIN", *opening)
        try:
            for text in opening:
                self.run_script(text)
            self._begin()
        except BaseException:
            self.rollback()
            raise

    def _begin(self) -> None:
        catalog = named("catalog.postgresql")
        # What is made anew belongs to the owner of the rest, whoever runs this.
        found = [f"SET LOCAL ROLE {name}" for (name,) in self.query(catalog["owner"])]
        tables = ", ".join(name for (name,) in self.query(catalog["tables"]))
        found.append(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
        for text in found:
            self.run_script(text)
        self.opening = (*self.opening, *found)

    def query(self, text: str) -> list[Row]:
        """Run a query, given as text."""
        self._check_open()
        with translated(self._url):
            return self._connection.execute(text.encode()).fetchall()

    def run_script(self, script: str) -> None:
        """Run statements, given as text."""
        self._check_open()
        with translated(self._url):
            self._connection.execute(script.encode())

    def commit(self) -> None:
        """Make everything durable."""
        self._check_open()
        with translated(self._url):
            self._connection.commit()
        self.rollback()

    def rollback(self) -> None:
        """Undo everything; nothing happens if the transaction has ended."""
        if self._open:
            self._open = False
            # Whatever was not committed ends with the connection.
            self._connection.close()
