"""The forms in which a result can be had, whatever it is a result of."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from forklake.api.handle import Handle
from forklake.api.python_values import has_nameless, python_values
from forklake.extras import missing
from forklake.lazy.arrow import pa

if TYPE_CHECKING:
    import pandas
    import polars


class ResultFormats(Handle):
    """Arrow, pandas, polars, batches: made from `schema`, `to_arrow` and `to_batches`."""

    __slots__ = ()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """Read all rows as an Arrow table."""
        raise NotImplementedError

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows in batches, with bounded memory."""
        raise NotImplementedError

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow `RecordBatchReader`."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_pandas(self) -> pandas.DataFrame:
        """Read all rows as a pandas DataFrame."""
        pandas, table = _package("pandas"), self.to_arrow()
        frame = table.to_pandas()
        for at, column in enumerate(table.columns):
            if has_nameless(column.type):
                # Arrow makes dicts of these too, in which one field of those without names is left.
                frame.isetitem(at, pandas.Series(python_values(column), dtype=object))
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Read all rows as a polars DataFrame."""
        return _package("polars").from_arrow(_plain(self.to_arrow()))

    def to_pylist(self) -> list[dict[str, Any]]:
        """Read all rows as a list of dicts; for small results."""
        return self.to_arrow().to_pylist()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for anything that takes Arrow streams."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise missing(f"{name} is not installed", name) from error


def _plain(table: pa.Table) -> pa.Table:
    """Without Arrow's extension types, which polars does not know."""
    fields = [
        pa.field(field.name, field.type.storage_type, field.nullable)
        if isinstance(field.type, pa.BaseExtensionType)
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
