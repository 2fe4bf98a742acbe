"""Files on a disk and in a bucket behave alike; what fails leaves nothing behind and tells what to do."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forklake
from forklake import FileMissing, ForklakeError, InvalidUrl, MissingDependency, StorageError
from forklake.data.storage import local
from forklake.data.storage.paths import s3_options
from forklake.data.storage.storage import Storage, open_storage, split_data_path
from forklake.engine import remote_files as remote
from forklake.engine.remote_files import attach_storage, literal
from tests.moto_server import ACCESS_KEY, SECRET_KEY, Request, S3Server

# Below, and above, what Arrow sends to a bucket in one piece.
SMALL, LARGE = 1_000, 12_000_000

ODD_NAMES = [
    "with space.parquet",
    "ümläut €.parquet",
    "percent%20.parquet",
    "a+b=c&d.parquet",
    "hash#.parquet",
    "quote'\".parquet",
    "star*.parquet",
    "br[a]cket.parquet",
    "$dollar {x}.parquet",
    ".hidden",
    "n" * 200,
]


@pytest.fixture
def storage(data_path: str) -> Storage:
    """An empty storage, on each kind of place."""
    return open_storage(data_path)


@pytest.fixture
def bucket(s3_url: str) -> Storage:
    """An empty storage in a bucket."""
    return open_storage(s3_url)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that must not get anything from the network."""
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        yield connection


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing in the environment that would help to reach a bucket."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))


def write(storage: Storage, path: str, content: bytes = b"x", relative: bool = True) -> None:
    with storage.open_output(path, relative) as stream:
        stream.write(content)


def paths(storage: Storage, folder: str = "") -> list[str]:
    return sorted(file.path for file in storage.files(folder))


def numbers(start: int, count: int) -> pa.Table:
    """Two columns with field ids: `n` counts on from `start`, `text` spells it."""
    schema = pa.schema(
        [
            pa.field("n", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("text", pa.string(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    values = range(start, start + count)
    return pa.table([list(values), [str(value) for value in values]], schema=schema)


def write_table(storage: Storage, path: str, table: pa.Table, **options: Any) -> str:
    with storage.open_output(path) as stream:
        pq.write_table(table, stream, **options)
    return storage.address(path)


@pytest.mark.parametrize("size", [0, SMALL, LARGE])
def test_what_was_written_is_read(storage: Storage, size: int) -> None:
    content = os.urandom(size)
    write(storage, "main/orders/a.parquet", content)
    assert storage.read_bytes("main/orders/a.parquet") == content
    assert storage.info("main/orders/a.parquet").size == size


def test_any_part_of_a_file_is_read_alone(storage: Storage) -> None:
    content = os.urandom(LARGE)
    write(storage, "a", content)
    with storage.open_input("a") as stream:
        stream.seek(11_000_000)
        assert stream.read(10) == content[11_000_000:11_000_010]
        assert stream.size() == LARGE


def test_nothing_is_touched_before_the_first_use(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "files"))
    assert not (tmp_path / "files").exists()
    assert list(storage.files()) == []
    # Nobody listens at port 1.
    open_storage("s3://bucket/lake?endpoint_override=http://127.0.0.1:1").address("x")


def test_a_missing_file_is_told_by_name(storage: Storage) -> None:
    for attempt in (storage.read_bytes, storage.info, lambda path: storage.open_input(path).__enter__()):
        with pytest.raises(FileMissing, match=r"main/none\.parquet is missing: "):
            attempt("main/none.parquet")


def test_a_folder_is_not_a_file(storage: Storage) -> None:
    write(storage, "main/orders/a")
    with pytest.raises(FileMissing):
        storage.info("main/orders")
    with pytest.raises(StorageError):
        storage.read_bytes("main/orders")


def test_a_listing_has_path_size_and_age(storage: Storage) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    write(storage, "main/orders/a", b"abc")
    write(storage, "main/orders/deep/er/b")
    write(storage, "main/orders2/c")
    write(storage, "d", b"")
    assert paths(storage) == ["d", "main/orders/a", "main/orders/deep/er/b", "main/orders2/c"]
    for folder in ("main/orders", "main/orders/"):
        assert paths(storage, folder) == ["main/orders/a", "main/orders/deep/er/b"]
    assert paths(storage, "none") == []
    for file in storage.files():
        assert file == storage.info(file.path)
        assert before <= file.modified <= datetime.now(UTC) + timedelta(seconds=2)
    assert {file.path: file.size for file in storage.files()}["main/orders/a"] == 3


def test_a_listing_shows_only_what_lies_below_the_data_path(s3_server: S3Server, tmp_path: Path) -> None:
    bucket = s3_server.new_bucket()
    for data_path, beside, above in (
        (s3_server.url(bucket, "lake"), s3_server.url(bucket, "lake2"), s3_server.url(bucket)),
        (f"{tmp_path}/lake", f"{tmp_path}/lake2", f"{tmp_path}"),
    ):
        write(open_storage(data_path), "a")
        write(open_storage(beside), "b")
        assert paths(open_storage(data_path)) == ["a"]
        assert paths(open_storage(above)) == ["lake/a", "lake2/b"]


def test_deleting_leaves_the_others_and_forgives_what_is_gone(storage: Storage) -> None:
    names = [f"main/t{index % 3}/{index}" for index in range(60)]
    for name in [*names, "main/t1/kept"]:
        write(storage, name)
    storage.delete([*names, "main/none", names[0]])
    assert paths(storage) == ["main/t1/kept"]
    storage.delete(names)
    storage.delete([])


def test_a_file_that_cannot_be_deleted_stops_no_other(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    (tmp_path / "folder").mkdir()
    write(storage, "a")
    write(storage, "b")
    with pytest.raises(StorageError, match="folder"):
        storage.delete(["a", "folder", "b"])
    assert paths(storage) == []


def test_an_object_that_cannot_be_deleted_stops_no_other(bucket: Storage, s3_server: S3Server) -> None:
    for name in ("a", "held", "b"):
        write(bucket, name)
    held = s3_server.refusing(lambda request: request.method == "DELETE" and "held" in request.path)
    with held, pytest.raises(StorageError, match=r"deleting s3://\S+/lake/held is not allowed"):
        bucket.delete(["a", "held", "b"])
    assert paths(bucket) == ["held"]


@pytest.mark.parametrize("size", [0, SMALL, LARGE])
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
def test_a_failure_half_way_leaves_nothing(storage: Storage, size: int, error: BaseException) -> None:
    expected = StorageError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected), storage.open_output("main/orders/a") as stream:
        stream.write(bytes(size))
        raise error
    assert paths(storage) == []
    write(storage, "main/orders/a", b"again")
    assert storage.read_bytes("main/orders/a") == b"again"


def test_a_full_disk_is_told_by_name(storage: Storage) -> None:
    with (
        pytest.raises(StorageError, match=r"no room for .*main/a \(No space left on device\): make room"),
        storage.open_output("main/a") as stream,
    ):
        stream.write(b"x")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_table_that_does_not_fit_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
        import resource
        import pyarrow as pa, pyarrow.parquet as pq
        from forklake.data.storage.storage import open_storage
        from forklake.errors import StorageError
        storage = open_storage({str(tmp_path)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            with storage.open_output("main/a.parquet") as stream:
                pq.write_table(pa.table({{"n": range(1_000_000)}}), stream, compression="none")
        except StorageError as error:
            print(error)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert f"no room for {tmp_path}/main/a.parquet" in ended.stdout
    assert paths(open_storage(str(tmp_path))) == []


def test_a_disk_that_fails_to_sync_has_written_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(str(tmp_path))

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    write(storage, "before")
    monkeypatch.setattr(local.os, "fsync", fail)
    with pytest.raises(StorageError, match=r"writing .*/a failed: Input/output error"):
        write(storage, "a")
    monkeypatch.undo()
    assert paths(storage) == ["before"]


def test_a_written_file_and_every_folder_above_it_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, int]] = []

    def remember(handle: int) -> None:
        synced.append((str(Path(f"/proc/self/fd/{handle}").readlink()), os.fstat(handle).st_size))

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to see which file a handle belongs to")
    monkeypatch.setattr(local.os, "fsync", remember)
    storage = open_storage(f"{tmp_path}/lake")
    write(storage, "main/orders/a", b"12345")
    names = [name for name, _ in synced]
    assert (f"{tmp_path}/lake/main/orders/a", 5) in synced
    assert names[-1] == f"{tmp_path}/lake/main/orders"
    assert {f"{tmp_path}/lake/main", f"{tmp_path}/lake", f"{tmp_path}", "/"} <= set(names)
    synced.clear()
    write(storage, "main/orders/b")
    assert [name for name, _ in synced] == [f"{tmp_path}/lake/main/orders/b", f"{tmp_path}/lake/main/orders"]


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    write(storage, "main/orders/a")
    storage.delete(["main/orders/a"])
    (tmp_path / "main/orders").rmdir()
    write(storage, "main/orders/a")
    assert paths(storage) == ["main/orders/a"]


def test_a_file_on_disk_is_never_overwritten(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    write(storage, "a", b"first")
    with pytest.raises(StorageError, match="is there already"):
        write(storage, "a", b"second")
    assert storage.read_bytes("a") == b"first"


def test_a_file_where_a_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("no folder")
    for path in ("a", "main/a"):
        with pytest.raises(StorageError, match=rf"writing {tmp_path}/files/{path} failed: "):
            write(open_storage(f"{tmp_path}/files"), path)
    assert (tmp_path / "files").read_text() == "no folder"


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(path: str, *_: Any) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    write(open_storage(str(tmp_path)), "before")
    # Root may write everywhere, so permissions of the folder would not do.
    monkeypatch.setattr(local, "_created", deny)
    with pytest.raises(StorageError, match=rf"writing {tmp_path}/a is not allowed \(Permission denied\)"):
        write(open_storage(str(tmp_path)), "a")


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_an_upload_that_is_refused_is_told_and_leaves_nothing(
    bucket: Storage, s3_server: S3Server, size: int
) -> None:
    def is_upload(request: Request) -> bool:
        return request.method in ("PUT", "POST") and "orders" in request.path

    with (
        s3_server.refusing(is_upload),
        pytest.raises(StorageError, match=r"writing s3://\S+/main/orders/a is not allowed") as caught,
    ):
        write(bucket, "main/orders/a", bytes(size))
    assert SECRET_KEY not in str(caught.value)
    assert paths(bucket) == []


def test_the_bodys_own_errors_stay_what_they_are(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), storage.open_output("a"):
        (tmp_path / "not there").read_bytes()
    with pytest.raises(pa.ArrowInvalid), storage.open_output("a"):
        pa.array(["no number"]).cast(pa.int64())
    assert paths(storage) == []


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_read_listed_and_deleted(
    storage: Storage, connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    attach_storage(connection, storage)
    path = f"main/{name}"
    address = write_table(storage, path, numbers(0, 3))
    # What a pattern would find as well.
    write_table(storage, f"main/{name.replace('*', 'more').replace('[a]', 'a')}.also", numbers(3, 3))
    found = "SELECT DISTINCT filename FROM read_parquet($files, filename = true)"
    assert connection.execute(found, {"files": [literal(address)]}).fetchall() == [(address,)]
    assert path in paths(storage)
    storage.delete([path])
    assert path not in paths(storage)


_names = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0?\\", exclude_categories=["Cc"]),
    min_size=1,
    max_size=20,
).filter(lambda name: name not in (".", ".."))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(names=st.lists(_names, min_size=1, max_size=3, unique=True), content=st.binary(max_size=20))
def test_any_name_is_a_name(storage: Storage, names: list[str], content: bytes) -> None:
    path = "/".join(["any", *names])
    write(storage, path, content)
    try:
        assert paths(storage, "any") == [path]
        assert storage.read_bytes(storage.address(path), relative=False) == content
    finally:
        storage.delete([path])
    assert paths(storage) == []


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\0b", "\ud800"]
)
def test_a_path_that_does_not_lead_below_the_data_path_is_refused(storage: Storage, path: str) -> None:
    for attempt in (storage.read_bytes, storage.info, storage.address, lambda path: storage.delete([path])):
        with pytest.raises(StorageError):
            attempt(path)
    with pytest.raises(StorageError):
        write(storage, path)


def test_a_name_that_no_query_could_read_is_not_written(storage: Storage) -> None:
    for name in ("back\\slash", "what?") if not storage.is_local else ("back\\slash",):
        with pytest.raises(StorageError, match="choose a name without"):
            write(storage, f"main/{name}.parquet")
    assert paths(storage) == []


@pytest.mark.parametrize("folder", ["back\\slash", "st*r", "br[a]cket"])
def test_duckdb_reads_below_a_folder_with_an_odd_name(
    s3_server: S3Server, tmp_path: Path, connection: duckdb.DuckDBPyConnection, folder: str
) -> None:
    for data_path in (s3_server.url(s3_server.new_bucket(), folder), str(tmp_path / folder)):
        storage = open_storage(data_path)
        attach_storage(connection, storage)
        address = write_table(storage, "a.parquet", numbers(4, 1))
        assert connection.execute("SELECT n FROM read_parquet($f)", {"f": [literal(address)]}).fetchall() == [
            (4,)
        ]


def test_absolute_paths_lead_anywhere(storage: Storage, tmp_path: Path, s3_server: S3Server) -> None:
    elsewhere = str(tmp_path / "elsewhere/a")
    write(storage, elsewhere, b"disk", relative=False)
    assert Path(elsewhere).read_bytes() == b"disk" == storage.read_bytes(elsewhere, relative=False)
    assert storage.info(elsewhere, relative=False).path == elsewhere
    storage.delete([elsewhere], relative=False)
    assert not Path(elsewhere).exists()
    if not storage.is_local:
        address = f"s3://{s3_server.new_bucket()}/elsewhere/a"
        write(storage, address, b"bucket", relative=False)
        assert storage.read_bytes(address, relative=False) == b"bucket"
    assert paths(storage) == []
    for odd in ("relative/path", "gs://bucket/key", "s3://", "s3://bucket//x", "s3://bucket/../x"):
        with pytest.raises(StorageError):
            storage.address(odd, relative=False)


def test_arrow_finds_what_resolve_says(storage: Storage) -> None:
    write_table(storage, "main/a.parquet", numbers(5, 2))
    filesystem, path = storage.resolve("main/a.parquet")
    assert pq.read_table(path, filesystem=filesystem)["n"].to_pylist() == [5, 6]


def test_a_file_whose_name_is_no_text_is_not_ours(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet")).write_bytes(b"")
    storage = open_storage(str(tmp_path))
    write(storage, "a")
    assert paths(storage) == ["a"]


def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(
    storage: Storage, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(storage, "main/a")

    def deny(path: str) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    # Root may list everything, so permissions of the folder would not do.
    monkeypatch.setattr(os, "scandir", deny)
    with s3_server.refusing(lambda request: request.method == "GET"), pytest.raises(StorageError):
        paths(storage)


def test_a_missing_bucket_is_told_or_made(s3_server: S3Server) -> None:
    url = s3_server.url("not-there", "lake")
    with pytest.raises(StorageError, match="there is no such bucket: create it"):
        write(open_storage(url), "a")
    with pytest.raises(StorageError, match="there is no such bucket"):
        paths(open_storage(url))
    made = open_storage(url, {"allow_bucket_creation": "true"})
    write(made, "a")
    assert paths(made) == ["a"]


def test_the_environment_tells_how_to_reach_a_bucket(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, no_credentials: None
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token-for-tests")
    storage = open_storage(f"s3://{s3_server.new_bucket()}")
    write(storage, "a")
    assert paths(storage) == ["a"]
    assert storage.s3.options.session_token == "a-token-for-tests"
    assert storage.s3.region == "us-east-1"


def test_options_win_over_the_environment() -> None:
    environment = {
        "AWS_ENDPOINT_URL": "http://env:1",
        "AWS_REGION": "env-1",
        "AWS_ACCESS_KEY_ID": "env",
        "AWS_SECRET_ACCESS_KEY": "env",
        "AWS_SESSION_TOKEN": "env",
    }
    found = s3_options(
        {"endpoint_override": "https://ours/s3/", "region": "r", "access_key": "k", "secret_key": "s"},
        environment,
    )
    assert (found.endpoint, found.secure, found.region) == ("ours/s3", True, "r")
    assert (found.access_key, found.secret_key, found.session_token) == ("k", "s", None)
    assert s3_options({"anonymous": "true"}, environment).access_key is None
    assert s3_options({"endpoint_override": "ours:9", "scheme": "http"}, {}).secure is False
    half = {"AWS_ACCESS_KEY_ID": "env", "AWS_SESSION_TOKEN": "env"}
    assert s3_options({}, half).session_token is None


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("/data/lake", "/data/lake/"),
        ("/data/lake/", "/data/lake/"),
        ("/data/what?x=1", "/data/what?x=1/"),
        ("/", "/"),
        ("//data/./lake//", "/data/lake/"),
        ("/nowhere/../data/lake", "/data/lake/"),
        ("lake/..", f"{Path.cwd().resolve()}/"),
        ("lake", f"{Path.cwd()}/lake/"),
        ("s3://bucket", "s3://bucket/"),
        ("s3://bucket/", "s3://bucket/"),
        ("s3://bucket/a/b", "s3://bucket/a/b/"),
        ("s3://bucket/a/b//", "s3://bucket/a/b/"),
        ("s3://bucket/a b/ü%20?region=x", "s3://bucket/a b/ü%20/"),
    ],
)
def test_a_data_path_is_stored_in_one_form(text: str, stored: str) -> None:
    assert split_data_path(text)[0] == stored
    assert split_data_path(stored) == (stored, {})
    assert open_storage(text).data_path == stored
    assert open_storage(text).address("a/b") == f"{stored}a/b"


_keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=5)


@given(_keys, _keys)
def test_options_are_read_as_they_were_written_and_never_stored(access_key: str, secret_key: str) -> None:
    given_options = {"access_key": access_key, "secret_key": secret_key, "region": "eu-west-1"}
    encoded = urlencode(
        given_options, quote_via=lambda text, *_: "".join(f"%{byte:02x}" for byte in text.encode())
    )
    stored, options = split_data_path(f"s3://bucket/lake?{encoded}")
    assert (stored, dict(options)) == ("s3://bucket/lake/", given_options)


def test_a_plus_in_a_key_stays_a_plus() -> None:
    _, options = split_data_path("s3://bucket?access_key=A&secret_key=a+b/c==")
    assert options == {"access_key": "A", "secret_key": "a+b/c=="}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a\0b",
        "gs://bucket/hunter2",
        "http://user:hunter2@host/x",
        "file:///hunter2",
        "s3a://bucket/hunter2",
        "s3://",
        "s3:///hunter2",
        "s3://key:hunter2@bucket/x",
        "s3://bucket/a//hunter2",
        "s3://bucket/../hunter2",
        "s3://bucket?password=hunter2",
        "s3://bucket?access_key=hunter2",
        "s3://bucket?secret_key=hunter2",
        "s3://bucket?anonymous=maybe",
        "s3://bucket?endpoint_override=http://user:hunter2@host",
        "s3://bucket?endpoint_override=ftp://hunter2",
        "s3://bucket?endpoint_override=http://host:hunter2",
    ],
)
def test_a_data_path_that_cannot_be_used_is_refused_without_showing_it(text: str) -> None:
    for attempt in (split_data_path, open_storage):
        with pytest.raises(InvalidUrl) as caught:
            attempt(text)
        assert "hunter2" not in str(caught.value)


def test_credentials_do_not_show(bucket: Storage, s3_server: S3Server) -> None:
    shown = [repr(bucket), repr(bucket.s3.options), bucket.address("a"), bucket.data_path]
    wrong = open_storage(s3_server.url("never-made"))
    for attempt in (lambda: wrong.read_bytes("a"), lambda: list(wrong.files()), lambda: write(wrong, "a")):
        with pytest.raises(StorageError) as caught:
            attempt()
        shown.append(f"{caught.value!r} {caught.value.__cause__!r}")
    assert not [text for text in shown if SECRET_KEY in text or ACCESS_KEY in text]


def test_credentials_in_the_words_of_others_are_hidden(bucket: Storage) -> None:
    with pytest.raises(StorageError) as caught, bucket.open_output("a"):
        raise OSError(f"the signature of {ACCESS_KEY} by {SECRET_KEY} is wrong")
    shown = "".join(traceback.format_exception(caught.value))
    assert "the signature of … by … is wrong" in shown
    assert f"by {SECRET_KEY}" not in shown


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


def test_data_paths_in_the_folder_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    with forklake.connect("sqlite:///~/lake.db", data_path="~/files", create=True) as lake:
        assert lake.data_path == f"{tmp_path}/home/files/"
        lake.create_catalog("c").create_table("t", "n BIGINT").append([{"n": at} for at in range(1000)])
        fork = lake.fork("c", "f", data_path="~/forks/f")
        fork.table("t").append([{"n": at} for at in range(1000)])
    with forklake.connect(f"sqlite:///{tmp_path}/home/lake.db", data_path=Path("~/files")) as lake:
        assert lake.catalog("f").table("t").count() == 2000
        with pytest.raises(InvalidUrl, match="no folder of a user"):
            lake.fork("c", "g", data_path="~nobody_is_called_so/f")
        # A folder that is called so is meant if it does not begin with it.
        lake.fork("c", "h", data_path="./~")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["files", "forks", "lake.db"]
