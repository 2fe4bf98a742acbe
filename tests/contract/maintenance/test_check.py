"""Checking a lake: whatever is broken is named, statistics are repaired, and a sound lake is clean."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from tests.contract.conftest import RunSql

NOW = timedelta(0)
COLUMNS = (
    "id INT, v VARCHAR, d DOUBLE, n DECIMAL(10, 2), day DATE, ts TIMESTAMP, b BLOB, u UUID, flag BOOLEAN, "
    "l INT[], s STRUCT(a INT, t VARCHAR), m MAP(VARCHAR, INT)"
)


def wide(start: int, end: int) -> list[dict[str, Any]]:
    return [
        {
            "id": at,
            "v": None if at % 7 == 0 else f"text {at} {'x' * (at % 60)}",
            "d": float("nan") if at % 11 == 0 else at / 7,
            "n": Decimal(at) / 4,
            "day": date(2020, 1, 1) + timedelta(days=at),
            "ts": datetime(2020, 1, 1) + timedelta(seconds=at),
            "b": bytes([at % 256]) * (at % 50),
            "u": None if at % 3 else f"00000000-0000-0000-0000-{at:012d}",
            "flag": at % 2 == 0,
            "l": list(range(at % 4)),
            "s": None if at % 5 == 0 else {"a": at, "t": str(at)},
            "m": {str(at): at},
        }
        for at in range(start, end)
    ]


@pytest.fixture
def table(lake: forklake.Lake) -> forklake.Table:
    """A table of twenty rows in two files, and two that are inlined; five rows are deleted."""
    table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 2)
    for start in (0, 10):
        table.append([{"id": at, "v": f"v{at}"} for at in range(start, start + 10)])
    table.append([{"id": 20, "v": "w"}, {"id": 21, "v": None}])
    table.delete("id < 5")
    return table


def first_file(table: forklake.Table, tmp_path: Path) -> Path:
    return tmp_path / "files" / min(file.path for file in table.files() if file.path)


def kinds(lake: forklake.Lake, **how: Any) -> set[str]:
    return {one.kind for one in lake.check(**how).differences}


def only(lake: forklake.Lake, **how: Any) -> forklake.Difference:
    found = lake.check(**how)
    assert found.found == len(found.differences) == 1, found.differences
    return found.differences[0]


# ---- A sound lake ---


def test_a_busy_lake_has_no_differences(lake: forklake.Lake, tmp_path: Path) -> None:
    shop = lake.create_catalog("shop")
    table = shop.create_table("t", COLUMNS, partition_by=["bucket(2, id)"], sorted_by=["id"])
    for start in (0, 50, 300):
        table.append(wide(start, start + (300 if start else 40)))
    table.delete("id % 10 = 3 AND id < 200")
    table.update({"v": "'changed'"}, where="id BETWEEN 300 AND 305")
    plain = shop.create_table("plain", "a INT, b FLOAT")
    plain.append([{"a": at, "b": at / 3} for at in range(500)])
    plain.alter_type("a", "BIGINT")
    plain.append([{"a": 2**40, "b": float("inf")}])
    plain.add_column("c", "VARCHAR", default="'x'")
    plain.append([{"a": 1, "b": None, "c": "y"} for _ in range(150)])
    given = tmp_path / "given.parquet"
    pq.write_table(
        pa.table(
            {"A": pa.array([1, 2], pa.int32()), "b": pa.array([0.5, None], pa.float32()), "c": ["p", "q"]}
        ),
        given,
    )
    plain.add_files(given, mapping="by_name")
    forks = [lake.fork("shop", f"fork{number}") for number in range(4)]
    forks[0].table("t").append(wide(1000, 1200))
    forks[0].table("t").delete("id < 40")
    forks[0].table("plain").append([{"a": 7, "b": 1.0, "c": "z"}])
    forks[0].create_table("own", "id INT").append([{"id": at} for at in range(200)])
    forks[1].table("plain").delete("a > 490")
    forks[1].drop_table("t")
    forks[2].table("t").update({"v": "NULL"}, where="id = 301")
    grandchild = forks[0].fork("grandchild")
    grandchild.table("t").overwrite(wide(0, 130))
    lake.merge("fork0", "shop")
    lake.merge("fork2", "shop")
    lake.merge("shop", "fork3")
    table.append(wide(2000, 2150))
    shop.table("own").append([{"id": 1}])
    copy = lake.fork("shop", "copy", mode="copy")
    copy.table("plain").append([{"a": 3, "b": 1.0, "c": "k"}])
    forks[2].materialize()
    _sound(lake)
    shop.compact()
    forks[0].compact()
    forks[0].rewrite_deletes(threshold=0)
    grandchild.restore(grandchild.snapshots()[-2].id)
    lake.drop_catalog("fork1")
    _sound(lake)
    lake.expire(older_than=NOW)
    lake.collect_garbage(older_than=NOW)
    lake.checkpoint()
    _sound(lake)
    lake.drop_catalogs(["fork0", "fork2"])
    lake.expire(older_than=NOW)
    lake.collect_garbage(older_than=NOW)
    _sound(lake)


def _sound(lake: forklake.Lake) -> None:
    found = lake.check(data=True)
    assert list(found.differences) == []
    assert found.is_clean and found.files


def test_an_empty_lake_has_no_differences(lake: forklake.Lake) -> None:
    found = lake.check()
    assert (found.files, found.inlined, found.found, found.is_clean) == (0, 0, 0, True)


def test_what_was_looked_at_is_counted(lake: forklake.Lake, table: forklake.Table) -> None:
    told: list[forklake.Progress] = []
    found = lake.check(progress=told.append)
    # Two data files and a delete file; one inlined write.
    assert (found.files, found.inlined, found.found) == (3, 1, 0)
    assert {"check metadata", "check files"} <= {step.what for step in told}


# ---- Files ---


def test_a_missing_file_is_named(lake: forklake.Lake, table: forklake.Table, tmp_path: Path) -> None:
    lake.fork("shop", "fork")
    path = first_file(table, tmp_path)
    path.unlink()
    one = only(lake)
    assert (one.kind, one.catalog, one.table, one.path) == ("file", "shop", "main.t", str(path))
    assert "is missing" in one.message
    assert not only(lake, repair=True).repaired


def test_a_missing_delete_file_is_named(lake: forklake.Lake, table: forklake.Table, tmp_path: Path) -> None:
    (path,) = (tmp_path / "files").rglob("*-deletes.parquet")
    path.unlink()
    one = only(lake)
    assert (one.kind, one.path) == ("file", str(path))


def test_a_file_that_was_cut_is_named(lake: forklake.Lake, table: forklake.Table, tmp_path: Path) -> None:
    path = first_file(table, tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "bytes and had" in only(lake).message
    # As large as it was, but not what it was.
    path.write_bytes(path.read_bytes() + b"\0" * 20)
    assert "cannot be read" in only(lake).message


def test_a_file_that_was_replaced_is_named(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    path = first_file(table, tmp_path)
    other = lake.catalog("shop").create_table("o", "id INT, v VARCHAR")
    other.set_option("data_inlining_row_limit", 0)
    other.append([{"id": at, "v": f"v{at}"} for at in range(30, 37)])
    path.write_bytes(first_file(other, tmp_path).read_bytes())
    assert only(lake).kind == "file"


def test_rows_that_differ_from_what_was_committed_are_found(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql, tmp_path: Path
) -> None:
    path = first_file(table, tmp_path)
    rows = pq.read_table(path)
    pq.write_table(rows.slice(0, 7), path)
    raw(
        f"UPDATE ducklake_data_file SET file_size_bytes = {path.stat().st_size}, footer_size = NULL "
        f"WHERE path LIKE '%{path.name}'"
    )
    raw("UPDATE ducklake_table_stats SET file_size_bytes = NULL, record_count = NULL")
    one = only(lake)
    assert (one.kind, one.path) == ("rows", str(path))
    assert "has 7 rows and should have 10" in one.message


def test_an_imported_file_is_looked_at_too(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    given = tmp_path / "given.parquet"
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "v": ["x"]}), given)
    table.add_files(given, mapping="by_name")
    assert lake.check(data=True).is_clean
    pq.write_table(pa.table({"id": pa.array([77], pa.int32()), "v": ["x"]}), given)
    one = only(lake)
    assert (one.kind, one.table, one.path) == ("statistics", "main.t", str(given))
    given.unlink()
    assert only(lake).kind == "file"


def test_a_delete_file_that_names_other_rows_is_found(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql, tmp_path: Path
) -> None:
    raw("UPDATE ducklake_delete_file SET delete_count = 4")
    found = lake.check()
    assert {one.kind for one in found.differences} == {"rows", "statistics"}
    raw("UPDATE ducklake_delete_file SET delete_count = 5")
    (path,) = (tmp_path / "files").rglob("*-deletes.parquet")
    named = pq.read_table(path)
    pq.write_table(named.set_column(1, named.schema.field("pos"), pa.array([0, 1, 2, 3, 3])), path)
    raw(f"UPDATE ducklake_delete_file SET file_size_bytes = {path.stat().st_size}, footer_size = NULL")
    assert lake.check().is_clean
    assert "twice" in only(lake, data=True).message


def test_files_are_looked_at_wherever_they_are(tmp_path: Path, data_path: str) -> None:
    with forklake.connect(f"sqlite:///{tmp_path}/lake.db", data_path=data_path, create=True) as lake:
        for name in ("expire_older_than", "delete_older_than", "orphans_older_than"):
            lake.set_option(name, NOW)
        table = lake.create_catalog("shop").create_table("t", "id INT")
        table.set_option("data_inlining_row_limit", 0)
        for start in (0, 10, 20):
            table.append([{"id": at} for at in range(start, start + 10)])
        table.delete("id = 3")
        assert lake.check(data=True).is_clean
        tried, done, again = lake.checkpoint(dry_run=True), lake.checkpoint(), lake.checkpoint()
        assert (tried.files, done.files, again.files) == (0, 0, 4)
        assert again.bytes >= done.compact[0].rewritten.bytes_in > 0
        assert lake.check(data=True).is_clean and table.count() == 29
        (file,) = table.files()
        lake._storage.delete([file.path or ""])
        one = only(lake)
        assert (one.kind, one.path) == ("file", f"{lake.data_path}{file.path}")


# ---- Counts and statistics ---


def test_a_wrong_record_count_is_found(lake: forklake.Lake, table: forklake.Table, raw: RunSql) -> None:
    raw("UPDATE ducklake_data_file SET record_count = 11 WHERE file_format = 'parquet' AND row_id_start = 0")
    found = lake.check()
    assert [one.kind for one in found.differences] == ["rows", "statistics"]
    assert "has 10 rows and should have 11" in found.differences[0].message


def test_inlined_rows_that_were_counted_wrong_are_found(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql
) -> None:
    raw("UPDATE ducklake_data_file SET record_count = 1 WHERE file_format = 'inlined'")
    assert "rows" in kinds(lake)
    raw("UPDATE ducklake_data_file SET record_count = 2 WHERE file_format = 'inlined'")
    raw("UPDATE ducklake_inlined_file SET content = 'nonsense'")
    assert kinds(lake) == {"rows"}
    raw("DELETE FROM ducklake_inlined_file")
    assert "are missing" in only(lake).message


def test_a_table_that_was_counted_wrong_is_repaired(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql
) -> None:
    raw("UPDATE ducklake_table_stats SET record_count = 3")
    one = only(lake)
    assert (one.kind, one.catalog, one.table) == ("statistics", "shop", "main.t")
    assert not one.repaired and "3 rows were counted in the table, and it has 17" in one.message
    found = lake.check(repair=True)
    assert (found.found, found.repaired, found.is_clean) == (1, 1, True)
    assert lake.check().found == 0
    raw("UPDATE ducklake_table_stats SET file_size_bytes = 1")
    assert lake.check(repair=True).repaired == 1
    table.append([{"id": 30, "v": "a"}])
    assert lake.check().found == 0 and table.stats().record_count == 18


NARROW: dict[str, tuple[str, str]] = {
    "lower": ("min_key = max_key, min_value = max_value", "below the lower bound"),
    "upper": ("max_key = min_key, max_value = min_value", "above the upper bound"),
    "nothing": ("min_key = NULL, max_key = NULL", "all values are NULL"),
    "nulls": ("null_count = 1", "NULLs were counted"),
    "values": ("value_count = 3", "values were counted"),
    "text": ("min_value = '1'", "the lower bound is '1'"),
}


@pytest.mark.parametrize("change", NARROW)
def test_statistics_of_files_that_leave_values_out_are_repaired(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql, tmp_path: Path, change: str
) -> None:
    before = raw(_FILE_STATS)
    update, message = NARROW[change]
    (file,) = raw("SELECT min(data_file_id) FROM ducklake_data_file WHERE file_format = 'parquet'")[0]
    raw(f"UPDATE ducklake_file_column_stats SET {update} WHERE data_file_id = {file} AND column_id = 1")
    one = lake.check().differences[0]
    assert (one.kind, one.path) == ("statistics", str(first_path(raw, file, tmp_path)))
    assert message in one.message and '"id"' in one.message
    assert only(lake, repair=True).repaired
    assert raw(_FILE_STATS) == before
    assert lake.check(data=True).found == 0


_FILE_STATS = (
    "SELECT catalog_id, data_file_id, column_id, value_count, null_count, min_value, max_value, min_key, "
    "max_key FROM ducklake_file_column_stats ORDER BY 1, 2, 3"
)


def first_path(raw: RunSql, file: int, tmp_path: Path) -> Path:
    return tmp_path / "files" / raw(f"SELECT path FROM ducklake_data_file WHERE data_file_id = {file}")[0][0]


def test_bounds_of_tables_that_leave_values_out_are_repaired(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql
) -> None:
    select = (
        "SELECT column_id, contains_null, min_value, max_value, min_key, max_key "
        "FROM ducklake_table_column_stats ORDER BY 1"
    )
    before = raw(select)
    for column in (1, 2):
        raw(
            "UPDATE ducklake_table_column_stats SET max_key = min_key, max_value = min_value, "
            f"contains_null = FALSE WHERE column_id = {column}"
        )
        one = only(lake)
        assert (one.kind, one.catalog, one.table) == ("statistics", "shop", "main.t")
        assert f"column {column}" in one.message
        assert only(lake, repair=True).repaired
        assert raw(select) == before
    assert lake.check().found == 0


def test_values_that_a_footer_does_not_tell_are_read(
    lake: forklake.Lake, raw: RunSql, tmp_path: Path
) -> None:
    table = lake.create_catalog("shop").create_table("t", "id INT, d DOUBLE")
    table.set_option("data_inlining_row_limit", 0)
    table.append([{"id": at, "d": 1.0 if at else float("nan")} for at in range(10)])
    raw("UPDATE ducklake_file_column_stats SET max_key = min_key, contains_nan = FALSE WHERE column_id = 2")
    assert lake.check().is_clean
    assert only(lake, data=True).kind == "statistics"
    assert only(lake, data=True, repair=True).repaired
    assert lake.check(data=True).is_clean
    assert table.scan("isnan(d)").count() == 1


# ---- Metadata ---


def break_counter(raw: RunSql, url: str, name: str) -> None:
    if url.startswith("postgresql"):
        raw(f"SELECT setval('ducklake_next_{name}', 1)")
    else:
        raw(f"UPDATE ducklake_counter SET next_value = 1 WHERE name = '{name}'")


@pytest.mark.parametrize("name", ["snapshot_id", "catalog_id", "file_id"])
def test_a_counter_that_is_too_low_is_found(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql, lake_url: str, name: str
) -> None:
    break_counter(raw, lake_url, name)
    one = only(lake, repair=True)
    assert (one.kind, one.repaired) == ("counter", False)
    assert f"the next {name}" in one.message


def test_row_ids_that_would_be_given_twice_are_found(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql
) -> None:
    raw("UPDATE ducklake_table_stats SET next_row_id = 12")
    one = only(lake, repair=True)
    assert (one.kind, one.catalog, one.table, one.repaired) == ("counter", "shop", "main.t", False)
    assert "12" in one.message and "22" in one.message


BROKEN: dict[str, tuple[Callable[[RunSql, int, int], object], str, str | None]] = {
    "no row of itself": (
        lambda raw, fork, _: raw(
            f"DELETE FROM ducklake_catalog_lineage WHERE catalog_id = {fork} AND source_catalog_id = {fork}"
        ),
        "lineage",
        "fork",
    ),
    "no row of its parent": (
        lambda raw, fork, parent: raw(
            f"DELETE FROM ducklake_catalog_lineage WHERE catalog_id = {fork} AND source_catalog_id = {parent}"
        ),
        "lineage",
        "fork",
    ),
    "a mask of nothing": (
        lambda raw, fork, _: raw(
            "INSERT INTO ducklake_inherited_end "
            "(catalog_id, entity, entity_id, sub_id, sub_key, row_begin, end_snapshot) "
            f"VALUES ({fork}, 'data_file', 999, 0, '', 1, 2)"
        ),
        "mask",
        "fork",
    ),
    "a mask that ends before": (
        lambda raw, fork, _: raw("UPDATE ducklake_inherited_end SET end_snapshot = 0"),
        "mask",
        "fork",
    ),
    "no name": (
        lambda raw, fork, _: raw(f"UPDATE ducklake_catalog SET end_snapshot = 9 WHERE catalog_id = {fork}"),
        "lineage",
        "fork",
    ),
    "a head ahead of all": (
        lambda raw, fork, _: raw(
            f"UPDATE ducklake_catalog_head SET snapshot_id = 99999 WHERE catalog_id = {fork}"
        ),
        "counter",
        "fork",
    ),
    "a file of no table": (
        lambda raw, fork, parent: raw(
            f"UPDATE ducklake_data_file SET table_id = 999 WHERE catalog_id = {fork}"
        ),
        "key",
        "fork",
    ),
    "deletes of no file": (
        lambda raw, fork, parent: raw("UPDATE ducklake_delete_file SET data_file_id = 999"),
        "key",
        "shop",
    ),
    "a file that ends before it begins": (
        lambda raw, fork, _: raw(f"UPDATE ducklake_data_file SET end_snapshot = 0 WHERE catalog_id = {fork}"),
        "key",
        "fork",
    ),
    "statistics of no file": (
        lambda raw, fork, _: raw(
            "INSERT INTO ducklake_file_column_stats (catalog_id, data_file_id, table_id, column_id) "
            f"VALUES ({fork}, 999, 1, 1)"
        ),
        "key",
        "fork",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_metadata_that_does_not_hold_together_is_found(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql, broken: str
) -> None:
    fork = lake.fork("shop", "fork")
    fork.table("t").append([{"id": at, "v": "f"} for at in range(40, 50)])
    fork.table("t").delete("id >= 10 AND id < 20")
    assert lake.check(data=True).differences == ()
    breaks, kind, catalog = BROKEN[broken]
    breaks(raw, fork.id, lake.catalog("shop").id)
    found = [one for one in lake.check(repair=True).differences if one.kind == kind]
    assert found and {one.catalog for one in found} == {catalog}
    assert not any(one.repaired for one in found)


def test_two_tables_of_one_name_are_found(lake: forklake.Lake, table: forklake.Table, raw: RunSql) -> None:
    fork = lake.fork("shop", "fork")
    fork.create_table("u", "id INT")
    raw(f"UPDATE ducklake_table SET table_name = 't' WHERE catalog_id = {fork.id}")
    one = only(lake)
    assert (one.kind, one.catalog) == ("key", "fork")


def test_an_ancestor_that_is_missing_is_found(
    lake: forklake.Lake, table: forklake.Table, raw: RunSql
) -> None:
    child = lake.fork("shop", "fork").fork("child")
    shop = lake.catalog("shop").id
    raw(f"DELETE FROM ducklake_catalog_lineage WHERE catalog_id = {child.id} AND source_catalog_id = {shop}")
    one = only(lake)
    assert (one.kind, one.catalog) == ("lineage", "child")


@pytest.mark.parametrize("how", [{"repair": "yes"}, {"data": 1}, {"repair": None}, {"progress": "loud"}])
def test_bad_arguments_are_refused(lake: forklake.Lake, how: dict[str, Any]) -> None:
    with pytest.raises(forklake.InvalidArgument):
        lake.check(**how)
