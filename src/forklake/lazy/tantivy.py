"""tantivy, an optional package for indexes of words, loaded at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forklake.lazy import LazyModule

if TYPE_CHECKING:
    import tantivy
else:
    tantivy = LazyModule("tantivy")

__all__ = ["tantivy"]
