"""Arrow's compute functions. They are made when Arrow is loaded, so no type checker knows their names."""

from __future__ import annotations

from typing import Any

import pyarrow.compute

pc: Any = pyarrow.compute
