"""msgspec, loaded at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forklake.lazy import LazyModule

if TYPE_CHECKING:
    import msgspec
else:
    msgspec = LazyModule("msgspec")

__all__ = ["msgspec"]
