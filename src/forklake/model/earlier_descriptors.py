"""Descriptors of distributed snapshots as earlier versions wrote them, in the present form. Pure.

A distributed snapshot that was begun before an upgrade can be committed after it.
"""

from __future__ import annotations

import json
from typing import Any

FIRST_FORMAT = "forklake/distributed-snapshot/1"
"""It had lists where values have names now."""


def is_first_format(text: str) -> bool:
    """Whether a descriptor is in the first format, without looking at the rest of it."""
    return text.lstrip().startswith(f'{{"format": "{FIRST_FORMAT}"')


def to_present(text: str, present_format: str) -> str:
    """A descriptor of the first format in the present one."""
    found = json.loads(text)
    found["format"] = present_format
    found["tables"] = [_table(table) for table in found["tables"]]
    return json.dumps(found)


def _table(found: dict[str, Any]) -> dict[str, Any]:
    partitioning = found["partitioning"]
    if partitioning is not None:
        fields = [
            {"column_id": column, "transform": transform} for column, transform in partitioning["fields"]
        ]
        partitioning = {"id": partitioning["id"], "table_id": found["id"], "fields": fields}
    return {
        **found,
        "columns": [_column(column) for column in found["columns"]],
        "partitioning": partitioning,
        "sort": [
            {"name": name, "direction": direction, "nulls": nulls} for name, direction, nulls in found["sort"]
        ],
    }


def _column(found: dict[str, Any]) -> dict[str, Any]:
    default = found["default"]
    return {
        **found,
        "default": default and dict(zip(("value", "kind", "dialect"), default, strict=True)),
        "children": [_column(child) for child in found["children"]],
    }
