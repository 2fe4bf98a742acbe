"""Defaults of types that files hold in another way than Arrow does: all rows show the same value."""

from __future__ import annotations

import pyarrow as pa
import pytest

import forklake
from forklake.errors import InvalidSchemaChange
from tests.contract.rows.shown import MANY


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
