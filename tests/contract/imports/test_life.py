"""Rows of imported files live like all others: they change, have ids and a past, and files are pruned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import CommitConflict, FileMissing, StorageError


@pytest.fixture
def table(catalog, put):
    """Six rows in three imported files that call the columns differently."""
    table = catalog.create_table("t", "id INT, name VARCHAR, x DOUBLE")
    for at, names in enumerate((("id", "name", "x"), ("A", "B", "C"), ("name", "x", "id"))):
        values = [
            pa.array([2 * at, 2 * at + 1], pa.int32()),
            [f"r{2 * at}", f"r{2 * at + 1}"],
            [0.5, float(at)],
        ]
        path = put(f"{at}.parquet", pa.table([pa.array(column) for column in values], names=list(names)))
        table.add_files(path, mapping="by_position")
    return table


def ids(table, where: str | None = None) -> dict[int, int]:
    found = table.scan(where, ["id"], row_ids=True).to_arrow().to_pylist()
    return {row["row_id"]: row["id"] for row in found}


def test_rows_have_ids_that_stay(catalog, table) -> None:
    assert ids(table) == {at: at for at in range(6)}
    table.update({"id": "id + 100"}, "id IN (1, 4)")
    table.delete("id = 0")
    assert ids(table) == {1: 101, 2: 2, 3: 3, 4: 104, 5: 5}
    assert table.locate(3).path.endswith("1.parquet") and table.locate(0) is None
    table.append([{"id": 6}])
    catalog.flush_inlined()
    assert ids(table) == {1: 101, 2: 2, 3: 3, 4: 104, 5: 5, 6: 6}


def test_rows_are_changed_through_files_and_inline(catalog, table, rows) -> None:
    for limit in (0, 10):
        table.set_option("data_inlining_row_limit", limit)
        assert table.update({"name": "name || '!'", "x": "NULL"}, "id = 1 OR id = 2") == 2
        assert table.delete(f"id = {0 if limit else 5}") == 1
        catalog.flush_inlined()
    assert rows(table, columns=["id", "name"]) == [
        {"id": 1, "name": "r1!!"},
        {"id": 2, "name": "r2!!"},
        {"id": 3, "name": "r3"},
        {"id": 4, "name": "r4"},
    ]
    result = table.merge([{"id": 3, "name": "merged"}, {"id": 9, "name": "new"}], on="id")
    assert (result.updated, result.inserted) == (1, 1)
    assert rows(table, "id IN (3, 9)", columns=["id", "name"]) == [
        {"id": 3, "name": "merged"},
        {"id": 9, "name": "new"},
    ]
    assert table.overwrite([{"id": 7}], where="id < 5") == 1
    assert sorted(ids(table).values()) == [7, 9]


def test_the_past_shows_what_was_there(catalog, table, rows) -> None:
    before = catalog.snapshot
    known = rows(table)
    table.delete("id < 3")
    table.rename_column("name", "title")
    table.update({"title": "'x'"})
    table.drop_column("x")
    past = catalog.table("t", at=before)
    assert rows(past) == known and past.count() == 6
    assert table.count() == 3


def test_changes_tell_of_imported_rows(catalog, table) -> None:
    start = catalog.snapshot
    catalog.create_table("other", "id INT")
    table.update({"name": "'u'"}, "id = 2")
    table.delete("id = 3")
    feed = table.changes(start).to_arrow().to_pylist()
    told = sorted((row["change_type"], row["row_id"], row["id"], row["name"]) for row in feed)
    assert told == [
        ("delete", 3, 3, "r3"),
        ("update_postimage", 2, 2, "u"),
        ("update_preimage", 2, 2, "r2"),
    ]
    first = catalog.table("t").changes(start - 2, start).to_arrow().to_pylist()
    assert sorted((row["change_type"], row["id"]) for row in first) == [("insert", n) for n in range(2, 6)]


def test_structure_changes_after_the_import(catalog, table, put, rows) -> None:
    table.add_column("extra", "INT", default="7")
    table.rename_column("id", "number")
    table.alter_type("number", "BIGINT")
    table.drop_column("x")
    table.reorder(["extra"])
    table.add_column("x", "VARCHAR")
    assert rows(table, "number = 3") == [{"extra": 7, "number": 3, "name": "r3", "x": None}]
    assert table.scan("extra = 7").count() == 6 and table.scan("extra <> 7").plan().files == ()
    # A file that comes now has to fit what the table is now.
    wide = pa.table({"number": [2**40], "name": ["w"], "extra": pa.array([1], pa.int32()), "x": ["y"]})
    table.add_files(put("new.parquet", wide), mapping="by_name")
    assert rows(table, "number > 5") == [{"extra": 1, "number": 2**40, "name": "w", "x": "y"}]
    table.set_nullable("name", False)
    assert table.count() == 7


def test_a_transaction_imports_and_changes_at_once(catalog, table, put, rows) -> None:
    path = put("new.parquet", pa.table({"id": pa.array([10, 11, 12], pa.int32()), "name": ["a", "b", "c"]}))
    before = catalog.snapshot
    with catalog.transaction() as tx:
        mine = tx.table("t")
        mine.add_files(path, mapping="by_name", allow_missing=True)
        assert mine.delete("id = 11") == 1
        assert mine.update({"id": "id * 10"}, "id >= 5") == 3
        seen = rows(mine)
        assert {row["id"] for row in seen} == {0, 1, 2, 3, 4, 50, 100, 120}
    assert rows(table) == seen
    assert catalog.snapshot == before + 1
    assert len(set(ids(table))) == 8
    tx = catalog.transaction()
    tx.table("t").delete()
    tx.rollback()
    assert rows(table) == seen and path.exists()


def test_imports_of_two_writers_both_count(catalog, table, put, rows) -> None:
    paths = [put(f"w{n}.parquet", pa.table({"id": pa.array([n], pa.int32())})) for n in (20, 21)]
    first, second = catalog.transaction(), catalog.transaction()
    for tx, path in zip((first, second), paths, strict=True):
        tx.table("t").add_files(path, mapping="by_name", allow_missing=True)
    first.commit()
    second.commit()
    assert sorted(ids(table, "id >= 20").items()) == [(6, 20), (7, 21)]
    late = catalog.transaction()
    late.table("t").add_files(
        put("late.parquet", pa.table({"id": pa.array([22], pa.int32())})),
        mapping="by_name",
        allow_missing=True,
    )
    table.add_column("more", "INT")
    with pytest.raises(CommitConflict):
        late.commit()
    assert table.count() == 8


def test_footers_tell_which_files_to_read(catalog, put, rows) -> None:
    table = catalog.create_table("t", "n INT, v VARCHAR, d DATE, l INT[]")
    for at in range(4):
        file = pa.table(
            {
                "n": pa.array([10 * at, 10 * at + 9, None], pa.int32()),
                "v": [f"k{at}", "k" * 200 if at == 3 else None, None],
                "d": pa.array([at * 365, None, None], pa.date32()),
                "l": pa.array([[at], None, []], pa.list_(pa.int32())),
            }
        )
        # The last file tells nothing.
        table.add_files(put(f"{at}.parquet", file, write_statistics=at != 3), mapping="by_name")

    def read(where: str) -> list[int]:
        scan = table.scan(where)
        plan = scan.plan()
        assert len(plan.files) + len(plan.pruned) == 4
        assert scan.count() == scan.to_arrow().num_rows
        return sorted(int(file.path.rpartition("/")[2][0]) for file in plan.files)

    assert read("n = 15") == [1, 3]
    assert read("n BETWEEN 5 AND 12") == [0, 1, 3]
    assert read("n < 0") == [3]
    assert read("v = 'k2'") == [2, 3]
    assert read("v LIKE 'k1%'") == [1, 3]
    assert read("d >= DATE '1972-01-01'") == [2, 3]
    assert read("n IS NULL") == [0, 1, 2, 3]
    assert rows(table, "n = 39", columns=["n"]) == [{"n": 39}]
    assert table.scan("v LIKE 'kk%'").count() == 1
    assert table.scan().min("n") == 0 and table.scan().max("n") == 39
    assert table.scan().max("v") == "k" * 200
    assert table.count() == table.stats().record_count == 12


READS: list[Callable[[forklake.Table], Any]] = [
    lambda t: t.scan().to_arrow(),
    lambda t: list(t.scan().to_batches()),
    lambda t: t.scan("id > 7").count(),
    lambda t: t.scan().min("id"),
    lambda t: t.scan().to_duckdb(duckdb.connect()),
    lambda t: t.changes(2).to_arrow(),
    lambda t: t.locate(7),
    lambda t: t.delete("id = 7"),
    lambda t: t.update({"id": "id + 1"}),
    lambda t: t.merge([{"id": 8}], on="id"),
]


@pytest.mark.parametrize("inside", [False, True])
def test_a_file_that_is_written_anew_is_not_read_by_who_read_it_before(
    catalog, put, tmp_path, inside: bool
) -> None:
    path = put("a.parquet", pa.table({"id": range(1000)}))
    if inside:
        (tmp_path / "files").mkdir(exist_ok=True)
        path = path.rename(tmp_path / "files" / "a.parquet")
    table = catalog.create_table("t", "id BIGINT")
    assert table.add_files(path, mapping="by_name") == 1000
    assert table.delete("id = 5") == 1
    original = path.read_bytes()
    assert table.scan().to_arrow().num_rows == 999
    before = catalog.snapshot
    for other in (pa.table({"id": range(500)}), pa.table({"id": range(1000, 2000)}), pa.table({"id": ["x"]})):
        pq.write_table(other, path)
        for read in READS:
            with pytest.raises(StorageError, match="overwritten") as caught:
                read(table)
            assert str(path) in str(caught.value)
        path.write_bytes(original)
        assert table.scan().to_arrow().num_rows == 999
    path.unlink()
    with pytest.raises(FileMissing):
        table.scan().to_arrow()
    assert (catalog.snapshot, table.count()) == (before, 999)


def test_a_file_of_the_same_size_with_other_rows_is_not_read(catalog, put) -> None:
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    path = put("a.parquet", pa.table({"a": range(100), "b": range(100)}), **options)
    table = catalog.create_table("t", "a BIGINT, b BIGINT")
    table.add_files(path, mapping="by_name")
    assert table.scan().to_arrow().num_rows == 100
    content = path.read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") :]
    # The number of rows stands in the footer as a varint: 100 is C8 01, and 101 is CA 01.
    path.write_bytes(content[: -len(footer)] + footer.replace(b"\xc8\x01", b"\xca\x01"))
    with pytest.raises(StorageError, match="101 rows and had 100"):
        table.scan().to_arrow()


def test_files_that_are_alike_share_their_names_whenever_they_come(catalog, lake, put, rows, raw) -> None:
    table = catalog.create_table("alike", "id INT, at STRUCT(x INT, y INT)")

    def add(table: forklake.Table, number: int, at: list[str], *, small: bool = False, turned: bool = False):
        inside = pa.struct([(name, pa.int32()) for name in at])
        values = [
            pa.array([number], pa.int16() if small else pa.int32()),
            pa.array([{"x": number, "y": -number}], inside),
        ]
        names = ["id", "at"]
        step = -1 if turned else 1
        table.add_files(
            put(f"alike_{number}.parquet", pa.table(values[::step], names=names[::step])), mapping="by_name"
        )

    def mappings() -> int:
        ((count,),) = raw("SELECT count(*) FROM ducklake_column_mapping")
        return count

    add(table, 1, ["x", "y"])
    add(table, 2, ["x", "y"], turned=True)
    assert mappings() == 1
    # Types, and the order inside of a struct, are those of the first file that one call reads.
    add(table, 3, ["x", "y"], small=True)
    add(table, 4, ["y", "x"])
    assert mappings() == 3
    with catalog.transaction() as tx:
        add(tx.table("alike"), 5, ["y", "x"], turned=True)
        add(tx.table("alike"), 6, ["x", "y"])
        assert len(rows(tx.table("alike"))) == 6
    assert mappings() == 3
    fork = lake.fork("main_catalog", "other")
    for number in (7, 8):
        add(fork.table("alike"), number, ["x", "y"])
    lake.merge("other", into="main_catalog")
    assert rows(table) == [{"id": at, "at": {"x": at, "y": -at}} for at in range(1, 9)]
    assert lake.check().found == 0
