"""shapely, an optional package for indexes of places, loaded at first use. It has no types: it is Any."""

from __future__ import annotations

from typing import Any

from forklake.lazy import LazyModule

shapely: Any = LazyModule("shapely")

__all__ = ["shapely"]
