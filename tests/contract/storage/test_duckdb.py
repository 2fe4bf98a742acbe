"""DuckDB reads files of a storage: no more than it needs, and without showing keys."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from forklake import ForklakeError, MissingDependency
from forklake.data.storage.storage import Storage, open_storage
from forklake.engine import remote_files as remote
from forklake.engine.remote_files import attach_storage
from tests.contract.storage.files import numbers, write_table
from tests.moto_server import ACCESS_KEY, SECRET_KEY, S3Server


def test_duckdb_reads_by_field_id_with_names_and_positions(
    storage: Storage, connection: duckdb.DuckDBPyConnection
) -> None:
    attach_storage(connection, storage)
    files = [
        write_table(storage, f"main/orders/{start}.parquet", numbers(start, 10)) for start in (0, 10, 20)
    ]
    found = connection.execute(
        """
        SELECT filename, file_row_number, renamed, added
          FROM read_parquet($files, filename = true, file_row_number = true, schema = MAP {
                   1: {name: 'renamed', type: 'HUGEINT', default_value: NULL},
                   3: {name: 'added', type: 'INTEGER', default_value: '7'}})
         WHERE renamed IN (0, 19, 25) ORDER BY renamed
        """,
        {"files": files},
    ).fetchall()
    assert found == [(files[0], 0, 0, 7), (files[1], 9, 19, 7), (files[2], 5, 25, 7)]


def test_duckdb_reads_no_more_of_an_object_than_it_needs(
    bucket: Storage, connection: duckdb.DuckDBPyConnection, s3_server: S3Server
) -> None:
    attach_storage(connection, bucket)
    address = write_table(
        bucket, "large.parquet", numbers(0, 600_000), row_group_size=100_000, compression="none"
    )
    size = bucket.info("large.parquet").size
    s3_server.requests.clear()
    query = "SELECT text FROM read_parquet($files) WHERE n = 250000"
    assert connection.execute(query, {"files": [address]}).fetchall() == [("250000",)]
    ranges = [request.range for request in s3_server.requests if request.method == "GET"]
    read = sum(int(last) - int(first) + 1 for first, last in (range_of(text) for text in ranges))
    assert 0 < read < size / 2


def range_of(text: str | None) -> tuple[str, str]:
    found = re.fullmatch(r"bytes=(\d+)-(\d+)", text or "")
    assert found, f"all of the object was asked for: {text}"
    return found[1], found[2]


def test_duckdb_reads_in_many_threads_at_once(
    bucket: Storage, connection: duckdb.DuckDBPyConnection, in_threads: Callable[..., list[Any]]
) -> None:
    files = [write_table(bucket, f"{start}.parquet", numbers(start * 100, 100)) for start in range(8)]
    query = "SELECT sum(n), count(DISTINCT filename) FROM read_parquet($files, filename = true)"

    def read() -> tuple[Any, ...] | None:
        with connection.cursor() as cursor:
            attach_storage(cursor, bucket)
            return cursor.execute(query, {"files": files}).fetchone()

    assert in_threads(*[read] * 8) == [(sum(range(800)), 8)] * 8


def secrets_of(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT name, scope, secret_string FROM duckdb_secrets()").fetchall()


def test_attaching_again_changes_nothing_and_new_keys_replace_old_ones(
    bucket: Storage, connection: duckdb.DuckDBPyConnection, s3_server: S3Server, s3_url: str
) -> None:
    attach_storage(connection, bucket)
    first = secrets_of(connection)
    attach_storage(connection, bucket)
    attach_storage(connection.cursor(), open_storage(s3_url))
    assert secrets_of(connection) == first
    attach_storage(connection, open_storage(s3_url, {"access_key": "ANOTHER", "secret_key": "another"}))
    [(name, scope, text)] = secrets_of(connection)
    assert name != first[0][0] and bucket.data_path in scope and "key_id=ANOTHER" in text
    attach_storage(connection, open_storage(s3_server.url(s3_server.new_bucket())))
    assert len(secrets_of(connection)) == 2


def test_two_storages_on_two_servers_are_kept_apart(
    bucket: Storage, connection: duckdb.DuckDBPyConnection
) -> None:
    address = write_table(bucket, "a.parquet", numbers(0, 1))
    attach_storage(connection, bucket)
    attach_storage(connection, open_storage("s3://other/lake?endpoint_override=http://127.0.0.1:1"
                                            "&access_key=a&secret_key=b"))  # fmt: skip
    assert connection.execute("SELECT n FROM read_parquet($f)", {"f": [address]}).fetchall() == [(0,)]


def test_attaching_leaves_a_transaction_and_a_result_alone(
    bucket: Storage, connection: duckdb.DuckDBPyConnection
) -> None:
    address = write_table(bucket, "a.parquet", numbers(7, 1))
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    pending = connection.execute("SELECT a FROM t")
    attach_storage(connection, bucket)
    assert pending.fetchall() == [(1,)]
    assert connection.execute("SELECT n FROM read_parquet($f)", {"f": [address]}).fetchall() == [(7,)]
    connection.execute("ROLLBACK")
    assert secrets_of(connection)


def test_a_local_storage_needs_nothing(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    before = connection.execute("FROM duckdb_extensions() WHERE loaded").fetchall()
    attach_storage(connection, open_storage(str(tmp_path)))
    assert connection.execute("FROM duckdb_extensions() WHERE loaded").fetchall() == before


def test_duckdb_shows_no_keys_in_errors_and_logs(
    bucket: Storage, connection: duckdb.DuckDBPyConnection
) -> None:
    connection.execute("CALL enable_logging(level = 'trace')")
    attach_storage(connection, bucket)
    write_table(bucket, "a.parquet", numbers(0, 1))
    connection.execute("FROM read_parquet($f)", {"f": [bucket.address("a.parquet")]}).fetchall()
    with pytest.raises(duckdb.Error) as caught:
        connection.execute("FROM read_parquet($f)", {"f": [bucket.address("none.parquet")]})
    assert SECRET_KEY not in str(caught.value)
    logged = connection.execute("SELECT * FROM duckdb_logs").fetchall()
    assert "CREATE TEMPORARY SECRET" in str(logged)
    assert SECRET_KEY not in str(logged)
    assert SECRET_KEY not in str(secrets_of(connection))


@pytest.mark.parametrize("how", ["anonymous", "profile"])
def test_duckdb_reads_without_keys_of_ours(
    s3_server: S3Server,
    connection: duckdb.DuckDBPyConnection,
    no_credentials: None,
    tmp_path: Path,
    how: str,
) -> None:
    name = s3_server.new_bucket()
    address = write_table(open_storage(s3_server.url(name)), "a.parquet", numbers(3, 1))
    options = {"endpoint_override": s3_server.endpoint}
    if how == "anonymous":
        options["anonymous"] = "true"
        s3_server.publish(f"{name}/a.parquet")
    else:
        text = f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
        (tmp_path / "credentials").write_text(text)
    storage = open_storage(f"s3://{name}", options)
    assert storage.info("a.parquet").size > 0
    attach_storage(connection, storage)
    assert connection.execute("SELECT n FROM read_parquet($f)", {"f": [address]}).fetchall() == [(3,)]
    [(_, _, text)] = secrets_of(connection)
    assert ("provider=credential_chain" in text) == (how == "profile")


def test_without_the_extension_the_error_tells_how_to_install_it(
    bucket: Storage, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "find_spec", lambda _: None)
    with tempfile.TemporaryDirectory() as empty:
        connection.execute("SET extension_directory = $folder", {"folder": empty})
        with pytest.raises(MissingDependency, match=r"pip install '.*\[s3\]'"):
            attach_storage(connection, bucket)
    assert issubclass(MissingDependency, ForklakeError)
