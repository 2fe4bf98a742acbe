"""Whatever is done to a table, its rows are those of a table in plain Python, now and at every snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from operator import is_
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import forklake
from forklake.errors import CommitConflict, InvalidData, InvalidPredicate, InvalidSchemaChange
from forklake.model.types.data_types import Scalar, to_sql
from tests.invariants import check_files
from tests.property.table_model import Columns, Condition, Oracle, Refused, Table, from_arrow, to_arrow
from tests.property.table_programs import DDL, DML, LAYOUT, Look, Op, Program, Step, programs, reshaped
from tests.property.table_values import COMMON, FLOATS, NANOSECONDS, ORDERED, identity, names_in, types

RESERVED = "change_type"
"""A name that a column may have, but not in a change feed."""

Found = list[tuple[int, tuple[Any, ...]]]


class Lakes:
    """Two handles on one lake, as two programs would have them."""

    def __init__(self, lake: forklake.Lake, url: str) -> None:
        lake.set_option("data_inlining_row_limit", 2)
        lake.set_option("parquet_row_group_size", 2)
        self._url = url
        self.backend = url.partition(":")[0]
        self._opened = [forklake.connect(url), forklake.connect(url)]
        self.oracle = Oracle()
        self.duckdb = duckdb.connect()
        self.duckdb.execute("SET TimeZone = 'UTC'; SET arrow_lossless_conversion = true")

    def catalog(self, handle: int, name: str) -> forklake.Catalog:
        return self._opened[handle].catalog(name)

    def handle(self, number: int) -> forklake.Lake:
        return self._opened[number]

    def create(self) -> str:
        return self._opened[0].create_catalog(f"c{uuid4().hex}").name

    def reopen(self, handle: int) -> None:
        self._opened[handle].close()
        self._opened[handle] = forklake.connect(self._url)

    def close(self) -> None:
        self.oracle.close()
        self.duckdb.close()
        for lake in self._opened:
            lake.close()


@pytest.fixture
def lakes(lake: forklake.Lake, lake_url: str) -> Iterator[Lakes]:
    lakes = Lakes(lake, lake_url)
    yield lakes
    lakes.close()


class Run:
    """One program, done to a real table and to the model."""

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

    # ---- Doing ---

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

    # ---- Checking ---

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


def _is_untouched(before: Table, after: Table) -> bool:
    """Whether nothing was done; a row that got the values that it had is another."""
    rows = len(before.rows) == len(after.rows) and all(map(is_, before.rows, after.rows))
    return rows and (before.name, before.columns) == (after.name, after.columns)


def _sql(where: Condition | None) -> str | None:
    return None if where is None else where.sql


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


EXAMPLES = {"sqlite": 12, "duckdb": 4, "postgresql": 6}
"""How many stories a run tells; a soak tells fifty times as many."""


def tell(lakes: Lakes, stories: st.SearchStrategy[Program]) -> None:
    @settings(
        max_examples=EXAMPLES[lakes.backend] * settings.default.max_examples // 100,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(stories)
    def run(program: Program) -> None:
        story = Run(lakes, program)
        for step in program.steps:
            story.step(step)
        story.finish()

    run()


# Hypothesis spends up to five minutes on making a failure small.
@pytest.mark.timeout(900)
def test_tables_of_any_type_hold_what_the_model_holds(lakes: Lakes) -> None:
    tell(lakes, programs([types()], (*DML, *DML, *LAYOUT, *DDL), 8))


@pytest.mark.timeout(900)
def test_rows_that_change_often_are_those_of_the_model(lakes: Lakes) -> None:
    plain, floats = st.sampled_from(COMMON), st.sampled_from(FLOATS)
    tell(lakes, programs([plain, plain, floats], (*DML, *DML, *LAYOUT), 10))
