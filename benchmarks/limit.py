"""The physical limit: the rows that our commits write, as plain INSERT transactions without reads or logic.

Which rows those are is not written down here: two commits of ours are read back from the server, and every
table they wrote to is made anew with the same columns, keys and indexes. The head of a catalog, which ours
updates, becomes a row of its own each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice, repeat
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import psycopg
from psycopg import pq, sql
from psycopg.types.numeric import Int8Dumper

from benchmarks.contenders import make_forklake
from benchmarks.harness import Change, Writer

Sending = Literal["libpq", "pipeline", "statements"]
"""All in one packet; psycopg's pipeline mode; or waiting for the answer to each statement."""
Fresh = Mapping[str, Any]
Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Written:
    """Rows that one commit put into one table."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def statement(self, placeholders: Iterator[str]) -> str:
        """One INSERT of them all."""
        rows = (", ".join(islice(placeholders, len(self.columns))) for _ in self.rows)
        return f"INSERT INTO {self.table} ({', '.join(self.columns)}) VALUES ({'), ('.join(rows)})"

    def values(self) -> list[tuple[str, Any]]:
        """Every value after the other, with the name of what replaces it where it must be new."""
        head = self.table == "ducklake_catalog_head"
        return [
            ("snapshot_id" if head and column == "catalog_id" else column, value)
            for row in self.rows
            for column, value in zip(self.columns, row, strict=True)
        ]


Commit = tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Inserts:
    """A writer of plain transactions with prepared statements, on one connection."""

    server: str
    schema: str
    place: int
    sending: Sending
    commits: tuple[Commit, Commit]

    @contextmanager
    def open(self) -> Iterator[Change]:
        """Connect and prepare."""
        with psycopg.connect(self.server, options=f"-c search_path={self.schema}") as connection:
            connection.autocommit = self.sending != "statements"
            match self.sending:
                case "libpq":
                    yield self._numbered(_libpq(connection, self.commits))
                case "pipeline":
                    execute = _psycopg(connection, self.commits)
                    with connection.pipeline() as pipeline:
                        # What stands between two syncs is one transaction: no BEGIN, no COMMIT, one answer.
                        yield self._numbered(lambda turn, fresh: (execute(turn, fresh), pipeline.sync()))
                case "statements":
                    execute = _psycopg(connection, self.commits)
                    yield self._numbered(lambda turn, fresh: (execute(turn, fresh), connection.commit()))

    def _numbered(self, commit: Callable[[int, Fresh], object]) -> Change:
        turns = count(1)

        def change() -> None:
            turn = next(turns)
            # Numbers rise over all writers, as those of a sequence do.
            number = turn * 64 + self.place
            fresh = {
                "snapshot_id": number,
                "begin_snapshot": number,
                "table_id": number,
                "catalog_id": self.place,
                "table_name": f"measured_{number:06}",
                "table_uuid": uuid4(),
                "snapshot_time": datetime.now(UTC),
            }
            commit((turn - 1) % 2, fresh)

        return change


def _psycopg(connection: Connection, commits: Sequence[Commit]) -> Callable[[int, Fresh], None]:
    # One width for all numbers keeps one prepared statement for each text.
    connection.adapters.register_dumper(int, Int8Dumper)
    kinds = [[(part.statement(repeat("%s")), part.values()) for part in commit] for commit in commits]

    def execute(turn: int, fresh: Fresh) -> None:
        for text, values in kinds[turn]:
            connection.execute(text, [fresh.get(name, value) for name, value in values], prepare=True)  # pyright: ignore

    return execute


def _libpq(connection: Connection, commits: Sequence[Commit]) -> Callable[[int, Fresh], None]:
    """Below psycopg's connections, which send every statement in a packet of its own."""
    server = connection.pgconn
    kinds: list[list[tuple[bytes, list[tuple[str, bytes | None]]]]] = [[], []]
    for turn, commit in enumerate(commits):
        for part in commit:
            name = f"{turn}_{part.table}".encode()
            text = part.statement(f"${number}" for number in count(1))
            _checked(server.prepare(name, text.encode()))
            kinds[turn].append((name, [(column, _text(value)) for column, value in part.values()]))
    server.enter_pipeline_mode()

    def send(turn: int, fresh: Fresh) -> None:
        texts = {name: _text(value) for name, value in fresh.items()}
        for name, values in kinds[turn]:
            server.send_query_prepared(name, [texts.get(column, value) for column, value in values])
        server.pipeline_sync()
        while True:
            answer = server.get_result()
            if answer is not None:
                if answer.status == pq.ExecStatus.PIPELINE_SYNC:
                    return
                _checked(answer)

    return send


def _checked(answer: pq.abc.PGresult) -> None:
    if answer.status != pq.ExecStatus.COMMAND_OK:
        raise psycopg.DatabaseError(answer.error_message.decode())


def _text(value: Any) -> bytes | None:
    return None if value is None else str(value).encode()


def make_inserts(server: str, schema: str, folder: Path, writers: int, *, sending: Sending) -> list[Writer]:
    """Empty tables like those of a lake, and the rows to put into them."""
    model = f"{schema}_model"
    commits = _observed(server, model, folder)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        for table in sorted({part.table for commit in commits for part in commit}):
            like = sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)")
            connection.execute(like.format(sql.Identifier(schema, table), sql.Identifier(model, table)))
    return [Inserts(server, schema, place, sending, commits) for place in range(writers)]


def _observed(server: str, schema: str, folder: Path) -> tuple[Commit, Commit]:
    """Commit twice and read back what each database transaction wrote, whichever tables those were."""
    (writer,) = make_forklake(server, schema, folder, 1)
    newest = sql.SQL("SELECT xmin::text FROM {} ORDER BY snapshot_id DESC LIMIT 1").format(
        sql.Identifier(schema, "ducklake_snapshot")
    )
    seen: list[Commit] = []
    with writer.open() as change, psycopg.connect(server, autocommit=True) as connection:
        for _ in range(2):
            change()
            (transaction,) = connection.execute(newest).fetchone() or ("",)
            seen.append(tuple(_written_by(connection, schema, transaction)))
    return seen[0], seen[1]


def _written_by(connection: Connection, schema: str, transaction: str) -> Iterator[Written]:
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1", [schema])
    for (table,) in tables.fetchall():
        query = sql.SQL("SELECT * FROM {} WHERE xmin::text = %s").format(sql.Identifier(schema, table))
        found = connection.execute(query, [transaction])
        rows = tuple(found.fetchall())
        if rows:
            yield Written(table, tuple(column.name for column in found.description or ()), rows)
