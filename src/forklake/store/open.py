"""From the address of a lake to an open metadata database, created if asked and checked in any case."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from forklake.errors import (
    DataPathMismatch,
    InvalidUrl,
    MetadataNotFound,
    MissingDependency,
    StoreError,
    StoreUnavailable,
    UnsupportedVersion,
)
from forklake.model.names import check_name, in_user_folder
from forklake.store.backend import Database, UniqueViolation
from forklake.store.home import remember_home

VERSION = "0.5-dev1"
DEFAULT_SCHEMA = "ducklake"
DEFAULT_POOL_SIZE = 16

_EXAMPLES = "sqlite:///lake.db, duckdb:///lake.duckdb or postgresql://user@host:5432/db"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a lake's metadata is."""

    kind: str
    path: Path | None
    """The file of an embedded database."""
    conninfo: str | None
    """What PostgreSQL's client needs to connect."""
    options: Mapping[str, str]


_OPTIONS = {
    "sqlite": frozenset[str](),
    "duckdb": frozenset({"metadata_schema"}),
    "postgresql": frozenset({"metadata_schema", "pool_size"}),
}


def parse_url(url: str) -> Address:
    """Read an address; the error for one that cannot be read shows how they look."""
    try:
        if any(character.isspace() and character != " " for character in url):
            raise ValueError("it holds a line break or tab")
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        _ = parts.port
        if parts.scheme and not url.startswith(f"{parts.scheme}://"):
            raise ValueError(f"two slashes follow {parts.scheme}:")
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidUrl(f"this is not the address of a lake ({error}); use {_EXAMPLES}") from error
    kind = "postgresql" if parts.scheme == "postgres" else parts.scheme
    if kind not in _OPTIONS:
        # Never show the address itself: it may hold a password.
        what = f"{parts.scheme}: is no kind of lake" if parts.scheme else "this is not the address of a lake"
        raise InvalidUrl(f"{what}; use {_EXAMPLES}")
    ours = {name: value for name, value in query if name in _OPTIONS[kind]}
    others = [(name, value) for name, value in query if name not in ours]
    if kind == "postgresql":
        # Not by urlunsplit: without a host it leaves out the slashes.
        query_left = f"?{urlencode(others, quote_via=quote)}" if others else ""
        return Address(kind, None, f"{kind}://{parts.netloc}{parts.path}{query_left}", ours)
    if others:
        hint = (
            ": SQLite has no schemas, use one file for each lake" if others[0][0] == "metadata_schema" else ""
        )
        raise InvalidUrl(f"{kind} addresses have no option {others[0][0]!r}{hint}")
    name = unquote(parts.path).removeprefix("/")
    if parts.fragment:
        raise InvalidUrl(f"write %23 for the # in a file name: {kind}:///{quote(name)}%23…")
    if parts.netloc or not name or name.endswith("/") or ":memory:" in name or not _storable(name):
        raise InvalidUrl(
            f"this does not name a file: write {kind}:///relative/path or {kind}:////absolute/path"
        )
    return Address(kind, Path(in_user_folder(name)).absolute(), None, ours)


def file_url(kind: str, path: Path) -> str:
    """The address of an embedded database, as `parse_url` reads it back."""
    return f"{kind}:///{quote(str(path))}"


def _storable(name: str) -> bool:
    return "\0" not in name and not any("\ud800" <= character <= "\udfff" for character in name)


def open_database(address: Address, *, create: bool) -> Database:
    """Open the database behind an address, whatever it holds."""
    schema = check_name(address.options.get("metadata_schema", DEFAULT_SCHEMA), "metadata schema")
    if address.path is not None:
        _check_file(address.path, create=create)
    # Each driver takes a while to import, and most programs need one.
    match address:
        case Address("sqlite", Path() as path):
            from forklake.store.sqlite import SqliteDatabase

            return SqliteDatabase(path, file_url("sqlite", path))
        case Address("duckdb", Path() as path):
            from forklake.store.duckdb import DuckDBDatabase

            url = f"{file_url('duckdb', path)}?{urlencode({'metadata_schema': schema})}"
            return DuckDBDatabase(path, url, metadata_schema=schema)
        case Address("postgresql", None, str() as conninfo):
            try:
                from forklake.store.postgres import PostgresDatabase
            except ImportError as error:
                raise MissingDependency(
                    f"the driver of PostgreSQL cannot be loaded ({error}): run pip install 'psycopg[binary]'"
                ) from error
            return PostgresDatabase(conninfo, metadata_schema=schema, pool_size=_pool_size(address))
        case _:
            raise InvalidUrl(f"an address needs a file or a server; use {_EXAMPLES}")


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


def _pool_size(address: Address) -> int:
    text = address.options.get("pool_size", str(DEFAULT_POOL_SIZE))
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise InvalidUrl(f"pool_size must be a number from 1 to 1000, not {text!r}")
    return int(text)


def create_lake(database: Database, data_path: str) -> bool:
    """Create an empty lake; False if one is there already, also if another process was quicker."""
    if database.exists():
        return False
    try:
        database.create_schema({"data_path": data_path, "created_by": "forklake"})
    except UniqueViolation:
        return False
    except StoreError:
        # Another process may have been quicker, and its tables in our way.
        if database.exists():
            return False
        raise
    with database.transaction() as session:
        remember_home(session, database.home())
        session.commit()
    return True


def check_version(database: Database) -> None:
    """Refuse what is not a lake of this version, saying which command would help."""
    if not database.exists():
        raise MetadataNotFound(
            f"there is no lake at {database.url}: create it with `forklake --lake URL init`, "
            "or connect(..., create=True)"
        )
    instead = "create a lake in an empty database or schema with `forklake --lake URL init`"
    try:
        found = database.rows("setting", key="version")
    except StoreError as error:
        raise UnsupportedVersion(f"the metadata at {database.url} is no lake's: {instead}") from error
    if not found:
        raise UnsupportedVersion(f"the lake at {database.url} was never finished: {instead}")
    version = found[0][0]
    if version != VERSION:
        raise UnsupportedVersion(
            f"the metadata at {database.url} has version {version!r}, not {VERSION!r}: {instead}"
        )


def data_path_of(database: Database, given: str | None) -> str:
    """Where the lake keeps its files; a path given on opening must be the one that was stored."""
    found = database.rows("setting", key="data_path")
    if found and given is not None and given != found[0][0]:
        raise DataPathMismatch(
            f"the lake at {database.url} keeps its files in {found[0][0]}, not {given}: leave data_path "
            "out, or pass moved=True if its files were moved there"
        )
    if found:
        return found[0][0]
    if given is None:
        raise MetadataNotFound(
            f"the lake at {database.url} does not know where its files are: "
            "say it once with `forklake --lake URL init --data-path …`"
        )
    # A lake that was created with psql learns its path from the first who says it.
    with suppress(UniqueViolation), database.transaction() as session:
        if not session.rows("setting", key="data_path"):
            session.insert("ducklake_metadata", ("key", "value"), [("data_path", given)])
            remember_home(session, database.home())
            session.commit()
    return data_path_of(database, given)


def is_finished(database: Database) -> bool:
    """Whether a lake that exists knows where its files are, or is no lake of ours."""
    check_version(database)
    return bool(database.rows("setting", key="data_path"))
