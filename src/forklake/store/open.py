"""From the URL of a lake to an open metadata database, created if asked and checked in any case."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from forklake.errors import (
    DataPathMismatch,
    InvalidUrl,
    MetadataNotFound,
    MissingDependency,
    StoreError,
    StoreUnavailable,
)
from forklake.model.names import check_name
from forklake.store.backend import Database, UniqueViolation
from forklake.store.home import remember_home
from forklake.store.settings import add_setting, setting
from forklake.store.url import EXAMPLES, POOLER_OPTIONS, LakeUrl, file_url
from forklake.store.versions import MADE_BY, check_present, stored_version
from forklake.version import VERSION

DEFAULT_SCHEMA = "ducklake"
DEFAULT_POOL_SIZE = 16


def open_database(url: LakeUrl, *, create: bool) -> Database:
    """Open the database behind a URL, whatever it holds."""
    schema = check_name(url.options.get("metadata_schema", DEFAULT_SCHEMA), "metadata schema")
    if url.path is not None:
        _check_file(url.path, create=create)
    # Each driver takes a while to import, and most programs need one.
    match url:
        case LakeUrl("sqlite", Path() as path):
            from forklake.store.sqlite import SqliteDatabase

            return SqliteDatabase(path, file_url("sqlite", path))
        case LakeUrl("duckdb", Path() as path):
            from forklake.store.duckdb import DuckDBDatabase

            shown = f"{file_url('duckdb', path)}?{urlencode({'metadata_schema': schema})}"
            return DuckDBDatabase(path, shown, metadata_schema=schema)
        case LakeUrl("postgresql", None, str() as conninfo):
            try:
                from forklake.store.postgres import PostgresDatabase
            except ImportError as error:
                raise MissingDependency(
                    f"the driver of PostgreSQL cannot be loaded ({error}): run pip install 'psycopg[binary]'"
                ) from error
            options = {name: url.options[name] for name in POOLER_OPTIONS if name in url.options}
            return PostgresDatabase(
                conninfo, metadata_schema=schema, pool_size=_pool_size(url), options=options
            )
        case _:
            raise InvalidUrl(f"a URL needs a file or a server; use {EXAMPLES}")


def _check_file(path: Path, *, create: bool) -> None:
    """Without leave to create, a missing file stays missing; with it, its folder is made."""
    try:
        if path.is_dir():
            raise InvalidUrl(f"{path} is a folder; name a file in it")
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            raise MetadataNotFound(
                f"there is no file {path}: create the lake with `forklake --lake URL init`, or connect with "
                "create=True"
            )
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from error


def _pool_size(url: LakeUrl) -> int:
    text = url.options.get("pool_size", str(DEFAULT_POOL_SIZE))
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise InvalidUrl("pool_size must be a number from 1 to 1000")
    return int(text)


def create_lake(database: Database, data_path: str) -> bool:
    """Create an empty lake; False if one is there already, also if another process was quicker."""
    if database.exists():
        return False
    try:
        database.create_schema({"data_path": data_path, "created_by": "forklake", MADE_BY: VERSION})
    except UniqueViolation:
        return False
    except StoreError:
        # Another process may have been quicker, and its tables in our way.
        if database.exists():
            return False
        raise
    home = database.home()
    with database.transaction() as session:
        remember_home(session, home)
        session.commit()
    return True


def check_version(database: Database) -> None:
    """Refuse what is not a lake of this version, saying which command would help."""
    version, made_by = stored_version(database)
    check_present(database.url, version, made_by)


def data_path_of(database: Database, given: str | None) -> str:
    """Where the lake keeps its files; a path given on opening must be the one that was stored."""
    found = setting(database, "data_path")
    if found is not None and given is not None and given != found:
        raise DataPathMismatch(
            f"the lake at {database.url} keeps its files in {found}, not {given}: leave data_path "
            "out, or pass moved=True if its files were moved there"
        )
    if found is not None:
        return found
    if given is None:
        raise MetadataNotFound(
            f"the lake at {database.url} does not know where its files are: "
            "say it once with `forklake --lake URL init --data-path …`"
        )
    # A lake that was created with psql learns its path from the first who says it.
    home = database.home()
    with suppress(UniqueViolation), database.transaction() as session:
        if setting(session, "data_path") is None:
            add_setting(session, "data_path", given)
            remember_home(session, home)
            session.commit()
    return data_path_of(database, given)


def is_finished(database: Database) -> bool:
    """Whether a lake that exists knows where its files are, or is no lake of ours."""
    check_version(database)
    return setting(database, "data_path") is not None
