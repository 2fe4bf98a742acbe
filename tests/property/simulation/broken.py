"""Ways to clean that lose something, each of which the simulator has to notice. On SQLite, but for locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from forklake.fork import create
from forklake.store.backend import Database
from forklake.store.libpq import PreparedQuery
from forklake.store.postgres import PostgresDatabase
from forklake.store.sqlite import SqliteDatabase
from forklake.store.statements import statements
from tests.property.simulation.world import Prepare

_PATHS = "IN (SELECT value FROM json_each($paths))"
_SCHEDULE = """INSERT INTO ducklake_files_scheduled_for_deletion
    (catalog_id, data_file_id, path, path_is_relative, schedule_start, reason)
    SELECT min(catalog_id), min(data_file_id), path, path_is_relative, $now, 'broken' FROM {} WHERE {}
    AND path <> '' AND path NOT IN (SELECT path FROM ducklake_files_scheduled_for_deletion)
    GROUP BY path, path_is_relative"""
_NOTHING_NAMED = "SELECT path FROM ducklake_data_file WHERE false"


def _with(**changed: str) -> Prepare:
    """Other texts of some statements."""

    def prepare(database: Database) -> None:
        assert isinstance(database, SqliteDatabase)
        database.statements = {**statements("sqlite"), **changed}

    return prepare


def _edited(name: str, old: str, new: str) -> Mapping[str, str]:
    text = statements("sqlite")[name]
    assert old in text, f"{name} has changed: see that this variant is broken as before"
    return {name: text.replace(old, new)}


def _without(name: str, table: str) -> Mapping[str, str]:
    """A statement of several SELECTs, without that from one table."""
    parts = statements("sqlite")[name].split("UNION")
    left = [part for part in parts if table not in part]
    assert len(left) == len(parts) - 1, f"{name} has changed: see that this variant is broken as before"
    return {name: "UNION".join(left)}


def _own_files(table: str) -> str:
    return (
        f"SELECT f.path FROM {table} f JOIN ducklake_catalog_head h ON h.catalog_id = f.catalog_id "
        f"WHERE f.path {_PATHS} AND substr(f.path, 1, length(h.data_path)) = h.data_path"
    )


def without_locks(*names: str) -> Prepare:
    """On PostgreSQL: some statements that take locks take none."""

    def prepare(database: Database) -> None:
        assert isinstance(database, PostgresDatabase)
        nothing = PreparedQuery("SELECT 1", database.metadata_schema)
        database.statements = {**database.statements, **dict.fromkeys(names, nothing)}

    return prepare


VARIANTS: dict[str, Prepare] = {
    # Live data files only: no delete files, no history, no masks.
    "live data files only": _with(
        schedule_data_files=_SCHEDULE.format("ducklake_data_file", "end_snapshot IS NOT NULL"),
        schedule_delete_files=_SCHEDULE.format("ducklake_delete_file", "true"),
        drop_rows_of_data_file="DELETE FROM ducklake_data_file WHERE end_snapshot IS NOT NULL",
        named_files=f"SELECT path FROM ducklake_data_file WHERE end_snapshot IS NULL AND path {_PATHS}",
    ),
    "delete files ignored": _with(
        named_files=f"SELECT path FROM ducklake_data_file WHERE path {_PATHS}",
        schedule_delete_files=_SCHEDULE.format("ducklake_delete_file", "true"),
    ),
    # What came out of reach goes at once, whoever is reading and whoever else names it.
    "one phase": _with(
        **_edited("due_files", "schedule_start <= $before AND ", ""), named_files=_NOTHING_NAMED
    ),
    "reservations ignored": _with(
        open_commit_uuids="SELECT commit_uuid FROM ducklake_snapshot_reservation WHERE false"
    ),
    "adopted files ignored": _with(
        named_files=f"{_own_files('ducklake_data_file')} UNION {_own_files('ducklake_delete_file')}"
    ),
    "files of indexes ignored": _with(
        **_without("named_files", "ducklake_index_file"), **_without("known_files", "ducklake_index_file")
    ),
    "the parent's oldest snapshot for its forks": _with(
        **_edited(
            "note_inherited_reach",
            "JOIN ducklake_catalog_head h ON h.catalog_id = l.catalog_id",
            "JOIN ducklake_catalog_head h ON h.catalog_id = l.source_catalog_id",
        )
    ),
    "history ignored": _with(
        **_edited(
            "note_own_reach",
            "COALESCE(h.oldest_snapshot, 0), l.max_snapshot",
            "h.snapshot_id, l.max_snapshot",
        )
    ),
    "masks ignored": _with(
        drop_masks_of_data_file="DELETE FROM ducklake_inherited_end WHERE entity = 'data_file'"
    ),
    "what merges compare with ignored": _with(note_merged_reach="DELETE FROM ducklake_reach WHERE false"),
    "what commits did is forgotten with their snapshots": _with(
        **_edited(
            "history_bounds",
            "ELSE COALESCE(l.copied_snapshot, l.max_snapshot) END) AS low",
            "ELSE h.oldest_snapshot END) AS low",
        )
    ),
    "no lock against forks": lambda _: None,
}


@contextmanager
def broken(name: str) -> Iterator[Prepare]:
    """One of the variants: how its databases are prepared, and what is patched meanwhile."""
    patched: Callable[..., Any] | None = None
    if name == "no lock against forks":
        # What the lock is for: what is looked up before the transaction may be expired in it.
        patched = _look_at_nothing
    with patch.object(create, "check_retained", patched or create.check_retained):
        yield VARIANTS[name]


def _look_at_nothing(*_: object) -> None:
    """Whoever forks has looked before, when nobody had expired the snapshot."""


class Programs(NamedTuple):
    """Programs that keep to some verbs: one of them fails."""

    seeds: Sequence[int]
    focus: str
    share: float = 0.9
    """Of rounds in which several clients are at work."""


CAUGHT: dict[str, Programs] = {
    "live data files only": Programs(range(3), "all"),
    "delete files ignored": Programs(range(10), "all"),
    "history ignored": Programs(range(10), "merges"),
    "masks ignored": Programs(range(10), "merges"),
    "one phase": Programs(range(10), "merges"),
    "reservations ignored": Programs(range(40), "distributed"),
    "adopted files ignored": Programs((29,), "merges", share=0.0),
    "files of indexes ignored": Programs(range(10), "indexes"),
    "the parent's oldest snapshot for its forks": Programs(range(40), "forks"),
    "what merges compare with ignored": Programs((29, 39), "relatives", share=0.0),
    "what commits did is forgotten with their snapshots": Programs((21,), "relatives", share=0.0),
    "no lock against forks": Programs(range(60), "races"),
}
