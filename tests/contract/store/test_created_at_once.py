"""A lake that many create at once is created once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import forklake
from tests.contract.store.rows import A_WHILE, InThreads, RunSql, many_processes


def test_a_lake_that_many_threads_create_at_once_is_created_once(
    lake_url: str, tmp_path: Any, in_threads: InThreads, sql_on: Callable[[str], RunSql]
) -> None:
    def connect() -> list[Any]:
        with forklake.connect(lake_url, data_path=tmp_path / "files", create=True) as lake:
            lake.create_catalog("a", if_not_exists=True)
            return [snapshot.id for snapshot in lake.snapshots()]

    assert all(found == [0, found[-1]] for found in in_threads(*[connect] * 6))
    raw = sql_on(lake_url)
    assert raw("SELECT count(*) FROM ducklake_metadata WHERE key = 'version'") == [(1,)]
    assert raw("SELECT count(*) FROM ducklake_metadata WHERE key = 'data_path'") == [(1,)]
    assert raw("SELECT count(*) FROM ducklake_catalog") == [(1,)]


CREATE = """
say("ready")
input()
with forklake.connect(sys.argv[1], data_path=sys.argv[2], create=True) as lake:
    say(lake.create_catalog("a", if_not_exists=True).id)
"""


@many_processes
def test_a_lake_that_many_processes_create_at_once_is_created_once(
    lake_url: str, tmp_path: Any, program: Callable[..., Any], sql_on: Callable[[str], RunSql]
) -> None:
    programs = [program(CREATE, lake_url, str(tmp_path / "files")) for _ in range(3)]
    assert [each.hear() for each in programs] == ["ready"] * 3
    for each in programs:
        each.go_on()
    ids = {each.hear() for each in programs}
    assert len(ids) == 1
    raw = sql_on(lake_url)
    assert raw("SELECT count(*) FROM ducklake_metadata WHERE key IN ('version', 'data_path')") == [(2,)]
    assert raw("SELECT catalog_id FROM ducklake_catalog") == [(ids.pop(),)]


@pytest.mark.parametrize("lake_url", ["sqlite"], indirect=True)
def test_a_lake_is_created_in_a_file_as_soon_as_another_program_has_written_to_it(
    lake_url: str, tmp_path: Any, sql_on: Callable[[str], RunSql]
) -> None:
    raw = sql_on(lake_url)
    raw("BEGIN IMMEDIATE")
    raw("CREATE TABLE accounts (id INTEGER)")
    commits = threading.Timer(A_WHILE, raw, ["COMMIT"])
    commits.start()
    try:
        with forklake.connect(lake_url, data_path=tmp_path / "files", create=True) as lake:
            assert lake.create_catalog("a").snapshot == 1
    finally:
        commits.join()
    assert raw("SELECT count(*) FROM accounts") == [(0,)]
