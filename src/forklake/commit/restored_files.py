"""Files of the past that count again: rows about them are copied inside the database, under other ids.

A catalog never has a file id twice, so a file comes back as another one with the same path. Its delete file
does too: that names the data file by its path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from forklake.model.snapshots import Head
from forklake.model.table.files import ColumnStats
from forklake.store.backend import Session
from forklake.store.built_statements import RETURNED


@dataclass(frozen=True, slots=True)
class Copy:
    """A row about a file that is stored again."""

    key: Literal["data_file_id", "delete_file_id"]
    past: int
    now: int
    data_file: int
    """The id that the data file has now."""


def write_returned(
    session: Session,
    head: Head,
    copies: Sequence[Copy],
    tables: Iterable[tuple[int, Sequence[int], Sequence[ColumnStats]]],
) -> None:
    """Store copies. `tables` are given with their new files, and what holds if these lack columns.

    The number of statements is that of the kinds of rows, whatever the number of files.
    """
    if not copies:
        return
    for table, key in RETURNED.items():
        listed = [(copy.past, copy.now, copy.data_file) for copy in copies if copy.key == key]
        if listed:
            session.execute(
                f"return_{table}",
                catalog=head.catalog_id,
                files=json.dumps(listed),
                snapshot=head.snapshot_id,
            )
    for _, files, defaults in tables:
        if files:
            write_defaults(session, head, files, defaults)


def write_defaults(
    session: Session, head: Head, files: Sequence[int], defaults: Iterable[ColumnStats]
) -> None:
    """Files may lack a column that is older here than they are: an index of keys has to find them too."""
    for default in defaults:
        session.execute(
            "adopt_default",
            catalog=head.catalog_id,
            files=json.dumps(files),
            column=default.column_id,
            low=default.min_value,
            high=default.max_value,
            low_key=default.min_key,
            high_key=default.max_key,
            nan=default.contains_nan,
        )
