"""The partition that an imported file belongs to, if the bounds of its columns leave no doubt. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from forklake.model.ids import ColumnId
from forklake.model.table.files import ColumnStats
from forklake.model.table.layout import PartitionField
from forklake.model.table.transforms import transform_of

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?: (\d\d):.*)?\Z")
_PARTS = ("year", "month", "day", "hour")


def partition_of(
    fields: Sequence[PartitionField], stats: Sequence[ColumnStats]
) -> tuple[str | None, ...] | None:
    """The partition value of each field; None if rows may be of several partitions."""
    known = {entry.column_id: entry for entry in stats}
    values: list[str | None] = []
    for field in fields:
        found = _value(field, known)
        if found is None:
            return None
        values += found
    return tuple(values)


def _value(field: PartitionField, known: Mapping[ColumnId, ColumnStats]) -> tuple[str | None] | None:
    """The one value that all rows have, in a tuple: NULL is one too."""
    entry = known.get(field.column_id)
    if entry is None or entry.null_count is None:
        return None
    if entry.null_count:
        return (None,) if entry.null_count == entry.value_count else None
    low, high = entry.min_value, entry.max_value
    if low is None or high is None or entry.contains_nan:
        return None
    transform, _ = transform_of(field)
    if transform == "identity":
        return (low,) if low == high else None
    return _part(transform, low, high)


def _part(transform: str, low: str, high: str) -> tuple[str] | None:
    """The part of the calendar that two times have in common, with all larger ones."""
    first, last = _TIME.match(low), _TIME.match(high)
    if transform not in _PARTS or first is None or last is None:
        # Buckets are no ranges.
        return None
    count = _PARTS.index(transform) + 1
    one, other = first.groups()[:count], last.groups()[:count]
    return (str(int(one[-1])),) if one == other and None not in one else None
