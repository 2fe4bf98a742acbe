"""Upgrades are asked for, are all or nothing, and get along with others who have the lake open."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import forklake
from forklake.errors import StoreError, UnsupportedVersion
from forklake.store.upgrades import upgrade as upgrades
from forklake.store.upgrades.script import Script
from forklake.store.versions import PRESENT
from tests.upgrades.lakes import OldLake, contents, split_schema, sql_on, structure

LONG = 120


def version_of(url: str) -> str:
    with sql_on(url) as run:
        ((version,),) = run("SELECT value FROM ducklake_metadata WHERE key = 'version'")
    return version


# ---- Asked for -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("create", [False, True], ids=["open", "create"])
def test_an_older_lake_is_refused_with_what_to_do_and_left_alone(old: OldLake, create: bool) -> None:
    before = contents(old.url)
    with pytest.raises(UnsupportedVersion, match=r"backup.*`forklake --lake URL upgrade`.*upgrade=True"):
        forklake.connect(old.url, create=create)
    with pytest.raises(UnsupportedVersion, match="upgrade"):
        forklake.init(old.url, data_path=old.folder / "files")
    assert contents(old.url) == before


def test_a_lake_is_upgraded_once_and_then_left_alone(old: OldLake) -> None:
    result = forklake.upgrade(old.url)
    assert (result.from_version, result.to_version, result.done) == (old.version, PRESENT, True)
    assert version_of(old.url) == PRESENT
    before = contents(old.url)
    again = forklake.upgrade(old.url)
    assert (again.from_version, again.done, again.statements) == (PRESENT, False, ())
    old.open(upgrade=True).close()
    assert contents(old.url).keys() == before.keys()
    assert contents(old.url)["ducklake_catalog_merge"] == before["ducklake_catalog_merge"]


def test_the_lake_remembers_where_it_was_upgraded_and_by_which_forklake(old: OldLake) -> None:
    forklake.upgrade(old.url)
    settings = dict(row[:2] for row in contents(old.url)["ducklake_metadata"])
    assert settings["forklake_version"] == forklake.__version__
    # A lake that knew where it was is a copy here, and an upgrade does not make it anything else.
    is_first = old.version == "0.5-dev1"
    assert not is_first or str(old.folder) in settings["home"] or old.backend == "postgresql"


def test_a_dry_run_gives_the_statements_and_changes_nothing(old: OldLake) -> None:
    before, tables = contents(old.url), structure(old.url)
    result = forklake.upgrade(old.url, dry_run=True)
    assert (result.from_version, result.to_version, result.done) == (old.version, PRESENT, False)
    assert (contents(old.url), structure(old.url)) == (before, tables)
    done = forklake.upgrade(old.url)
    # The home is where a file is, and stays the same too.
    assert done.statements == result.statements


def test_the_statements_of_a_dry_run_do_the_upgrade_by_hand(old: OldLake) -> None:
    statements = forklake.upgrade(old.url, dry_run=True).statements
    with old.sql() as run:
        for text in statements:
            run(text)
    with old.open() as lake:
        assert lake.merge("one", "main", dry_run=True).base_snapshot == 64


@pytest.mark.parametrize("made_by", [None, "9.1"])
def test_a_newer_lake_is_refused_with_what_to_install(old: OldLake, made_by: str | None) -> None:
    forklake.upgrade(old.url)
    with old.sql() as run:
        run("UPDATE ducklake_metadata SET value = '0.5-dev99' WHERE key = 'version'")
        run("DELETE FROM ducklake_metadata WHERE key = 'forklake_version'")
        if made_by is not None:
            run(f"INSERT INTO ducklake_metadata (key, value) VALUES ('forklake_version', '{made_by}')")
    says = "install a newer forklake" if made_by is None else "install forklake 9.1 or newer"
    before = contents(old.url)
    for upgrade in (False, True):
        with pytest.raises(UnsupportedVersion, match=says):
            forklake.connect(old.url, upgrade=upgrade)
    with pytest.raises(UnsupportedVersion, match=says):
        forklake.upgrade(old.url)
    assert contents(old.url) == before


def test_a_lake_that_was_made_in_between_keeps_its_merges(
    old: OldLake, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    old.made_by_the_first()
    # Between two versions, lakes had the new tables and the old version.
    with old.open(upgrade=True) as lake:
        lake.merge("one", "main")
    with old.sql() as run:
        run("UPDATE ducklake_metadata SET value = '0.5-dev1' WHERE key = 'version'")
    before = contents(old.url)
    assert forklake.upgrade(old.url).done
    after = contents(old.url)
    for table in ("ducklake_catalog_merge", "ducklake_name_mapping"):
        assert after[table] == before[table]


def test_there_is_nothing_to_upgrade_where_no_lake_is(tmp_path: Path) -> None:
    with pytest.raises(forklake.MetadataNotFound, match="init"):
        forklake.upgrade(f"sqlite:///{tmp_path}/none.db")


# ---- All or nothing --------------------------------------------------------------------------------------


def test_a_step_that_fails_leaves_all_as_it_was(old: OldLake, monkeypatch: pytest.MonkeyPatch) -> None:
    before, tables = contents(old.url), structure(old.url)

    def fail(script: Script) -> None:
        script.run("DROP TABLE ducklake_column_tag")
        script.run("INSERT INTO ducklake_no_such_table VALUES (1)")

    monkeypatch.setattr(upgrades, "STEPS", (*upgrades.STEPS, fail))
    with pytest.raises(StoreError, match="ducklake_no_such_table"):
        forklake.upgrade(old.url)
    assert (contents(old.url), structure(old.url)) == (before, tables)
    monkeypatch.undo()
    assert forklake.upgrade(old.url).done


DYING = """
import os, signal, sys
import forklake
from forklake.store.upgrades import upgrade as upgrades

def die(script):
    script.run("DROP TABLE ducklake_column_tag")
    os.kill(os.getpid(), signal.SIGKILL)

upgrades.STEPS = (*upgrades.STEPS, die)
forklake.upgrade(sys.argv[1])
"""


def test_a_process_that_is_killed_in_the_middle_has_changed_nothing(old: OldLake) -> None:
    before, tables = contents(old.url), structure(old.url)
    ended = subprocess.run([sys.executable, "-c", DYING, old.url], timeout=LONG, check=False)
    assert ended.returncode == -9
    assert (contents(old.url), structure(old.url)) == (before, tables)
    with old.open(upgrade=True) as lake:
        assert lake.catalog("main").table("notes").count() > 5


ENDING = """
import os, signal, sys
import forklake
forklake.upgrade(sys.argv[1])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_upgrade_stands_although_the_process_is_killed_right_after_it(old: OldLake) -> None:
    ended = subprocess.run([sys.executable, "-c", ENDING, old.url], timeout=LONG, check=False)
    assert ended.returncode == -9
    assert version_of(old.url) == PRESENT
    with old.open() as lake:
        assert lake.merge("one", "main", dry_run=True).base_snapshot == 64


# ---- Others meanwhile ------------------------------------------------------------------------------------


UPGRADING = """
import sys
import forklake
print("ready", flush=True)
input()
print(forklake.upgrade(sys.argv[1]).done, flush=True)
"""


@pytest.fixture
def upgrading(old: OldLake) -> Iterator[Any]:
    """Start processes that wait for a line, and then upgrade."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(UPGRADING), old.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_of_several_who_upgrade_at_once_one_does_it(old: OldLake, upgrading: Any) -> None:
    if old.backend == "duckdb":
        # DuckDB lets one process in: its threads take turns.
        with ThreadPoolExecutor(3) as pool:
            done = list(pool.map(lambda _: forklake.upgrade(old.url).done, range(3)))
    else:
        processes = [upgrading() for _ in range(3)]
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        done = [process.communicate(timeout=LONG)[0] == "True\n" for process in processes]
    assert sorted(done) == [False, False, True]
    with old.open() as lake:
        assert lake.merge("one", "main", dry_run=True).base_snapshot == 64


def test_an_upgrade_waits_for_who_writes_and_takes_what_that_brings(old: OldLake) -> None:
    old.made_by_the_first()
    if old.backend == "duckdb":
        pytest.skip("nobody beside one process writes to a DuckDB file")
    begun = threading.Event()

    def upgrade() -> bool:
        begun.set()
        return forklake.upgrade(old.url).done

    with old.sql() as run, ThreadPoolExecutor(1) as pool:
        run("BEGIN IMMEDIATE" if old.backend == "sqlite" else "BEGIN")
        # As an older version would store that it merged "two" into "past".
        run("INSERT INTO ducklake_catalog_merge VALUES (15, 110, 24, 66)")
        waiting = pool.submit(upgrade)
        assert begun.wait(LONG)
        assert not waiting.done()
        run("COMMIT")
        assert waiting.result(LONG)
        found = run("SELECT * FROM ducklake_catalog_merge WHERE merge_snapshot = 110 ORDER BY 3")
    # By way of "two", it brought what "one" and "main" had done.
    assert found == [
        (15, 110, 0, 0, 45, 59),
        (15, 110, 14, 0, -1, 58),
        (15, 110, 18, 0, -1, 56),
        (15, 110, 23, 0, -1, 64),
        (15, 110, 24, 0, -1, 66),
    ]


def test_who_has_the_lake_open_writes_nothing_after_an_upgrade_to_what_it_does_not_know(old: OldLake) -> None:
    if old.backend == "duckdb":
        pytest.skip("nobody else has a DuckDB file open")
    with old.open(upgrade=True) as lake:
        table = lake.catalog("main").table("notes")
        table.append([{"id": 20_000, "note": "before"}])
        with old.sql() as run:
            run("UPDATE ducklake_metadata SET value = '0.5-dev99' WHERE key = 'version'")
        before = contents(old.url)
        for write in (
            lambda: table.append([{"id": 20_001, "note": "after"}]),
            lambda: lake.fork("main", "after"),
            lambda: lake.merge("one", "main"),
            lambda: lake.set_option("target_file_size", "1MiB"),
            lambda: lake.drop_catalog("one"),
            lambda: lake.catalog("main").begin_distributed(["notes"]),
        ):
            with pytest.raises(UnsupportedVersion, match="another program upgraded it"):
                write()
        assert contents(old.url) == before
        with old.sql() as run:
            run(f"UPDATE ducklake_metadata SET value = '{PRESENT}' WHERE key = 'version'")
        table.append([{"id": 20_002, "note": "again"}])


def test_merges_of_programs_of_the_earlier_version_fail_after_an_upgrade(old: OldLake) -> None:
    old.made_by_the_first()
    # They were open when it was upgraded, and do not look at the version again.
    forklake.upgrade(old.url)
    with old.sql() as run, pytest.raises(Exception, match=r"(?i)not.null"):
        run(
            "INSERT INTO ducklake_catalog_merge "
            "(catalog_id, merge_snapshot, source_catalog_id, source_snapshot) VALUES (15, 110, 24, 66)"
        )


# ---- Rights on PostgreSQL --------------------------------------------------------------------------------


@pytest.fixture
def owned(old: OldLake, postgres_server: str) -> Iterator[tuple[OldLake, str, str]]:
    """A lake that belongs to one role and may be read by another."""
    if old.backend != "postgresql":
        pytest.skip("there are no roles here")
    schema = split_schema(old.url)[1]
    owner, reader = f"owner_{schema}", f"reader {schema}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for role in (owner, reader):
            connection.execute(f'CREATE ROLE "{role}" LOGIN'.encode())
        connection.execute(f'ALTER SCHEMA "{schema}" OWNER TO "{owner}"'.encode())
        for (name,) in connection.execute(
            "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE nspname = %s AND relkind IN ('r', 'v', 'S')",
            [schema],
        ).fetchall():
            connection.execute(f'ALTER TABLE "{schema}"."{name}" OWNER TO "{owner}"'.encode())
        connection.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO "{reader}"'.encode())
        connection.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO "{reader}"'.encode())
        yield old, owner, reader
        connection.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())
        for role in (owner, reader):
            connection.execute(f'DROP OWNED BY "{role}"'.encode())
            connection.execute(f'DROP ROLE "{role}"'.encode())


def test_what_is_made_anew_belongs_to_the_owner_and_may_be_read_by_who_could(
    owned: tuple[OldLake, str, str],
) -> None:
    lake, owner, reader = owned
    assert forklake.upgrade(lake.url).done  # As the administrator, who is neither of them.
    with lake.sql() as run:
        owners = run("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = current_schema()")
        owners += run("SELECT DISTINCT viewowner FROM pg_views WHERE schemaname = current_schema()")
        assert set(owners) == {(owner,)}
        run(f'SET ROLE "{reader}"')
        assert run("SELECT count(*) FROM visible_table_stats")
        assert run("SELECT count(*) FROM ducklake_catalog_merge") == [(17,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run("DELETE FROM ducklake_catalog_merge")


def test_who_is_not_the_owner_is_told_so_and_changes_nothing(owned: tuple[OldLake, str, str]) -> None:
    lake, _, reader = owned
    before = contents(lake.url)
    url = lake.url.replace("postgres@", f"{reader.replace(' ', '%20')}@", 1)
    with pytest.raises(forklake.StoreUnavailable, match=r"denies this.*owner"):
        forklake.upgrade(url)
    assert contents(lake.url) == before


def test_views_of_others_that_stand_on_ours_are_not_dropped(old: OldLake) -> None:
    if old.backend != "postgresql":
        pytest.skip("elsewhere such views go on")
    with old.sql() as run:
        run("CREATE VIEW mine AS SELECT table_name FROM visible_table")
        with pytest.raises(StoreError, match="depend"):
            forklake.upgrade(old.url)
        assert run("SELECT count(*) FROM mine")
    assert version_of(old.url) == old.version
