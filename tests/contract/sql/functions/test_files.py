"""Functions about tables and their files."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from tests.contract.sql.functions.conftest import Call, Refused

MANY = 200
ROWS = [{"id": at} for at in range(MANY)]


def test_tables_are_listed_with_their_sizes(catalog: forklake.Catalog, call: Call) -> None:
    catalog.create_schema("sales")
    big = catalog.create_table("sales.big", "id BIGINT")
    small = catalog.create_table("small", "id BIGINT")
    big.append(ROWS)
    big.append(ROWS)
    big.delete("id < 150")
    small.append([{"id": 1}])
    found = {row["table_name"]: row for row in call("table_info")}
    assert list(found) == ["big", "small"]
    schemas = {schema.name: schema.id for schema in catalog.schemas()}
    sizes = [file.file_size_bytes for file in big.files()]
    deletes = found["big"].pop("delete_file_size_bytes")
    assert deletes > 0
    assert found["big"] == {
        "table_name": "big",
        "schema_id": schemas["sales"],
        "table_id": big.id,
        "table_uuid": UUID(big.uuid),
        "file_count": 2,
        "file_size_bytes": sum(sizes),
        "delete_file_count": 2,
    }
    assert list(found["small"].values())[1:3] == [schemas["main"], small.id]
    assert list(found["small"].values())[4:] == [0, 0, 0, 0]


def test_a_fork_and_a_transaction_have_sizes_of_their_own(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call
) -> None:
    table = catalog.create_table("t", "id BIGINT")
    table.append(ROWS)
    fork = lake.fork(catalog, "agent")
    fork.table("t").append(ROWS)
    fork.table("t").delete("id < 150")
    table.append(ROWS)
    table.append(ROWS)

    def counts(**where: object) -> list[tuple[int, int]]:
        return [(row["file_count"], row["delete_file_count"]) for row in call("table_info", **where)]

    assert counts() == [(3, 0)]
    assert counts(on=fork) == [(2, 2)]
    with catalog.transaction() as tx:
        tx.table("t").append(ROWS)
        tx.create_table("new", "id BIGINT").append(ROWS)
        assert counts(work=tx) == [(1, 0), (4, 0)]
        tx.rollback()


def test_files_are_listed_with_what_was_deleted(catalog: forklake.Catalog, call: Call) -> None:
    table = catalog.create_table("t", "id BIGINT")
    table.append(ROWS)
    table.append([{"id": 1}])
    before = catalog.snapshots()[-1]
    table.delete("id < 150")
    (found,) = call("list_files", "t")
    assert Path(found["data_file"]).stat().st_size == found["data_file_size_bytes"]
    assert Path(found["delete_file"]).stat().st_size == found["delete_file_size_bytes"]
    assert pq.read_metadata(found["data_file"]).serialized_size <= found["data_file_footer_size"]
    assert found["delete_file_footer_size"] > 0
    assert (found["data_file_encryption_key"], found["delete_file_encryption_key"]) == (None, None)
    for past in ({"snapshot_version": before.id}, {"snapshot_time": before.time}):
        (then,) = call("list_files", "t", **past)
        assert (then["data_file"], then["delete_file"]) == (found["data_file"], None)
    assert call("list_files", "t", schema="main", snapshot_version=before.id - 2) == []


def test_files_of_what_is_not_there_are_refused(catalog: forklake.Catalog, refused: Refused) -> None:
    catalog.create_table("t", "id BIGINT")
    assert 'no table "main.nope"' in refused("list_files", "nope")
    assert 'no schema "nope"' in refused("list_files", "t", schema="nope")
    assert "not both" in refused("list_files", "t", snapshot_version=1, snapshot_time="2024-01-01")
    assert "snapshot_version is a whole number, not 'x'" in refused("list_files", "t", snapshot_version="x")
    assert "snapshot_time is a timestamp, not 'x'" in refused("list_files", "t", snapshot_time="x")


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


def test_files_become_part_of_a_table(
    catalog: forklake.Catalog, call: Call, refused: Refused, incoming: Path
) -> None:
    catalog.create_schema("sales")
    table = catalog.create_table("sales.t", "id BIGINT, region VARCHAR")
    for name, ids in {"a": [1, 2], "b": [3]}.items():
        pq.write_table(pa.table({"id": ids, "region": [name] * len(ids)}), incoming / f"{name}.parquet")
    assert call("add_data_files", "t", str(incoming / "a.parquet"), schema="sales") == []
    call("add_data_files", "sales.t", [str(incoming / "b.parquet")])
    assert table.count() == 3
    assert "part of the table already" in refused("add_data_files", "sales.t", str(incoming / "*.parquet"))
    pq.write_table(pa.table({"id": [4], "extra": [1]}), incoming / "c.parquet")
    path = str(incoming / "c.parquet")
    assert "ignore_extra" in refused("add_data_files", "sales.t", path, allow_missing=True)
    assert "allow_missing" in refused("add_data_files", "sales.t", path, ignore_extra_columns=True)
    call("add_data_files", "sales.t", path, ignore_extra_columns=True, allow_missing="true")
    assert table.scan("id = 4").to_pylist() == [{"id": 4, "region": None}]
    assert "path is a string or a list of strings, not 5" in refused("add_data_files", "sales.t", 5)
    assert "path is a string or a list of strings, not NULL" in refused("add_data_files", "sales.t", None)
    assert "table is a string, not NULL" in refused("add_data_files", None, path)


def test_folders_have_values_of_columns_unless_that_is_not_wanted(
    catalog: forklake.Catalog, call: Call, refused: Refused, incoming: Path
) -> None:
    table = catalog.create_table("t", "id BIGINT, region VARCHAR")
    (incoming / "region=eu").mkdir()
    pq.write_table(pa.table({"id": [1]}), incoming / "region=eu" / "a.parquet")
    pattern = str(incoming / "**" / "*.parquet")
    assert "allow_missing" in refused("add_data_files", "t", pattern, hive_partitioning=False)
    call("add_data_files", "t", pattern, hive_partitioning=True)
    assert table.scan().to_pylist() == [{"id": 1, "region": "eu"}]


def test_a_folder_comes_before_a_column_in_the_file_unless_folders_are_left_out(
    catalog: forklake.Catalog, call: Call, incoming: Path
) -> None:
    table = catalog.create_table("t", "id BIGINT, region VARCHAR")
    for name in ("a", "b"):
        (incoming / name / "region=eu").mkdir(parents=True)
        pq.write_table(pa.table({"id": [1], "region": ["us"]}), incoming / name / "region=eu" / "x.parquet")
    call("add_data_files", "t", str(incoming / "a" / "*" / "*.parquet"))
    call("add_data_files", "t", str(incoming / "b" / "*" / "*.parquet"), hive_partitioning=False)
    assert sorted(row["region"] for row in table.scan().to_pylist()) == ["eu", "us"]


def test_files_are_added_with_the_transaction(catalog: forklake.Catalog, call: Call, incoming: Path) -> None:
    table = catalog.create_table("t", "id BIGINT")
    pq.write_table(pa.table({"id": [1]}), incoming / "a.parquet")
    with catalog.transaction() as tx:
        call("add_data_files", "t", str(incoming / "a.parquet"), work=tx)
        assert (tx.table("t").count(), table.count()) == (1, 0)
        tx.rollback()
    assert table.count() == 0
