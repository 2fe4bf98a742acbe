"""NumPy, loaded at first use: `np`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forklake.lazy import LazyModule

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

__all__ = ["np"]
