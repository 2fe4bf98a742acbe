"""Transactions in SQL: what they show of themselves, and what a failure means for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import forklake

FIRST = 10**18
"""The first row id that is not one yet."""


@pytest.fixture
def begun(catalog: forklake.Catalog) -> forklake.Catalog:
    """A table with one row, and a transaction."""
    catalog.sql("CREATE TABLE t (id INTEGER NOT NULL)")
    catalog.sql("INSERT INTO t VALUES (1)")
    catalog.sql("BEGIN")
    return catalog


def test_new_rows_have_no_snapshot_yet_and_ids_of_their_own(begun: forklake.Catalog) -> None:
    before = begun.snapshot
    begun.sql("INSERT INTO t VALUES (2), (3)")
    begun.sql("INSERT INTO t VALUES (4)")
    shown = "SELECT rowid, snapshot_id, id FROM t ORDER BY id"
    new = [(FIRST, None, 2), (FIRST + 1, None, 3), (FIRST + 2, None, 4)]
    assert begun.sql(shown).to_rows() == [(0, before, 1), *new]
    assert begun.sql(f"SELECT id FROM t WHERE rowid = {FIRST + 1}").to_rows() == [(3,)]
    assert begun.sql("SELECT id FROM t WHERE snapshot_id IS NULL ORDER BY id").to_rows() == [(2,), (3,), (4,)]
    begun.sql("COMMIT")
    after = begun.snapshot
    assert begun.sql(shown).to_rows() == [(0, before, 1), (1, after, 2), (2, after, 3), (3, after, 4)]


def test_rows_of_new_files_are_told_apart(begun: forklake.Catalog) -> None:
    begun.sql("INSERT INTO t FROM range(1000)")
    begun.sql("INSERT INTO t FROM range(1000)")
    ids = "SELECT count(DISTINCT rowid), count(snapshot_id), min(rowid) FILTER (snapshot_id IS NULL) FROM t"
    ((count, committed, least),) = begun.sql(ids).to_rows()
    assert (count, committed) == (2001, 1)
    assert least >= FIRST
    begun.sql("ROLLBACK")


def test_a_changed_row_keeps_its_id_and_has_no_snapshot_until_the_commit(begun: forklake.Catalog) -> None:
    begun.sql("UPDATE t SET id = 7")
    assert begun.sql("SELECT rowid, snapshot_id, id FROM t").to_rows() == [(0, None, 7)]
    begun.sql("COMMIT")
    assert begun.sql("SELECT rowid, snapshot_id, id FROM t").to_rows() == [(0, begun.snapshot, 7)]


def test_a_statement_that_fails_while_it_runs_aborts_its_transaction(begun: forklake.Catalog) -> None:
    begun.sql("INSERT INTO t VALUES (2)")
    with pytest.raises(forklake.NullNotAllowed):
        begun.sql("UPDATE t SET id = NULL")
    for statement in ("INSERT INTO t VALUES (3)", "FROM t", "CREATE TABLE u (id INTEGER)"):
        with pytest.raises(forklake.TransactionClosed, match="aborted"):
            begun.sql(statement)
    begun.sql("ROLLBACK")
    assert begun.sql("FROM t").to_rows() == [(1,)]
    begun.sql("INSERT INTO t VALUES (4)")


def test_the_commit_of_an_aborted_transaction_says_that_nothing_of_it_stays(begun: forklake.Catalog) -> None:
    before = begun.snapshot
    begun.sql("INSERT INTO t VALUES (2)")
    with pytest.raises(forklake.InvalidData):
        begun.sql("INSERT INTO t VALUES ('x')")
    with pytest.raises(forklake.TransactionClosed, match="rolled back"):
        begun.sql("COMMIT")
    assert begun.sql("FROM t").to_rows() == [(1,)]
    assert begun.snapshot == before
    begun.sql("BEGIN")
    begun.sql("ROLLBACK")


def test_a_statement_that_is_refused_before_it_runs_aborts_nothing(begun: forklake.Catalog) -> None:
    for statement in (
        "SELEC 1",
        "FROM nothing",
        "INSERT INTO t (x) VALUES (1)",
        "CREATE TABLE t (id INTEGER)",
    ):
        with pytest.raises(forklake.ForklakeError):
            begun.sql(statement)
    begun.sql("INSERT INTO t VALUES (2)")
    begun.sql("COMMIT")
    assert begun.sql("SELECT count(*) FROM t").to_rows() == [(2,)]


def test_ids_of_what_came_and_went_are_shown_if_they_are_named(begun: forklake.Catalog) -> None:
    begun.sql("ROLLBACK")
    begun.sql("DELETE FROM t")
    at = begun.snapshot
    rows = f"table_deletions('t', {at}, {at})"
    assert begun.sql(f"FROM {rows}").to_rows() == begun.sql(f"CALL {rows}").to_rows() == [(1,)]
    assert begun.sql(f"SELECT rowid, snapshot_id, * FROM {rows}").to_rows() == [(0, at, 1)]
    assert begun.sql(f"SELECT d.*, d.rowid FROM {rows} AS d WHERE d.snapshot_id = {at}").to_rows() == [(1, 0)]


_INTERRUPTED = """
import signal, sys, threading
import forklake

catalog = forklake.connect(sys.argv[1]).catalog(sys.argv[2])
endless = "SELECT i FROM range(100000000000) AS r(i) WHERE sin(i) > 2"
for text in (endless, f"INSERT INTO t {endless}", f"CREATE TABLE u AS {endless}"):
    catalog.sql("BEGIN; INSERT INTO t VALUES (2)")
    try:
        threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
        catalog.sql(text).to_rows()
    except KeyboardInterrupt:
        catalog.sql("ROLLBACK")
        print(catalog.sql("FROM t").to_rows(), len(catalog.tables()), catalog.snapshot)
"""


def test_an_interrupt_ends_a_statement_and_nothing_of_it_stays(
    lake_url: str, lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    catalog.sql("CREATE TABLE t AS SELECT 1 AS a")
    name, before = catalog.name, catalog.snapshot
    lake.close()
    # Its own process: signals reach the main thread, and tests may run in another.
    arguments = [sys.executable, "-c", _INTERRUPTED, lake_url, name]
    found = subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=True)
    assert found.stdout.splitlines() == [f"[(1,)] 1 {before}"] * 3


CHANGES = (
    "INSERT INTO t VALUES (2)",
    "UPDATE t SET id = 2",
    "DELETE FROM t",
    "CREATE TABLE u (id INTEGER)",
    "CALL set_option('target_file_size', '1MB')",
    "EXECUTE p",
    "CHECKPOINT",
    "FORK CATALOG test AS other",
)


def test_a_transaction_that_only_reads_refuses_changes(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t AS SELECT 1 AS id; PREPARE p AS DELETE FROM t")
    for begin in ("BEGIN READ ONLY", "START TRANSACTION READ ONLY"):
        before = catalog.snapshot
        catalog.sql(begin)
        for change in CHANGES:
            with pytest.raises(forklake.InvalidSql, match="only reading"):
                catalog.sql(change)
            # It was refused before it ran, or the transaction is aborted; both are over now.
            catalog.sql(f"ROLLBACK; {begin}")
        assert catalog.sql("SELECT count(*) FROM t").to_rows() == [(1,)]
        catalog.sql("COMMIT")
        assert catalog.snapshot == before
    catalog.sql("BEGIN READ WRITE; INSERT INTO t VALUES (2); COMMIT")
    catalog.sql("BEGIN READ ONLY; ROLLBACK; INSERT INTO t VALUES (3)")
    assert catalog.sql("SELECT count(*) FROM t").to_rows() == [(3,)]
