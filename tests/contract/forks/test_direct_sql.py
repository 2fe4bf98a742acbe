"""SQL that other programs run on the metadata, in the words of the designs it comes from (C11).

A catalog that was copied is read from the tables themselves. One that was forked by reference is read through
the views: the same statements, with `visible_` in the place of `ducklake_`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forklake
from tests.contract.conftest import BACKENDS, RunSql
from tests.contract.rows.shown import many, numbered

ENTITIES = ("schema", "table", "data_file", "delete_file", "column", "view")

# ---- Time travel -----------------------------------------------------------------------------------------

# What catalogs existed at a snapshot.
CATALOGS_AT = """
SELECT * FROM ducklake_catalog
WHERE begin_snapshot <= 50 AND (end_snapshot IS NULL OR end_snapshot > 50);
"""

# What files a catalog had at a snapshot.
FILES_AT = """
SELECT * FROM ducklake_data_file
WHERE catalog_id = 2
  AND begin_snapshot <= 50
  AND (end_snapshot IS NULL OR end_snapshot > 50);
"""

# The same for data that only grows.
FILES_OF_IMMUTABLE_DATA = """
SELECT * FROM ducklake_data_file
WHERE catalog_id = 2 AND begin_snapshot <= 50;
"""

# ---- Numbers ---------------------------------------------------------------------------------------------

# Where numbering stands, before a fork is made or a file is added.
NEXT_CATALOG = "SELECT next_catalog_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1;"
NEXT_FILE = "SELECT next_file_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"

# The latest snapshot of the lake.
LATEST = """
SELECT snapshot_id, schema_version, next_catalog_id, next_file_id
FROM ducklake_snapshot
ORDER BY snapshot_id DESC LIMIT 1;
"""
LATEST_WHOLE = "SELECT * FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"

# Which version of the metadata this is.
VERSION = "SELECT value FROM ducklake_metadata WHERE key = 'version'"

# ---- Forks and shared files ------------------------------------------------------------------------------

# What a fork by copy takes over: the current rows of each entity.
CURRENT = """
SELECT {}_id
FROM ducklake_{}
WHERE catalog_id = parent_catalog_id
  AND end_snapshot IS NULL;
"""

# What a fork by reference resolves to.
INHERITED = """
SELECT * FROM ducklake_data_file WHERE catalog_id = ?
UNION ALL
SELECT * FROM ducklake_data_file WHERE catalog_id = parent_id AND begin_snapshot <= fork_snapshot;
"""

# Whether another catalog still needs a file.
USERS_OF_FILE = "SELECT COUNT(*) FROM ducklake_data_file WHERE data_file_id = 3 AND end_snapshot IS NULL;"

# Which files are no orphans.
NEEDED_FILES = """
    SELECT path FROM ducklake_data_file WHERE end_snapshot IS NULL
    UNION ALL
    SELECT path FROM ducklake_delete_file WHERE end_snapshot IS NULL
"""

# Files with their tables: identity is only unique within a catalog.
FILES_WITH_TABLES = """
SELECT * FROM ducklake_data_file df
JOIN ducklake_table t ON df.catalog_id = t.catalog_id AND df.table_id = t.table_id
"""

# The tables of a catalog, as its placeholders are filled in.
LIVE_TABLES = """
SELECT * FROM {METADATA_CATALOG}.ducklake_table
WHERE catalog_id = {CATALOG_ID} AND end_snapshot IS NULL
"""

# ---- A web application -----------------------------------------------------------------------------------

LIST_CATALOGS = """
SELECT catalog_id, catalog_uuid, catalog_name, begin_snapshot
FROM ducklake.ducklake_catalog
WHERE end_snapshot IS NULL;
"""

LIST_TABLES = """
SELECT t.table_name, t.table_uuid, s.schema_name
FROM ducklake.ducklake_table t
JOIN ducklake.ducklake_schema s ON t.catalog_id = s.catalog_id AND t.schema_id = s.schema_id
WHERE t.catalog_id = 0
  AND t.end_snapshot IS NULL
  AND s.end_snapshot IS NULL;
"""

LIST_TABLES_BY_NAME = """
SELECT t.table_name, t.table_uuid, s.schema_name
FROM ducklake.ducklake_table t
JOIN ducklake.ducklake_schema s ON t.catalog_id = s.catalog_id AND t.schema_id = s.schema_id
JOIN ducklake.ducklake_catalog c ON t.catalog_id = c.catalog_id
WHERE c.catalog_name = 'my-catalog'
  AND c.end_snapshot IS NULL
  AND t.end_snapshot IS NULL
  AND s.end_snapshot IS NULL;
"""


class Story:
    """A lake of three catalogs in the schema "ducklake", and SQL on it; the first catalog is number 0."""

    def __init__(self, lake: forklake.Lake, run: RunSql) -> None:
        self.lake, self.run = lake, run
        self.parent = lake.create_catalog("my-catalog")
        self.parent.create_schema("sales")
        self.parent.create_table("sales.orders", "id BIGINT, v VARCHAR").append(many())
        self.parent.create_table("users", "id BIGINT, v VARCHAR").append(many())
        self.parent.table("users").rename("people")
        self.parent.create_table("gone", "id BIGINT, v VARCHAR").append(many())
        self.point = self.parent.snapshot
        self.parent.drop_table("gone")
        self.fork_point = self.parent.snapshot
        self.copy = lake.fork("my-catalog", "copy", mode="copy")
        self.reference = lake.fork("my-catalog", "reference")
        for fork in (self.copy, self.reference):
            fork.table("sales.orders").append(many(1000))
            fork.table("sales.orders").delete("id < 120")
            fork.drop_table("people")
            fork.create_table("mine", "id BIGINT, v VARCHAR")
        lake.fork("my-catalog", "short")
        lake.drop_catalog("short")

    def seen_by(self, catalog: forklake.Catalog, sql: str) -> Rows:
        """A statement as a catalog's program would run it: as it is, unless it inherits."""
        if catalog is self.reference:
            for entity in ENTITIES:
                sql = sql.replace(f"ducklake_{entity} ", f"visible_{entity} ")
                sql = sql.replace(f"ducklake_{entity}\n", f"visible_{entity}\n")
        return self.run(sql)

    def named(self, catalog: forklake.Catalog, table: str, sql: str, *columns: str) -> list[tuple[Any, ...]]:
        """Some columns of a statement that asks for all."""
        inner = sql.strip().rstrip(";")
        return sorted(self.seen_by(catalog, f"SELECT {', '.join(columns)} FROM ({inner}) AS {table}"))

    @property
    def catalogs(self) -> list[forklake.Catalog]:
        return [self.parent, self.copy, self.reference]


Rows = list[tuple[Any, ...]]


@pytest.fixture(params=BACKENDS)
def story(request: pytest.FixtureRequest, tmp_path: Path, sql_on) -> Iterator[Story]:
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_database")
    else:
        url = f"{request.param}:///{tmp_path / 'lake.db'}"
    with forklake.connect(url, data_path=tmp_path / "files", create=True) as lake:
        run = sql_on(url)
        if request.param == "sqlite":
            # SQLite's word for a schema.
            run(f"ATTACH '{tmp_path / 'lake.db'}' AS ducklake")
        if request.param == "duckdb":
            run("USE ducklake")
        yield Story(lake, run)


def files(catalog: forklake.Catalog, *tables: str) -> list[str]:
    """The files of some tables."""
    return sorted(str(file.path) for name in tables for file in catalog.table(name).files())


def test_time_travel_as_written(story: Story) -> None:
    head = max(snapshot.id for snapshot in story.lake.snapshots())
    for at in (1, story.point, story.fork_point, story.copy.snapshot, story.reference.snapshot, head):
        sql = CATALOGS_AT.replace("50", str(at))
        found = story.named(story.parent, "c", sql, "catalog_name", "catalog_id")
        assert found == [(info.name, info.id) for info in story.lake.catalogs(at=at)]
    for catalog in story.catalogs:
        for at, tables in (
            (story.point, ("sales.orders", "people", "gone")),
            (story.fork_point, ("sales.orders", "people")),
            (head, ("sales.orders", "people") if catalog is story.parent else ("sales.orders",)),
        ):
            sql = FILES_AT.replace("50", str(at)).replace("catalog_id = 2", f"catalog_id = {catalog.id}")
            found = [path for (path,) in story.named(catalog, "f", sql, "path")]
            if catalog is story.reference and at == head:
                # A table that was inherited is dropped without touching its files, which end for nobody.
                left = files(story.parent, "people")
                found = [path for path in found if path not in left]
            assert found == files(catalog.at(at), *tables)
        sql = FILES_OF_IMMUTABLE_DATA.replace("50", str(story.point))
        sql = sql.replace("catalog_id = 2", f"catalog_id = {catalog.id}")
        assert len(story.named(catalog, "f", sql, "data_file_id")) == 3


def test_numbers_as_written(story: Story) -> None:
    last = story.lake.snapshots()[-1]
    ((snapshot, schema_version, next_catalog, next_file),) = story.run(LATEST)
    assert (snapshot, schema_version) == (last.id, last.schema_version)
    assert story.run(NEXT_CATALOG) == [(next_catalog,)]
    assert story.run(NEXT_FILE) == [(next_file,)]
    assert story.run(LATEST_WHOLE)[0][0] == last.id
    assert story.run(VERSION) == [("0.5-dev6",)]
    # What comes next gets those numbers.
    new = story.lake.fork("my-catalog", "next")
    assert (new.id, new.snapshot) == (next_catalog, last.id + 1)
    new.table("people").append(numbered(5))
    assert story.run(f"SELECT data_file_id FROM ducklake_data_file WHERE catalog_id = {new.id}") == [
        (next_file,)
    ]


def test_the_record_of_a_fork_as_written(story: Story) -> None:
    for fork in (story.copy, story.reference):
        (made,) = story.run(
            "SELECT c.snapshot_id, c.changes_made FROM ducklake_snapshot_changes c "
            f"JOIN ducklake_catalog n ON n.catalog_id = c.catalog_id AND n.begin_snapshot = c.snapshot_id "
            f"WHERE c.catalog_id = {fork.id}"
        )
        assert made == (fork.snapshots()[-5].id, f"forked_from:{story.parent.id}")


def test_what_a_fork_consists_of_as_written(story: Story) -> None:
    for catalog in story.catalogs:
        for entity, expected in (
            ("schema", [schema.id for schema in catalog.schemas()]),
            ("table", [info.id for info in catalog.tables()]),
        ):
            sql = CURRENT.format(entity, entity).replace("parent_catalog_id", str(catalog.id))
            assert sorted(story.seen_by(catalog, sql)) == [(number,) for number in sorted(expected)]
        sql = LIVE_TABLES.replace("{METADATA_CATALOG}", "ducklake").replace("{CATALOG_ID}", str(catalog.id))
        assert [row[0] for row in story.named(catalog, "t", sql, "table_name")] == sorted(
            info.name for info in catalog.tables()
        )
    fork = story.reference
    sql = INHERITED.replace("?", str(fork.id)).replace("parent_id", str(story.parent.id))
    found = story.named(
        story.parent, "f", sql.replace("fork_snapshot", str(story.fork_point)), "data_file_id"
    )
    assert found == sorted(
        story.run(f"SELECT data_file_id FROM visible_data_file WHERE catalog_id = {fork.id}")
    )
    sql = FILES_WITH_TABLES.replace("SELECT *", "SELECT df.catalog_id, t.table_name, df.data_file_id")
    for catalog in story.catalogs:
        names = {row[1] for row in story.seen_by(catalog, sql) if row[0] == catalog.id}
        assert names == {"orders", "users", "people", "gone"}


def test_who_shares_a_file_as_written(story: Story) -> None:
    def users(path: str, catalog: forklake.Catalog) -> int:
        ((number,), *_) = story.run(f"SELECT data_file_id FROM ducklake_data_file WHERE path = '{path}'")
        return story.seen_by(catalog, USERS_OF_FILE.replace("= 3", f"= {number}"))[0][0]

    (shared,) = files(story.parent, "sales.orders")
    # Copies have rows of their own; forks by reference count where the views are asked, dropped ones too:
    # their past can be read.
    assert users(shared, story.parent) == 2
    assert users(shared, story.reference) == 4
    (mine,) = {*files(story.reference, "sales.orders")} - {shared}
    assert users(mine, story.parent) == users(mine, story.reference) == 1


def test_files_that_are_needed_as_written(story: Story, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")}
    needed = {row[0] for row in story.run(NEEDED_FILES)} - {""}
    assert needed < there
    assert {path.split("/")[2] for path in there - needed} == {"gone"}
    assert needed == {row[0] for row in story.seen_by(story.reference, NEEDED_FILES)} - {""}


def test_the_queries_of_a_web_application_as_written(story: Story) -> None:
    assert story.parent.id == 0
    listed = {(number, str(uuid), name) for number, uuid, name, _ in story.run(LIST_CATALOGS)}
    assert listed == {(info.id, info.uuid, info.name) for info in story.lake.catalogs()}
    begins = {row[2]: row[3] for row in story.run(LIST_CATALOGS)}
    assert begins["my-catalog"] == 1
    for catalog in story.catalogs:
        expected = sorted((info.name, info.uuid, info.schema) for info in catalog.tables())
        by_number = LIST_TABLES.replace("catalog_id = 0", f"catalog_id = {catalog.id}")
        by_name = LIST_TABLES_BY_NAME.replace("my-catalog", catalog.name)
        for sql in (by_number, by_name):
            found = sorted((name, str(uuid), schema) for name, uuid, schema in story.seen_by(catalog, sql))
            assert found == expected
