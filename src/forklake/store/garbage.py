"""Rows that nobody can reach, and files that are scheduled for deletion."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from forklake.model.ids import CatalogId
from forklake.model.names import is_absolute
from forklake.store.backend import Database, Session
from forklake.store.entity_rows import STORED
from forklake.store.lineages import hold_lineages
from forklake.store.reach_conditions import FILES, PARTS, VERSIONED
from forklake.store.row_sets import ABANDONED_FILES

_SPANS_AT_ONCE = 10_000


class Scheduled(NamedTuple):
    """A file that is scheduled for deletion."""

    catalog: CatalogId
    path: str
    path_is_relative: bool
    reason: str


class DeadFile(NamedTuple):
    """A row of a file that nobody can reach."""

    catalog: CatalogId
    id: int
    path: str
    bytes: int


ABANDONED = "reservation abandoned"
"""Why a file is scheduled that no row ever named."""
FileKind = Literal["data_file", "delete_file", "index_file"]
DeadKind = Literal["data_file", "delete_file", "useless_delete_file", "index_file"]
DEAD_KINDS: tuple[DeadKind, ...] = ("data_file", "delete_file", "useless_delete_file", "index_file")
"""In the order in which they are found: a delete file is of use as long as its data file is there."""
FIRST = DeadFile(CatalogId(-1), -1, "", 0)
"""Before every other."""


def begin_cleaning(database: Database) -> Session:
    """Begin a transaction that cleans: one at a time, in the whole lake."""
    session = database.transaction()
    try:
        session.execute("begin_cleaning")
    except BaseException:
        # Nobody else has it to end it.
        session.rollback()
        raise
    return session


def stop_collection(session: Session) -> None:
    """Let a collection that is under way find nothing more: what it has noted may not hold any longer.

    Lineages are held: whoever collects waits for that before it takes the place of what was noted.
    """
    session.execute("clear_reach")


def note_reach(session: Session, collection: int) -> None:
    """Work out which rows of which catalogs somebody can reach, for a collection with a number below zero.

    Meanwhile nobody forks or expires. Which catalogs are to be looked at is found out before.
    """
    session.execute("note_collection", collection=collection)
    session.execute("note_candidates", collection=collection)
    hold_lineages(session)
    session.execute("clear_earlier_reach", collection=collection)
    for statement in (
        "note_own_reach",
        "note_inherited_reach",
        "note_merged_reach",
        "note_adopted_reach",
        "note_copied_reach",
    ):
        session.execute(statement)


def end_collection(session: Session, collection: int) -> None:
    """Forget what is in reach, unless a later collection needs it."""
    session.execute("end_collection", collection=collection)


def count_out_of_reach(session: Session) -> tuple[int, int]:
    """How many files are named by rows that nobody can reach, and their bytes."""
    ((files, size),) = session.rows("count_scheduled")
    return files, int(size)


def dead_files(session: Session, kind: DeadKind, after: DeadFile, most: int) -> list[DeadFile]:
    """Some of the rows of files that nobody can reach, in order."""
    given = {"catalog": after.catalog, "file": after.id, "most": most}
    match kind:
        case "data_file":
            found = session.rows("dead_data_files", **given)
        case "delete_file":
            found = session.rows("dead_delete_files", **given)
        case "useless_delete_file":
            found = session.rows("useless_delete_files", **given)
        case "index_file":
            found = session.rows("dead_index_files", **given)
    return [DeadFile(CatalogId(catalog), file, path, size or 0) for catalog, file, path, size in found]


def schedule_files(
    session: Session, dead_kind: DeadKind, dead: Sequence[DeadFile], now: datetime
) -> tuple[int, int]:
    """Schedule the files of rows that nobody can reach, and remove these rows with their parts.

    Gives how many files were not scheduled before, and their bytes.
    """
    kind: FileKind = "delete_file" if dead_kind == "useless_delete_file" else dead_kind
    keys = json.dumps([(file.catalog, file.id) for file in dead])
    match kind:
        case "data_file":
            found = session.rows("schedule_data_files", keys=keys, now=now)
        case "delete_file":
            found = session.rows("schedule_delete_files", keys=keys, now=now)
        case "index_file":
            found = session.rows("schedule_index_files", keys=keys, now=now)
    for table, (entity, _) in PARTS.items():
        if entity == kind:
            session.execute(f"drop_{table}", keys=keys)
    session.execute(f"drop_rows_of_{kind}", keys=keys)
    sizes = {file.path: file.bytes for file in dead}
    return len(found), sum(sizes[path] for (path,) in found)


def drop_definitions(session: Session) -> None:
    """Remove definitions that nobody can reach, and what belongs to rows that are gone."""
    for entity in VERSIONED:
        if entity not in FILES:
            session.execute(f"drop_rows_of_{entity}")
    for table, (entity, _) in PARTS.items():
        if entity not in FILES:
            session.execute(f"drop_{table}")
    for statement in (
        "drop_inlined_deletes",
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


def forgotten_data_paths(reader: Database | Session) -> list[str]:
    """Data paths of their own that forgotten catalogs had, and that are still known."""
    return [path for (path,) in reader.rows("forgotten_data_paths")]


def drop_history(session: Session) -> None:
    """Remove what commits did that nobody can read or merge."""
    bounds = [(catalog, 0, low) for catalog, low in session.rows("history_bounds")]
    for start in range(0, len(bounds), _SPANS_AT_ONCE):
        session.execute("drop_old_changes", spans=json.dumps(bounds[start : start + _SPANS_AT_ONCE]))
    for statement in (
        "drop_merges",
        "drop_unseen_changes",
        "drop_commits_once",
        "drop_expired_snapshots",
        "drop_reservations",
    ):
        session.execute(statement)


def needless_ancestors(reader: Database | Session) -> list[CatalogId]:
    """Dropped catalogs in the middle of chains of forks that need no longer be remembered."""
    return [CatalogId(catalog) for (catalog,) in reader.rows("needless_ancestors")]


def leave_out_ancestors(session: Session, gone: Sequence[CatalogId]) -> None:
    """Let nobody descend from some catalogs any more."""
    listed = json.dumps(gone)
    session.execute("raise_descendants", gone=listed)
    session.execute("leave_out_ancestors", gone=listed)


def drop_forgotten(session: Session, filled: Sequence[str]) -> None:
    """Remove what is left of forgotten catalogs, and snapshots of which nothing is left.

    Those whose data paths are filled with files stay known, so that orphans are looked for there.
    """
    session.execute("drop_heads", filled=json.dumps(filled))
    for statement in ("drop_names", "drop_snapshots"):
        session.execute(statement)


def due_files(reader: Database | Session, before: datetime, after: str, most: int) -> list[Scheduled]:
    """Files that were scheduled up to a time, by path."""
    return [
        Scheduled(CatalogId(catalog), path, bool(relative), reason or "")
        for catalog, path, relative, reason in reader.rows("due_files", before=before, after=after, most=most)
    ]


def named_files(reader: Database | Session, paths: Iterable[str]) -> set[str]:
    """Those of some paths that any row of any catalog names."""
    wanted = sorted(set(paths))
    if not wanted:
        return set()
    return {path for (path,) in reader.rows("named_files", paths=json.dumps(wanted))}


def known_files(reader: Database | Session, paths: Iterable[str]) -> set[str]:
    """Those of some paths that any row of any catalog names, or that are scheduled for deletion."""
    return {path for (path,) in reader.rows("known_files", paths=json.dumps(sorted(set(paths))))}


def claimed_files(reader: Database | Session, paths: Iterable[str]) -> set[str]:
    """Those of some paths that are being removed."""
    return {path for (path,) in reader.rows("claimed_files", paths=json.dumps(sorted(set(paths))))}


def unused_folders(session: Session, folders: Sequence[str]) -> list[str]:
    """Those of some folders below the data path that no catalog has, and in which no row names a file."""
    return [folder for (folder,) in session.rows("unused_folders", folders=json.dumps(folders))]


def open_commit_uuids(reader: Database | Session) -> list[str]:
    """What is in the paths of files that distributed snapshots may still commit."""
    return [str(uuid).replace("-", "") for (uuid,) in reader.rows("open_commit_uuids")]


def schedule_abandoned(session: Session, catalog: CatalogId, paths: Sequence[str], now: datetime) -> None:
    """Schedule files that were written for a distributed snapshot and that nobody can commit any more."""
    rows = [(catalog, path, not is_absolute(path), now, ABANDONED, now) for path in paths]
    session.insert(ABANDONED_FILES, rows)


def abandoned_files(reader: Database | Session, paths: Iterable[str]) -> list[str]:
    """Those of some paths that are scheduled because nobody can commit them any more."""
    wanted = json.dumps(sorted(paths))
    return [path for (path,) in reader.rows("abandoned_files", paths=wanted, reason=ABANDONED)]


def claim_files(session: Session, paths: Sequence[str], now: datetime) -> None:
    """Say that files are being removed: from now on nobody may refer to them."""
    session.execute("claim_files", paths=json.dumps(paths), now=now)


def unschedule_files(session: Session, paths: Sequence[str]) -> None:
    """Forget files that are gone, or that have to stay."""
    session.execute("unschedule_files", paths=json.dumps(paths))
