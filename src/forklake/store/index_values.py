"""Rows → indexes of tables, as frozen values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from forklake.model.ids import ColumnId, IndexId, TableId
from forklake.model.index import Index
from forklake.store.backend import Row
from forklake.store.entity_values import origin_of


def indexes_of(rows: Iterable[Row]) -> dict[TableId, list[Index]]:
    """Definitions with their columns, by table, in the order in which they were created."""
    found: dict[int, Index] = {}
    for table, number, source, begin, uuid, name, kind, maintain, params, column, role in rows:
        known = found.get(number)
        if known is None:
            known = Index(
                IndexId(number),
                str(uuid),
                TableId(table),
                name,
                kind,
                (),
                maintain=maintain,
                params=json.loads(params),
                origin=origin_of(source, begin),
            )
        if role == "key":
            known = replace(known, keys=(*known.keys, ColumnId(column)))
        else:
            known = replace(known, include=(*known.include, ColumnId(column)))
        found[number] = known
    by_table: dict[TableId, list[Index]] = {}
    for index in found.values():
        by_table.setdefault(index.table_id, []).append(index)
    return by_table
