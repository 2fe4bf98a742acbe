"""What segments are built of: the rows of data files in their order, as the table has its columns now."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import forklake
from tests.index_checks import rows_of_files


def test_parts_have_all_rows_in_their_order(catalog: forklake.Catalog, tmp_path: Path) -> None:
    columns = "k INTEGER, s STRUCT(a INTEGER), v VARCHAR, u UUID, h HUGEINT, n TIME_NS"
    table = catalog.create_table("t", columns)
    table.set_option("data_inlining_row_limit", 0)
    rows = [
        {"k": at, "s": {"a": at}, "v": f"v{at}", "u": None, "h": at << 70, "n": None} for at in range(5000)
    ]
    table.append(rows)
    table.delete("k % 2 = 0")
    table.rename_column("s.a", "b")
    table.rename_column("k", "key")
    table.alter_type("key", "BIGINT")
    table.add_column("later", "VARCHAR", default="'x'")
    folder = tmp_path / "in" / "later=y"
    folder.mkdir(parents=True)
    count = 300_000
    names = pa.array([f"n{at}" for at in range(count)])
    pq.write_table(pa.table({"V": names, "KEY": pa.array(range(count), pa.int32())}), folder / "one.parquet")
    table.add_files(tmp_path / "in", mapping="by_name", allow_missing=True)
    table.append([{"key": number} for number in range(3)])
    old, imported, new = rows_of_files(table, "later", "key", "v", "h", "s")
    assert [row["key"] for row in old] == list(range(5000))
    assert old[4] == {"later": "x", "key": 4, "v": "v4", "h": 4 << 70, "s": {"b": 4}}
    assert [(row["later"], row["key"], row["v"]) for row in imported] == [
        ("y", at, f"n{at}") for at in range(count)
    ]
    assert new[2] == {"later": "x", "key": 2, "v": None, "h": None, "s": None}
    assert {row["n"] for rows in rows_of_files(table, "n", "u") for row in rows} == {None}
