"""Where files of the lake are: paths of files, of tables, and data paths of catalogs."""

from __future__ import annotations

from forklake.model.ids import CatalogId, SnapshotId, TableId
from forklake.store.backend import Database, Session


def some_files(database: Database, most: int) -> list[str]:
    """The paths of so many of the oldest files below the data path of the lake, and of the newest."""
    return [path for (path,) in database.rows("some_files", most=most)]


def move_files(session: Session, former: str, present: str) -> None:
    """Files that were imported from inside of the data path have moved with it."""
    session.execute("move_files", former=former, present=present)


def own_data_paths(reader: Database | Session) -> list[str]:
    """Where catalogs keep files outside the data path of the lake, dropped ones too."""
    return [path for (path,) in reader.rows("own_data_paths")]


def has_others_files(database: Database, catalog: CatalogId, folder: str) -> bool:
    """Whether other catalogs than one keep files in its folder, or left some that are not removed yet."""
    return bool(database.rows("others_files", catalog=catalog, folder=folder)[0][0])


def table_paths(database: Database, catalog: CatalogId, at: SnapshotId) -> dict[TableId, str]:
    """The folders of all tables that a catalog had at a snapshot."""
    return dict(database.rows("table_paths", catalog=catalog, at=at))


def paths_of_commit(database: Database, catalog: CatalogId, table: TableId, at: SnapshotId) -> set[str]:
    """The files that one commit made part of a table."""
    return {path for (path,) in database.rows("paths_of_commit", catalog=catalog, table=table, at=at)}
