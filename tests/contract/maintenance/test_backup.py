"""Backup and restore of the metadata beside storage that lives on: what an older database finds there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg
import pytest
from psycopg import sql

import forklake
from forklake.store.tables import TABLES
from tests.pgbouncer import direct

NOW = timedelta(0)
SEQUENCES = ("ducklake_next_snapshot_id", "ducklake_next_catalog_id", "ducklake_next_file_id")


@pytest.fixture
def backup(lake_url: str, tmp_path: Path) -> Callable[[], Callable[[], None]]:
    """Take a backup of the metadata of a lake that nobody has open; gives what puts it back in place."""
    return (lambda: rows_of(lake_url)) if lake_url.startswith("postgresql") else lambda: file_of(lake_url)


def file_of(url: str) -> Callable[[], None]:
    path = Path(unquote(urlsplit(url).path).removeprefix("/"))
    copy = path.with_suffix(".backup")
    shutil.copyfile(path, copy)

    def restore() -> None:
        # What a database has beside its file belongs to the state that is lost.
        for left in path.parent.glob(f"{path.name}?*"):
            left.unlink()
        shutil.copyfile(copy, path)

    return restore


def rows_of(url: str) -> Callable[[], None]:
    """As pg_dump and pg_restore do it, which are not everywhere: all rows, as of one moment."""
    address = urlsplit(url)
    options = dict(parse_qsl(address.query))
    schema = options.pop("metadata_schema", "ducklake")
    server = direct(address._replace(query="&".join(f"{k}={v}" for k, v in options.items())).geturl())
    tables = [name for name in TABLES if name != "ducklake_counter"]
    with psycopg.connect(server) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        content: dict[str, bytes] = {}
        for table in tables:
            with connection.cursor().copy(_copy("COPY {} TO STDOUT", schema, table)) as copy:
                content[table] = b"".join(bytes(part) for part in copy)
        following = {
            name: connection.execute(_copy("SELECT last_value, is_called FROM {}", schema, name)).fetchall()[
                0
            ]
            for name in SEQUENCES
        }

    def restore() -> None:
        with psycopg.connect(server) as connection:
            for table, rows in content.items():
                connection.execute(_copy("DELETE FROM {}", schema, table))
                with connection.cursor().copy(_copy("COPY {} FROM STDIN", schema, table)) as copy:
                    copy.write(rows)
            for name, (last, called) in following.items():
                connection.execute("SELECT setval(%s, %s, %s)", [f"{schema}.{name}", last, called])

    return restore


def _copy(text: str, schema: str, name: str) -> sql.Composed:
    return sql.SQL(text).format(sql.Identifier(schema, name))


def files(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "files").rglob("*.parquet")}


def ids(lake: forklake.Lake, catalog: str = "shop") -> list[int]:
    return sorted(row["id"] for row in lake.catalog(catalog).table("t").to_pylist())


def begin(url: str, tmp_path: Path) -> set[str]:
    with forklake.connect(url, data_path=tmp_path / "files", create=True) as lake:
        table = lake.create_catalog("shop").create_table("t", "id INT")
        table.set_option("data_inlining_row_limit", 0)
        table.append([{"id": at} for at in range(10)])
        table.append([{"id": at} for at in range(10, 20)])
        table.delete("id < 3")
        lake.fork("shop", "fork")
        table.append([{"id": 20}])
    return files(tmp_path)


def go_on(url: str, retention: timedelta) -> None:
    """Between the backup and the loss, the table is replaced, the fork dropped, and the lake cleaned."""
    with forklake.connect(url) as lake:
        lake.set_option("expire_older_than", NOW)
        lake.set_option("delete_older_than", retention)
        table = lake.catalog("shop").table("t")
        table.overwrite([{"id": at} for at in range(100, 110)])
        table.append([{"id": 110}])
        lake.drop_catalog("fork")
        for _ in range(2):
            lake.checkpoint()


def test_a_restore_finds_everything_while_files_are_kept_longer_than_the_backup_is_old(
    lake_url: str, tmp_path: Path, backup: Callable[[], Callable[[], None]]
) -> None:
    before = begin(lake_url, tmp_path)
    restore = backup()
    go_on(lake_url, timedelta(days=2))
    after = files(tmp_path)
    assert before < after
    restore()
    with forklake.connect(lake_url) as lake:
        assert lake.check(data=True).differences == ()
        assert ids(lake) == list(range(3, 21))
        assert ids(lake, "fork") == list(range(3, 20))
        assert lake.remove_orphans(older_than=timedelta(days=1)).files == 0
        found = lake.remove_orphans(older_than=NOW)
        assert found.files == len(after - before) > 0
        assert files(tmp_path) == before
        lake.catalog("shop").table("t").append([{"id": 21}])
        lake.merge("fork", "shop")
        assert ids(lake) == list(range(3, 22))
        lake.checkpoint()
        assert lake.check(data=True).is_clean


def test_a_restore_after_files_are_gone_names_them(
    lake_url: str, tmp_path: Path, backup: Callable[[], Callable[[], None]]
) -> None:
    before = begin(lake_url, tmp_path)
    restore = backup()
    go_on(lake_url, NOW)
    gone = before - files(tmp_path)
    assert gone == before
    newer = files(tmp_path)
    restore()
    with forklake.connect(lake_url) as lake:
        found = lake.check(repair=True)
        assert not found.is_clean and found.repaired == 0
        named = {Path(one.path or "").name for one in found.differences}
        assert named == gone
        assert {(one.kind, one.catalog, one.table) for one in found.differences} == {
            ("file", "shop", "main.t")
        }
        with pytest.raises(forklake.FileMissing):
            ids(lake)
        # What came later is nobody's.
        assert lake.remove_orphans(older_than=NOW, dry_run=True).files == len(newer)
        # The lake works on without the table.
        lake.catalog("shop").table("t").overwrite([{"id": 7}])
        assert ids(lake) == [7]
