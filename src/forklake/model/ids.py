"""Numbers that name things. Each kind has its own type, so that they cannot be mixed up."""

from __future__ import annotations

from typing import NewType

SnapshotId = NewType("SnapshotId", int)
CatalogId = NewType("CatalogId", int)
SchemaId = NewType("SchemaId", int)
TableId = NewType("TableId", int)
ColumnId = NewType("ColumnId", int)
ViewId = NewType("ViewId", int)
MacroId = NewType("MacroId", int)

FOREVER = SnapshotId(2**63 - 1)
"""The bound of a catalog's view of itself: no snapshot reaches it."""
