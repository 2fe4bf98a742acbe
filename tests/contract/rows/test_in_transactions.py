"""Rows inside transactions: later statements see earlier ones, and all becomes one snapshot or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import forklake
from forklake.api.upsert import RowsMerged
from forklake.errors import InvalidData, InvalidPredicate, InvalidSchemaChange, TransactionClosed
from tests.contract.rows.shown import MANY, content, ids, many, numbered

Stored = Callable[[], list[str]]


def test_a_later_statement_sees_the_effect_of_an_earlier_one(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.append(many())
    before = catalog.snapshot
    with catalog.transaction() as tx:
        inside = tx.table("t")
        inside.append(numbered(1000, 1001))
        inside.append(many(2000))
        assert inside.count() == len(ids(inside)) == 2 * MANY + 2
        assert inside.delete("id % 2 = 0") == MANY + 1
        assert inside.update({"v": "'odd'"}, "id < 10 OR id > 1000") == 5 + 1 + MANY // 2
        assert inside.delete("v = 'odd' AND id >= 2000") == MANY // 2
        assert inside.merge(numbered(1, 3, 4, v="m"), "id") == RowsMerged(2, 0, 1)
        assert inside.delete("id > 10 AND id < 1000") == 70
        expected = [(1, "m"), (3, "m"), (4, "m"), (5, "odd"), (7, "odd"), (9, "odd"), (1001, "odd")]
        assert sorted(row[1:] for row in content(inside)) == expected
        assert inside.count() == 7
        assert (inside.scan().min("id"), inside.scan().max("id")) == (1, 1001)
        # Nobody else sees any of it, and the past is as it was.
        assert table.count() == inside.scan(at=before).count() == MANY
    assert tx.snapshot == before + 1
    assert sorted(row[1:] for row in content(table)) == expected
    # Rows of the base kept their ids.
    assert [row[0] for row in content(table) if row[1] in (1, 3, 5, 7, 9)] == [1, 3, 5, 7, 9]
    assert table.count() == 7


def test_a_transaction_leaves_one_delete_file_for_a_data_file(
    catalog: forklake.Catalog, table: forklake.Table, raw, stored: Stored
) -> None:
    table.append(many())
    table.append(many(1000))
    table.set_option("data_inlining_row_limit", 2)
    with catalog.transaction() as tx:
        for at in range(10):
            tx.table("t").delete(f"id IN ({at}, {1000 + at})")
        assert tx.table("t").count() == 2 * MANY - 20
    assert raw("SELECT delete_count FROM ducklake_delete_file") == [(10,), (10,)]
    assert raw("SELECT count(*) FROM ducklake_inlined_delete") == [(0,)]
    assert len(stored()) == 4
    with catalog.transaction() as tx:
        tx.table("t").delete("id = 20")
        tx.table("t").delete("id = 21")
    assert raw("SELECT delete_count FROM ducklake_delete_file") == [(10,), (10,)]
    assert raw("SELECT position FROM ducklake_inlined_delete ORDER BY 1") == [(20,), (21,)]
    assert table.count() == 2 * MANY - 22


def test_deleting_all_rows_of_a_file_in_steps_retires_it(
    catalog: forklake.Catalog, table: forklake.Table, raw, stored: Stored
) -> None:
    table.append(many())
    table.append(numbered(1000, 1001))
    files = stored()
    with catalog.transaction() as tx:
        inside = tx.table("t")
        inside.delete("id < 3")
        inside.delete("id = 1000")
        inside.delete("id < 1000")
        assert ids(inside) == [1001]
        inside.delete("id = 1001")
        assert (inside.count(), inside.files()) == (0, [])
    assert table.count() == 0
    ended = "SELECT count(*) FROM ducklake_data_file WHERE end_snapshot = {}"
    assert raw(ended.format(catalog.snapshot)) == [(2,)]
    assert raw("SELECT count(*) FROM ducklake_delete_file") == [(0,)]
    assert raw("SELECT count(*) FROM ducklake_inlined_delete") == [(0,)]
    assert stored() == files


def test_what_a_transaction_adds_and_takes_away_again_leaves_nothing(
    catalog: forklake.Catalog, table: forklake.Table, stored: Stored
) -> None:
    before = catalog.snapshot
    with catalog.transaction() as tx:
        inside = tx.table("t")
        inside.append(many())
        inside.append(numbered(1000))
        assert inside.delete("id < 1000") == MANY
        assert inside.delete() == 1
        assert inside.append(many()) == MANY
        assert inside.delete() == MANY
    assert (tx.snapshot, catalog.snapshot, stored()) == (None, before, [])
    with catalog.transaction() as tx:
        tx.create_table("short", "id BIGINT").append(many().select(["id"]))
        tx.drop_table("short")
        tx.table("t").append(numbered(1))
    assert (ids(table), stored()) == ([1], [])


@pytest.mark.parametrize("way", ["error", "rollback"])
def test_a_rollback_removes_the_files(
    catalog: forklake.Catalog, table: forklake.Table, stored: Stored, way: str
) -> None:
    table.append(many())
    table.set_option("data_inlining_row_limit", 0)
    before, files = catalog.snapshot, stored()
    tx = catalog.transaction()
    try:
        with tx:
            inside = tx.table("t")
            inside.append(many(1000))
            inside.update({"v": "'u'"}, "id < 100")
            inside.merge(numbered(1, 5000), "id")
            assert len(stored()) > len(files)
            if way == "error":
                raise KeyError
            tx.rollback()
    except KeyError:
        pass
    assert (catalog.snapshot, stored()) == (before, files)
    assert ids(table) == list(range(MANY))
    with pytest.raises(TransactionClosed):
        inside.append(numbered(1))


def test_a_verb_that_fails_leaves_the_transaction_as_it_was(
    catalog: forklake.Catalog, lake: forklake.Lake, stored: Stored
) -> None:
    table = catalog.create_table("t", "id BIGINT NOT NULL, v VARCHAR, s STRUCT(a INT)")
    rows = pa.table({"id": range(MANY), "v": ["x"] * MANY})
    table.append(rows)
    other = catalog.create_table("other", "id BIGINT")
    with catalog.transaction() as tx:
        inside = tx.table("t")
        inside.append([{"id": 1000, "v": "new"}])
        inside.delete("id < 5")
        inside.add_column("n", "INT", default="3")
        expected = content(inside)
        bad = [{"id": at} for at in range(MANY)] + [{"id": None}]
        twice = pa.table({"id": [7, 7], "v": ["a", "b"]})
        for verb, error in (
            (lambda: inside.append(bad), InvalidData),
            (lambda: inside.overwrite(bad), InvalidData),
            (lambda: inside.overwrite(rows, where="CAST(v AS INT) = 1"), InvalidPredicate),
            (lambda: inside.delete("CAST(v AS INT) = 1"), InvalidPredicate),
            (lambda: inside.update({"n": "CAST(v AS INT)"}), InvalidPredicate),
            (lambda: inside.update({"id": "NULL"}, "id = 7"), InvalidData),
            (lambda: inside.merge(twice, "id"), InvalidData),
            (lambda: inside.merge(bad, "id", when_matched="ignore"), InvalidData),
            (lambda: inside.set_nullable("s", False), InvalidSchemaChange),
            (lambda: inside.alter_type("id", "SMALLINT"), InvalidSchemaChange),
            (lambda: inside.add_files(f"{lake.data_path}{inside.files()[0].path}"), InvalidData),
        ):
            with pytest.raises(error):
                verb()
            assert content(inside) == expected
            assert tx.table("other").count() == 0
        tx.table("other").append([{"id": 1}])
    assert sorted(row[1:4] for row in content(table)) == sorted(row[1:4] for row in expected)
    assert ids(table) == [*range(5, MANY), 1000]
    assert ids(other) == [1]
    assert len(stored()) == 1


def test_rows_meet_a_structure_that_changes_in_the_same_transaction(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.append(many())
    table.append(numbered(500))
    with catalog.transaction() as tx:
        inside = tx.table("t")
        inside.append(numbered(501))
        inside.append(many(1000))
        inside.rename_column("v", "w")
        inside.add_column("n", "INT", default="7")
        inside.append([{"id": 502, "w": "y", "n": 1}])
        inside.update({"n": "n + 1"}, "id IN (0, 500, 501, 1000)")
        inside.alter_type("n", "BIGINT")
        inside.drop_column("w")
        inside.append([{"id": 503}])
        found = {
            row["id"]: row["n"]
            for row in inside.scan("id IN (0, 1, 500, 501, 502, 503, 1000, 1001)").to_pylist()
        }
        assert found == {0: 8, 1: 7, 500: 8, 501: 8, 502: 1, 503: 7, 1000: 8, 1001: 7}
    again = table.scan("id IN (0, 1, 500, 501, 502, 503, 1000, 1001)").to_pylist()
    assert {row["id"]: row["n"] for row in again} == found
    assert table.arrow_schema.names == ["id", "n"]
    assert table.count() == 2 * MANY + 4


def test_a_new_table_takes_rows_before_it_is_committed(catalog: forklake.Catalog, stored: Stored) -> None:
    with catalog.transaction() as tx:
        new = tx.create_table("new", "id BIGINT, r VARCHAR", partition_by=["r"], sorted_by=["id DESC"])
        new.append({"id": range(MANY), "r": ["ab"[at % 2] for at in range(MANY)]})
        new.append([{"id": 1000, "r": "a"}])
        new.update({"r": "'c'"}, "id = 1000")
        new.delete("id >= 10 AND id < 1000")
        assert new.count() == 11
        new.rename("renamed")
    table = catalog.table("renamed")
    assert ids(table) == [*range(10), 1000]
    assert {file.partition_values for file in table.files()} == {("a",), ("b",), ()}
    assert len({row[0] for row in content(table)}) == 11
    assert min(row[0] for row in content(table)) >= 0


def test_many_small_writes_of_a_transaction_are_one(
    catalog: forklake.Catalog, table: forklake.Table, raw
) -> None:
    with catalog.transaction() as tx:
        for at in range(60):
            tx.table("t").append(numbered(at))
    assert raw("SELECT file_format, record_count FROM ducklake_data_file") == [("inlined", 60)]
    with catalog.transaction() as tx:
        for at in range(0, 120, 2):
            tx.table("t").append(numbered(1000 + at, 1001 + at))
    assert raw("SELECT file_format, record_count FROM ducklake_data_file ORDER BY data_file_id") == [
        ("inlined", 60),
        ("parquet", 120),
    ]
    assert content(table) == [(at, at if at < 60 else at + 940, "x") for at in range(180)]


def test_several_tables_change_in_one_snapshot(catalog: forklake.Catalog, table: forklake.Table) -> None:
    other = catalog.create_table("other", "id BIGINT")
    other.append([{"id": at} for at in range(MANY)])
    before = catalog.snapshot
    with catalog.transaction() as tx:
        tx.table("t").append(tx.table("other").scan("id < 3"))
        tx.table("other").delete("id < 3")
    assert catalog.snapshot == before + 1
    assert (ids(table), other.count()) == ([0, 1, 2], MANY - 3)
    assert (ids(table, at=before), other.scan(at=before).count()) == ([], MANY)


def test_rows_that_were_written_before_a_column_was_added_are_found_by_its_default(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.append(many())
    with catalog.transaction() as tx:
        inside = tx.table("t")
        inside.append(many(1000))
        inside.add_column("c", "INT", default="5")
        inside.append(pa.table({"id": range(2000, 2000 + MANY), "v": ["x"] * MANY, "c": [7] * MANY}))
        assert inside.scan("c = 5").count() == 2 * MANY
    assert table.scan("c = 5").count() == len(ids(table, "c = 5")) == 2 * MANY
    assert table.scan("c IN (5, 6)").count() == table.scan("c < 7").count() == 2 * MANY
    assert table.scan("c = 7").count() == MANY
    assert table.scan("c = 6").plan().files == ()
    assert (table.scan().min("c"), table.scan().max("c")) == (5, 7)


def test_rows_of_an_append_that_a_new_column_overtakes_are_found_by_its_default(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    def batches():
        for start in (0, 1000):
            yield from many(start).to_batches()
            if not start:
                catalog.table("t").add_column("c", "INT", default="5")

    schema = many().schema
    table.append(pa.RecordBatchReader.from_batches(schema, batches()))
    assert table.count() == table.scan("c = 5").count() == 2 * MANY


def test_new_rows_get_ids_one_after_the_other_whatever_is_updated_between_them(
    catalog: forklake.Catalog, table: forklake.Table, lake: forklake.Lake
) -> None:
    table.append(numbered(0, 1))
    for first in (10, 20):
        with catalog.transaction() as tx:
            inside = tx.table("t")
            inside.append(numbered(first))
            inside.update({"v": "'changed'"}, "id = 0")
            inside.append(numbered(first + 1))
    found = {row["id"]: row["row_id"] for row in table.scan(row_ids=True).to_pylist()}
    assert found == {0: 0, 1: 1, 10: 2, 11: 3, 20: 4, 21: 5}
    assert table.scan("v = 'changed'").count() == 1
    assert lake.check().is_clean
