"""Names and values that read like SQL of ours: they are data in every form of a scan."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import forklake
from forklake.model.names import quoted

HOSTILE = [
    "x FROM forklake_rows",
    "x forklake_rows AS y",
    "FROM forklake_files_0",
    " forklake_files_0 AS a ",
    "' forklake_deleted_0 AS d",
    'FROM forklake_rows"',
    '" forklake_deleted_0 AS "" FROM forklake_rows',
    "$catalog ? ?1 :at %s {0} ids($ids)",
    "forklake_scan",
    "'; DROP TABLE t; --",
]
MANY = 60
"""More rows than are kept in the metadata."""


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def lived(table: forklake.Table, *columns: str) -> None:
    """Hostile values in a file that lost a row, in one that did not, and among inlined rows."""
    for start in (0, MANY):
        values = [HOSTILE[at] if at < len(HOSTILE) else f"plain {at}" for at in range(MANY)]
        table.append(pa.table({"id": range(start, start + MANY), **dict.fromkeys(columns, values)}))
    table.append([{"id": 1000 + at, **dict.fromkeys(columns, value)} for at, value in enumerate(HOSTILE)])
    table.delete(f"id = {MANY - 1}")


def check(table: forklake.Table) -> None:
    """Every form finds each of the values in its three places."""
    with duckdb.connect() as connection:
        for at, value in enumerate(HOSTILE):
            for row_ids in (False, True):
                scan = table.scan(f"note = {text(value)}", row_ids=row_ids)
                rows = sorted(tuple(row.values()) for row in scan.to_pylist())
                assert [row[:2] for row in rows] == [(found, value) for found in (at, MANY + at, 1000 + at)]
                assert sorted(scan.to_duckdb(connection).fetchall()) == rows
                assert scan.count() == 3
        everything = table.scan(row_ids=True)
        expected = sorted(tuple(row.values()) for row in everything.to_pylist())
        assert len(expected) == 2 * MANY + len(HOSTILE) - 1
        assert sorted(everything.to_duckdb(connection).fetchall()) == expected


@pytest.fixture
def limited(lake: forklake.Lake, catalog: forklake.Catalog) -> forklake.Catalog:
    lake.set_option("data_inlining_row_limit", len(HOSTILE))
    return catalog


def test_values_that_read_like_sql_are_found_in_every_form(limited: forklake.Catalog) -> None:
    table = limited.create_table("t", "id BIGINT, note VARCHAR")
    lived(table, "note")
    check(table)


def test_columns_that_are_named_like_sql_are_read_in_every_form(limited: forklake.Catalog) -> None:
    columns = [forklake.ColumnSpec(name, "VARCHAR") for name in HOSTILE]
    table = limited.create_table(("main", HOSTILE[0]), [forklake.ColumnSpec("id", "BIGINT"), *columns])
    lived(table, *HOSTILE)
    with duckdb.connect() as connection:
        for at, name in enumerate(HOSTILE):
            scan = table.scan(f"{quoted(name)} = {text(HOSTILE[at])}", ["id", name], row_ids=True)
            rows = sorted(tuple(row.values()) for row in scan.to_pylist())
            assert [row[:2] for row in rows] == [(found, HOSTILE[at]) for found in (at, MANY + at, 1000 + at)]
            assert sorted(scan.to_duckdb(connection).fetchall()) == rows


def test_defaults_and_names_of_fields_that_read_like_sql_are_values(limited: forklake.Catalog) -> None:
    table = limited.create_table("t", "id BIGINT")
    table.append(pa.table({"id": range(MANY)}))
    table.append([{"id": MANY}])
    fields = ", ".join(f"{quoted(name)} VARCHAR" for name in HOSTILE)
    table.add_column("s", f"STRUCT({fields})")
    for at, value in enumerate(HOSTILE):
        table.add_column(f"d{at}", "VARCHAR", default=text(value))
    table.append([{"id": MANY + 1, "s": {name: name for name in HOSTILE}}])
    with duckdb.connect() as connection:
        scan = table.scan(f"id >= {MANY - 1} AND d0 = {text(HOSTILE[0])}")
        rows = sorted((tuple(row.values()) for row in scan.to_pylist()), key=lambda row: row[0])
        assert [row[2:] for row in rows] == [tuple(HOSTILE)] * 3
        assert [row[1] for row in rows] == [None, None, {name: name for name in HOSTILE}]
        assert sorted(scan.to_duckdb(connection).fetchall(), key=lambda row: row[0]) == rows


def test_folders_that_are_named_like_sql_are_read_in_every_form(lake_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "it's FROM forklake_deleted_0 AS d, forklake_files_0 AS a FROM forklake_rows"
    with forklake.connect(lake_url, data_path=folder, create=True) as lake:
        lake.set_option("data_inlining_row_limit", len(HOSTILE))
        table = lake.create_catalog("c").create_table("t", "id BIGINT, note VARCHAR")
        lived(table, "note")
        check(table)


def test_relations_outlive_each_other_on_one_connection(limited: forklake.Catalog) -> None:
    """Each has Arrow tables of its own, whatever was asked for before and after it."""
    table = limited.create_table("t", "id BIGINT, note VARCHAR")
    lived(table, "note")
    with duckdb.connect() as connection:
        scans = [table.scan(f"note = {text(value)}", row_ids=True) for value in HOSTILE]
        relations = [scan.to_duckdb(connection) for scan in scans]
        found = [sorted(relation.fetchall()) for relation in relations]
        assert found == [sorted(tuple(row.values()) for row in scan.to_pylist()) for scan in scans]


def test_names_and_comments_that_read_like_sql_are_kept_as_they_are(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    for value in HOSTILE:
        with catalog.transaction(author=value, message=value, extra={value: value}) as tx:
            table = tx.create_table(("main", value), "id BIGINT")
            table.comment(value)
            table.set_tag(value, value)
        found = catalog.table(("main", value))
        assert (found.name, found.tags()) == (value, {"comment": value, value: value})
        said = catalog.snapshots()[-1]
        assert (said.author, said.message, said.extra) == (value, value, {value: value})
        fork = lake.fork(catalog, value)
        assert lake.catalog(value).id == fork.id
    assert sorted(table.name for table in catalog.tables()) == sorted(HOSTILE)
