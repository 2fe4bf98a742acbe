"""Which tables of which catalogs a checkpoint has something to do for: a statement for a whole lake."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from forklake.model.ids import FOREVER, CatalogId, TableId
from forklake.store.backend import Database, Row


class TableWork(NamedTuple):
    """A table of a catalog that a checkpoint has to look at."""

    catalog: CatalogId
    catalog_name: str
    table: TableId
    found: int
    """How many rows are inlined, or how many files are concerned."""


def tables_to_flush(database: Database, catalog: CatalogId | None) -> list[TableWork]:
    """Tables with inlined rows that a catalog, or every catalog, has not inherited."""
    first, last = _range(catalog)
    return _work(database.rows("tables_to_flush", first=first, last=last))


def tables_to_compact(database: Database, catalog: CatalogId | None, target_size: int) -> list[TableWork]:
    """Tables with several files that are too small, and that a catalog has not inherited."""
    first, last = _range(catalog)
    small = target_size * 3 // 4
    return _work(database.rows("tables_to_compact", first=first, last=last, small=small))


def tables_to_index(database: Database, catalog: CatalogId | None) -> list[TableWork]:
    """Tables with indexes, and with files that a catalog has not inherited."""
    first, last = _range(catalog)
    return _work(database.rows("tables_to_index", first=first, last=last))


def tables_to_rewrite(database: Database, catalog: CatalogId | None, threshold: float) -> list[TableWork]:
    """Tables with files that may have lost such a share of their rows, some of them through this catalog."""
    first, last = _range(catalog)
    millionths = int(threshold * 1_000_000)
    return _work(database.rows("tables_to_rewrite", first=first, last=last, millionths=millionths))


def _range(catalog: CatalogId | None) -> tuple[int, int]:
    """The numbers of one catalog, or of all."""
    return (0, FOREVER) if catalog is None else (catalog, catalog)


def _work(rows: Iterable[Row]) -> list[TableWork]:
    return [
        TableWork(CatalogId(catalog), name, TableId(table), found) for catalog, name, table, found in rows
    ]
