"""Searches: the best rows of a table for a query, by one of its indexes or by several.

Rows that no segment covers take part beside them; deleted ones and those that do not meet a condition never
do, so that the best ones are found whatever is left out. Rows with the same score are in the order of their
ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from forklake.data.parquet.delete_files import lost_positions
from forklake.engine.dml import find_rows
from forklake.engine.local import Engine
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.engine.select import ALIAS, Selection, shown_columns
from forklake.errors import InvalidIndex, StorageError
from forklake.index.kind import Hits, Kind, Measure, SearchKind, Segment
from forklake.index.registry import kind_of
from forklake.index.specs import spec_of
from forklake.lazy.arrow import pa, pc
from forklake.lazy.numpy import np
from forklake.model.ids import DataFileId
from forklake.model.index import Index, IndexSpec, Parameters
from forklake.model.names import quoted
from forklake.model.sql.predicate import Predicate
from forklake.model.table.columns import Columns
from forklake.scan.scan_plan import Positions, ScanFile, ScanPlan, ScanRows, Source, plan_scan
from forklake.scan.table_indexes import ChosenSegments, TableIndexes, UsableIndex, usable_indexes

FILE, SCORE = "forklake_file", "forklake_score"
HITS, _AT = "forklake_hits", "forklake_at"
_MOST_TIES = 10_000
"""Up to how many rows are put in order of their ids because all have the score of the last one."""
_FUSED = 60
"""What is added to ranks before they are fused: how little the first ones count before others."""
_LOOSE = -1

Place: TypeAlias = "ScanFile | ScanRows"


@dataclass(frozen=True, slots=True)
class Asked:
    """One index with a query for it."""

    index: Index
    query: object
    params: Parameters = field(default_factory=dict[str, "bool | int | float | str | None"])


@dataclass(frozen=True, slots=True)
class Target:
    """The rows that a search is about."""

    source: Source
    indexes: TableIndexes
    where: Predicate | None = None


def best_rows(engine: Engine, target: Target, asked: Sequence[Asked], k: int, shown: Selection) -> pa.Table:
    """The best rows of a table, best first, with row ids and scores. Of several searches, fused by rank."""
    rows = _Rows.of(engine, target)
    if len(asked) == 1:
        found = rows.read(rows.hits(asked[0], k), shown)
    else:
        nothing = Selection(())
        ranked = [rows.read(rows.hits(each, max(4 * k, _FUSED)), nothing) for each in asked]
        found = rows.read(_fused(ranked), shown)
    return found.slice(0, k)


def measure_of(index: Index, columns: Columns) -> Measure:
    """Whether a search by an index gives scores or distances."""
    kind = kind_of(index.kind)
    if not hasattr(kind, "measures"):
        raise InvalidIndex(
            f'index "{index.name}" is of the kind {index.kind}, which answers conditions of scans: '
            "a search needs one that ranks rows, such as bm25, vector or rstar"
        )
    return cast("SearchKind", kind).measures(spec_of(index, columns))


@dataclass(slots=True)
class _Rows:
    """The rows that there are, and which of them count."""

    engine: Engine
    target: Target
    plan: ScanPlan
    """All that is there."""
    places: Mapping[DataFileId, Place]
    matching: Mapping[DataFileId, Positions] | None
    """The rows that meet the condition, if there is one."""
    share: float
    lost: dict[DataFileId, Positions] = field(default_factory=dict[DataFileId, "Positions"])

    @classmethod
    def of(cls, engine: Engine, target: Target) -> _Rows:
        plan = plan_scan(target.source)
        places: dict[DataFileId, Place] = {place.file.id: place for place in (*plan.files, *plan.rows)}
        if target.where is None:
            return cls(engine, target, plan, places, None, 1.0)
        chosen = plan_scan(target.source, target.where, engine.storage)
        matching = {file: positions for file, (_, positions) in find_rows(engine, chosen).items()}
        total = sum(place.live_rows for place in places.values())
        share = sum(map(len, matching.values())) / max(total, 1)
        return cls(engine, target, plan, places, matching, share)

    def hits(self, asked: Asked, k: int) -> pa.Table:
        """The `k` best rows by one index and all that are as good as the last of them, in no order."""
        kind, spec = kind_of(asked.index.kind), spec_of(asked.index, self.target.source.table.columns)
        chosen = self._segments(asked.index)
        while True:
            try:
                return self._searched(kind, spec, chosen, asked, k)
            except StorageError:
                readable = self._readable(kind, spec, chosen, asked)
                if len(readable.by_file) == len(chosen.by_file):
                    raise
                chosen = readable

    def read(self, hits: pa.Table, selection: Selection) -> pa.Table:
        """Rows by file and position, best first, with their ids and scores."""
        wanted = {
            DataFileId(file): hits.filter(pc.equal(hits.column(FILE), file)).column(POSITION).unique().sort()
            for file in hits.column(FILE).unique().to_pylist()
        }
        plan = self._only(wanted.keys(), wanted)
        columns = selection.read(plan.table.columns, frozenset())
        found = relation(plan, self.engine.storage, Wanted(columns, row_id=True, place=True))
        numbers = pa.array([place.file.id for place in found.places], pa.int64())
        named = pc.index_in(hits.column(FILE), numbers).cast(pa.int64())
        tables = {**found.tables, HITS: hits.append_column(_AT, named)}
        shown = "".join(f"{column}, " for column in shown_columns(selection))
        sql = (
            f"SELECT {shown}r.{ROW_ID}, h.{FILE}, h.{POSITION}, h.{SCORE} FROM ({found.sql}) AS r "
            f"JOIN {HITS} AS h ON h.{_AT} = r.{PLACE} AND h.{POSITION} = r.{POSITION} "
            f"ORDER BY h.{SCORE} DESC, r.{ROW_ID}"
        )
        return self.engine.table(sql, tables, plan)

    def _segments(self, index: Index) -> ChosenSegments:
        indexes = replace(self.target.indexes, definitions=(index,))
        usable = usable_indexes(indexes, self.target.source.table.columns, self.engine.storage)
        for each in usable:
            if isinstance(each, UsableIndex):
                return each.chosen([place.file.id for place in self.plan.files])
        return ChosenSegments((), {})

    def _searched(
        self, kind: Kind, spec: IndexSpec, chosen: ChosenSegments, asked: Asked, k: int
    ) -> pa.Table:
        loose = self._loose(spec, chosen)
        alive = self._alive(chosen, loose)
        rows = None if loose is None else _as_loose(loose, spec)
        most = k + 1
        while True:
            hits = kind.search(
                spec, chosen.segments, rows, asked.query, most, alive, asked.params, self.share
            )
            scores = hits.table.column("score").to_numpy()
            is_clear = len(scores) <= k or scores[k - 1] > scores[-1]
            if hits.is_all or len(scores) < most or is_clear or most > k + _MOST_TIES:
                return self._placed(hits, chosen, loose)
            most = min(2 * most, k + _MOST_TIES + 1)

    def _placed(self, hits: Hits, chosen: ChosenSegments, loose: pa.Table | None) -> pa.Table:
        """Hits by data file and position."""
        files = {place: file for file, place in chosen.by_file.items()}
        table = hits.table
        segments, ordinals, positions = (
            table.column(name).to_numpy().copy() for name in ("segment", "ordinal", "position")
        )
        found = np.array(
            [files.get(place, 0) for place in zip(segments.tolist(), ordinals.tolist(), strict=True)],
            np.int64,
        )
        is_loose = segments == _LOOSE
        if loose is not None and is_loose.any():
            at = pa.array(positions[is_loose])
            found[is_loose] = loose.column(FILE).take(at).to_numpy()
            positions[is_loose] = loose.column(POSITION).take(at).to_numpy()
        columns = {FILE: pa.array(found, pa.int64()), POSITION: pa.array(positions, pa.int64())}
        return pa.table({**columns, SCORE: table.column("score")})

    def _loose(self, spec: IndexSpec, chosen: ChosenSegments) -> pa.Table | None:
        """The keys of rows that no segment covers, and where these are."""
        files = [file for file in self.places if file not in chosen.by_file]
        if not files:
            return None
        plan = self._only(files, {})
        found = relation(plan, self.engine.storage, Wanted(spec.keys, place=True))
        shown = ", ".join(f"{quoted(column.name)} AS {quoted(str(column.id))}" for column in spec.keys)
        sql = (
            f"SELECT {shown}, {PLACE}, {POSITION} FROM ({found.sql}) AS {ALIAS} ORDER BY {PLACE}, {POSITION}"
        )
        table = self.engine.table(sql, found.tables, plan).combine_chunks()
        numbers = pa.array([place.file.id for place in found.places], pa.int64())
        return table.append_column(FILE, numbers.take(table.column(PLACE))) if table.num_rows else None

    def _alive(
        self, chosen: ChosenSegments, loose: pa.Table | None
    ) -> Callable[[int, int, pa.Array], pa.Array]:
        files = {place: file for file, place in chosen.by_file.items()}

        def alive(segment: int, ordinal: int, positions: pa.Array) -> pa.Array:
            if segment == _LOOSE:
                return self._loose_alive(loose, positions)
            file = files.get((segment, ordinal))
            return self._counts(file, positions)

        return alive

    def _loose_alive(self, loose: pa.Table | None, numbers: pa.Array) -> pa.Array:
        """Deleted rows are not among them."""
        if loose is None or self.matching is None:
            return pa.repeat(pa.scalar(loose is not None), len(numbers))
        files, positions = (loose.column(name).take(numbers).to_numpy() for name in (FILE, POSITION))
        counts = np.zeros(len(numbers), bool)
        for file in np.unique(files).tolist():
            of_file = files == file
            among = _among(pa.array(positions[of_file]), self.matching.get(DataFileId(file)))
            counts[of_file] = among
        return pa.array(counts)

    def _counts(self, file: DataFileId | None, positions: pa.Array) -> pa.Array:
        if file is None:
            return pa.repeat(pa.scalar(False), len(positions))
        if self.matching is not None:
            return pa.array(_among(positions, self.matching.get(file)))
        if file not in self.lost:
            place = self.places[file]
            self.lost[file] = lost_positions(self.engine.storage, place.file.deletes, place.deleted)
        return pa.array(~_among(positions, self.lost[file]))

    def _only(self, files: object, wanted: Mapping[DataFileId, Positions]) -> ScanPlan:
        """The plan of some files and rows."""
        chosen = set(cast("Sequence[DataFileId]", files))
        return replace(
            self.plan,
            files=tuple(place for place in self.plan.files if place.file.id in chosen),
            rows=tuple(place for place in self.plan.rows if place.file.id in chosen),
            wanted=wanted,
        )

    def _readable(self, kind: Kind, spec: IndexSpec, chosen: ChosenSegments, asked: Asked) -> ChosenSegments:
        """The segments that can be read: rows of the others are loose."""
        good: dict[int, int] = {}
        segments: list[Segment] = []
        for number, segment in enumerate(chosen.segments):
            try:
                kind.search(spec, [segment], None, asked.query, 1, _nothing, asked.params)
            except StorageError:
                continue
            good[number] = len(segments)
            segments.append(segment)
        by_file = {
            file: (good[number], ordinal)
            for file, (number, ordinal) in chosen.by_file.items()
            if number in good
        }
        return ChosenSegments(tuple(segments), by_file)


def _nothing(segment: int, ordinal: int, positions: pa.Array) -> pa.Array:
    return pa.repeat(pa.scalar(True), len(positions))


def _as_loose(loose: pa.Table, spec: IndexSpec) -> pa.Table:
    keys = {str(column.id): loose.column(str(column.id)) for column in spec.keys}
    return pa.table({"position": pa.array(np.arange(loose.num_rows), pa.int64()), **keys})


def _among(positions: pa.Array, listed: Positions | None) -> np.ndarray:
    """Which positions are listed, in ascending order."""
    if listed is None or len(listed) == 0:
        return np.zeros(len(positions), bool)
    known, asked = listed.to_numpy(zero_copy_only=False), positions.to_numpy(zero_copy_only=False)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return known[at] == asked


def _fused(ranked: Sequence[pa.Table]) -> pa.Table:
    """Rows of several searches by reciprocal rank: each adds 1 / (60 + rank)."""
    parts: list[pa.Table] = []
    for table in ranked:
        ranks = 1.0 / (_FUSED + 1 + np.arange(table.num_rows))
        parts.append(table.select([FILE, POSITION]).append_column("part", pa.array(ranks)))
    whole = pa.concat_tables(parts).group_by([FILE, POSITION]).aggregate([("part", "sum")])
    return pa.table(
        [whole.column(FILE), whole.column(POSITION), whole.column("part_sum")], [FILE, POSITION, SCORE]
    )
