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
DataFileId = NewType("DataFileId", int)
DeleteFileId = NewType("DeleteFileId", int)
MappingId = NewType("MappingId", int)
IndexId = NewType("IndexId", int)
IndexFileId = NewType("IndexFileId", int)

FOREVER = SnapshotId(2**63 - 1)
"""The bound of a catalog's view of itself: no snapshot reaches it."""

# Columns in files beside those of the table, by the field ids that Iceberg has reserved for them.
# Delete files of earlier versions have 2147483646 and 2147483645 instead: their columns are found by name.
FILE_PATH_COLUMN = ColumnId(2147483546)
POSITION_COLUMN = ColumnId(2147483545)
ROW_ID_COLUMN = ColumnId(2147483540)
SNAPSHOT_ID_COLUMN = ColumnId(2147483539)
