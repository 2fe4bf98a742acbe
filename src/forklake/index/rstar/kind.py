"""The kind of index `rstar`: geometries by where they are, the nearest first.

Entries are boxes around geometries, in the order of a Hilbert curve, with the geometries beside them. The
footer has the box of each row group: these are the inner nodes of a tree of two levels. A box only says where
it is worth looking; what is found was compared with the geometry itself.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from forklake.errors import InvalidIndex, InvalidQuery
from forklake.index.keyed_segment import numbered_batches
from forklake.index.kind import Alive, Hits, Measure, Part, Segment, SegmentFile
from forklake.index.kind_families import SearchKind
from forklake.index.parameters import Known, whole
from forklake.index.ranking import hits
from forklake.index.rstar.boxes import (
    Boxes,
    around,
    as_wkb,
    hilbert,
    mean_bytes,
    require_shapely,
    stored_boxes,
)
from forklake.index.rstar.query import Query
from forklake.index.rstar.search import Loose, Places, Stored, best, related
from forklake.index.rstar.segments import BOX, FORMAT, VERSION, WKB, box_table, boxes_of, entry_schema
from forklake.index.segment_parquet import SegmentWriter, footer_of, groups_of, read_groups
from forklake.index.sorted_entries import sorted_tables, with_ordinals
from forklake.lazy.arrow import pa
from forklake.lazy.numpy import np
from forklake.model.index import IndexSpec, Maintenance, Parameters, SegmentSummary
from forklake.model.types.data_types import to_sql

_PLACE = "place"
"""Where entries are on the curve, while they are sorted."""
_GROUP_ROWS = 8_192
_GROUP_BYTES = 4 << 20
"""How large the geometries of a row group are, about: they are read together."""
_FEWEST = 64
_SAMPLE_ROWS = 1 << 20
"""How many entries say where the curve goes."""

_OF_INDEX = Known(
    "an index of places",
    {"row_group_rows": (_GROUP_ROWS, "a number from 64 to 1,048,576", whole(_FEWEST, 1 << 20))},
)


class Rstar(SearchKind):
    """One column of geometries: the nearest ones, or those that meet another."""

    name = "rstar"
    maintain: Maintenance = "commit"
    no_filter = "an index of places answers searches, and no conditions"

    def measures(self, spec: IndexSpec) -> Measure:
        """Nearer is better."""
        return "distance"

    def check(self, spec: IndexSpec) -> Parameters:
        """One column of geometries, or of WKB."""
        require_shapely()
        if len(spec.keys) != 1:
            raise InvalidIndex(f"an index of places is of one column, not {len(spec.keys)}")
        column = spec.keys[0]
        if column.type not in ("geometry", "blob"):
            raise InvalidIndex(
                f'an index of places is of a column GEOMETRY, or BLOB with WKB, and "{column.name}" is '
                f"{to_sql(column.data_type)}"
            )
        if spec.include:
            raise InvalidIndex("an index of places holds no included columns: leave out include")
        return _OF_INDEX.complete(spec.params)

    def train(self, spec: IndexSpec, sample: Iterable[pa.RecordBatch], out: Path) -> SegmentSummary | None:
        """There is nothing to train."""
        return None

    def build(
        self, spec: IndexSpec, parts: Iterable[Part], out: Path, model: SegmentFile | None = None
    ) -> SegmentSummary:
        """Write a segment. NULL and empty geometries have no entry; bytes that are no geometry have one."""
        require_shapely()
        name = str(spec.keys[0].id)

        def entries() -> Generator[pa.Table]:
            for batch, ordinals, positions in numbered_batches(parts):
                wkb = as_wkb(batch.column(name))
                boxes = stored_boxes(wkb)
                table = box_table(boxes, ordinals, positions, wkb)
                yield table.filter(pa.array(~np.isnan(boxes[:, 0])))

        return _write(spec, entries(), None, out)

    def merge(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        ordinals: Sequence[Mapping[int, int]],
        out: Path,
    ) -> SegmentSummary:
        """Write one segment of several: its curve goes through all of them."""
        footers = [footer_of(segment.file, FORMAT, VERSION) for segment in segments]
        grids = np.array([footer.facts["bounds"] or [np.nan] * 4 for footer in footers], np.float64)

        def entries() -> Generator[pa.Table]:
            for segment, footer, kept in zip(segments, footers, ordinals, strict=True):
                for group in range(len(footer.rows)):
                    table = read_groups(segment.file, footer, [group], entry_schema().names, keep=False)
                    yield with_ordinals(table, kept)

        return _write(spec, entries(), around(grids.reshape(-1, 4)), out)

    def search(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        loose: pa.Table | None,
        query: object,
        k: int,
        alive: Alive,
        params: Parameters,
        share: float = 1.0,
    ) -> Hits:
        """The nearest rows, or those that lie to a geometry as was asked; these are all at no distance."""
        require_shapely()
        if params:
            raise InvalidQuery(f"a search for places has no parameters: leave out {', '.join(params)[:80]}")
        asked = Query.of(query)
        places: list[Places] = [Stored.of(number, segment.file) for number, segment in enumerate(segments)]
        if loose is not None and loose.num_rows:
            places.append(Loose.of(loose, str(spec.keys[0].id)))
        rows, far, is_all = (best if asked.relation == "near" else related)(places, asked, k, alive)
        return hits(rows[:, 0], rows[:, 1], rows[:, 2], 0.0 - far, is_all=is_all)


def _write(spec: IndexSpec, entries: Iterable[pa.Table], grid: Boxes | None, out: Path) -> SegmentSummary:
    """Entries in any order as a segment."""
    tables = (table for table in entries if table.num_rows)
    first: list[pa.Table] = []
    while sum(table.num_rows for table in first) < _SAMPLE_ROWS:
        table = next(tables, None)
        if table is None:
            break
        first.append(table)
    sample = pa.concat_tables([entry_schema().empty_table(), *first])
    curve = around(boxes_of(sample)) if grid is None else grid
    # Of bytes that are no geometries alone, nothing is known.
    curve = np.nan_to_num(curve)
    placed = (
        table.append_column(_PLACE, pa.array(hilbert(boxes_of(table), curve)))
        for table in chain(first, tables)
    )
    rows = spec.params.get("row_group_rows", _GROUP_ROWS)
    most = int(_GROUP_BYTES / max(1.0, mean_bytes(sample.column(WKB).combine_chunks())))
    group_rows = min(rows if isinstance(rows, int) else _GROUP_ROWS, max(_FEWEST, most))
    writer = SegmentWriter(out, entry_schema(), group_rows)
    nodes: list[Boxes] = []
    try:
        for group in groups_of(sorted_tables(placed, [_PLACE], out), group_rows):
            boxes = boxes_of(group)
            nodes.append(np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)]))
            writer.write(group.drop([_PLACE]))
        fences = np.array(nodes, np.float32).reshape(-1, 4)
        known = around(fences)
        bounds = None if np.isnan(known).any() else known.tolist()
        footer = writer.close({"bounds": bounds}, pa.table([pa.array(fences[:, at]) for at in range(4)], BOX))
    except BaseException:
        writer.abandon()
        raise
    is_known = bounds is not None and bool(np.isfinite(fences).all())
    return SegmentSummary(
        entry_count=writer.entry_count,
        format=FORMAT,
        format_version=VERSION,
        footer_size=footer,
        summary=json.dumps({"bounds": bounds}) if is_known else None,
    )
