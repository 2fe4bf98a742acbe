"""What the metadata answer: counts and bounds without a file, files that need not be read, in few looks."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import ColumnNotFound, StorageError
from tests.contract.rows.shown import MANY, ids, many, numbered

Hidden = Callable[[], AbstractContextManager[None]]
Counted = Callable[[], AbstractContextManager[list[str]]]


def test_count_is_exact_without_a_file(table: forklake.Table, hidden: Hidden) -> None:
    table.append(many())
    table.append(numbered(1000, 1001, 1002))
    table.delete("id IN (3, 1001)")
    table.delete("id BETWEEN 10 AND 130")
    table.delete("id = 140")
    table.update({"v": "'u'"}, "id < 2")
    expected = len(ids(table))
    assert expected == MANY + 3 - 2 - 121 - 1
    with hidden():
        assert table.count() == table.scan().count() == expected
        assert table.stats().record_count == expected
        with pytest.raises(StorageError):
            table.scan("id < 1000").count()


def test_bounds_are_known_without_a_file(catalog: forklake.Catalog, hidden: Hidden) -> None:
    table = catalog.create_table("t", "n INT, d DATE, m DECIMAL(9, 2), s VARCHAR, b BOOLEAN")
    days = [date(2024, 1, 1 + at % 28) for at in range(MANY)]
    text = pa.array([None if at % 2 else f"s{at:03}" for at in range(MANY)])
    table.append(
        {
            "n": range(-5, MANY - 5),
            "d": days,
            "m": [Decimal(at) / 4 for at in range(MANY)],
            "s": text,
            "b": [True] * MANY,
        }
    )
    with hidden():
        scan = table.scan()
        assert [scan.min(name) for name in "ndmsb"] == [-5, date(2024, 1, 1), 0, "s000", True]
        assert [scan.max(name) for name in "ndmsb"] == [
            144,
            date(2024, 1, 28),
            Decimal("37.25"),
            "s148",
            True,
        ]
        # Inlined rows count as well.
        table.append([{"n": 1000, "s": "a"}])
        assert (table.scan().max("n"), table.scan().min("s"), table.scan().max("b")) == (1000, "a", True)
    assert (table.scan("n < 0").max("n"), table.scan("n > 100").min("n")) == (-1, 101)
    with pytest.raises(ColumnNotFound):
        table.scan().min("x")


def test_bounds_are_exact_when_statistics_are_not(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id BIGINT, f DOUBLE, s VARCHAR, e VARCHAR")
    values = [math.nan, -math.inf, *(float(at) for at in range(MANY - 2))]
    long = [f"{'x' * 300}{at:03}" for at in range(MANY)]
    table.append({"id": range(MANY), "f": values, "s": long, "e": [None] * MANY})
    scan = table.scan()
    assert math.isnan(scan.max("f"))
    assert scan.min("f") == -math.inf
    assert (scan.min("s"), scan.max("s")) == (long[0], long[-1])
    assert (scan.min("e"), scan.max("e")) == (None, None)
    table.delete("isnan(f) OR id IN (1, 149)")
    scan = table.scan()
    assert (scan.min("f"), scan.max("f")) == (0.0, float(MANY - 4))
    assert (scan.min("id"), scan.max("id"), scan.max("s")) == (2, 148, long[148])
    table.add_column("late", "INT", default="5")
    assert (table.scan().min("late"), table.scan().max("late")) == (5, 5)
    table.append([{"id": 0, "late": 9}])
    assert (table.scan().min("late"), table.scan().max("late"), table.scan().min("id")) == (5, 9, 0)


def test_bounds_inside_a_transaction_see_its_changes(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.append(many())
    with catalog.transaction() as tx:
        inside = tx.table("t")
        inside.append(numbered(-7))
        assert (inside.scan().min("id"), inside.scan().max("id"), inside.count()) == (-7, 149, MANY + 1)
        inside.delete("id > 100")
        assert (inside.scan().max("id"), inside.count()) == (100, 102)
        new = tx.create_table("new", "id BIGINT")
        assert (new.scan().max("id"), new.count()) == (None, 0)
        new.append([{"id": 4}])
        assert (new.scan().max("id"), new.count()) == (4, 1)


def test_a_plan_names_the_files_to_read_and_why_others_need_not_be(
    table: forklake.Table, hidden: Hidden
) -> None:
    for start in (0, 1000, 2000):
        table.append(many(start))
    table.append(numbered(5000))
    paths = [file.path for file in table.files()][:3]
    with hidden():
        for where, kept, reasons in (
            ("id = 1001", [1], ['"id" lies between 0 and 149', '"id" lies between 2000 and 2149']),
            ("id < 10 OR id > 2100", [0, 2], ['"id" lies between 1000 and 1149']),
            ("id >= 1000 AND v = 'x'", [1, 2], ['"id" lies between 0 and 149']),
            ("v = 'a'", [], ['"v" lies between x and x'] * 3),
            ("v IS NULL", [], ['"v" is never NULL'] * 3),
            ("id % 2 = 0", [0, 1, 2], []),
        ):
            plan = table.scan(where).plan()
            assert [file.path for file in plan.files] == [paths[at] for at in kept], where
            assert [(p.path, p.record_count) for p in plan.pruned] == [
                (path, MANY) for at, path in enumerate(paths) if at not in kept
            ], where
            assert [pruned.reason for pruned in plan.pruned] == reasons, where
            assert [rows.live_rows for rows in plan.rows] == [1]
        assert table.scan("v = 'a'").to_pylist() == []
        assert table.scan().plan().pruned == ()
    assert ids(table, "id = 1001 OR id = 5000") == [1001, 5000]


def test_a_plan_knows_columns_that_files_lack(table: forklake.Table) -> None:
    table.append(many())
    table.add_column("n", "INT", default="7")
    table.append(pa.table({"id": range(MANY), "v": ["x"] * MANY, "n": [1] * MANY}))
    old, new = (file.path for file in table.files())
    for where, kept, rows in (("n = 7", old, MANY), ("n = 1", new, MANY), ("n < 5", new, MANY)):
        plan = table.scan(where).plan()
        assert [file.path for file in plan.files] == [kept], where
        assert table.scan(where).count() == rows
    assert table.scan("n IS NULL OR n > 7").plan().files == ()


def test_planning_takes_as_many_statements_for_many_files_as_for_few(
    table: forklake.Table, counted: Counted
) -> None:
    table.set_option("data_inlining_row_limit", 0)
    table.append(numbered(0))
    table.append(numbered(1))
    table.delete("id = 0")

    def looks() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for where in (None, "id = 1", "id IN (1, 700) AND v = 'x'", "v LIKE 'x%'"):
            with counted() as found[str(where)]:
                table.scan(where).plan()
        with counted() as found["count"]:
            table.count()
        with counted() as found["max"]:
            table.scan().max("id")
        with counted() as found["locate"]:
            table.locate(1)
        return found

    # The indexes of a table are read once, with its structure.
    looks()
    before = looks()
    table.set_option("target_file_size", 1)
    table.set_option("parquet_row_group_size", 1)
    table.append(numbered(2))
    with counted() as append:
        table.append(numbered(3))
    with counted() as larger:
        table.append(numbered(*range(4, 120)))
    assert len(table.files()) == 119
    assert larger == append
    looks()
    assert looks() == before
    assert {name: len(names) for name, names in before.items() if len(names) > 8} == {}
    with counted() as deletes:
        table.delete("id >= 5 AND id < 7")
    with counted() as more:
        table.delete("id > 100")
    assert sorted(set(deletes)) == sorted(set(more))
    assert len(more) <= len(deletes) + 1


def test_a_small_append_takes_few_statements(table: forklake.Table, counted: Counted) -> None:
    table.append(numbered(1))
    with counted() as first:
        table.append(numbered(2))
    with counted() as second:
        table.append(numbered(*range(3, 90)))
    assert first == second
    assert len(first) <= 10, first


@pytest.mark.parametrize("type", ["STRUCT(a INT, b STRUCT(c INT))", "INT[]", "MAP(VARCHAR, INT)"])
def test_files_are_pruned_by_whether_nested_columns_are_null(
    catalog: forklake.Catalog, type: str, tmp_path: Path
) -> None:
    table = catalog.create_table("t", f"id BIGINT, s {type}")
    value = {"S": {"b": {}}, "I": [None], "M": {}}[type[0]]
    kinds = {"all": [value] * MANY, "none": [None] * MANY, "some": [None, value] * MANY}
    for name, values in kinds.items():
        table.append({"id": range(len(values)), "s": values})
        if name == "some":
            # What others wrote does not say how many are NULL.
            pq.write_table(table.scan("id < 2").to_arrow(), tmp_path / "other.parquet")
            table.add_files(tmp_path / "other.parquet", mapping="by_name")
    table.add_column("t", type)
    table.append({"id": range(MANY), "t": [value] * MANY})
    empty = {"s IS NULL": 1, "s IS NOT NULL": 2, "t IS NULL": 1, "t IS NOT NULL": 4, "NOT (s IS NOT NULL)": 1}
    for where, count in empty.items():
        plan = table.scan(where).plan()
        assert len(plan.pruned) == count, (where, plan.pruned)
        assert all(reason.reason.endswith(("is always NULL", "is never NULL")) for reason in plan.pruned), (
            plan.pruned
        )
    assert table.scan("s IS NULL").count() == 3 * MANY + 3
    assert table.scan("s IS NOT NULL").count() == 2 * MANY + 3
    assert (table.scan("t IS NULL").count(), table.scan("t IS NOT NULL").count()) == (4 * MANY + 6, MANY)
