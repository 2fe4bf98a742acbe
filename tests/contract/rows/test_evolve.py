"""Tables whose structure changes: old files, inlined rows, deletes and partitions read right ever after."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.errors import InvalidData, InvalidSchemaChange
from tests.contract.rows.shown import MANY

DDL = (
    "id BIGINT, n INT, v VARCHAR, s STRUCT(a INT, b VARCHAR), l STRUCT(k INT)[], "
    "m MAP(VARCHAR, STRUCT(z INT))"
)


def row(at: int) -> dict[str, Any]:
    return {
        "id": at,
        "n": at,
        "v": f"v{at % 3}",
        "s": {"a": at, "b": "b"},
        "l": [{"k": at}, None],
        "m": {"p": {"z": at}},
    }


@pytest.fixture
def old(catalog: forklake.Catalog) -> forklake.Table:
    """150 rows in files of three partitions, 200 and 201 inlined; 1 and 200 deleted, 2 and 201 updated."""
    table = catalog.create_table("t", DDL, partition_by=["v"], sorted_by=["id"])
    table.append([row(at) for at in range(MANY)])
    table.append([row(200), row(201)])
    table.delete("id IN (1, 200)")
    table.update({"n": "n + 1000"}, "id IN (2, 201)")
    return table


def rows(
    table: forklake.Table, where: str = "id IN (0, 1, 2, 200, 201)", **options: Any
) -> list[dict[str, Any]]:
    return sorted(table.scan(where, **options).to_pylist(), key=lambda found: found["id"])


def entries(found: dict[str, Any]) -> dict[str, Any]:
    """Maps are shown as lists of pairs."""
    return {**found, "m": list(found["m"].items()) if isinstance(found["m"], dict) else found["m"]}


BEFORE = [
    entries(row(0)),
    entries({**row(2), "n": 1002}),
    entries({**row(201), "n": 1201}),
]

CASES: dict[str, tuple[Callable[[forklake.Table], object], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "add a column": (lambda t: t.add_column("x", "INT"), lambda r: {**r, "x": None}),
    "add a column with a default": (
        lambda t: t.add_column("x", "DECIMAL(5, 2)", default="1.25"),
        lambda r: {**r, "x": Decimal("1.25")},
    ),
    "drop a column": (lambda t: t.drop_column("n"), lambda r: {k: v for k, v in r.items() if k != "n"}),
    "drop and add one of the same name": (
        lambda t: (t.drop_column("n"), t.add_column("n", "VARCHAR", default="'new'")),
        lambda r: {**{k: v for k, v in r.items() if k != "n"}, "n": "new"},
    ),
    "rename a column": (
        lambda t: t.rename_column("n", "number"),
        lambda r: {"number" if k == "n" else k: v for k, v in r.items()},
    ),
    "swap two names": (
        lambda t: (t.rename_column("n", "tmp"), t.rename_column("id", "n"), t.rename_column("tmp", "id")),
        lambda r: {**r, "n": r["id"], "id": r["n"]},
    ),
    "rename the partition column": (
        lambda t: t.rename_column("v", "w"),
        lambda r: {"w" if k == "v" else k: v for k, v in r.items()},
    ),
    "rename the sort column": (
        lambda t: (t.rename_column("id", "key"), t.rename_column("key", "id")),
        lambda r: r,
    ),
    "widen a type": (lambda t: t.alter_type("n", "BIGINT"), lambda r: r),
    "reorder": (lambda t: t.reorder(["v", "m"]), lambda r: r),
    "add a field": (
        lambda t: t.add_column("s.c", "INT"),
        lambda r: {**r, "s": {**r["s"], "c": None}},
    ),
    "drop a field": (lambda t: t.drop_column("s.a"), lambda r: {**r, "s": {"b": r["s"]["b"]}}),
    "rename a field": (
        lambda t: t.rename_column("s.a", "aa"),
        lambda r: {**r, "s": {"aa": r["s"]["a"], "b": r["s"]["b"]}},
    ),
    "drop a field and add one of the same name": (
        lambda t: (t.drop_column("s.b"), t.add_column("s.b", "INT")),
        lambda r: {**r, "s": {"a": r["s"]["a"], "b": None}},
    ),
    "widen a field": (lambda t: t.alter_type("s.a", "BIGINT"), lambda r: r),
    "rename inside a list": (
        lambda t: t.rename_column("l.element.k", "kk"),
        lambda r: {**r, "l": [{"kk": r["l"][0]["k"]}, None]},
    ),
    "add inside a list": (
        lambda t: t.add_column("l.element.j", "VARCHAR"),
        lambda r: {**r, "l": [{**r["l"][0], "j": None}, None]},
    ),
    "rename inside a map": (
        lambda t: t.rename_column("m.value.z", "zz"),
        lambda r: {**r, "m": [("p", {"zz": r["m"][0][1]["z"]})]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_old_rows_read_right_and_so_do_old_snapshots(
    catalog: forklake.Catalog, old: forklake.Table, reopen, name: str
) -> None:
    change, expected = CASES[name]
    before, schema = catalog.snapshot, old.arrow_schema
    assert rows(old) == BEFORE
    files = old.files()
    change(old)
    where = "n IN (0, 1, 2, 200, 201)" if name == "swap two names" else "id IN (0, 1, 2, 200, 201)"
    wanted = [expected(found) for found in BEFORE]
    key = "n" if name == "swap two names" else "id"

    def found(table: forklake.Table) -> list[dict[str, Any]]:
        return sorted(table.scan(where).to_pylist(), key=lambda each: each[key])

    assert found(old) == wanted
    assert found(reopen().catalog("main_catalog").table("t")) == wanted
    # Nothing was rewritten, and the past has its own structure.
    assert old.files() == files
    assert old.scan(at=before).to_arrow().schema == schema
    assert rows(old, at=before) == BEFORE
    # The rows can be changed and moved as any others.
    column = next(name for name in ("v", "w") if name in old.arrow_schema.names)
    assert old.update({column: f"{column} || '!'"}, where) == 3
    wanted = [{**each, column: each[column] + "!"} for each in wanted]
    assert found(old) == wanted
    catalog.flush_inlined()
    assert found(old) == wanted
    assert old.count() == MANY
    assert rows(old, at=before) == BEFORE
    old.delete(where)
    assert old.count() == MANY - 3


def test_pruning_follows_columns_through_renames_and_wider_types(old: forklake.Table) -> None:
    old.rename_column("n", "number")
    old.alter_type("number", "BIGINT")
    old.rename_column("v", "kind")
    assert old.scan("number > 5000000000").plan().files == ()
    assert len(old.scan("kind = 'v1'").plan().files) == 1
    assert old.scan("kind = 'v1'").count() == 49
    assert {p.reason for p in old.scan("kind = 'zzz'").plan().pruned} == {
        f'"kind" lies between v{at} and v{at}' for at in range(3)
    }
    old.add_column("n", "INT", default="5")
    assert old.scan("n = 5").count() == MANY
    assert old.scan("n <> 5").plan().files == ()


def test_defaults_fill_what_comes_later_and_not_what_was_there(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.append([{"id": 1}])
    table.add_column("n", "INT", default="7")
    table.append([{"id": 2}])
    table.set_default("n", "8")
    table.append([{"id": 3}])
    table.append(pa.table({"id": range(100, 100 + MANY)}))
    table.drop_default("n")
    table.append([{"id": 4}, {"id": 5, "n": 1}])
    found = {each["id"]: each["n"] for each in table.scan("id < 102").to_pylist()}
    assert found == {1: 7, 2: 7, 3: 8, 4: None, 5: 1, 100: 8, 101: 8}
    catalog.flush_inlined()
    assert {each["id"]: each["n"] for each in table.scan("id < 102").to_pylist()} == found


def test_what_rows_forbid_is_refused(catalog: forklake.Catalog, old: forklake.Table) -> None:
    before = catalog.snapshot
    for change in (
        lambda: old.drop_column("v"),
        lambda: old.drop_column("id"),
        lambda: old.alter_type("n", "SMALLINT"),
        lambda: old.alter_type("v", "INT"),
    ):
        with pytest.raises(InvalidSchemaChange):
            change()
    assert catalog.snapshot == before
    assert rows(old) == BEFORE


def test_a_column_becomes_required_when_no_row_lacks_it(
    catalog: forklake.Catalog, table: forklake.Table, hidden
) -> None:
    table.append([{"id": None, "v": "a"}])
    table.append({"id": range(MANY), "v": [None] * MANY})
    for name, count in (("id", 1), ("v", MANY)):
        with pytest.raises(InvalidSchemaChange, match=f"{count} rows"):
            table.set_nullable(name, False)
    table.delete("id IS NULL")
    table.set_nullable("id", False)
    for refused in ([{"v": "x"}], [{"id": None}], pa.table({"id": pa.array([None], pa.int64())})):
        with pytest.raises(InvalidData):
            table.append(refused)
    table.set_nullable("id", True)
    assert table.append([{"v": "x"}]) == 1
    assert table.count() == MANY + 1
