"""The table that options name, opened in whichever process of Spark needs it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forklake.api.connect import connect
from forklake.api.lake import Lake
from forklake.errors import CatalogNotFound
from forklake.model.ids import CatalogId
from forklake.spark.source.options import SourceOptions

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog


@contextmanager
def opened(options: SourceOptions, known: CatalogId | None = None) -> Generator[Catalog]:
    """The catalog, for as long as the block takes: the one of that name, or the one that is `known`."""
    with connected(options) as lake:
        yield catalog_in(lake, options) if known is None else known_in(lake, options, known)


def connected(options: SourceOptions) -> Lake:
    """The lake."""
    return connect(options.lake, data_path=options.data_path)


def catalog_in(lake: Lake, options: SourceOptions) -> Catalog:
    """The catalog that has the name now."""
    return lake.catalog(options.catalog)


def known_in(lake: Lake, options: SourceOptions, known: CatalogId) -> Catalog:
    """The catalog that had the name when a DataFrame was loaded, whatever it is called now."""
    try:
        found = catalog_in(lake, options)
        if found.id == known:
            return found
    except CatalogNotFound:
        pass
    for catalog in lake.catalogs():
        if catalog.id == known:
            return lake.catalog(catalog.name)
    raise CatalogNotFound(
        f'catalog "{options.catalog}" was dropped after this DataFrame was loaded from it: load it again'
    )
