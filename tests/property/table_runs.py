"""Programs are done to a real table and to the model, which must agree on everything."""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import note

import forklake
from forklake.errors import CommitConflict, InvalidData, InvalidPredicate, InvalidSchemaChange
from forklake.model.types.data_types import to_sql
from tests.property.table_checks import Checks
from tests.property.table_model import Condition, Refused, Table, to_arrow
from tests.property.table_steps import LAYOUT, Op, Step, reshaped
from tests.property.table_values import NANOSECONDS, names_in


class Run(Checks):
    """One program, done to a real table and to the model."""

    def step(self, step: Step) -> None:
        catalog = self.catalog(step.handle)
        before = catalog.snapshot
        match step.action:
            case "do":
                self._do(catalog, step.ops)
            case "transaction":
                self._transaction(catalog, step.ops)
            case "rollback":
                kept = self.model
                tx = catalog.transaction()
                self._in(tx, step.ops)
                tx.rollback()
                self.model = kept
                assert catalog.snapshot == before, "what was rolled back made a snapshot"
            case "overlap":
                self._overlap(catalog, step)
            case "reopen":
                self.lakes.reopen(step.handle)
        self._settle(step, before)

    def _do(self, catalog: forklake.Catalog, ops: tuple[Op, ...]) -> None:
        for op in ops:
            before = catalog.snapshot
            known = self.model
            self._apply(catalog, op)
            if op[0] not in LAYOUT and _is_untouched(known, self.model):
                assert catalog.snapshot == before, f"{op} changed nothing and made a snapshot"

    def _transaction(self, catalog: forklake.Catalog, ops: tuple[Op, ...]) -> None:
        before = catalog.snapshot
        with catalog.transaction() as tx:
            self._in(tx, ops)
        assert catalog.snapshot == (before if tx.snapshot is None else tx.snapshot)

    def _in(self, tx: forklake.Transaction, ops: tuple[Op, ...]) -> None:
        for op in ops:
            self._apply(tx, op)
            self._check(tx.table(self.model.name), self.model)

    def _overlap(self, catalog: forklake.Catalog, step: Step) -> None:
        """Two handles begin at one snapshot; what they do to different rows must all be there afterwards."""
        base = self.model
        tx = catalog.transaction()
        self._in(tx, step.ops)
        ours = self.model
        other = self.catalog(1 - step.handle)
        self.model = base
        if step.theirs is not None:
            self._do(other, (step.theirs,))
            self._learn(other.table(self.model.name))
            self.history[other.snapshot] = (self.model, None)
        theirs = self.model
        try:
            tx.commit()
        except CommitConflict as conflict:
            note(f"conflict: {conflict}")
            verbs = {op[0] for op in step.ops} | {step.theirs and step.theirs[0]}
            assert verbs != {"append"}, "two appends collided"
            return
        if tx.snapshot is not None:
            assert theirs.columns == base.columns, "rows were written for columns that changed"
        self.model = _merged(base, ours, theirs)

    def _apply(self, scope: forklake.Catalog | forklake.Transaction, op: Op) -> None:
        """Do it to both; they must agree on whether it can be done, and on how many rows it concerns."""
        expected: Table | Refused
        count: Any = None
        try:
            expected, count = self._on_model(op)
        except Refused as refusal:
            expected = refusal
        try:
            answer = self._on_real(scope, op)
        except (InvalidData, InvalidPredicate, InvalidSchemaChange) as refusal:
            assert isinstance(expected, Refused), f"{op} was refused: {refusal}"
            return
        assert not isinstance(expected, Refused), f"{op} should have been refused: {expected}"
        assert answer == count, f"{op} answered {answer} instead of {count}"
        self.model = expected

    def _on_model(self, op: Op) -> tuple[Table, Any]:
        model = self.model
        match op:
            case "append", names, rows, _:
                return model.append(model.rows_of(names, rows)), len(rows)
            case "delete", where:
                places = self.oracle.places(model, where)
                return model.without(places), len(places)
            case "overwrite", names, rows, _, where:
                new = model.rows_of(names, rows)
                return model.without(self.oracle.places(model, where)).append(new), len(rows)
            case "merge", names, rows, _, on, matched, unmatched:
                return model.merged(names, rows, on, matched, unmatched)
            case "update", assignments, where:
                try:
                    changed = self.oracle.computed(model, assignments, where)
                except duckdb.Error as error:
                    raise Refused(str(error)) from error
                return model.updated(changed), len(changed)
            case _:
                return reshaped(model, op), None

    def _on_real(self, scope: forklake.Catalog | forklake.Transaction, op: Op) -> Any:
        table = scope.table(self.model.name)
        match op:
            case ("flush",):
                scope.flush_inlined()
            case ("compact",):
                scope.compact()
            case "rewrite_deletes", threshold:
                scope.rewrite_deletes(threshold)
            case "set_partitioning" | "set_sort_order" as verb, texts, _:
                getattr(table, verb)(texts)
            case "merge", names, rows, form, on, matched, unmatched:
                data = self._data(names, rows, form)
                done = table.merge(data, [on], when_matched=matched, when_not_matched=unmatched)
                return done.updated, done.deleted, done.inserted
            case "append", names, rows, form:
                return table.append(self._data(names, rows, form))
            case "delete", where:
                return table.delete(_sql(where))
            case "overwrite", names, rows, form, where:
                return table.overwrite(self._data(names, rows, form), _sql(where))
            case "update", assignments, where:
                return table.update(assignments, _sql(where))
            case "add_column", name, type, default, nullable:
                sql = None if default is None else default[0]
                table.add_column([name], type, default=sql, nullable=nullable)
            case "add_field", path, type:
                table.add_column(path, to_sql(type))
            case "alter_type", path, type:
                table.alter_type(path, to_sql(type))
            case "set_default", name, None:
                table.drop_default([name])
            case "set_default", name, (sql, _):
                table.set_default([name], sql)
            case "set_nullable", name, flag:
                table.set_nullable([name], flag)
            case "rename", name:
                table.rename((table.schema_name, name))
            case verb, *arguments:
                getattr(table, verb)(*arguments)
        return None

    def _data(self, names: tuple[str, ...], rows: tuple[tuple[Any, ...], ...], form: str) -> Any:
        columns = [self.model.column(name) for name in names]
        arrays = [to_arrow([row[at] for row in rows], column) for at, column in enumerate(columns)]
        table = pa.table(arrays, names=list(names))
        exact = not any(names_in(column.type) & NANOSECONDS for column in columns)
        # Python has no nanoseconds.
        return table.to_pylist() if form == "dicts" and exact else table


def _is_untouched(before: Table, after: Table) -> bool:
    """Whether nothing was done; a row that got the values that it had is another."""
    rows = len(before.rows) == len(after.rows) and all(map(is_, before.rows, after.rows))
    return rows and (before.name, before.columns) == (after.name, after.columns)


def _sql(where: Condition | None) -> str | None:
    return None if where is None else where.sql


def _merged(base: Table, ours: Table, theirs: Table) -> Table:
    """Theirs, with what ours did to the rows of the base."""
    before = {row.id: row for row in base.rows}
    after = {row.id: row for row in ours.rows if row.id is not None}
    present = {row.id: row for row in theirs.rows}
    touched = {number for number, row in before.items() if after.get(number) != row}
    for number in touched:
        assert present.get(number) == before[number], f"row {number} was changed by two"
    rows = tuple(
        after.get(row.id, row) if row.id in touched else row
        for row in theirs.rows
        if not (row.id in touched and row.id not in after)
    )
    return replace(theirs, rows=(*rows, *(row for row in ours.rows if row.id is None)))
