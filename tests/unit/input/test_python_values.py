"""Values of Python are taken if they fit, and refused by row and column if they do not."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal as Number

import pytest

from forklake.data.input import batches as intake
from tests.unit.input.given import AB, read, refused

EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (5, "TINYINT", 5),
        (5.0, "TINYINT", 5),
        (Number("5.0"), "BIGINT", 5),
        (10**37, "HUGEINT", Number(10**37)),
        (5, "DOUBLE", 5.0),
        (0.1, "FLOAT", pytest.approx(0.1)),
        (5, "DECIMAL(9,2)", Number("5.00")),
        (Number("1.5"), "DECIMAL(9,2)", Number("1.50")),
        (True, "BOOLEAN", True),
        ("x", "VARCHAR", "x"),
        (bytearray(b"x"), "BLOB", b"x"),
        (memoryview(b"x"), "BLOB", b"x"),
        ({"a": [1, None]}, "JSON", '{"a": [1, null]}'),
        ("[1]", "JSON", "[1]"),
        (uuid.UUID(int=7), "UUID", uuid.UUID(int=7)),
        (str(uuid.UUID(int=7)), "UUID", uuid.UUID(int=7)),
        (date(2024, 1, 2), "DATE", date(2024, 1, 2)),
        (datetime(2024, 1, 2), "DATE", date(2024, 1, 2)),
        (datetime(2024, 1, 2, 3, 4, 5, 6), "TIMESTAMP", datetime(2024, 1, 2, 3, 4, 5, 6)),
        (datetime(9999, 12, 31, 23, 59, 59, 999999), "TIMESTAMP", datetime.max),
        (date(2024, 1, 2), "TIMESTAMP_S", datetime(2024, 1, 2)),
        (datetime(2024, 1, 2, 2, tzinfo=EAST), "TIMESTAMPTZ", datetime(2024, 1, 2, tzinfo=UTC)),
        (time(1, 2, 3), "TIME", time(1, 2, 3)),
        (time(1, 2, 3), "TIME_NS", "01:02:03.000000000"),
        (time(1, 0, tzinfo=EAST), "TIMETZ", time(23, 0)),
        ((1, None), "INTEGER[]", [1, None]),
        ({"A": 1}, "STRUCT(a INTEGER, b VARCHAR)", {"a": 1, "b": None}),
        ({"k": 1}, "MAP(VARCHAR, INTEGER)", [("k", 1)]),
        ([("k", 1)], "MAP(VARCHAR, INTEGER)", [("k", 1)]),
        ([{"u": [uuid.UUID(int=7)]}], "STRUCT(u UUID[])[]", [{"u": [uuid.UUID(int=7)]}]),
    ],
)  # fmt: skip
def test_a_python_value_is_taken(value: object, type: str, expected: object) -> None:
    assert read([{"c": None}, {"c": value}], f"c {type}") == [{"c": None}, {"c": expected}]


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (300, "TINYINT"), (2**64, "BIGINT"), (-1, "UINTEGER"), (1.5, "INTEGER"), (float("nan"), "INTEGER"),
        ("1", "INTEGER"), (True, "INTEGER"), (1, "BOOLEAN"), (10**38, "HUGEINT"), (-1, "UHUGEINT"),
        (1.5, "DECIMAL(9,2)"), (Number("1.505"), "DECIMAL(9,2)"), (10**8, "DECIMAL(9,2)"),
        (Number("NaN"), "DECIMAL(9,2)"), (Number("1.5"), "DOUBLE"), (2**53 + 1, "DOUBLE"), (1e300, "FLOAT"),
        (5, "VARCHAR"), (b"x", "VARCHAR"), ("\ud800", "VARCHAR"), ("x", "BLOB"), ("{", "JSON"), (5, "JSON"),
        ({"a": float("nan")}, "JSON"), ("x", "UUID"), (b"x", "UUID"), (5, "UUID"), ("2024-01-01", "DATE"),
        (datetime(2024, 1, 1, 1), "DATE"), (datetime(2024, 1, 1, tzinfo=UTC), "TIMESTAMP"),
        (datetime(2024, 1, 1), "TIMESTAMPTZ"), (date(2024, 1, 1), "TIMESTAMPTZ"),
        (datetime(2024, 1, 1, 0, 0, 0, 5), "TIMESTAMP_S"), (datetime(2500, 1, 1), "TIMESTAMP_NS"),
        (time(1, tzinfo=UTC), "TIME"), (5, "TIME"), (5, "INTEGER[]"),
        ("ab", "VARCHAR[]"), ([1, "x"], "INTEGER[]"),
        ({"z": 1}, "STRUCT(a INTEGER)"), ([1], "STRUCT(a INTEGER)"), ({"a": "x"}, "STRUCT(a INTEGER)"),
        (5, "MAP(VARCHAR, INTEGER)"), ([("k", 1), ("k", 2)], "MAP(VARCHAR, INTEGER)"),
        ([(None, 1)], "MAP(VARCHAR, INTEGER)"), ([("k",)], "MAP(VARCHAR, INTEGER)"),
    ],
)  # fmt: skip
def test_a_python_value_that_does_not_fit_is_refused(value: object, type: str) -> None:
    refused([{"c": None}, {"c": value}], f"c {type}", '"c')


def test_an_error_names_the_row_of_the_whole_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "ROWS_AT_ONCE", 3)
    rows = [{"a": at} for at in range(7)] + [{"a": "x"}]
    refused(rows, AB, "row 7", '"a"', "INTEGER", "'x'")
    refused([{"a": 1}] * 4 + [{"a": 2**40}], AB, "row 4", '"a"')
