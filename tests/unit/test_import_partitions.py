"""Which partition the bounds of a file leave."""

from __future__ import annotations

import pytest

from forklake.commit.import_partitions import partition_of
from forklake.model.ids import ColumnId
from forklake.model.table.files import ColumnStats
from forklake.model.table.layout import PartitionField


def stats(low: str | None, high: str | None, nulls: int | None = 0, nan: bool | None = None) -> ColumnStats:
    return ColumnStats(ColumnId(1), 10, nulls, low, high, contains_nan=nan)


@pytest.mark.parametrize(
    ("transform", "known", "value"),
    [
        ("identity", stats("eu", "eu"), ("eu",)),
        ("identity", stats("eu", "us"), None),
        ("identity", stats("eu", None), None),
        ("identity", stats(None, None, 10), (None,)),
        ("identity", stats("eu", "eu", 1), None),
        ("identity", stats("eu", "eu", None), None),
        ("identity", stats("1.0", "1.0", nan=True), None),
        ("year", stats("2024-01-01", "2024-12-31"), ("2024",)),
        ("year", stats("2024-01-01", "2025-01-01"), None),
        ("month", stats("2024-02-01", "2024-02-29"), ("2",)),
        ("month", stats("2024-02-01", "2025-02-01"), None),
        ("day", stats("2024-02-03 00:00:00", "2024-02-03 23:59:59.5"), ("3",)),
        ("hour", stats("2024-02-03 09:00:00", "2024-02-03 09:59:59"), ("9",)),
        ("hour", stats("2024-02-03", "2024-02-03"), None),
        ("year", stats("-infinity", "-infinity"), None),
        ("year", stats("10000-01-01", "10000-01-01"), None),
        ("bucket(4)", stats("7", "7"), None),
    ],
)
def test_bounds_tell_the_partition_only_without_doubt(
    transform: str, known: ColumnStats, value: tuple[str | None] | None
) -> None:
    assert partition_of([PartitionField(ColumnId(1), transform)], [known]) == value


def test_every_field_has_to_be_known() -> None:
    fields = [PartitionField(ColumnId(1), "identity"), PartitionField(ColumnId(2), "identity")]
    other = ColumnStats(ColumnId(2), 10, 0, "7", "7")
    assert partition_of(fields, [stats("eu", "eu"), other]) == ("eu", "7")
    assert partition_of(fields, [stats("eu", "eu")]) is None
