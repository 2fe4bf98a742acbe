"""A lake with two handles, in which programs are done to tables."""

from __future__ import annotations

from uuid import uuid4

import duckdb

import forklake
from tests.property.table_model import Oracle


class Lakes:
    """Two handles on one lake, as two programs would have them."""

    def __init__(self, lake: forklake.Lake, url: str) -> None:
        lake.set_option("data_inlining_row_limit", 2)
        lake.set_option("parquet_row_group_size", 2)
        self._url = url
        self.backend = url.partition(":")[0]
        self._opened = [forklake.connect(url), forklake.connect(url)]
        self.oracle = Oracle()
        self.duckdb = duckdb.connect()
        self.duckdb.execute("SET TimeZone = 'UTC'; SET arrow_lossless_conversion = true")

    def catalog(self, handle: int, name: str) -> forklake.Catalog:
        return self._opened[handle].catalog(name)

    def handle(self, number: int) -> forklake.Lake:
        return self._opened[number]

    def create(self) -> str:
        return self._opened[0].create_catalog(f"c{uuid4().hex}").name

    def reopen(self, handle: int) -> None:
        self._opened[handle].close()
        self._opened[handle] = forklake.connect(self._url)

    def close(self) -> None:
        self.oracle.close()
        self.duckdb.close()
        for lake in self._opened:
            lake.close()
