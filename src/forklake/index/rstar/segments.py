"""How entries of an index of places lie in their files."""

from __future__ import annotations

from forklake.index.rstar.boxes import Boxes
from forklake.index.segment_parquet import ORDINAL, POSITION
from forklake.lazy.arrow import pa
from forklake.lazy.numpy import np

FORMAT, VERSION = "forklake-rstar", 1
BOX = ["xmin", "ymin", "xmax", "ymax"]
WKB = "wkb"


def entry_schema() -> pa.Schema:
    """The columns of a segment."""
    boxes = [(name, pa.float32()) for name in BOX]
    return pa.schema([*boxes, (ORDINAL, pa.int32()), (POSITION, pa.int64()), (WKB, pa.binary())])


def box_table(boxes: Boxes, ordinals: pa.Array, positions: pa.Array, wkb: pa.Array) -> pa.Table:
    """Entries of their parts."""
    columns = [pa.array(np.ascontiguousarray(boxes[:, at])) for at in range(4)]
    return pa.table([*columns, ordinals, positions, wkb], schema=entry_schema())


def boxes_of(table: pa.Table) -> Boxes:
    """The boxes of entries, or of row groups."""
    return np.column_stack([table.column(name).to_numpy() for name in BOX])
