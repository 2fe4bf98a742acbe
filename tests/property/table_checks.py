"""What holds of a table after each step of a program: it is compared with the model."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

import forklake
from forklake.model.types.data_types import Scalar, to_sql
from tests.invariants import check_files
from tests.property.table_lakes import Lakes
from tests.property.table_model import Columns, Table, from_arrow, to_arrow
from tests.property.table_steps import Look, Program, Step
from tests.property.table_values import ORDERED, identity

RESERVED = "change_type"
"""A name that a column may have, but not in a change feed."""

Found = list[tuple[int, tuple[Any, ...]]]


class Checks:
    """A real table and the model of it, compared now and at every snapshot."""

    def __init__(self, lakes: Lakes, program: Program) -> None:
        self.lakes = lakes
        self.oracle = lakes.oracle
        self.name = lakes.create()
        self.model = program.start
        catalog = self.catalog(0)
        self.id = catalog.create_table("t", program.ddl).id
        self.history: dict[int, tuple[Table, Look | None]] = {catalog.snapshot: (self.model, None)}
        self.row_ids: set[int] = set()
        self.column_ids: dict[int, int] = {}

    def catalog(self, handle: int) -> forklake.Catalog:
        return self.lakes.catalog(handle, self.name)

    def _settle(self, step: Step, before: int) -> None:
        """Compare the present and what was there before, and remember what is there now."""
        catalog, other = self.catalog(step.handle), self.catalog(1 - step.handle)
        table = other.table(self.model.name)
        assert table.id == self.id
        self._learn(table)
        if step.look is not None:
            self._look(catalog.table(self.model.name), self.model, step.look)
        self.history[other.snapshot] = (self.model, step.look)
        self._check_past(catalog, before)

    def finish(self) -> None:
        """Every snapshot still shows what it showed."""
        self.lakes.reopen(1)
        for snapshot, (model, look) in self.history.items():
            past = self._check_past(self.catalog(1), snapshot)
            if look is not None:
                self._look(past, model, look)
        snapshots = sorted(self.history)
        for start, end in pairwise(snapshots):
            self._check_changes(start, end)
        self._check_feed(snapshots[0], snapshots[-1])
        check_files(self.lakes.handle(1), [self.catalog(1).name])

    def _feed(self, start: int, end: int) -> list[tuple[str, int, int, tuple[Any, ...]]]:
        """Kind, snapshot, row id and values of every change."""
        model, _ = self.history[end]
        feed = self.catalog(1).table(model.name, at=end).changes(start, end).to_arrow()
        values = [from_arrow(feed.column(at + 3), column) for at, column in enumerate(model.columns)]
        about = zip(*(feed.column(at).to_pylist() for at in range(3)), strict=True)
        return [
            (kind, snapshot, row, tuple(identity(column[at]) for column in values))
            for at, (kind, snapshot, row) in enumerate(about)
        ]

    def _check_changes(self, start: int, end: int) -> None:
        """One commit, told exactly."""
        before, after = self.history[start][0], self.history[end][0]
        if RESERVED in {column.name for column in after.columns}:
            return
        old = {row.id: row for row in before.rows}
        new = {row.id: row for row in after.rows}
        told: dict[int, dict[str, tuple[Any, ...]]] = {}
        for kind, snapshot, row, values in self._feed(start, end):
            assert snapshot == end
            assert kind not in told.setdefault(row, {}), f"{kind} of row {row} is told twice"
            told[row][kind] = values
        comparable = before.columns == after.columns
        for row in old.keys() | new.keys() | told.keys():
            kinds = set(told.get(row, ()))
            if row not in old:
                assert kinds == {"insert"}
            elif row not in new:
                assert kinds == {"delete"}
            else:
                assert kinds in (set(), {"update_preimage", "update_postimage"})
                if comparable and old[row].key(before.columns) != new[row].key(after.columns):
                    assert kinds, f"a change of row {row} is not told"
            for kind, values in told.get(row, {}).items():
                if kind in ("insert", "update_postimage"):
                    assert values == new[row].key(after.columns)
                elif comparable:
                    assert values == old[row].key(before.columns)

    def _check_feed(self, start: int, end: int) -> None:
        """The rows of one snapshot, with what happened since, are those of another."""
        before, after = self.history[start][0], self.history[end][0]
        if RESERVED in {column.name for column in after.columns}:
            return
        rows: dict[int | None, Any] = {row.id: None for row in before.rows}
        for kind, _, row, values in self._feed(start, end):
            if kind in ("delete", "update_preimage"):
                del rows[row]
            else:
                assert row not in rows, f"row {row} came twice"
                rows[row] = values
        assert rows.keys() == {row.id for row in after.rows}
        for row in after.rows:
            assert rows[row.id] in (None, row.key(after.columns))

    def _check_past(self, catalog: forklake.Catalog, snapshot: int) -> forklake.Table:
        model, _ = self.history[snapshot]
        past = catalog.table(model.name, at=snapshot)
        assert past.id == self.id
        self._check(past, model)
        return past

    def _learn(self, table: forklake.Table) -> None:
        """Compare, and take over the ids that new rows and columns were given."""
        found = self._check(table, self.model)
        known = {row.id for row in self.model.rows if row.id is not None}
        new: dict[tuple[Any, ...], list[int]] = {}
        for number, key in found:
            if number not in known:
                assert number >= 0 and number not in self.row_ids, f"row id {number} was given again"
                new.setdefault(key, []).append(number)
        rows = tuple(
            replace(row, id=new[row.key(self.model.columns)].pop()) if row.id is None else row
            for row in self.model.rows
        )
        self.model = replace(self.model, rows=rows)
        self.row_ids |= {row.id for row in rows if row.id is not None}
        self._learn_columns(table)

    def _learn_columns(self, table: forklake.Table) -> None:
        pairs = zip(
            (inner for column in self.model.columns for inner in column.walk()),
            (inner for column in table.columns for inner in column.walk()),
            strict=True,
        )
        for ours, theirs in pairs:
            assert self.column_ids.setdefault(ours.key, theirs.id) == theirs.id, f"{ours.name} has another id"
        assert len(set(self.column_ids.values())) == len(self.column_ids), "a column id was given again"

    def _check(self, table: forklake.Table, model: Table) -> Found:
        """The definition, the number of rows, and the rows with their ids."""
        definition = [
            (column.name, to_sql(column.data_type), column.nullable, column.default is not None)
            for column in table.columns
        ]
        assert definition == [
            (column.name, to_sql(column.type), column.nullable, column.default is not None)
            for column in model.columns
        ]
        assert table.name == model.name
        assert table.count() == len(model.rows)
        scan = table.scan(row_ids=True)
        result = scan.to_arrow()
        assert result.schema == scan.schema
        found = _rows_in(result, model.columns)
        _compare(found, model.rows, model.columns)
        return found

    def _look(self, table: forklake.Table, model: Table, look: Look) -> None:
        """A condition, some columns and the bounds of one."""
        where = look.where.sql
        places = self.oracle.places(model, look.where)
        expected = [row for at, row in enumerate(model.rows) if at in places]
        columns = tuple(model.column(name) for name in look.columns)
        scan = table.scan(where, list(look.columns), row_ids=True)
        _compare(_rows_in(self._result(scan, look.form), columns), expected, columns)
        assert table.scan(where).count() == len(expected), where
        everything, plan = table.scan().plan(), table.scan(where).plan()
        assert sum(part.live_rows for part in (*everything.files, *everything.rows)) == len(model.rows)
        kept, pruned = {file.path for file in plan.files}, {file.path for file in plan.pruned}
        assert kept <= {file.path for file in everything.files}
        assert kept | pruned == {file.path for file in everything.files}
        self._bounds(table, model, look.extreme)
        present = {row.id for row in model.rows}
        for row in (*sorted(present)[:1], *sorted(self.row_ids - present)[:1]):
            place = table.locate(row)
            assert (place is not None) == (row in present), f"row {row} is at {place}"

    def _result(self, scan: Any, form: str) -> pa.Table:
        match form:
            case "to_arrow":
                return scan.to_arrow()
            case "to_batches":
                return pa.Table.from_batches(list(scan.to_batches()), scan.schema)
            case _:
                return scan.to_duckdb(self.lakes.duckdb).to_arrow_table()

    def _bounds(self, table: forklake.Table, model: Table, name: str) -> None:
        column = model.column(name)
        if not isinstance(column.kind, str) and not (
            isinstance(column.kind, Scalar) and column.kind.name not in ORDERED
        ):
            for function in ("min", "max"):
                found = getattr(table.scan(), function)(name)
                known = self.oracle.extreme(model, column, function)
                shown = to_arrow([known], column)[0].as_py()
                assert _same(found, shown), f"{function}({name}) is {found!r} instead of {shown!r}"


def _same(left: Any, right: Any) -> bool:
    # Which of two zeros is the lower is for nobody to tell.
    return left == right or identity(left) == identity(right) or str(left) == str(right)


def _rows_in(result: pa.Table, columns: Columns) -> Found:
    assert result.column_names == [*(column.name for column in columns), "row_id"]
    values = [from_arrow(result.column(at), column) for at, column in enumerate(columns)]
    ids = result.column(len(columns)).to_pylist()
    return [(row, tuple(identity(column[at]) for column in values)) for at, row in enumerate(ids)]


def _compare(found: Found, expected: Any, columns: Columns) -> None:
    """Rows that have ids are found by them; new ones must be there as often as they should."""
    rows: dict[int, tuple[Any, ...]] = dict(found)
    assert len(rows) == len(found), "a row id is there twice"
    fresh: Counter[tuple[Any, ...]] = Counter()
    for row in expected:
        key = row.key(columns)
        if row.id is None:
            fresh[key] += 1
        else:
            assert row.id in rows, f"row {row.id} is lost: {key}"
            assert rows.pop(row.id) == key, f"row {row.id} has other values"
    assert Counter(rows.values()) == fresh
