"""faiss, an optional package for indexes of vectors, loaded at first use. It has no types."""

from __future__ import annotations

from typing import Any

from forklake.lazy import LazyModule

faiss: Any = LazyModule("faiss")

__all__ = ["faiss"]
