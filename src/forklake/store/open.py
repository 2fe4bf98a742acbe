"""From the address of a lake to an open metadata database, created if asked and checked in any case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from forklake.errors import DataPathMismatch, InvalidUrl, MetadataExists, MetadataNotFound, UnsupportedVersion
from forklake.model.names import check_name
from forklake.store.backend import Database, UniqueViolation
from forklake.store.duckdb import DuckDBDatabase
from forklake.store.postgres import PostgresDatabase
from forklake.store.sqlite import SqliteDatabase

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
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        _ = parts.port
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidUrl(f"{url!r} is not the address of a lake ({error}); use {_EXAMPLES}") from error
    kind = "postgresql" if parts.scheme == "postgres" else parts.scheme
    if kind not in _OPTIONS:
        raise InvalidUrl(f"{url!r} is not the address of a lake; use {_EXAMPLES}")
    ours = {name: value for name, value in query if name in _OPTIONS[kind]}
    others = [(name, value) for name, value in query if name not in ours]
    if kind == "postgresql":
        conninfo = urlunsplit((kind, parts.netloc, parts.path, urlencode(others), ""))
        return Address(kind, None, conninfo, ours)
    if others:
        hint = (
            ": SQLite has no schemas, use one file for each lake" if others[0][0] == "metadata_schema" else ""
        )
        raise InvalidUrl(f"{kind} addresses have no option {others[0][0]!r}{hint}")
    name = unquote(parts.path).removeprefix("/")
    if parts.netloc or not name or name.endswith("/") or ":memory:" in name or "\0" in name:
        raise InvalidUrl(
            f"{url!r} does not name a file: write {kind}:///relative/path or {kind}:////absolute/path"
        )
    return Address(kind, Path(name).absolute(), None, ours)


def open_database(address: Address, *, create: bool) -> Database:
    """Open the database behind an address, whatever it holds."""
    schema = check_name(address.options.get("metadata_schema", DEFAULT_SCHEMA), "metadata schema")
    if address.conninfo is not None:
        pool_size = address.options.get("pool_size", str(DEFAULT_POOL_SIZE))
        if not pool_size.isdecimal() or not 1 <= int(pool_size) <= 1000:
            raise InvalidUrl(f"pool_size must be a number from 1 to 1000, not {pool_size!r}")
        return PostgresDatabase(address.conninfo, metadata_schema=schema, pool_size=int(pool_size))
    if address.path is None:
        raise InvalidUrl(f"an address needs a file or a server; use {_EXAMPLES}")
    if address.path.is_dir():
        raise InvalidUrl(f"{address.path} is a folder; name a file in it")
    if address.kind == "sqlite":
        return SqliteDatabase(address.path, create=create)
    return DuckDBDatabase(address.path, create=create, metadata_schema=schema)


def create_lake(database: Database, data_path: str) -> bool:
    """Create an empty lake; False if one is there already, also if another process was quicker."""
    if database.exists():
        return False
    try:
        database.create_schema({"data_path": data_path, "created_by": "forklake"})
    except UniqueViolation:
        return False
    except Exception:
        if database.exists():
            return False
        raise
    return True


def check_version(database: Database) -> None:
    """Refuse what is not a lake of this version, saying which command would help."""
    if not database.exists():
        raise MetadataNotFound(
            f"there is no lake at {database.url}: create it with `forklake --lake URL init`, "
            "or connect(..., create=True)"
        )
    found = database.rows("setting", key="version")
    if not found:
        raise UnsupportedVersion(
            f"the lake at {database.url} was never finished: create it in an empty database or schema"
        )
    version = found[0][0]
    if version != VERSION:
        raise UnsupportedVersion(
            f"the metadata at {database.url} has version {version!r}, and forklake needs {VERSION!r}: "
            "create a lake in an empty database or schema with `forklake --lake URL init`"
        )


def data_path_of(database: Database, given: str | None) -> str:
    """Where the lake keeps its files; a path given on opening must be the one that was stored."""
    found = database.rows("setting", key="data_path")
    if found and given is not None and given != found[0][0]:
        raise DataPathMismatch(
            f"the lake at {database.url} keeps its files in {found[0][0]}, not {given}: leave data_path out"
        )
    if found:
        return found[0][0]
    if given is None:
        raise MetadataNotFound(
            f"the lake at {database.url} does not know where its files are: connect once with data_path=…"
        )
    # A lake that was created with psql learns its path from the first who says it.
    with database.transaction() as session:
        if not session.rows("setting", key="data_path"):
            session.insert("ducklake_metadata", ("key", "value"), [("data_path", given)])
            session.commit()
    return data_path_of(database, given)


def refuse_existing(database: Database, created: bool) -> None:
    """For `forklake init`: creating a lake twice is probably a mistake."""
    if not created:
        raise MetadataExists(f"there is a lake at {database.url} already")
