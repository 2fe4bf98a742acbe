"""Files that another engine wrote for a distributed snapshot, described by their footers (S1)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.distributed import ROW_ID, base_files, describe_files, output_folder, write_part
from tests.contract.rows.shown import content, ids, many, numbered

ROW_ID_FIELD = "2147483540"


def laid_down(folder: str, rows: pa.Table, field_ids: dict[str, str]) -> list[str]:
    """What an engine would write: several files in a folder, with field ids."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    fields = [
        field.with_metadata({"PARQUET:field_id": field_ids[field.name]}) if field.name in field_ids else field
        for field in rows.schema
    ]
    rows = pa.table(rows.columns, schema=pa.schema(fields))
    half = (rows.num_rows + 1) // 2
    paths = [f"{folder}part-{number}.parquet" for number in range(2)]
    for number, path in enumerate(paths):
        pq.write_table(rows.slice(number * half, half), path)
    return paths


def test_native_files_become_a_part(catalog: forklake.Catalog, table: forklake.Table) -> None:
    ds = catalog.begin_distributed()
    columns = {"id": "1", "v": "2"}
    attempts = [
        describe_files(ds, "t", laid_down(output_folder(ds, "t", "job"), many(), columns), part="job")
        for _ in range(2)
    ]
    other = write_part(ds, "t", many(1000), part="python")
    catalog.commit_distributed(ds, [*attempts, other])
    assert ids(table) == [*range(150), *range(1000, 1150)]
    assert len(table.files()) == 3
    assert len(table.scan("id = 100").plan().files) == 1


def test_nested_columns_and_names_are_mapped(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("n", "id BIGINT, s STRUCT(a INT, b VARCHAR), l INT[]")
    ds = catalog.begin_distributed()
    rows = pa.table(
        {
            "id": pa.array(range(4), pa.int64()),
            "s": pa.array(
                [{"a": n, "b": str(n)} for n in range(4)], pa.struct({"a": pa.int32(), "b": pa.string()})
            ),
            "l": pa.array([[n, n + 1] for n in range(4)], pa.list_(pa.int32())),
        }
    )
    paths = laid_down(output_folder(ds, "n", 0), rows, {})
    catalog.commit_distributed(ds, describe_files(ds, "n", paths, mapping="by_name"))
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == rows.to_pylist()


def test_native_files_may_carry_row_ids(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append(many())
    (base,) = base_files(table.scan().plan())
    ds = catalog.begin_distributed()
    rows = numbered(*range(10), v="new").append_column(ROW_ID, pa.array(range(10), pa.int64()))
    paths = laid_down(output_folder(ds, "t", 0), rows, {"id": "1", "v": "2", ROW_ID: ROW_ID_FIELD})
    rewritten = describe_files(ds, "t", paths, row_ids=True, part=0)
    assert [part.row_ids for part in rewritten.files] == [5, 5]
    gone = write_part(ds, "t", delete={base.id: range(10)}, part="deletes")
    catalog.commit_distributed(ds, [rewritten, gone])
    assert content(table) == [(n, n, "new" if n < 10 else "x") for n in range(150)]
    assert table.locate(3) is not None
    with pytest.raises(forklake.InvalidData, match="row ids"):
        plain = laid_down(output_folder(ds, "t", 1), numbered(1, 2), {"id": "1", "v": "2"})
        describe_files(ds, "t", plain, row_ids=True)


def test_native_files_know_their_partition(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("p", "id BIGINT, v VARCHAR", partition_by=["v"])
    ds = catalog.begin_distributed()
    paths = laid_down(output_folder(ds, "p", 0), numbered(1, 2, 3, v="eu"), {"id": "1", "v": "2"})
    made = describe_files(ds, "p", paths, partition_values=dict.fromkeys(paths, ("eu",)))
    assert {part.written.partition_values for part in made.files} == {("eu",)}
    catalog.commit_distributed(ds, made)
    assert ids(table, "v = 'eu'") == [1, 2, 3]
    assert table.scan("v = 'us'").plan().files == ()
    with pytest.raises(forklake.InvalidArgument, match="partition values"):
        describe_files(ds, "p", paths, partition_values=dict.fromkeys(paths, ("eu", "x")))


def test_files_that_do_not_fit_are_refused(
    catalog: forklake.Catalog, table: forklake.Table, tmp_path
) -> None:
    ds = catalog.begin_distributed()
    with pytest.raises(forklake.InvalidArgument, match="output_folder"):
        describe_files(ds, "t", laid_down(f"{tmp_path}/", numbered(1), {"id": "1"}))
    wrong = pa.table({"id": ["text"], "v": ["x"]})
    with pytest.raises(forklake.InvalidData, match="VARCHAR"):
        describe_files(ds, "t", laid_down(output_folder(ds, "t", 0), wrong, {"id": "1", "v": "2"}))
    with pytest.raises(forklake.FileMissing):
        describe_files(ds, "t", [f"{output_folder(ds, 't', 1)}none.parquet"])
    empty = laid_down(output_folder(ds, "t", 2), numbered(), {"id": "1", "v": "2"})
    assert describe_files(ds, "t", empty).files == []
