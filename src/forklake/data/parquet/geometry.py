"""The Arrow type of a geometry. Arrow is loaded with this module, since the class is one of its own."""

from __future__ import annotations

import pyarrow as pa


class Geometry(pa.ExtensionType):  # pyright: ignore[reportUntypedBaseClass]
    """WKB, marked so that it lands in Parquet as a geometry: DuckDB reads no plain bytes as one.

    It is not registered, so it does not stand in the way of packages that bring their own.
    """

    def __init__(self) -> None:
        """Name the type as GeoArrow does."""
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        """No reference system is known."""
        return b"{}"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Geometry:
        """Read the type back."""
        return cls()
