"""Arrow, loaded at first use: `pa`, `pq` for Parquet, `kind` to tell types apart, `fs`, `pj` for JSON.

Its compute functions are made when Arrow is loaded, so no type checker knows their names: `pc` is Any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forklake.lazy import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.json as pj
    import pyarrow.parquet as pq
    from pyarrow import fs
    from pyarrow import types as kind
else:
    fs = LazyModule("pyarrow.fs")
    kind = LazyModule("pyarrow.types")
    pa = LazyModule("pyarrow")
    pj = LazyModule("pyarrow.json")
    pq = LazyModule("pyarrow.parquet")

pc: Any = LazyModule("pyarrow.compute")

__all__ = ["fs", "kind", "pa", "pc", "pj", "pq"]
