"""A store that is missing, foreign, broken, busy, read-only or gone: one sentence, and nothing is written."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import sqlite3
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import duckdb
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import forklake
from forklake.errors import (
    DataPathMismatch,
    ForklakeError,
    InvalidName,
    InvalidUrl,
    MetadataExists,
    MetadataNotFound,
    ReadOnlyStore,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnsupportedVersion,
)
from forklake.localpg import LocalPostgres
from forklake.store.backend import Database, Interrupted
from forklake.store.row_sets import SETTINGS
from tests.extensions import load

RunSql = Callable[..., list[tuple[Any, ...]]]
InThreads = Callable[..., list[Any]]

embedded = pytest.mark.parametrize("lake_url", ["sqlite", "duckdb"], indirect=True)
only_sqlite = pytest.mark.parametrize("lake_url", ["sqlite"], indirect=True)
only_duckdb = pytest.mark.parametrize("lake_url", ["duckdb"], indirect=True)
only_postgresql = pytest.mark.parametrize("lake_url", ["postgresql"], indirect=True)

INIT = r"forklake .*init"
"""The command that helps somebody who has no lake, or not one of ours."""


def check_sentence(said: str) -> None:
    """One line for people: no traceback, no class names, no second line from a driver."""
    assert said
    assert said == said.strip()
    assert "\n" not in said
    assert not re.search(r"Traceback|\b(psycopg|sqlite3|duckdb)\.\w*(Error|Exception)|\[Errno", said), said


@contextmanager
def refused(*kinds: type[ForklakeError], says: str = "", hides: str | None = None) -> Iterator[None]:
    with pytest.raises(ForklakeError) as caught:
        yield
    assert isinstance(caught.value, kinds), repr(caught.value)
    check_sentence(str(caught.value))
    assert re.search(says, str(caught.value)), str(caught.value)
    assert hides is None or hides not in repr(caught.value), str(caught.value)


@contextmanager
def nothing_written(folder: Path) -> Iterator[None]:
    """Every file below the folder keeps its bytes, and none appears or goes."""
    before = contents(folder)
    yield
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes]:
    found = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


def path_of(url: str) -> Path:
    return Path(urlsplit(url).path.removeprefix("/"))


@pytest.fixture
def closed_lake(lake: forklake.Lake, lake_url: str) -> str:
    """The address of a lake with one catalog, which nobody has open."""
    lake.create_catalog("a")
    lake.close()
    return lake_url


# ---- Addresses ------------------------------------------------------------------------------------------

WRONG_URLS = [
    "",
    " ",
    "lake.db",
    "/var/lake.db",
    "lake",
    "file:///lake.db",
    "https://example.com/lake",
    "mysql://user@host/db",
    "sqlite",
    "sqlite:",
    "sqlite://",
    "sqlite:///",
    "sqlite:////",
    "sqlite://lake.db",
    "sqlite://folder/lake.db",
    "sqlite:lake.db",
    "sqlite:/folder/lake.db",
    "sqlite:///folder/",
    "sqlite:///:memory:",
    "sqlite:///a%00b.db",
    "sqlite:///a\nb.db",
    "sqlite:///a\tb.db",
    "sqlite:///a#b.db",
    "sqlite:///lake.db?mode=ro",
    "sqlite:///lake.db?metadata_schema=a",
    "sqlite3:///lake.db",
    "duckdb",
    "duckdb://",
    "duckdb:///",
    "duckdb:///:memory:",
    "duckdb://lake.db",
    "duckdb:lake.db",
    "duckdb:///lake.db?schema=a",
    "duckdb:///lake.db?pool_size=3",
    "postgresql://host:port/db",
    "postgresql://host:99999/db",
    "postgresql://[::1/db",
    "postgresql://host/db?nonsense=1",
    "postgresql://host/db?pool_size=0",
    "postgresql://host/db?pool_size=-1",
    "postgresql://host/db?pool_size=1001",
    "postgresql://host/db?pool_size=many",
    "postgresql://host/db?pool_size=",
    "postgresql://host/db?pool_size=%C2%B2",
    "postgresql+psycopg://host/db",
]


@pytest.mark.parametrize("url", WRONG_URLS)
@pytest.mark.parametrize("create", [False, True], ids=["open", "create"])
def test_an_address_that_cannot_be_read_is_refused(
    url: str, create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with nothing_written(tmp_path), refused(InvalidUrl):
        forklake.connect(url, data_path=tmp_path, create=create)


@pytest.mark.parametrize("url", [None, 7, b"sqlite:///lake.db", Path("lake.db"), ["sqlite:///lake.db"]])
def test_an_address_that_is_not_text_is_refused(url: Any) -> None:
    with refused(InvalidUrl):
        forklake.connect(url)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_the_error_for_a_wrong_address_shows_how_a_right_one_looks(kind: str) -> None:
    with refused(InvalidUrl, says="sqlite:///"):
        forklake.connect("lake.db")
    with refused(InvalidUrl, says=f"{kind}:///"):
        forklake.connect(f"{kind}://lake.db")


@pytest.mark.parametrize("name", ["", "%20", "a%0Ab", "a%00b", "n" * 256])
@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
def test_a_metadata_schema_that_is_no_name_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    url = f"{kind}:///{tmp_path / 'lake.db'}?metadata_schema={name}"
    with nothing_written(tmp_path), refused(InvalidUrl, InvalidName):
        forklake.connect(url, data_path=tmp_path, create=True)


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{SECRET}@127.0.0.1:1/db",
        f"postgresql://user:{SECRET}@host:port/db",
        f"postgresql://user:{SECRET}@host/db?pool_size=0",
        f"postgresql://user:{SECRET}@host/db?nonsense=1",
        f"postgresql://user@127.0.0.1:1/db?password={SECRET}",
        f"postgres+asyncpg://user:{SECRET}@host/db",
        f"mysql://user:{SECRET}@host/db",
        f"sqlite://user:{SECRET}@host/db",
    ],
)
def test_no_error_shows_a_password(url: str) -> None:
    with refused(ForklakeError, hides=SECRET):
        forklake.connect(url, create=True, data_path="files")


@pytest.mark.parametrize("data_path", ["", " ", "a\0b"])
def test_a_data_path_that_is_none_is_refused_before_anything_is_made(
    lake_url: str, tmp_path: Path, data_path: str
) -> None:
    with nothing_written(tmp_path), refused(InvalidUrl):
        forklake.connect(lake_url, data_path=data_path, create=True)
    with refused(MetadataNotFound):
        forklake.connect(lake_url)


def test_odd_but_right_file_names_work(tmp_path: Path) -> None:
    for kind in ("sqlite", "duckdb"):
        for name in ("a b.db", "100%.db", "what?.db", "q#1.db", "ünï ✓.db", 'it\'s "it".db', "a;b&c=d.db"):
            path = tmp_path / kind / name
            url = f"{kind}:///{quote(str(path))}"
            with forklake.connect(url, create=True) as lake:
                lake.create_catalog("a")
                shown = lake.url
            assert path.is_file()
            # What messages and listings show can be pasted.
            for again in (url, shown):
                with forklake.connect(again) as lake:
                    assert [catalog.name for catalog in lake.catalogs()] == ["a"]


# ---- Nothing there --------------------------------------------------------------------------------------


@embedded
@pytest.mark.parametrize("name", ["missing.db", "no/such/folder/missing.db"])
def test_a_missing_file_is_not_found_and_not_made(lake_url: str, tmp_path: Path, name: str) -> None:
    url = lake_url.replace("lake.db", name)
    with nothing_written(tmp_path), refused(MetadataNotFound, says=INIT):
        forklake.connect(url)
    with nothing_written(tmp_path), refused(MetadataNotFound):
        forklake.connect(url, data_path=tmp_path)


@only_postgresql
def test_a_missing_schema_is_not_found_and_not_made(lake_url: str, postgres_server: str) -> None:
    with refused(MetadataNotFound, says=INIT):
        forklake.connect(lake_url)
    schema = lake_url.rpartition("=")[2]
    with psycopg.connect(postgres_server) as connection:
        query = "SELECT count(*) FROM pg_namespace WHERE nspname = %s"
        assert connection.execute(query, [schema]).fetchone() == (0,)


@only_postgresql
def test_a_new_lake_on_a_server_needs_a_data_path(lake_url: str) -> None:
    with refused(InvalidUrl, says="data path"):
        forklake.connect(lake_url, create=True)
    with refused(MetadataNotFound):
        forklake.connect(lake_url)


def test_a_lake_is_not_created_twice_by_init(closed_lake: str, tmp_path: Path) -> None:
    with refused(MetadataExists):
        forklake.init(closed_lake, data_path=tmp_path / "files")
    with forklake.connect(closed_lake) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]


@embedded
def test_a_database_of_somebody_else_holds_no_lake_and_is_left_alone(lake_url: str, tmp_path: Path) -> None:
    make_foreign(lake_url)
    with nothing_written(tmp_path), refused(MetadataNotFound, says=INIT):
        forklake.connect(lake_url)


def make_foreign(url: str) -> None:
    text = "CREATE TABLE accounts (id INTEGER)"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(path_of(url))) as connection:
            connection.execute(text)
    else:
        with duckdb.connect(str(path_of(url))) as connection:
            connection.execute(text)


@embedded
def test_an_empty_file_holds_no_lake_and_stays_empty(lake_url: str, tmp_path: Path) -> None:
    path_of(lake_url).touch()
    with nothing_written(tmp_path), refused(MetadataNotFound, StoreUnavailable):
        forklake.connect(lake_url)


# ---- Another version, another format --------------------------------------------------------------------


def test_a_lake_without_a_version_was_never_finished(lake: forklake.Lake, lake_url: str, raw: RunSql) -> None:
    raw("DELETE FROM ducklake_metadata WHERE key = 'version'")
    before = raw("SELECT key, value FROM ducklake_metadata")
    for create in (False, True):
        with refused(UnsupportedVersion, says=INIT):
            forklake.connect(lake_url, create=create)
    assert raw("SELECT key, value FROM ducklake_metadata") == before


@pytest.mark.parametrize("version", ["1.0", "0.4", "0.5", "0.5-dev", "0.5-dev02", "", "it's 'new'\nand odd"])
def test_a_lake_of_another_format_is_refused_with_the_command_that_helps(
    lake: forklake.Lake, lake_url: str, raw: RunSql, version: str
) -> None:
    literal = version.replace("'", "''")
    raw(f"UPDATE ducklake_metadata SET value = '{literal}' WHERE key = 'version'")
    before = raw("SELECT key, value FROM ducklake_metadata")
    for create in (False, True):
        with refused(UnsupportedVersion, says=INIT):
            forklake.connect(lake_url, create=create)
    assert raw("SELECT key, value FROM ducklake_metadata") == before


def test_metadata_of_the_first_ducklake_is_another_version(
    lake_url: str, sql_on: Callable[[str], RunSql]
) -> None:
    # DuckLake 0.1 had settings without a scope.
    schema = "" if lake_url.startswith("sqlite") else f"{lake_url.rpartition('=')[2]}."
    if lake_url.startswith("duckdb"):
        schema = "ducklake."
    raw = sql_on(lake_url)
    if schema:
        raw(f"CREATE SCHEMA {schema[:-1]}")
    raw(f"CREATE TABLE {schema}ducklake_metadata (key VARCHAR NOT NULL, value VARCHAR NOT NULL)")
    raw(f"INSERT INTO {schema}ducklake_metadata VALUES ('version', '0.1')")
    for create in (False, True):
        with refused(UnsupportedVersion, says=INIT):
            forklake.connect(lake_url, data_path="files", create=create)
    assert raw(f"SELECT * FROM {schema}ducklake_metadata") == [("version", "0.1")]


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def stock_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a real DuckLake 1.0 with one row in it, made by the stock extension."""
    path = tmp_path / "stock.db"
    with duckdb.connect() as connection:
        load(connection, "ducklake")
        if request.param == "postgresql":
            load(connection, "postgres_scanner")
            server = request.getfixturevalue("postgres_database")
            place = f"postgres:{make_conninfo(server)}"
            url = f"{server}?metadata_schema=public"
        elif request.param == "sqlite":
            load(connection, "sqlite_scanner")
            place, url = f"sqlite:{path}", f"sqlite:///{path}"
        else:
            place, url = str(path), f"duckdb:///{path}?metadata_schema=main"
        connection.execute(f"ATTACH 'ducklake:{place}' AS stock (DATA_PATH '{tmp_path / 'data'}')")
        connection.execute("CREATE TABLE stock.t AS SELECT 7 AS seven")
        connection.execute("DETACH stock")
    return url


@pytest.mark.parametrize("create", [False, True], ids=["open", "create"])
def test_a_stock_ducklake_is_another_version_and_is_left_alone(
    stock_url: str, tmp_path: Path, create: bool
) -> None:
    with nothing_written(tmp_path), refused(UnsupportedVersion, says=f"'1.0'.*{INIT}"):
        forklake.connect(stock_url, data_path=tmp_path / "data", create=create)


# SQLite has no schemas: there the stock tables stand where the lake's would.
@pytest.mark.parametrize("stock_url", ["duckdb", "postgresql"], indirect=True)
def test_a_stock_ducklake_is_not_found_where_a_lake_would_be(stock_url: str, tmp_path: Path) -> None:
    url = stock_url.partition("?")[0]
    with nothing_written(tmp_path), refused(MetadataNotFound, says=INIT):
        forklake.connect(url)


# ---- Not a database, or a damaged one -------------------------------------------------------------------


def write_text(path: Path) -> None:
    path.write_text("this is not a database\n" * 1000)


def write_noise(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 100)


def write_short(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0"[:10])


def cut_to_the_header(path: Path) -> None:
    os.truncate(path, 4000)


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 + 7)


def overwrite_the_middle(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 8192))


def swap_for_the_other_kind(path: Path) -> None:
    header = path.read_bytes()[:16]
    path.unlink()
    make_foreign(f"{'duckdb' if header.startswith(b'SQLite') else 'sqlite'}:///{path}")


# A name with "lock" in it must not make a broken file look like a busy one.
@pytest.mark.parametrize("name", ["lake.db", "locked_blocks.db"])
@pytest.mark.parametrize(
    "damage",
    [
        write_text,
        write_noise,
        write_short,
        cut_to_the_header,
        cut_in_half,
        overwrite_the_middle,
        swap_for_the_other_kind,
    ],
)
@embedded
def test_a_file_that_is_no_database_or_damaged_is_named_as_such_and_left_alone(
    closed_lake: str, tmp_path: Path, damage: Callable[[Path], None], name: str
) -> None:
    path_of(closed_lake).rename(tmp_path / name)
    url = closed_lake.replace("lake.db", name)
    damage(tmp_path / name)
    before = (tmp_path / name).read_bytes()
    for create in (False, True):
        with (
            refused(StoreUnavailable, says=re.escape(name), hides="download"),
            forklake.connect(url, create=create) as lake,
        ):
            lake.catalogs()
        assert (tmp_path / name).read_bytes() == before


@embedded
def test_a_folder_is_no_database(lake_url: str, tmp_path: Path) -> None:
    path_of(lake_url).mkdir()
    for create in (False, True):
        with nothing_written(tmp_path), refused(InvalidUrl, says="folder"):
            forklake.connect(lake_url, create=create)


@embedded
@pytest.mark.parametrize("create", [False, True], ids=["open", "create"])
@pytest.mark.parametrize("name", ["taken/lake.db", "n" * 300 + ".db", "loop/lake.db"])
def test_a_path_that_cannot_be_is_refused(lake_url: str, tmp_path: Path, name: str, create: bool) -> None:
    (tmp_path / "taken").write_text("a file where a folder would have to be")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    url = lake_url.replace("lake.db", name)
    with nothing_written(tmp_path), refused(StoreUnavailable, MetadataNotFound):
        forklake.connect(url, create=create)


@embedded
def test_a_device_is_no_database(lake_url: str) -> None:
    kind = lake_url.partition(":")[0]
    for create in (False, True):
        with refused(StoreError):
            forklake.connect(f"{kind}:////dev/null", create=create)


# ---- Read-only ------------------------------------------------------------------------------------------


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others may enter, unlike `tmp_path`."""
    made = Path(tempfile.mkdtemp(prefix="forklake-test-"))
    made.chmod(0o755)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


@pytest.fixture(params=["sqlite", "duckdb"])
def kind(request: pytest.FixtureRequest) -> str:
    """The embedded databases."""
    return request.param


def lake_in(folder: Path, kind: str) -> tuple[str, Path]:
    path = folder / "lake.db"
    url = f"{kind}:///{path}"
    with forklake.connect(url, data_path=folder / "files", create=True) as lake:
        lake.create_catalog("a")
    return url, path


AS_A_READER = """
drop_privileges()
def read():
    with forklake.connect(sys.argv[1]) as lake:
        return [[catalog.name for catalog in lake.catalogs()], lake.catalog("a").snapshot]
def write():
    with forklake.connect(sys.argv[1]) as lake:
        lake.create_catalog("b")
def create():
    with forklake.connect(sys.argv[1], create=True) as lake:
        return [catalog.name for catalog in lake.catalogs()]
say([outcome(read), outcome(write), outcome(create), outcome(read)])
"""

READ_ONLY = {
    "file_and_folder": (0o444, 0o555),
    "file": (0o444, 0o777),
    "folder": (0o666, 0o555),
}


@pytest.mark.parametrize(("file_mode", "folder_mode"), READ_ONLY.values(), ids=READ_ONLY.keys())
def test_what_is_read_only_can_be_read_and_not_written(
    folder: Path, kind: str, program: Callable[..., Any], file_mode: int, folder_mode: int
) -> None:
    url, path = lake_in(folder, kind)
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    with nothing_written(folder):
        read, write, create, again = program(AS_A_READER, url).hear()
    assert read == again == ["returned", [["a"], 1]]
    assert create == ["returned", ["a"]]
    assert write[0] == "ReadOnlyStore"
    check_sentence(write[1])


NO_ACCESS = {"file": (0o000, 0o755), "folder": (0o644, 0o000)}


@pytest.mark.parametrize(("file_mode", "folder_mode"), NO_ACCESS.values(), ids=NO_ACCESS.keys())
def test_what_may_not_be_read_is_unavailable(
    folder: Path, kind: str, program: Callable[..., Any], file_mode: int, folder_mode: int
) -> None:
    url, path = lake_in(folder, kind)
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    answers = program(AS_A_READER, url).hear()
    assert [name for name, _ in answers] == ["StoreUnavailable"] * 4
    for _, said in answers:
        check_sentence(said)


def test_a_lake_cannot_be_created_in_a_folder_that_is_read_only(
    folder: Path, kind: str, program: Callable[..., Any]
) -> None:
    folder.chmod(0o555)
    with nothing_written(folder):
        read, write, create, _ = program(AS_A_READER, f"{kind}:///{folder}/new/lake.db").hear()
    assert (read[0], write[0]) == ("MetadataNotFound", "MetadataNotFound")
    assert create[0] in ("StoreUnavailable", "ReadOnlyStore")
    check_sentence(create[1])
    with nothing_written(folder):
        *_, create, _ = program(AS_A_READER, f"{kind}:///{folder}/lake.db").hear()
    assert create[0] in ("StoreUnavailable", "ReadOnlyStore")
    check_sentence(create[1])


KEEP_READING = """
drop_privileges()
with forklake.connect(sys.argv[1]) as lake:
    while True:
        say(outcome(lambda: [catalog.name for catalog in lake.catalogs()]))
        input()
"""


def test_a_reader_without_rights_sees_what_is_committed_while_it_reads(
    folder: Path, program: Callable[..., Any]
) -> None:
    url, path = lake_in(folder, "sqlite")
    path.chmod(0o644)
    early = program(KEEP_READING, url)
    assert early.hear() == ["returned", ["a"]]
    with forklake.connect(url) as lake:
        for number in range(3):
            lake.create_catalog(f"b{number}")
            # One that opens the file while a writer has it open, and one that had it open before.
            late = program(KEEP_READING, url)
            expected = ["returned", ["a", *(f"b{each}" for each in range(number + 1))]]
            assert late.hear() == expected
            early.go_on()
            assert early.hear() == expected
    early.go_on()
    assert early.hear() == ["returned", ["a", "b0", "b1", "b2"]]


@only_postgresql
def test_a_server_that_only_allows_reading_can_be_read(closed_lake: str, reopen: Any) -> None:
    # What stands in a URL is percent-encoded: a space is %20.
    lake = reopen(f"{closed_lake}&options=-c%20default_transaction_read_only%3Don")
    assert [catalog.name for catalog in lake.catalogs()] == ["a"]
    for write in (
        lambda: lake.create_catalog("b"),
        lambda: lake.catalog("a").create_schema("s"),
        lambda: lake.drop_catalog("a"),
    ):
        with refused(ReadOnlyStore):
            write()
    assert [snapshot.id for snapshot in reopen().snapshots()] == [0, 1]


@only_postgresql
def test_a_role_that_may_only_read_reads_and_is_told_to_ask_for_rights(
    closed_lake: str, reopen: Any, sql_on: Callable[[str], RunSql]
) -> None:
    raw = sql_on(closed_lake)
    schema = closed_lake.rpartition("=")[2]
    role = f"reader_{schema}"
    raw(f"CREATE ROLE {role} LOGIN")
    try:
        raw(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        raw(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
        parts = urlsplit(closed_lake)
        lake = reopen(parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl())
        for at in (None, 1, lake.now()):
            assert [catalog.name for catalog in lake.catalogs(at=at)] == ["a"]
        assert lake.catalog("a", at=lake.now()).snapshot == lake.snapshots()[-1].id == 1
        with refused(StoreUnavailable, ReadOnlyStore, says="rights"):
            lake.create_catalog("b")
        with refused(StoreUnavailable, ReadOnlyStore, says="rights"):
            lake.catalog("a").create_schema("s")
        lake.close()
    finally:
        raw(f"DROP OWNED BY {role}")
        raw(f"DROP ROLE {role}")
    assert raw("SELECT count(*) FROM ducklake_snapshot") == [(2,)]


# ---- Busy -----------------------------------------------------------------------------------------------

HOLD = {
    "by_another_lake": "lake = forklake.connect(sys.argv[1])",
    "by_a_writer": "import duckdb; connection = duckdb.connect(sys.argv[2])",
    "by_a_reader": "import duckdb; connection = duckdb.connect(sys.argv[2], read_only=True)",
}


@pytest.mark.parametrize("hold", HOLD.values(), ids=HOLD.keys())
@only_duckdb
def test_a_duckdb_file_that_is_open_in_another_process_is_busy(
    closed_lake: str, tmp_path: Path, program: Callable[..., Any], hold: str
) -> None:
    holder = program(f"{hold}\nsay('open')\ninput()", closed_lake, str(path_of(closed_lake)))
    assert holder.hear() == "open"
    for create in (False, True):
        with nothing_written(tmp_path), refused(StoreBusy, says="another process"):
            forklake.connect(closed_lake, create=create)
    holder.go_on()
    assert holder.wait() == 0
    with forklake.connect(closed_lake) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]


@only_duckdb
def test_a_duckdb_file_that_is_open_otherwise_in_this_process_is_not_called_closed(closed_lake: str) -> None:
    with duckdb.connect(str(path_of(closed_lake)), read_only=True), refused(StoreError, hides="closed"):
        forklake.connect(closed_lake)
    with forklake.connect(closed_lake) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]


# ---- Data paths -----------------------------------------------------------------------------------------


def test_another_data_path_is_refused_and_the_stored_one_stays(
    closed_lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for other in ("elsewhere", tmp_path / "files" / "below", tmp_path, "s3://bucket/files"):
        for create in (False, True):
            with refused(DataPathMismatch, says=re.escape(f"{tmp_path / 'files'}/")):
                forklake.connect(closed_lake, data_path=other, create=create)
    for same in (None, "files", "files/", tmp_path / "files", f"{tmp_path}/files/"):
        with forklake.connect(closed_lake, data_path=same) as lake:
            assert lake.data_path == f"{tmp_path / 'files'}/"


# ---- Closed ---------------------------------------------------------------------------------------------


def test_a_closed_lake_refuses_everything_and_can_be_closed_again(
    lake: forklake.Lake, lake_url: str, catalog: forklake.Catalog
) -> None:
    table = catalog.create_table("t", "id BIGINT")
    transaction = catalog.transaction()
    transaction.create_schema("too_late")
    lake.close()
    for use in (
        lake.catalogs,
        lake.snapshots,
        lambda: lake.catalog("main_catalog"),
        lambda: lake.create_catalog("b"),
        lambda: lake.rename_catalog("main_catalog", "b"),
        lambda: lake.drop_catalog("main_catalog"),
        lambda: catalog.snapshot,
        catalog.schemas,
        lambda: catalog.create_schema("s"),
        catalog.transaction,
        transaction.commit,
        lambda: table.add_column("b", "BIGINT"),
    ):
        with refused(StoreError, says="closed"):
            use()
    lake.close()
    with forklake.connect(lake_url) as again:
        assert [snapshot.id for snapshot in again.snapshots()] == [0, 1, 2]


# ---- A server that is not there -------------------------------------------------------------------------


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """With what PostgreSQL's client was asked to connect, each time."""
    asked: list[dict[str, Any]] = []
    connect = psycopg.connect

    def recorded(conninfo: str, **options: Any) -> Any:
        asked.append({**conninfo_to_dict(conninfo), **options})
        return connect(conninfo, **options)

    monkeypatch.setattr(psycopg, "connect", recorded)
    return asked


def test_a_server_that_does_not_run_is_unavailable_at_once(
    attempts: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("nothing is waited for"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with refused(StoreUnavailable):
            forklake.connect(f"postgresql://user@127.0.0.1:{taken.getsockname()[1]}/db")
    assert len(attempts) == 1


def test_a_server_that_never_answers_is_unavailable_after_the_time_that_the_address_says(
    attempts: list[dict[str, Any]],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with refused(StoreUnavailable):
            forklake.connect(f"postgresql://user@127.0.0.1:{port}/db?connect_timeout=2&sslmode=disable")
    assert [attempt["connect_timeout"] for attempt in attempts] == ["2"]


def test_a_server_that_is_no_postgresql_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        with refused(StoreUnavailable):
            port = server.getsockname()[1]
            forklake.connect(f"postgresql://user@127.0.0.1:{port}/db?sslmode=disable&connect_timeout=5")
        answering.join()


@only_postgresql
def test_a_missing_database_and_a_missing_role_are_unavailable(lake_url: str) -> None:
    parts = urlsplit(lake_url)
    with refused(StoreUnavailable, says="no_such_db"):
        forklake.connect(parts._replace(path="/no_such_db").geturl(), data_path="files", create=True)
    with refused(StoreUnavailable, says="no_such_role"):
        url = parts._replace(netloc=f"no_such_role@{parts.hostname}:{parts.port}").geturl()
        forklake.connect(url, data_path="files", create=True)


@pytest.fixture(scope="module")
def own_server() -> Iterator[str]:
    """A server that tests may reconfigure and crash; it keeps what it has confirmed."""
    with LocalPostgres() as server:
        yield server.url


def test_a_wrong_password_is_refused_and_never_shown(own_server: str, tmp_path: Path) -> None:
    with psycopg.connect(own_server, autocommit=True) as connection:
        connection.execute("CREATE ROLE careful LOGIN PASSWORD 'the right one'")
        connection.execute("GRANT CREATE ON DATABASE postgres TO careful")
        (rules,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        text = Path(rules).read_text()
        Path(rules).write_text(f"host all careful 127.0.0.1/32 scram-sha-256\n{text}")
        connection.execute("SELECT pg_reload_conf()")
    parts = urlsplit(own_server)

    def url(password: str) -> str:
        return parts._replace(netloc=f"careful{password}@{parts.hostname}:{parts.port}").geturl()

    for wrong in (f":{SECRET}", ""):
        for create in (False, True):
            with refused(StoreUnavailable, says="password", hides=SECRET):
                forklake.connect(url(wrong), data_path=tmp_path, create=create)
    with forklake.connect(url(":the%20right%20one"), data_path=tmp_path, create=True) as lake:
        assert lake.catalogs() == []
        assert "the right one" not in lake.url + repr(lake)
        assert "the%20right" not in lake.url + repr(lake)
        shown = urlsplit(lake.url)
        lake.create_catalog("a")
    # With the password, which the other knows, the address serves another process.
    told = shown._replace(netloc=f"{shown.username}:the%20right%20one@{shown.hostname}:{shown.port}").geturl()
    with forklake.connect(told) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["a"]


def test_the_address_of_a_lake_on_a_server_can_be_handed_on(postgres_server: str, tmp_path: Path) -> None:
    """Whichever way it was written, all but a password is there."""
    parts = urlsplit(postgres_server)
    where = f"host={parts.hostname}&port={parts.port}&user={parts.username}"
    several = f"host={parts.hostname},{parts.hostname}&port={parts.port},{parts.port}&user={parts.username}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute('CREATE ROLE "odd @:/ user" LOGIN SUPERUSER')
    odd = f"{quote('odd @:/ user', safe='')}@{parts.hostname}:{parts.port}"
    given = [
        postgres_server + "?application_name=a%20b%26c&sslmode=disable",
        f"postgresql://{parts.path}?{where}",
        f"postgresql://{parts.path}?{several}",
        f"postgresql://{odd}{parts.path}",
    ]
    try:
        for number, address in enumerate(given):
            url = f"{address}{'&' if '?' in address else '?'}metadata_schema=handed%20on{number}"
            with forklake.connect(url, data_path=tmp_path / "files", create=True) as lake:
                lake.create_catalog(f"c{number}")
                shown = lake.url
            with forklake.connect(shown) as lake:
                assert [catalog.name for catalog in lake.catalogs()] == [f"c{number}"]
                assert lake.url == shown
            if number == 0:
                assert "application_name=a%20b%26c&sslmode=disable&" in shown
    finally:
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            for number in range(len(given)):
                connection.execute(f'DROP SCHEMA IF EXISTS "handed on{number}" CASCADE'.encode())
            connection.execute('DROP ROLE "odd @:/ user"')


# ---- A server that goes away ----------------------------------------------------------------------------


@pytest.fixture
def far_lake(postgres_database: str, tmp_path: Path) -> Iterator[forklake.Lake]:
    """A lake in a database of its own, so that all its connections can be found."""
    with forklake.connect(postgres_database, data_path=tmp_path / "files", create=True) as lake:
        lake.create_catalog("a")
        yield lake


@pytest.fixture
def cut_off(postgres_database: str) -> Iterator[Callable[[], int]]:
    """Ends every connection that the lake has open, and says how many there were."""
    find = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend'"
    )
    with psycopg.connect(postgres_database, autocommit=True) as connection:

        def cut() -> int:
            query = sql.SQL("SELECT count(pg_terminate_backend(pid, 5000)) FROM ({}) AS found")
            (ended,) = connection.execute(query.format(sql.SQL(find))).fetchone() or (0,)
            return ended

        yield cut


def open_connections(database: Database, in_threads: InThreads, count: int) -> None:
    """Leave the pool with many idle connections, as the threads of a server would."""
    meet = threading.Barrier(count)

    def hold() -> None:
        with database.transaction() as session:
            session.rows("latest_snapshot")
            meet.wait()

    in_threads(*[hold] * count)


def names(lake: forklake.Lake) -> list[str]:
    return [schema.name for schema in lake.catalog("a").schemas()]


@pytest.mark.parametrize("connections", [1, 12])
def test_reads_go_on_after_every_connection_was_lost(
    far_lake: forklake.Lake, cut_off: Callable[[], int], in_threads: InThreads, connections: int
) -> None:
    open_connections(far_lake._database, in_threads, connections)
    assert cut_off() >= connections
    assert names(far_lake) == ["main"]
    assert in_threads(*[lambda: names(far_lake)] * connections) == [["main"]] * connections


@pytest.mark.parametrize("connections", [1, 12])
def test_a_commit_lands_once_after_every_connection_was_lost(
    far_lake: forklake.Lake, cut_off: Callable[[], int], in_threads: InThreads, connections: int
) -> None:
    catalog = far_lake.catalog("a")
    open_connections(far_lake._database, in_threads, connections)
    transaction = catalog.transaction()
    transaction.create_schema("s")
    assert cut_off() >= connections
    transaction.commit()
    assert names(far_lake) == ["main", "s"]
    assert len(far_lake.snapshots("a")) == 2


def test_a_transaction_that_loses_its_connection_leaves_nothing_and_says_so(
    far_lake: forklake.Lake, cut_off: Callable[[], int]
) -> None:
    database = far_lake._database
    with refused(Interrupted), database.transaction() as session:
        session.lock_head(far_lake.catalog("a").id)
        session.insert(SETTINGS, [("lost", "x")])
        assert session.rows("setting", key="lost") == [("x",)]
        cut_off()
        session.commit()
    assert database.rows("setting", key="lost") == []
    far_lake.catalog("a").create_schema("s")
    assert names(far_lake) == ["main", "s"]


def test_commits_land_exactly_once_while_connections_are_lost_again_and_again(
    far_lake: forklake.Lake, cut_off: Callable[[], int], in_threads: InThreads
) -> None:
    ended = 0
    enough = threading.Event()

    def disturb() -> None:
        nonlocal ended
        while ended < 12 and not enough.wait(0.02):
            ended += cut_off()
        enough.set()

    def commit_all_the_while(worker: int) -> list[str]:
        created: list[str] = []
        try:
            while not enough.is_set():
                name = f"s_{worker}_{len(created)}"
                far_lake.catalog("a").create_schema(name)
                created.append(name)
        finally:
            enough.set()
        return created

    workers = [lambda worker=worker: commit_all_the_while(worker) for worker in range(2)]
    _, *created = in_threads(disturb, *workers)
    assert ended >= 12
    expected = sorted(["main", *created[0], *created[1]])
    assert sorted(names(far_lake)) == expected
    assert len(far_lake.snapshots("a")) == len(expected)


class Wire:
    """A wire to a server that can be cut once, when a COMMIT passes it, or when its answer does."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._cut: str | None = None
        self.cuts = 0
        who = parts.netloc.rpartition("@")[0]
        self.url = parts._replace(netloc=f"{who}@127.0.0.1:{self._listening.getsockname()[1]}").geturl()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at_commit(self, when: str) -> None:
        self._cut = when

    def close(self) -> None:
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._target)
                self._ends += [client, server]
                threading.Thread(target=self._upwards, args=(client, server), daemon=True).start()
                threading.Thread(target=self._downwards, args=(client, server), daemon=True).start()

    def _upwards(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT" in data and self._cut == "before it arrives":
                    self._cut = None
                    self.cuts += 1
                    break
                server.sendall(data)
        self._hang_up(client, server)

    def _downwards(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                # The server says that it has committed, and nobody hears it.
                if b"COMMIT\0" in data and self._cut == "before its answer":
                    self._cut = None
                    self.cuts += 1
                    break
                client.sendall(data)
        self._hang_up(client, server)

    def _hang_up(self, *ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


COMMITS: dict[str, Callable[[forklake.Lake], object]] = {
    "create_schema": lambda lake: lake.catalog("a").create_schema("s"),
    "create_table": lambda lake: lake.catalog("a").create_table("t", "id BIGINT"),
    "drop_schema": lambda lake: lake.catalog("a").drop_schema("old"),
    "create_catalog": lambda lake: lake.create_catalog("b"),
    "rename_catalog": lambda lake: lake.rename_catalog("a", "b"),
    "drop_catalog": lambda lake: lake.drop_catalog("a"),
}


def everything(lake: forklake.Lake) -> list[Any]:
    return [
        (catalog.name, [s.name for s in view.schemas()], [t.name for t in view.tables()])
        for catalog in lake.catalogs()
        for view in [lake.catalog(catalog.name)]
    ] + [snapshot.changes for snapshot in lake.snapshots()]


@pytest.mark.parametrize("when", ["before it arrives", "before its answer"])
@pytest.mark.parametrize("commit", COMMITS.values(), ids=COMMITS.keys())
def test_a_commit_whose_connection_breaks_lands_exactly_once(
    postgres_server: str, tmp_path: Path, commit: Callable[[forklake.Lake], object], when: str
) -> None:
    """The same commit on a whole wire and on a broken one leads to the same lake."""
    outcomes: list[Any] = []
    with ExitStack() as stack:
        wire = Wire(postgres_server)
        stack.callback(wire.close)
        connection = stack.enter_context(psycopg.connect(postgres_server, autocommit=True))
        for state in ("whole", "broken"):
            schema = f"{state}_{uuid.uuid4().hex}"
            stack.callback(connection.execute, f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            url = f"{wire.url}?metadata_schema={schema}&sslmode=disable"
            with forklake.connect(url, data_path=tmp_path, create=True) as lake:
                lake.create_catalog("a").create_schema("old")
                if state == "broken":
                    wire.cut_at_commit(when)
                commit(lake)
                outcomes.append(everything(lake))
        assert wire.cuts == 1
    assert outcomes[0] == outcomes[1]


def test_a_server_that_crashes_and_comes_back_is_used_again(
    own_server: str, tmp_path: Path, in_threads: InThreads
) -> None:
    url = f"{own_server}?metadata_schema=crashing"
    with forklake.connect(url, data_path=tmp_path, create=True) as lake:
        catalog = lake.create_catalog("a")
        open_connections(lake._database, in_threads, 4)
        transaction = catalog.transaction()
        transaction.create_schema("s")
        crash(own_server)
        assert names(lake) == ["main"]
        transaction.commit()
        assert names(lake) == ["main", "s"]
        crash(own_server)
        catalog.create_schema("t")
        assert names(lake) == ["main", "s", "t"]
        assert len(lake.snapshots("a")) == 3


def crash(url: str) -> None:
    """Kill one backend: the server then ends all of them, recovers, and takes connections again."""
    with psycopg.connect(url) as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        with suppress(psycopg.OperationalError):
            connection.execute("SELECT pg_sleep(5)")
