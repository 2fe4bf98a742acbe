"""Rows that nobody can reach, and files that are scheduled for deletion."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from forklake.model.ids import CatalogId
from forklake.store.backend import Database, Session
from forklake.store.entity_rows import STORED
from forklake.store.reach_conditions import PARTS, VERSIONED

_SPANS_AT_ONCE = 10_000


class Scheduled(NamedTuple):
    """A file that is scheduled for deletion."""

    catalog: CatalogId
    path: str
    path_is_relative: bool
    reason: str


def note_reach(session: Session) -> None:
    """Work out which rows of which catalogs somebody can reach. Nobody forks or expires meanwhile."""
    session.execute("clear_reach")
    for statement in ("note_candidates", "note_own_reach", "note_inherited_reach", "note_merged_reach"):
        session.execute(statement)


def clear_reach(session: Session) -> None:
    """Forget it."""
    session.execute("clear_reach")


def count_out_of_reach(session: Session) -> tuple[int, int]:
    """How many files are named by rows that nobody can reach, and their bytes."""
    ((files, size),) = session.rows("count_scheduled")
    return files, int(size)


def schedule_files(session: Session, now: datetime) -> None:
    """Schedule the files of rows that nobody can reach, and remove these rows with their parts."""
    session.execute("schedule_data_files", now=now)
    session.execute("schedule_delete_files", now=now)
    for table, (entity, _) in PARTS.items():
        if entity == "data_file":
            session.execute(f"drop_{table}")
    for entity in ("data_file", "delete_file"):
        session.execute(f"drop_rows_of_{entity}")
    session.execute("drop_inlined_deletes")


def drop_definitions(session: Session) -> None:
    """Remove definitions that nobody can reach."""
    for table, (entity, _) in PARTS.items():
        if entity != "data_file":
            session.execute(f"drop_{table}")
    for entity in VERSIONED:
        session.execute(f"drop_rows_of_{entity}")
    for statement in (
        "drop_columns",
        "drop_schema_versions",
        "drop_table_stats",
        "drop_table_column_stats",
        "drop_column_mappings",
        "drop_name_mappings",
    ):
        session.execute(statement)
    for entity in STORED:
        session.execute(f"drop_masks_of_{entity}")


def drop_history(session: Session) -> None:
    """Remove what commits did that nobody can read or merge, and what is left of forgotten catalogs."""
    bounds = [(catalog, 0, low) for catalog, low in session.rows("history_bounds")]
    for start in range(0, len(bounds), _SPANS_AT_ONCE):
        session.execute("drop_old_changes", spans=json.dumps(bounds[start : start + _SPANS_AT_ONCE]))
    for statement in (
        "drop_merges",
        "drop_unseen_changes",
        "drop_commits_once",
        "drop_expired_snapshots",
        "drop_reservations",
        "drop_heads",
        "drop_lineages",
        "drop_names",
        "drop_snapshots",
    ):
        session.execute(statement)


def due_files(reader: Database | Session, before: datetime, after: str, most: int) -> list[Scheduled]:
    """Files that were scheduled up to a time, by path."""
    return [
        Scheduled(CatalogId(catalog), path, bool(relative), reason or "")
        for catalog, path, relative, reason in reader.rows("due_files", before=before, after=after, most=most)
    ]


def named_files(reader: Database | Session, paths: Iterable[str]) -> set[str]:
    """Those of some paths that any row of any catalog names."""
    return {path for (path,) in reader.rows("named_files", paths=json.dumps(sorted(set(paths))))}


def known_files(reader: Database | Session, paths: Iterable[str]) -> set[str]:
    """Those of some paths that any row of any catalog names, or that are scheduled for deletion."""
    return {path for (path,) in reader.rows("known_files", paths=json.dumps(sorted(set(paths))))}


def claimed_files(reader: Database | Session, paths: Iterable[str]) -> set[str]:
    """Those of some paths that are being removed."""
    return {path for (path,) in reader.rows("claimed_files", paths=json.dumps(sorted(set(paths))))}


def open_commit_uuids(reader: Database | Session) -> list[str]:
    """What is in the paths of files that distributed snapshots may still commit."""
    return [str(uuid).replace("-", "") for (uuid,) in reader.rows("open_commit_uuids")]


def claim_files(session: Session, paths: Sequence[str], now: datetime) -> None:
    """Say that files are being removed: from now on nobody may refer to them."""
    session.execute("claim_files", paths=json.dumps(paths), now=now)


def unschedule_files(session: Session, paths: Sequence[str]) -> None:
    """Forget files that are gone, or that have to stay."""
    session.execute("unschedule_files", paths=json.dumps(paths))
