"""What is read-only can be read, and says so to whoever writes; what may not be read is unavailable."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import forklake
from forklake.errors import ReadOnlyStore, StoreUnavailable
from tests.contract.bad_stores.refusals import (
    RunSql,
    check_sentence,
    nothing_written,
    only_postgresql,
    refused,
)


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
