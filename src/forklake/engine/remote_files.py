"""What lets DuckDB read files in buckets."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from importlib.util import find_spec
from pathlib import Path

from forklake.data.storage.storage import Storage
from forklake.extras import missing
from forklake.lazy.duckdb import duckdb

_SALT = secrets.token_bytes(16)
_attaching = threading.Lock()


def attach_storage(connection: duckdb.DuckDBPyConnection, storage: Storage) -> None:
    """Let a connection, and all others of its database, read the addresses that the storage gives.

    Doing it again changes nothing. The credentials live in the memory of that database, for its lifetime.
    """
    if storage.is_local:
        return
    with _attaching, connection.cursor() as cursor:
        place = f"forklake_{hashlib.sha256(storage.data_path.encode()).hexdigest()[:16]}_"
        name = place + _fingerprint(storage)
        known = "SELECT name FROM duckdb_secrets() WHERE starts_with(name, $place)"
        found = {row[0] for row in cursor.execute(known, {"place": place}).fetchall()}
        if name in found:
            return
        _create_secret(cursor, storage, name)
        for former in found:
            cursor.execute(f"DROP TEMPORARY SECRET IF EXISTS {former}")


def check_extensions(storage: Storage) -> None:
    """Refuse a bucket that DuckDB could not read, before anything is written there."""
    if storage.is_local or all(_wheel_of(name) is not None for name in _extensions(storage)):
        return
    with duckdb.connect() as connection:
        for name in _extensions(storage):
            _load_extension(connection, name)


def literal(address: str) -> str:
    """An address as `read_parquet` takes it for one file: left alone, `*`, `?` and `[` are patterns."""
    # A backslash escapes in buckets only.
    return re.sub(r"([*?\[\\])" if address.startswith("s3://") else r"([*?\[])", r"[\1]", address)


def _create_secret(cursor: duckdb.DuckDBPyConnection, storage: Storage, name: str) -> None:
    options = storage.s3.options
    values: dict[str, object] = {
        "KEY_ID": options.access_key,
        "SECRET": options.secret_key,
        "SESSION_TOKEN": options.session_token,
        "REGION": storage.s3.region,
        "ENDPOINT": options.endpoint,
        "URL_STYLE": "path" if options.endpoint or "." in storage.s3.bucket else "vhost",
        "USE_SSL": options.secure,
        # Its own files first; for absolute paths into other buckets these credentials are as good as any.
        "SCOPE": [storage.data_path, "s3://"],
    }
    needed = _extensions(storage)
    for extension in needed:
        _load_extension(cursor, extension)
    if "aws" in needed:
        values["PROVIDER"] = "credential_chain"
        values["REFRESH"] = "auto"
    given = {option: value for option, value in values.items() if value is not None}
    # Keys are bound as parameters: a statement's text ends up in logs and errors.
    listed = ", ".join(f"{option} ${option}" for option in given)
    cursor.execute(f"CREATE TEMPORARY SECRET {name} (TYPE s3, {listed})", given)


def _fingerprint(storage: Storage) -> str:
    """Tells one set of options from another, and tells nothing else to those who see it."""
    options = storage.s3.options
    text = repr((options, options.access_key, options.secret_key, options.session_token))
    return hmac.new(_SALT, text.encode(), hashlib.sha256).hexdigest()[:16]


def _extensions(storage: Storage) -> tuple[str, ...]:
    """What DuckDB needs for a bucket: credentials that nobody gave are found by another extension."""
    options = storage.s3.options
    return ("httpfs",) if options.access_key is not None or options.anonymous else ("httpfs", "aws")


def _wheel_of(name: str) -> Path | None:
    """The file of an extension, if there is a wheel of it for this DuckDB."""
    wheel = find_spec(f"duckdb_extension_{name}")
    for folder in wheel.submodule_search_locations or () if wheel else ():
        file = Path(folder, "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
        if file.exists():
            return file
    return None


def _load_extension(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    """From its wheel, or from where DuckDB itself keeps extensions; never from the network."""
    file = _wheel_of(name)
    if file is not None:
        path = str(file).replace("'", "''")
        cursor.execute(f"LOAD '{path}'")
        return
    try:
        cursor.execute(f"LOAD {name}")
    except duckdb.Error as error:
        needed = f"DuckDB {duckdb.__version__} needs its extension {name} to read from S3"
        raise missing(needed, "s3") from error
