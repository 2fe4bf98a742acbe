"""Defaults of types that files hold in another way than Arrow does: all rows show the same value."""

from __future__ import annotations

from datetime import time, timedelta, timezone

import pyarrow as pa
import pytest

import forklake
from forklake.errors import InvalidSchemaChange
from tests.contract.rows.shown import MANY

AHEAD = timezone(timedelta(hours=5, minutes=30))


@pytest.fixture
def everywhere(catalog: forklake.Catalog, table: forklake.Table) -> forklake.Table:
    """Rows in a file and inlined."""
    table.append([{"id": at} for at in range(MANY)])
    table.append([{"id": 1000}])
    return table


def values(table: forklake.Table) -> list[object]:
    found = table.scan(columns=["x"]).to_arrow().column("x").to_pylist()
    assert len(found) == table.count()
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(
    ("default", "value"),
    [
        ("INTERVAL '1 day'", pa.MonthDayNano([0, 1, 0])),
        ("INTERVAL 3 MONTHS", pa.MonthDayNano([3, 0, 0])),
        ("'-1 year 2 days -04:05:06.5'", pa.MonthDayNano([-12, 2, -14_706_500_000_000])),
        ("INTERVAL '1 day' * 2", None),
    ],
)
def test_an_interval_is_a_default(
    catalog: forklake.Catalog, everywhere: forklake.Table, default: str, value: pa.MonthDayNano | None
) -> None:
    if value is None:
        everywhere.add_column("x", "INTERVAL", default="INTERVAL '2 days'")
        everywhere.set_default("x", default)
        value = pa.MonthDayNano([0, 2, 0])
    else:
        everywhere.add_column("x", "INTERVAL", default=default)
    assert values(everywhere) == [value]
    everywhere.append([{"id": 1001}])
    everywhere.append(pa.table({"id": range(2000, 2000 + MANY)}))
    assert values(everywhere) == [value]
    assert everywhere.update({"v": "'u'"}, "id % 2 = 0") == MANY + 1
    catalog.flush_inlined()
    assert values(everywhere) == [value]
    everywhere.update({"x": "x + INTERVAL '1 hour'"}, "id = 3")
    later = pa.MonthDayNano([value.months, value.days, value.nanoseconds + 3600 * 10**9])
    assert everywhere.scan("id = 3", ["x"]).to_arrow().column("x").to_pylist() == [later]


@pytest.mark.parametrize("default", ["'999999999 years'", "'99999999:00:00'", "'+1 day'", "'1 centurys'"])
def test_an_interval_that_nobody_could_read_is_no_default(table: forklake.Table, default: str) -> None:
    with pytest.raises(InvalidSchemaChange, match="does not fit INTERVAL"):
        table.add_column("x", "INTERVAL", default=default)


def test_a_time_with_a_zone_is_the_same_moment_wherever_rows_are(
    catalog: forklake.Catalog, everywhere: forklake.Table
) -> None:
    everywhere.add_column("x", "TIMETZ", default="'01:02:03+05:30'")
    everywhere.append([{"id": 1001}, {"id": 1002, "x": time(1, 2, 3, tzinfo=AHEAD)}])
    everywhere.append(pa.table({"id": range(2000, 2000 + MANY)}))
    everywhere.set_default("x", "coalesce('01:02:03+05:30'::TIMETZ, NULL)")
    everywhere.append([{"id": 1003}])
    assert everywhere.update({"x": "'01:02:03+05:30'::TIMETZ"}, "id IN (4, 1000)") == 2
    assert values(everywhere) == [time(19, 32, 3)]
    assert everywhere.scan("x = '19:32:03+00'::TIMETZ").count() == everywhere.count()
    assert everywhere.scan().min("x") == everywhere.scan().max("x") == time(19, 32, 3)
    catalog.flush_inlined()
    assert values(everywhere) == [time(19, 32, 3)]


def test_times_with_zones_inside_of_other_values_are_moments_too(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INT, s STRUCT(a TIMETZ), l TIMETZ[], m MAP(INT, TIMETZ)")
    table.append([{"id": 1}])
    timestamp = "'01:02:03+05:30'::TIMETZ"
    table.update({"s": f"{{'a': {timestamp}}}", "l": f"[{timestamp}, NULL]", "m": f"MAP {{1: {timestamp}}}"})
    utc = time(19, 32, 3)
    assert table.scan().to_pylist() == [{"id": 1, "s": {"a": utc}, "l": [utc, None], "m": [(1, utc)]}]
