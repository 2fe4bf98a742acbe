"""Opening, creating and upgrading lakes by the URLs of their metadata."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from forklake.api.lake import Lake
from forklake.api.moving import check_moved, files_beside, guarded, move
from forklake.data.storage.storage import Storage, open_storage, split_data_path
from forklake.errors import InvalidArgument, InvalidUrl, MetadataExists
from forklake.lazy import LazyModule
from forklake.store.home import ReadOnlyDatabase
from forklake.store.open import (
    check_version,
    create_lake,
    data_path_of,
    is_finished,
    open_database,
)
from forklake.store.url import parse_url

if TYPE_CHECKING:
    from forklake.engine import remote_files
    from forklake.store.upgrades import upgrade as upgrades
    from forklake.store.upgrades.upgrade import UpgradeResult
else:
    # To open a lake takes none of these.
    remote_files = LazyModule("forklake.engine.remote_files")
    upgrades = LazyModule("forklake.store.upgrades.upgrade")


def connect(
    url: str,
    *,
    data_path: str | Path | None = None,
    create: bool = False,
    moved: bool | Literal["force"] = False,
    upgrade: bool = False,
    read_only: bool = False,
) -> Lake:
    """Open a lake by the URL of its metadata database.

    `sqlite:///lake.db`, `sqlite:////absolute/lake.db`, `duckdb:///lake.duckdb`, `postgresql://user@host:5432/db`;
    the last two take `?metadata_schema=name`, so that several lakes share a database. `create=True` creates
    the lake if it does not exist. `data_path`, the folder or `s3://bucket/prefix` of the data files, is
    stored then and may be omitted afterwards.

    `moved=True` says once that the lake was moved: that this is the only copy of its metadata, and that its
    files are in `data_path` now, if that is given. Some of them are looked for, unless it is `"force"`.

    `upgrade=True` brings a lake that an earlier version made to the present version of the metadata first, as
    `forklake.upgrade` does; one that has it already is left alone.

    `read_only=True` refuses every change (`ReadOnlyStore`), also where the database would allow it.
    """
    check_moved(moved)
    if read_only and (create or moved or upgrade):
        raise InvalidArgument("read_only=True changes nothing: leave out create, moved and upgrade")
    return _open(url, data_path, create=create, moved=moved, upgrade=upgrade, read_only=read_only)


def upgrade(url: str, *, dry_run: bool = False) -> UpgradeResult:
    """Bring the metadata of a lake that an earlier version made to the present version, all or nothing.

    No file is touched, and no row changes. Programs that have the lake open are to be ended before, and a
    backup of the metadata is to be taken: there is no way back. `dry_run` changes nothing and gives the
    statements: they are run, and taken back.
    """
    database = open_database(parse_url(url), create=False)
    try:
        return upgrades.upgrade_lake(database, dry_run=dry_run)
    finally:
        database.close()


def init(url: str, *, data_path: str | Path | None = None) -> Lake:
    """Create a lake, also in a database with a schema created by `psql -f`; refuse one that exists."""
    return _open(url, data_path, create=True, refuse_existing=True)


def _open(
    url: str,
    data_path: str | Path | None,
    *,
    create: bool,
    refuse_existing: bool = False,
    moved: bool | Literal["force"] = False,
    upgrade: bool = False,
    read_only: bool = False,
) -> Lake:
    parsed = parse_url(url)
    # Credentials are for this process: what is stored is only where the files are.
    text, options = split_data_path(str(data_path)) if data_path is not None else ("", {})
    given = None if data_path is None else text
    if given is not None:
        _check_readable(open_storage(given, options))
    default = f"{parsed.path}.files/" if given is None and parsed.path is not None else given
    database = open_database(parsed, create=create)
    try:
        if create:
            if default is None and not database.exists():
                raise InvalidUrl(
                    "a new lake on PostgreSQL needs a data path: a folder or bucket for its files"
                )
            if default and not database.exists():
                # Others may put files there before the first table does, and who may not write hears of it.
                place = open_storage(default, options)
                place.make_folder(place.data_path, relative=False)
            created = create_lake(database, default or "")
            # A lake that was created by hand is finished by saying where its files are.
            if refuse_existing and not created and (given is None or is_finished(database)):
                raise MetadataExists(f"there is a lake at {database.url} already")
        if upgrade:
            upgrades.upgrade_lake(database)
        check_version(database)
        if moved:
            found = given if given is not None else files_beside(data_path_of(database, None), default)
            move(database, open_storage(found, options), force=moved == "force")
        storage = open_storage(data_path_of(database, given), options)
        _check_readable(storage)
        if read_only:
            reason = (
                f"the lake at {database.url} was opened read-only: connect without read_only to change it"
            )
            return Lake(ReadOnlyDatabase(database, reason), storage)
        return Lake(guarded(database, storage.data_path), storage)
    except BaseException:
        database.close()
        raise


def _check_readable(storage: Storage) -> None:
    """Refuse a bucket that the engine could not read; it can read folders in any case."""
    if not storage.is_local:
        remote_files.check_extensions(storage)
