"""Options: what a lake, a schema and a table say, and what comes of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import InvalidArgument
from tests.contract.sql.functions.conftest import Call, Refused

BAD = "CAST(CASE WHEN id = 990 THEN 'x' ELSE '1' END AS INTEGER)"
"""A sort key that one row has none of."""
ROWS = [{"id": at, "name": f"n{at}"} for at in range(1000)]


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    return catalog.create_table("t", "id BIGINT, name VARCHAR")


def written(lake: forklake.Lake, table: forklake.Table) -> list[Any]:
    """Footers of the files of a table."""
    return [pq.read_metadata(Path(lake.data_path) / str(file.path)) for file in table.files()]


def codecs(lake: forklake.Lake, table: forklake.Table) -> list[str]:
    return [footer.row_group(0).column(0).compression for footer in written(lake, table)]


def test_options_of_a_table_go_before_those_of_its_schema_and_those_before_the_lakes(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call
) -> None:
    catalog.create_schema("s")
    tables = {
        name: catalog.create_table(name, "id BIGINT, name VARCHAR") for name in ("a", "b", "s.a", "s.b")
    }
    call("set_option", "parquet_compression", "uncompressed")
    call("set_option", "parquet_compression", "gzip", table_name="b")
    call("set_option", "parquet_compression", "snappy", schema="s")
    call("set_option", "parquet_compression", "brotli", schema="s", table_name="b")
    for table in tables.values():
        table.append(ROWS)
    assert {name: codecs(lake, table) for name, table in tables.items()} == {
        "a": ["UNCOMPRESSED"],
        "b": ["GZIP"],
        "s.a": ["SNAPPY"],
        "s.b": ["BROTLI"],
    }
    assert catalog.schema_options("S").parquet_compression == "snappy"
    assert tables["s.a"].options().parquet_compression == "snappy"
    listed = [
        (row["value"], row["scope"], row["scope_entry"])
        for row in call("options")
        if row["option_name"] == "parquet_compression"
    ]
    assert listed == [
        ("uncompressed", "GLOBAL", None),
        ("snappy", "SCHEMA", "s"),
        ("gzip", "TABLE", "main.b"),
        ("brotli", "TABLE", "s.b"),
    ]

    fork = lake.fork(catalog.name, "fork")
    fork.set_schema_option("s", "parquet_compression", None)
    assert fork.table("s.a").options().parquet_compression == "uncompressed"
    assert tables["s.a"].options().parquet_compression == "snappy"
    lake.merge("fork", into=catalog.name)
    assert tables["s.a"].options().parquet_compression == "uncompressed"
    assert tables["s.b"].options().parquet_compression == "brotli"
    assert catalog.tags("schema", "s") == {}, "options are no tags that people have set"


def test_options_of_a_schema_count_in_the_transaction_that_sets_them(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    with catalog.transaction() as tx:
        tx.create_schema("s")
        tx.set_schema_option("s", "data_inlining_row_limit", 0)
        table = tx.create_table("s.t", "id BIGINT")
        table.append([{"id": 1}])
        assert tx.schema_options("s").data_inlining_row_limit == 0
    (file,) = catalog.table("s.t").files()
    assert file.path is not None
    assert [row["scope"] for row in catalog.sql("FROM options()").to_pylist()].count("SCHEMA") == 1


def test_what_is_no_option_of_a_schema_is_refused(catalog: forklake.Catalog, refused: Refused) -> None:
    before = catalog.snapshot
    assert 'no schema "nope"' in refused("set_option", "auto_compact", False, schema="nope")
    assert "there is no option 'nope'" in refused("set_option", "nope", 1, schema="main")
    assert "option of the lake" in refused("set_option", "require_commit_message", True, schema="main")
    assert "1 or 2" in refused("set_option", "parquet_version", 3, schema="main")
    assert "always false" in refused("set_option", "write_deletion_vectors", True)
    assert "true or false" in refused("set_option", "hive_file_pattern", "maybe")
    assert "parquet_row_group_size_bytes" in refused("set_option", "parquet_row_group_size_bytes", "much")
    assert catalog.snapshot == before


def test_row_groups_end_when_they_are_large(lake: forklake.Lake, table: forklake.Table, call: Call) -> None:
    call("set_option", "parquet_row_group_size_bytes", "10KB", table_name="t")
    table.append(ROWS)
    table.set_sort_order(["id DESC"])
    table.append(ROWS)
    for footer in written(lake, table):
        groups = [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]
        assert len(groups) > 1 and sum(groups) == len(ROWS) and max(groups) < 700
    assert table.options().parquet_row_group_size_bytes == 10_000


@pytest.mark.parametrize(("version", "plain"), [(1, True), ("v2", False)])
def test_files_of_the_first_version_have_no_later_encodings(
    lake: forklake.Lake, table: forklake.Table, version: object, plain: bool
) -> None:
    table.set_option("parquet_version", version)
    table.append(ROWS)
    (footer,) = written(lake, table)
    encodings = {name for at in range(2) for name in footer.row_group(0).column(at).encodings}
    assert (encodings <= {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"}) == plain
    assert table.count() == len(ROWS)


def test_files_of_partitions_may_lie_beside_each_other(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call
) -> None:
    call("set_option", "hive_file_pattern", False, schema="main")
    table = catalog.create_table("p", "id BIGINT, region VARCHAR", partition_by=["region"])
    rows = [{"id": at, "region": ("eu", "us")[at % 2]} for at in range(1000)]
    table.append(rows)
    assert {Path(str(file.path)).parent.name for file in table.files()} == {"p"}
    assert {file.partition_values for file in table.files()} == {("eu",), ("us",)}
    assert len(table.scan("region = 'eu'").plan().files) == 1
    table.append(rows)
    assert catalog.compact().files_out == 2
    assert {Path(str(file.path)).parent.name for file in table.files()} == {"p"}
    assert table.scan("region = 'us'").count() == len(rows)


def test_each_thread_may_write_files_of_its_own(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    table.set_option("per_thread_output", True)
    table.set_option("parquet_row_group_size", 100)
    rows = _arrow()
    table.append(rows)
    files = table.files()
    assert 1 <= len(files) <= 3 and sum(file.record_count for file in files) == rows.num_rows
    found = table.scan(row_ids=True).to_arrow()
    assert sorted(found.column("id").to_pylist()) == list(range(rows.num_rows))
    assert len(set(found.column(found.column_names[-1]).to_pylist())) == rows.num_rows
    table.append(rows.slice(0, 100))
    assert len(table.files()) == len(files) + 1
    assert catalog.compact().files_out == 1


def test_if_a_thread_fails_no_file_of_the_others_stays(
    lake: forklake.Lake, catalog: forklake.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    table = catalog.create_table("t", "id BIGINT, name VARCHAR", sorted_by=[BAD])
    table.set_option("per_thread_output", True)
    table.set_option("parquet_row_group_size", 10)
    with pytest.raises(InvalidArgument, match="cannot be sorted"):
        table.append(_arrow())
    assert list(Path(lake.data_path).rglob("*.parquet")) == []
    table.append(_arrow().slice(0, 990))
    assert table.count() == 990


def test_commits_need_a_message_if_the_lake_says_so(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, call: Call
) -> None:
    table.append(ROWS)
    table.append(ROWS)
    table.append(ROWS[:3])
    call("set_option", "require_commit_message", True)
    before = catalog.snapshot
    for text in ("INSERT INTO t VALUES (1, 'a')", "DROP TABLE t", "BEGIN; DELETE FROM t; COMMIT"):
        with pytest.raises(InvalidArgument, match="need a message"):
            catalog.sql(text)
    with pytest.raises(InvalidArgument, match="need a message"):
        table.append(ROWS)
    assert (catalog.snapshot, table.count()) == (before, 2 * len(ROWS) + 3)
    # What changes nothing that can be read needs none.
    assert (table.flush_inlined(), catalog.compact().files_in) == (3, 3)
    table.append(ROWS, message="more of them")
    catalog.sql("BEGIN; CALL set_commit_message('me', 'why'); DELETE FROM t; COMMIT")
    assert [snapshot.message for snapshot in catalog.snapshots()[-2:]] == ["more of them", "why"]
    call("set_option", "require_commit_message", False)
    catalog.sql("DROP TABLE t")


def test_an_age_that_is_empty_is_the_default(lake: forklake.Lake, call: Call) -> None:
    default = lake.options().delete_older_than
    call("set_option", "delete_older_than", "1 week")
    assert lake.options().delete_older_than != default
    call("set_option", "delete_older_than", "")
    assert lake.options().delete_older_than == default


def _arrow() -> pa.Table:
    return pa.table({"id": pa.array(range(1000), pa.int64()), "name": [row["name"] for row in ROWS]})


def test_ages_are_intervals_as_duckdb_writes_them(lake: forklake.Lake, call: Call, refused: Refused) -> None:
    for age, days in (("1 month", 30), ("1 year 2 days", 367.25), ("1 day 12:00:00", 1.5)):
        call("set_option", "expire_older_than", age)
        assert lake.options().expire_older_than == timedelta(days=days)
    assert "is an age such as" in refused("set_option", "expire_older_than", "a while")
