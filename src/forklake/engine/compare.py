"""Rows that two catalogs may both have changed, told apart by row id and value.

Positions tell what was deleted as long as both catalogs have a row in the same file. Where one of them has
moved, deleted or updated the row since, it is looked for by its id, and its values say whether it was changed
or only moved: as it was (the base), as the source has it now (ours), and as the target has it (theirs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Literal

from forklake.data.parquet.schema import arrow_schema
from forklake.engine.dml import as_written
from forklake.engine.local import Engine
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.engine.sql_text import shown
from forklake.lazy.arrow import pa, pc
from forklake.model.changes import RowConflict
from forklake.model.ids import DataFileId
from forklake.model.names import quoted
from forklake.model.table.columns import Columns
from forklake.model.types.arrow import one_array
from forklake.scan.change_plan import Place, plan_of
from forklake.scan.scan_plan import Positions, ScanFile, Source


class Outcome(IntEnum):
    """What becomes of a row that was looked at."""

    AGREED = 0
    """Both have the same version, or one commit deleted it in both, or both decided a conflict alike.

    Other equal values are no agreement: both may have added one.
    """
    OURS = 1
    """Only the source changed it."""
    THEIRS = 2
    """Only the target changed it, or nobody did."""
    CONFLICT = 3


@dataclass(frozen=True, slots=True)
class Candidates:
    """Files that may hold rows, as one catalog reads them."""

    source: Source
    places: Sequence[Place]

    def holding(self, low: int, high: int) -> Candidates:
        """Only the files that may hold rows with ids in a range."""
        return replace(self, places=[place for place in self.places if _may_hold(place, low, high)])


@dataclass(frozen=True, slots=True)
class Known:
    """What decides who changed a row, beside its values."""

    seen_by_source: frozenset[DataFileId]
    """Files that the source has or had: what it has now instead of a row in there, it has on purpose."""
    seen_by_target: frozenset[DataFileId]
    """Files that the target has or had."""
    theirs_changed: bool
    """Whether the target deleted any rows of the table in commits that the source has not seen."""
    deleted_twice: Mapping[DataFileId, Positions] = field(default_factory=dict[DataFileId, Positions])
    """Rows that both sides deleted, each in a commit that the other has not seen."""
    ours_decided: frozenset[int] = frozenset()
    """Ids of rows that a merge of the source has decided of, unseen by the target: that is a change."""
    theirs_decided: frozenset[int] = frozenset()
    """Ids of rows that a merge of the target has decided of, which the source has not seen."""
    superseded: Mapping[DataFileId, Positions] = field(default_factory=dict[DataFileId, Positions])
    """Rows that had been deleted or moved before, in a commit that both have seen: both knew a later one."""
    taken: Mapping[DataFileId, Positions] = field(default_factory=dict[DataFileId, Positions])
    """Rows that the source deleted or moved in commits that the target has not seen."""


@dataclass(frozen=True, slots=True)
class Query:
    """The rows that were looked at, as SQL: `base`, `ours` and `theirs`, by their ids."""

    engine: Engine
    sql: str
    tables: Mapping[str, pa.Table]
    columns: Columns

    def conflicts(self, ids: pa.Table) -> list[RowConflict]:
        """Some rows as they were, and as both sides have them."""
        values = ", ".join(
            f"CASE WHEN max({a}.id) IS NOT NULL THEN {_by_latest('any_value', _struct(a, self.columns))} END "
            f"AS {name}"
            for a, name in (("b", "base"), ("o", "ours"), ("t", "theirs"))
        )
        found = self.engine.table(
            f"{self.sql} SELECT c.row_id, {values} FROM wanted AS c JOIN base AS b ON b.id = c.row_id "
            "LEFT JOIN ours AS o ON o.id = c.row_id LEFT JOIN theirs AS t ON t.id = c.row_id "
            "GROUP BY c.row_id ORDER BY c.row_id",
            {**self.tables, "wanted": ids},
        )
        return [RowConflict(*row.values()) for row in found.to_pylist()]

    def side(self, side: Literal["ours", "theirs"], ids: pa.Table) -> pa.Table:
        """Some rows as one side has them."""
        values = ", ".join(f"any_value(r.v{at}) AS v{at}" for at, _ in enumerate(self.columns))
        batches = self.engine.stream(
            f"{self.sql} SELECT {values}, r.id AS {ROW_ID} "
            f"FROM wanted AS c JOIN {side} AS r ON r.id = c.row_id GROUP BY r.id ORDER BY r.id",
            {**self.tables, "wanted": ids},
        )
        schema = arrow_schema(self.columns, row_ids=True)
        return pa.Table.from_batches([as_written(batch, self.columns) for batch in batches], schema=schema)


@dataclass(frozen=True, slots=True)
class Examined:
    """The rows, with their places on both sides and what becomes of them."""

    rows: pa.Table
    query: Query
    """Reads the rows again, with their values."""

    def conflicts(self) -> list[RowConflict]:
        """The rows that conflict, with their values."""
        return self.query.conflicts(self._conflicting())

    def conflicting(self, side: Literal["ours", "theirs"]) -> pa.Table:
        """The rows that conflict as one side has them, as files hold rows, with their ids."""
        return self.query.side(side, self._conflicting())

    def _conflicting(self) -> pa.Table:
        return self._with(Outcome.CONFLICT).select(["row_id"])

    def _with(self, outcome: Outcome) -> pa.Table:
        return self.rows.filter(pc.equal(self.rows.column("outcome"), int(outcome)))

    def count(self, outcome: Outcome) -> int:
        """How many rows have an outcome."""
        return self._with(outcome).num_rows

    def ours(self, *outcomes: Outcome) -> dict[DataFileId, Positions]:
        """Where the source has the rows of some outcomes, if it has them."""
        return self._places("ours_file", "ours_position", outcomes)

    def theirs(self, *outcomes: Outcome) -> dict[DataFileId, Positions]:
        """Where the target has the rows of some outcomes, if it has them."""
        return self._places("theirs_file", "theirs_position", outcomes)

    def ids(self, outcome: Outcome) -> frozenset[int]:
        """The ids of the rows of an outcome."""
        return frozenset(self._with(outcome).column("row_id").to_pylist())

    def files(self, outcome: Outcome) -> frozenset[DataFileId]:
        """The files in which rows of an outcome were before."""
        return frozenset(self._with(outcome).column("base_file").to_pylist())

    @property
    def are_of_several_bases(self) -> bool:
        """Whether there are conflicts over rows that were in more than one place before."""
        several = pc.equal(self.rows.column("is_several"), 1)
        conflicts = pc.equal(self.rows.column("outcome"), int(Outcome.CONFLICT))
        return bool(pc.any(pc.and_(conflicts, several)).as_py())

    @property
    def are_deleted_there(self) -> bool:
        """Whether there are rows that the target has no more, and the source has again or otherwise."""
        return bool(pc.any(self._deleted_there()).as_py())

    @property
    def are_deleted_here(self) -> bool:
        """Whether there are rows that the source has no more, and the target has again or otherwise."""
        return bool(pc.any(self._has("only_theirs")).as_py())

    def changed_here_only(self, ids: pa.Array) -> Examined:
        """The same, given the rows that the source took itself: others, the target has brought back."""
        return self._decided(self._has("only_theirs"), ids, Outcome.THEIRS)

    def changed_there_only(self, ids: pa.Array) -> Examined:
        """The same, given the rows that the target took itself: of others, the source has seen the end.

        So it changed them, or brought them back by a restore or an undo.
        """
        return self._decided(self._deleted_there(), ids, Outcome.OURS)

    def _decided(self, rows: pa.ChunkedArray, ids: pa.Array, outcome: Outcome) -> Examined:
        """The same with an outcome for some rows, but for those of some ids."""
        elsewhere = pc.invert(pc.is_in(self.rows.column("row_id"), value_set=ids))
        at = self.rows.schema.get_field_index("outcome")
        decided = pc.if_else(
            pc.and_(rows, elsewhere), pa.scalar(int(outcome), pa.int32()), self.rows.column("outcome")
        )
        return replace(self, rows=self.rows.set_column(at, "outcome", decided))

    def _has(self, flag: str) -> pa.ChunkedArray:
        return pc.equal(self.rows.column(flag), 1)

    def _deleted_there(self) -> pa.ChunkedArray:
        conflicts = pc.equal(self.rows.column("outcome"), int(Outcome.CONFLICT))
        conflicts = pc.and_(conflicts, pc.is_null(self.rows.column("theirs_file")))
        return pc.or_(conflicts, self._has("only_ours"))

    def _places(self, file: str, position: str, outcomes: Sequence[Outcome]) -> dict[DataFileId, Positions]:
        wanted = pc.is_in(self.rows.column("outcome"), value_set=pa.array(outcomes, pa.int32()))
        rows = self.rows.filter(pc.and_(wanted, pc.is_valid(self.rows.column(file))))
        found: dict[DataFileId, Positions] = {}
        for number in pc.unique(rows.column(file)).to_pylist():
            column = rows.filter(pc.equal(rows.column(file), number)).column(position)
            found[DataFileId(number)] = one_array(column).sort()
        return found


def ids_at(
    engine: Engine, columns: Columns, found: Candidates, positions: Mapping[DataFileId, Positions]
) -> pa.Array:
    """The ids of the rows at some positions of files."""
    tables: dict[str, pa.Table] = {}
    files: dict[int, DataFileId] = {}
    rows = _rows(engine, [found], columns[:1], "base", tables, files)
    tables["examined_positions"] = _positions(positions, files)
    sql = (
        f"SELECT b.id FROM ({rows}) AS b "
        "SEMI JOIN examined_positions AS e ON e.place = b.place AND e.position = b.position"
    )
    return one_array(engine.table(sql, tables).column("id"))


def ids_among(engine: Engine, columns: Columns, found: Candidates, ids: pa.Array) -> pa.Array:
    """Those of some ids that rows have which are left in files."""
    tables: dict[str, pa.Table] = {"examined_ids": pa.table({"id": ids})}
    bounds = pc.min_max(ids).as_py()
    rows = _rows(engine, [found.holding(bounds["min"], bounds["max"])], columns[:1], "left", tables, {})
    sql = f"SELECT r.id FROM ({rows}) AS r SEMI JOIN examined_ids AS e ON e.id = r.id"
    return one_array(engine.table(sql, tables).column("id"))


def examine(
    engine: Engine,
    columns: Columns,
    base: Sequence[tuple[Candidates, Mapping[DataFileId, Positions]]],
    ours: Candidates,
    theirs: Candidates,
    known: Known,
) -> Examined:
    """Look at the rows that were at some positions: where both sides have them now, and who changed them."""
    tables: dict[str, pa.Table] = {}
    files: dict[int, DataFileId] = {}
    bases = _rows(engine, [found for found, _ in base], columns, "base", tables, files)
    wanted = {file: positions for _, found in base for file, positions in found.items()}
    tables["examined_positions"] = _positions(
        wanted, files, twice=known.deleted_twice, superseded=known.superseded, taken=known.taken
    )
    for name, ids in (("ours", known.ours_decided), ("theirs", known.theirs_decided)):
        tables[f"decided_by_{name}"] = pa.table({"id": pa.array(sorted(ids), pa.int64())})
    known_rows = (
        "WITH base AS MATERIALIZED (SELECT b.*, e.twice, e.superseded, e.taken, "
        "b.id IN (SELECT id FROM decided_by_ours) AS ours_decided, "
        "b.id IN (SELECT id FROM decided_by_theirs) AS theirs_decided "
        f"FROM ({bases}) AS b JOIN examined_positions AS e ON e.place = b.place AND e.position = b.position)"
    )
    extremes = engine.table(f"{known_rows} SELECT min(id) AS low, max(id) AS high FROM base", tables)
    (ids,) = extremes.to_pylist()
    parts: dict[str, str] = {}
    seen = [False] * len(files)
    for name, candidates, by_other in (
        ("ours", ours, known.seen_by_target),
        ("theirs", theirs, known.seen_by_source),
    ):
        parts[name] = _rows(engine, [candidates.holding(**ids)], columns, name, tables, files)
        seen += [file in by_other for place, file in files.items() if place >= len(seen)]
    tables["examined_files"] = pa.table(
        {
            "place": pa.array(list(files), pa.int64()),
            "file": pa.array(list(files.values()), pa.int64()),
            "seen": pa.array(seen, pa.bool_()),
        }
    )
    found_by_id = ", ".join(
        f"{name} AS MATERIALIZED (SELECT * FROM ({sql}) WHERE id IN (SELECT id FROM base))"
        for name, sql in parts.items()
    )
    rows = f"{known_rows}, {found_by_id}, compared AS ({_compared(columns, known)})"
    found = engine.table(f"{rows} {_OUTCOMES}", tables)
    return Examined(found, Query(engine, rows, tables, columns))


def _compared(columns: Columns, known: Known) -> str:
    """Each row once, with its places, who changed it, and whether both decided a conflict alike."""
    ours, theirs = (_by_latest("bool_and", _same(side, "b", columns)) for side in ("o", "t"))
    both = _same("o", "t", columns)
    took = "true" if known.theirs_changed else "false"
    return f"""
SELECT b.id, min(b.place) AS base_place, bool_or(b.twice) AS twice,
       any_value(o.place) AS ours_place, any_value(o.position) AS ours_position,
       any_value(t.place) AS theirs_place, any_value(t.position) AS theirs_position,
       max(o.id) IS NULL OR NOT coalesce({ours}, false) OR bool_or(b.ours_decided) AS ours_changed,
       (max(t.id) IS NULL OR NOT coalesce({theirs}, false) OR bool_or(b.theirs_decided)) AND {took}
       AS theirs_changed,
       coalesce(bool_and({both}), false) AS equal,
       equal AND (count(DISTINCT (b.place, b.position)) > 1
                  OR (bool_or(b.ours_decided) AND bool_or(b.theirs_decided))) AS alike,
       coalesce(bool_or(b.taken AND bf.file = tf.file AND b.position = t.position), false)
       AS ours_took_theirs,
       count(DISTINCT (b.place, b.position)) > 1 AS several
  FROM base AS b LEFT JOIN ours AS o ON o.id = b.id LEFT JOIN theirs AS t ON t.id = b.id
  JOIN examined_files AS bf ON bf.place = b.place LEFT JOIN examined_files AS tf ON tf.place = t.place
 GROUP BY b.id"""


# A version in a file that the other side has seen was given up there: what that side has now stands, unless
# both gave up what the other one has. If these are equal, and the source has not taken the target's since,
# others moved the row to two places, and each merge kept the copy that its target had.
_OUTCOMES = """SELECT c.id AS row_id, b.file AS base_file, o.file AS ours_file, c.ours_position,
       t.file AS theirs_file, c.theirs_position,
       CAST(CASE WHEN o.file IS NULL AND t.file IS NULL THEN CASE WHEN c.twice THEN 3 ELSE 0 END
                 WHEN o.file = t.file AND c.ours_position = c.theirs_position THEN 0
                 WHEN o.seen AND t.seen THEN CASE WHEN c.equal AND NOT c.ours_took_theirs THEN 2 ELSE 3 END
                 WHEN t.seen THEN 1
                 WHEN o.seen THEN 2
                 WHEN c.ours_changed AND c.theirs_changed THEN CASE WHEN c.alike THEN 0 ELSE 3 END
                 WHEN c.ours_changed THEN 1 ELSE 2 END AS INTEGER) AS outcome,
       CAST(o.file IS NOT NULL AND NOT o.seen AND t.file IS NULL AS INTEGER) AS only_ours,
       CAST(t.file IS NOT NULL AND NOT t.seen AND o.file IS NULL AS INTEGER) AS only_theirs,
       CAST(c.several AS INTEGER) AS is_several
  FROM compared AS c
  JOIN examined_files AS b ON b.place = c.base_place
  LEFT JOIN examined_files AS o ON o.place = c.ours_place
  LEFT JOIN examined_files AS t ON t.place = c.theirs_place"""


def _rows(
    engine: Engine,
    candidates: Sequence[Candidates],
    columns: Columns,
    name: str,
    tables: dict[str, pa.Table],
    files: dict[int, DataFileId],
) -> str:
    """The rows of some places as SQL, with their ids, places and values; places are numbered in `files`."""
    parts: list[str] = []
    values = ", ".join(f"{quoted(column.name)} AS v{at}" for at, column in enumerate(columns))
    for number, each in enumerate(candidates):
        plan = plan_of(each.source, each.places)
        engine.verify(plan)
        wanted = Wanted(columns, row_id=True, place=True, prefix=f"{name}{number}")
        found = relation(plan, engine.storage, wanted)
        tables |= found.tables
        first = len(files)
        files |= {first + at: place.file.id for at, place in enumerate(found.places)}
        about = f"{ROW_ID} AS id, {PLACE} + {first} AS place, {POSITION} AS position"
        parts.append(f"SELECT {about}, {values} FROM ({found.sql})")
    return " UNION ALL ".join(parts)


def _positions(
    wanted: Mapping[DataFileId, Positions],
    files: Mapping[int, DataFileId],
    **flags: Mapping[DataFileId, Positions],
) -> pa.Table:
    """Positions of files, each with whether it is among those of every flag."""
    numbers = {file: place for place, file in files.items()}
    nothing = pa.array([], pa.int64())
    parts = [
        pa.table(
            {
                "place": pa.repeat(pa.scalar(numbers[file], pa.int64()), len(positions)),
                "position": positions,
                **{
                    flag: pc.is_in(positions, value_set=named.get(file, nothing))
                    for flag, named in flags.items()
                },
            }
        )
        for file, positions in wanted.items()
    ]
    return pa.concat_tables(parts)


def _by_latest(aggregate: str, value: str) -> str:
    """What holds for a row as it was before: where it was in several places, those that came later count."""
    return f"coalesce({aggregate}({value}) FILTER (WHERE NOT b.superseded), {aggregate}({value}))"


def _same(one: str, other: str, columns: Columns) -> str:
    return " AND ".join(f"{one}.v{at} IS NOT DISTINCT FROM {other}.v{at}" for at, _ in enumerate(columns))


def _struct(alias: str, columns: Columns) -> str:
    fields = [
        f"{quoted(column.name)} := {shown(f'{alias}.v{at}', column.data_type)}"
        for at, column in enumerate(columns)
    ]
    return f"struct_pack({', '.join(fields)})"


def _may_hold(place: Place, low: int, high: int) -> bool:
    start = place.file.row_id_start
    if start is None or not isinstance(place, ScanFile):
        return True
    return start <= high and low < start + place.file.record_count
