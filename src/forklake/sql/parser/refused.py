"""Statements that DuckDB has and forklake refuses: they reach outside of the lake, or mean nothing in one."""

from __future__ import annotations

from forklake.sql.parser.reader import Reader

_ONE_LAKE = "a session works in one lake; open another with forklake.connect(url)"
_ROLES = "who may read or write is a matter of the database with the metadata and of the storage"
_EXTENSIONS = "extensions are installed with Python's packages, as in pip install 'forklake[s3]'"
_MOVED = "copy tables with COPY (FROM t) TO 'file.parquet' (FORMAT parquet) and COPY t FROM 'file.parquet'"
_TEMPORARY = (
    "use WITH … AS (…), or hand rows over, sql(text, data={'name': df}): a lake has no tables of one session"
)
_NO_ROWS_OF_ITS_OWN = "nothing has to be vacuumed or analyzed by hand; CHECKPOINT compacts and cleans"
_UPSERT = "MERGE INTO … USING (id) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT does that"

STATEMENTS: dict[str, tuple[str, str]] = {
    "ATTACH": ("ATTACH", _ONE_LAKE),
    "DETACH": ("DETACH", _ONE_LAKE),
    "INSTALL": ("INSTALL", _EXTENSIONS),
    "LOAD": ("LOAD", _EXTENSIONS),
    "EXPORT": ("EXPORT DATABASE", _MOVED),
    "IMPORT": ("IMPORT DATABASE", _MOVED),
    "PRAGMA": ("PRAGMA", "DESCRIBE t and CALL table_info() tell of tables; CALL set_option(…) sets options"),
    "VACUUM": ("VACUUM", _NO_ROWS_OF_ITS_OWN),
    "ANALYZE": ("ANALYZE", "statistics are kept with every file that is written"),
    "ANALYSE": ("ANALYSE", "statistics are kept with every file that is written"),
    "GRANT": ("GRANT", _ROLES),
    "REVOKE": ("REVOKE", _ROLES),
    "SAVEPOINT": ("SAVEPOINT", "a transaction is rolled back as a whole; FORK CATALOG keeps a state"),
    "RELEASE": ("RELEASE SAVEPOINT", "a transaction is committed or rolled back as a whole"),
    "LOCK": ("LOCK", "commits that conflict are refused instead: run the transaction again"),
    "REPLACE": ("REPLACE INTO", _UPSERT),
    "REFRESH": ("REFRESH", "CREATE OR REPLACE TABLE t AS … makes a table anew"),
    "LISTEN": ("LISTEN", "CALL snapshots() tells what happened; table_changes(…) which rows changed"),
    "NOTIFY": ("NOTIFY", "CALL snapshots() tells what happened; table_changes(…) which rows changed"),
    "DECLARE": ("DECLARE", "read the result in batches: sql(…).to_batches()"),
    "REINDEX": ("REINDEX", "DROP INDEX and CREATE INDEX make an index anew"),
    "CLUSTER": ("CLUSTER", "ALTER TABLE t SET SORTED BY (…), then CHECKPOINT or CALL merge_adjacent_files()"),
}  # fmt: skip

CREATED: dict[str, tuple[str, str]] = {
    "SECRET": ("CREATE SECRET", "credentials are options of forklake.connect()"),
    "TYPE": ("CREATE TYPE", "write the type out where a column is defined"),
    "SEQUENCE": ("CREATE SEQUENCE", "number rows by row_number() OVER (), or use the column rowid"),
    "TRIGGER": ("CREATE TRIGGER", "table_changes(…) tells which rows changed since a snapshot"),
    "DATABASE": ("CREATE DATABASE", "a lake has catalogs: FORK CATALOG a AS b, or CALL create_catalog(name)"),
    "CATALOG": ("CREATE CATALOG", "FORK CATALOG a AS b, or CALL create_catalog(name) for an empty one"),
    "ROLE": ("CREATE ROLE", _ROLES),
    "USER": ("CREATE USER", _ROLES),
    "TEMP": ("CREATE TEMP", _TEMPORARY),
    "TEMPORARY": ("CREATE TEMPORARY", _TEMPORARY),
    "LOCAL": ("CREATE LOCAL TEMPORARY", _TEMPORARY),
    "GLOBAL": ("CREATE GLOBAL TEMPORARY", _TEMPORARY),
    "UNLOGGED": ("CREATE UNLOGGED TABLE", "leave it out: every table of a lake is kept"),
    "PERSISTENT": ("CREATE PERSISTENT SECRET", "credentials are options of forklake.connect()"),
    "RECURSIVE": ("CREATE RECURSIVE VIEW", "CREATE VIEW v AS WITH RECURSIVE v AS (…) SELECT * FROM v"),
    "MATERIALIZED": ("CREATE MATERIALIZED VIEW", "CREATE OR REPLACE TABLE t AS … keeps the rows of a query"),
    "EXTENSION": ("CREATE EXTENSION", _EXTENSIONS),
    "PROCEDURE": ("CREATE PROCEDURE", "CREATE MACRO names an expression or a query"),
    "EXTERNAL": ("CREATE EXTERNAL TABLE", "CALL add_data_files(table, path) adds Parquet files to a table"),
}  # fmt: skip

DROPPED: dict[str, tuple[str, str]] = {
    "SECRET": ("DROP SECRET", "credentials are options of forklake.connect()"),
    "PERSISTENT": ("DROP PERSISTENT SECRET", "credentials are options of forklake.connect()"),
    "TEMPORARY": ("DROP TEMPORARY SECRET", "credentials are options of forklake.connect()"),
    "TYPE": ("DROP TYPE", "a lake has no types of its own"),
    "SEQUENCE": ("DROP SEQUENCE", "a lake has no sequences"),
    "TRIGGER": ("DROP TRIGGER", "a lake has no triggers"),
    "DATABASE": ("DROP DATABASE", "DROP CATALOG drops a catalog of the lake"),
    "ROLE": ("DROP ROLE", _ROLES),
    "USER": ("DROP USER", _ROLES),
    "MATERIALIZED": ("DROP MATERIALIZED VIEW", "there are no materialized views: DROP VIEW, or DROP TABLE"),
}  # fmt: skip


def check(reader: Reader) -> None:
    """Refuse a statement by its first word."""
    if reader.word in STATEMENTS:
        raise reader.refuse(*STATEMENTS[reader.word])


def check_created(reader: Reader) -> None:
    """Refuse what CREATE cannot create."""
    if reader.word in CREATED:
        raise reader.refuse(*CREATED[reader.word])


def check_dropped(reader: Reader) -> None:
    """Refuse what DROP cannot drop."""
    if reader.word in DROPPED:
        raise reader.refuse(*DROPPED[reader.word])
