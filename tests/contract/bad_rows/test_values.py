"""Rows that do not fit their table: refused before anything is committed, with the column that they miss."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.errors import (
    ColumnNotFound,
    DuplicateColumn,
    InvalidData,
    InvalidPredicate,
    InvalidSchemaChange,
)

# What is wrong with one row, the column that it concerns, and the Arrow type to hand it over with.
WRONG: list[tuple[str, Any, pa.DataType | None]] = [
    ("id", None, pa.int32()),
    ("id", "7", pa.string()),
    ("id", 2**31, pa.int64()),
    ("id", 1.5, pa.float64()),
    ("id", float("nan"), pa.float64()),
    ("small", 40_000, pa.int32()),
    ("small", -32_769, pa.int64()),
    ("name", 7, pa.int64()),
    ("name", b"\xff", pa.binary()),
    ("price", Decimal("1.005"), pa.decimal128(10, 3)),
    ("price", Decimal(1000), pa.decimal128(10, 2)),
    ("price", 0.5, pa.float64()),
    ("tags", ["x"], pa.list_(pa.string())),
    ("tags", [2**40], pa.list_(pa.int64())),
    ("tags", 5, pa.int64()),
    ("s", {"a": "x"}, pa.struct([("a", pa.string())])),
    ("s", {"nope": 1}, pa.struct([("nope", pa.int32())])),
    ("s", [1], pa.list_(pa.int32())),
    ("at", datetime(2024, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
    ("at", "2024-01-01", pa.string()),
    ("ok", 1, pa.int32()),
    ("ok", "true", pa.string()),
]


def arrow(column: str, value: Any, type: pa.DataType | None) -> pa.Table:
    columns = {"id": pa.array([1], pa.int32())} | {column: pa.array([value], type)}
    return pa.table(columns)


def test_wrong_values_are_refused_by_column(refuse) -> None:
    for column, value, type in WRONG:
        word = f'"{column}' if column != "s" or not isinstance(value, dict) else '"s'
        refuse(lambda t, c=column, v=value: t.append([{"id": 1} | {c: v}]), InvalidData, word)
        rows = arrow(column, value, type)
        refuse(lambda t, rows=rows: t.append(rows), InvalidData, word)


def test_a_wrong_value_refuses_an_overwrite_and_a_merge(refuse) -> None:
    for column, value, type in WRONG[2:6]:
        rows = arrow(column, value, type)
        refuse(lambda t, rows=rows: t.overwrite(rows), InvalidData, f'"{column}"')
        refuse(lambda t, rows=rows: t.overwrite(rows, where="id > 10"), InvalidData, f'"{column}"')
        refuse(lambda t, rows=rows: t.merge(rows, on="id"), InvalidData, f'"{column}"')


def test_the_row_is_named_where_rows_are_dicts(refuse) -> None:
    rows = [{"id": n} for n in range(70_000)] + [{"id": "x"}]
    refuse(lambda t: t.append(rows), InvalidData, "row 70000", '"id"')


def batches(bad: pa.RecordBatch, count: int = 3) -> Iterator[pa.RecordBatch]:
    for at in range(count):
        yield pa.record_batch({"id": pa.array(range(at * 1000, (at + 1) * 1000), pa.int32())})
    yield bad


def test_a_late_wrong_row_takes_back_the_files_that_were_written(refuse, table, monkeypatch) -> None:
    table.set_option("target_file_size", 4096)
    table.set_option("parquet_row_group_size", 2048)
    written: list[str] = []
    original = forklake.data.storage.storage.Storage.open_output

    def counted(self: Any, path: str, relative: bool = True) -> Any:
        written.append(path)
        return original(self, path, relative)

    monkeypatch.setattr(forklake.data.storage.storage.Storage, "open_output", counted)
    for bad, word in (
        (pa.record_batch({"id": pa.array([None], pa.int32())}), '"id" is NOT NULL'),
        (pa.record_batch({"id": pa.array([1], pa.int32()), "small": pa.array([10**6])}), '"small"'),
        (pa.record_batch({"id": pa.array([1], pa.int32()), "nope": [1]}), '"nope"'),
    ):
        written.clear()
        refuse(lambda t, bad=bad: t.append(batches(bad)), InvalidData, word)
        assert len(written) >= 3, "nothing was written before the wrong row came"

    def breaks() -> Iterator[pa.RecordBatch]:
        yield from batches(pa.record_batch({"id": pa.array([1], pa.int32())}))
        raise ZeroDivisionError("the source broke")

    refuse(lambda t: t.append(breaks()), ZeroDivisionError, "the source broke")
    refuse(lambda t: t.overwrite(breaks()), ZeroDivisionError, "the source broke")


def test_columns_that_are_not_there_or_there_twice_are_refused(refuse) -> None:
    refuse(lambda t: t.append([{"id": 1, "nope": 2}]), InvalidData, '"nope"', '"small"')
    refuse(lambda t: t.append({"id": [1], "nope": [2]}), InvalidData, '"nope"')
    refuse(lambda t: t.append(pa.table({"id": [1], "nope": [2]})), InvalidData, '"nope"')
    refuse(lambda t: t.append([{"id": 1, "ID": 2}]), InvalidData, '"id"', "twice")
    refuse(lambda t: t.append(pa.table([[1], [2]], names=["id", "id"])), InvalidData, '"id"', "twice")
    refuse(lambda t: t.append(pa.table([[1], [2]], names=["id", "Id"])), InvalidData, '"id"', "twice")
    refuse(lambda t: t.merge(pa.table([[1], [2]], names=["id", "ID"]), on="id"), DuplicateColumn, "source")
    refuse(lambda t: t.merge([{"name": "x"}], on="id"), ColumnNotFound, '"id"')
    refuse(lambda t: t.merge([{"id": 1}], on="nope"), ColumnNotFound, '"nope"')
    refuse(lambda t: t.merge([{"id": 1, "x": 1}, {"id": 2, "x": "a"}], on="id"), InvalidData, '"x"')
    refuse(lambda t: t.append({"id": [1, 2], "small": [1]}), InvalidData, '"id" has 2', '"small" has 1')


def test_null_is_refused_where_the_column_has_none(refuse, table) -> None:
    word = '"id" is NOT NULL'
    for limit in (0, 3):
        table.set_option("data_inlining_row_limit", limit)
        refuse(lambda t: t.append([{"id": 1}, {"id": None}]), InvalidData, word)
        refuse(lambda t: t.update({"id": "nullif(id, 15)"}), InvalidData, word)
    refuse(lambda t: t.append([{"name": "x"}]), InvalidData, word)
    refuse(lambda t: t.append(pa.table({"name": ["x"]})), InvalidData, word)
    refuse(lambda t: t.merge([{"id": 10}], on="id", when_matched={"id": "NULL"}), InvalidData, word)
    refuse(lambda t: t.merge([{"id": 99}], on="id", when_not_matched={"name": "'x'"}), InvalidData, word)


# New values that cannot be computed, or do not fit.
FAILING = {
    "small": ("1000000", "CAST(name AS SMALLINT)", "id / 0"),
    "id": ("id * 1000000000", "nofunction(id)"),
    "price": ("price + 12345",),
    "tags": ("['a']",),
    "s": ("{'a': 'x', 'b': NULL}",),
    "at": ("'not a time'",),
}


def test_new_values_that_do_not_fit_are_refused_and_not_wrapped(refuse, table) -> None:
    table.update({"price": "1"})
    for column, expressions in FAILING.items():
        for expression in expressions:
            refuse(
                lambda t, c=column, e=expression: t.update({c: e, "name": "'new'"}, "small > 0"),
                InvalidPredicate,
                f'"{column}"',
            )
    source = [{"id": 10, "small": 1}, {"id": 99, "small": 1}]
    for how in ("when_matched", "when_not_matched"):
        values = {"id": "source.id", "small": "source.id * 10000"}
        refuse(lambda t, h=how, v=values: t.merge(source, on="id", **{h: v}), InvalidPredicate, '"small"')


def test_assignments_that_make_no_sense_are_refused(refuse) -> None:
    refuse(lambda t: t.update({"nope": "1"}), ColumnNotFound, '"nope"')
    refuse(lambda t: t.update({"id": "nope + 1"}), InvalidPredicate, '"id"', '"nope"')
    refuse(lambda t: t.update({"id": "1 +"}), InvalidPredicate, '"id"', "1 +")
    refuse(lambda t: t.update({"id": "sum(id)"}), InvalidPredicate, '"id"', "aggregate")
    refuse(lambda t: t.update({"id": "1 + (SELECT 1)"}), InvalidPredicate, '"id"', "query")
    refuse(lambda t: t.update({"id": "1", "ID": "2"}), forklake.InvalidArgument, '"id"')
    refuse(lambda t: t.update({}), forklake.InvalidArgument, "update")
    refuse(
        lambda t: t.merge([{"id": 10}, {"id": 10}], on="id", when_matched={"name": "'x'"}),
        InvalidData,
        "several rows",
    )


# Conditions, and a word that the answer must hold.
CONDITIONS = {
    "id >": "id >",
    "": "empty",
    "id = 1; DROP TABLE t": "DROP",
    "nope = 1": '"nope"',
    "s.nope = 1": "nope",
    "sum(id) > 1": "aggregate",
    "id IN (SELECT 1)": "query",
    "nofunction(id)": "nofunction",
    "CAST(name AS INT) > 1": "Could not convert string 'n",
    "id = 'abc'": "abc",
    "name": "no condition",
    "tags": "",
    "error('told')": "told",
}


def test_conditions_that_make_no_sense_are_refused(refuse) -> None:
    for where, word in CONDITIONS.items():
        refuse(lambda t, w=where: t.delete(w), InvalidPredicate, word)
    for where in ("id >", "nope = 1", "CAST(name AS INT) > 1"):
        refuse(lambda t, w=where: t.update({"name": "'x'"}, w), InvalidPredicate, CONDITIONS[where])
        refuse(lambda t, w=where: t.scan(w).to_arrow(), InvalidPredicate, CONDITIONS[where])
    for where in (5, b"id = 1", ["id = 1"]):
        refuse(lambda t, w=where: t.delete(w), InvalidPredicate, "predicate is a string")
    refuse(lambda t: t.overwrite([{"id": 1}], where="nope = 1"), InvalidPredicate, '"nope"')
    refuse(lambda t: t.scan(columns=["nope"]).to_arrow(), ColumnNotFound, '"nope"')


def test_what_holds_no_rows_is_refused(refuse) -> None:
    for data in ("text", 7, None, [1], object()):
        refuse(lambda t, data=data: t.append(data), InvalidData, "rows")
    refuse(lambda t: t.append([{"id": 1}, 2]), InvalidData, "row 1")


# Numbers beyond what a type holds, and what the refusal has to tell of it.
BEYOND: list[tuple[str, Any, str]] = [
    ("BIGINT", 2**70, f"between {-(2**63)} and {2**63 - 1}"),
    ("UTINYINT", 256, "between 0 and 255"),
    ("UTINYINT", -1, "between 0 and 255"),
    ("HUGEINT", 10**38, "at most 38 digits"),
    ("DECIMAL(10,2)", Decimal("1e12"), "±99999999.99"),
    ("DECIMAL(10,2)", 10**12, "±99999999.99"),
    ("DECIMAL(2,2)", Decimal(-1), "±0.99"),
    ("DECIMAL(10,2)", Decimal("1.005"), "more than 2 digits after the point"),
    ("DECIMAL(10,2)", Decimal("Infinity"), "no number that a decimal holds"),
]


def test_a_number_that_is_too_large_is_named_with_the_limits(catalog: forklake.Catalog) -> None:
    for at, (type, value, limits) in enumerate(BEYOND):
        table = catalog.create_table(f"t{at}", f"id INT, n {type}")
        for nested in (False, True):
            if nested:
                table.add_column("l", f"{type}[]")
            row = {"id": 1, "l": [None, value]} if nested else {"id": 1, "n": value}
            with pytest.raises(InvalidData) as caught:
                table.append([{"id": 0}, row])
            for word in ("row 1", '"l' if nested else '"n"', type, str(value), limits):
                assert word in str(caught.value)
        if isinstance(value, Decimal) and value.is_finite():
            with pytest.raises(InvalidData) as caught:
                table.append(pa.table({"n": pa.array([None, value])}))
            assert str(value.quantize(Decimal(1)) if value == int(value) else value) in str(caught.value)
            assert limits in str(caught.value)
        assert table.count() == 0


def test_a_single_row_is_not_taken_for_columns(refuse) -> None:
    refuse(lambda t: t.append({"id": 1}), InvalidData, '"id"', "a single row into a list")


# Numbers so far beyond every type that to convert them, or only to write them out, takes minutes.
FAR_BEYOND = {
    "1e1000000": Decimal("1e1000000"),
    "-1e999999999": Decimal("-1e999999999"),
    "a long integer": 10**1_000_000,
    "a long decimal": Decimal(10) ** 399 * 10**20,
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("value", FAR_BEYOND.values(), ids=list(FAR_BEYOND))
def test_a_number_that_is_far_too_large_is_refused_at_once(catalog: forklake.Catalog, value: Any) -> None:
    types = (
        "TINYINT",
        "BIGINT",
        "UBIGINT",
        "HUGEINT",
        "UHUGEINT",
        "DECIMAL(10,2)",
        "DECIMAL(38,0)",
        "DOUBLE",
    )
    for type in types:
        table = catalog.create_table(f"t {type}", f"id INT, n {type}")
        with pytest.raises(InvalidData, match="row 1"):
            table.append([{"id": 0}, {"id": 1, "n": value}])
        assert table.count() == 0
        with pytest.raises(InvalidSchemaChange):
            table.add_column("d", type, default=value)
        assert table.scan("n = 1e1000000").count() == table.scan(f"n > {'9' * 5000}").count() == 0


@pytest.mark.parametrize("rows", [1, 300], ids=["inlined", "in a file"])
def test_huge_integers_have_38_digits(catalog: forklake.Catalog, rows: int) -> None:
    most = 10**38 - 1
    table = catalog.create_table("t", "h HUGEINT, u UHUGEINT")
    table.append([{"h": sign * most, "u": most} for sign in (1, -1)] * rows)
    assert table.scan(f"h = {most} AND u = {most}").count() == table.scan(f"h = -{most}").count() == rows
    for column, value in (("h", most + 1), ("h", -most - 1), ("u", most + 1), ("u", -1), ("u", 2**128 - 1)):
        with pytest.raises(InvalidData, match="38 digits"):
            table.append([{column: value}])
        with pytest.raises(InvalidPredicate):
            table.update({column: str(value)})
        with pytest.raises(InvalidSchemaChange, match="must lie between"):
            table.add_column("d", "HUGEINT" if column == "h" else "UHUGEINT", default=value)
    assert table.scan(f"h > {2**127 - 1} OR u > {2**128 - 1}").count() == 0
    assert table.add_column("d", "HUGEINT", default=most) is None
    assert table.scan(f"d = {most}").count() == 2 * rows
