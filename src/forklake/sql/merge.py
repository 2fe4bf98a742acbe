"""MERGE INTO: rows of a source that meet rows of a table, those that meet none, and rows that none meets.

Each pair of rows takes the first clause whose condition holds. The three kinds of clauses are three joins
with the source, which is computed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from forklake.api.sql_result import SqlResult
from forklake.api.staged_rows import replace_rows, take_rows
from forklake.commit.draft import Draft
from forklake.engine.dml import Found, Places, assigned, rewritten
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID
from forklake.engine.sql_text import computed, default_sql
from forklake.errors import ColumnNotFound, InvalidData, InvalidSql
from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Column, Table
from forklake.model.names import quoted
from forklake.model.table.columns import Columns, find
from forklake.sql import statements as st
from forklake.sql.binder import Binder
from forklake.sql.constants import value_of
from forklake.sql.rows import (
    TARGET,
    assigned_values,
    planned_places,
    returned,
    stream,
    target_of,
    types_of,
)
from forklake.sql.statement import Running

SOURCE = "forklake source"
_ACTION = "forklake_action"
_MAY_BE_QUERY = re.compile(r"\b(?:SELECT|FROM|VALUES|TABLE)\b", re.IGNORECASE)
MERGE_ACTION = "merge_action"
"""The column of RETURNING that says what became of a row; `*` does not mean it."""


def merge_rows(statement: st.Merge, running: Running) -> SqlResult | int:
    """MERGE INTO."""
    name = running.target(statement.table)

    def change(draft: Draft) -> SqlResult | int:
        table = draft.table_named(name)
        with running.binder(draft) as binder:
            return _Merge(statement, running, draft, table, binder).run()

    return running.scope.apply(change)[0]


@dataclass(slots=True)
class _Merge:
    statement: st.Merge
    running: Running
    draft: Draft
    table: Table
    binder: Binder
    source_alias: str = ""
    source_columns: list[str] = field(default_factory=list[str])
    counts: dict[int, int] = field(default_factory=dict[int, int])
    returned: list[tuple[str, pa.RecordBatch]] = field(default_factory=list["tuple[str, pa.RecordBatch]"])

    def run(self) -> SqlResult | int:
        """Find what becomes of each row, and stage it."""
        draft, table, context = self.draft, self.table, self.running.context
        self._compute_source()
        target_of(draft, table, self.binder)
        changed = self._joined("matched", "JOIN"), self._joined("not matched by source", "ANTI JOIN")
        inserts = self._inserts()
        texts = [query for query in (*changed, inserts) if query is not None]
        bound = dict(zip(texts, self.binder.prepare(*map(self.binder.read, texts)), strict=True))
        arrived = None
        if inserts is not None:
            rows = self._checked(stream(self.binder, self.running, bound[inserts]))
            arrived = take_rows(context, draft, table, rows)
        places = Places(planned_places(self.binder))
        gone = Places(places.places)
        streams = [stream(self.binder, self.running, bound[query]) for query in changed if query is not None]
        new = self._split(chain.from_iterable(streams), gone)
        updated = replace_rows(
            context, draft, table, rewritten(new, table.columns, places), lambda: self._found(places, gone)
        )
        if not updated:
            self._found(places, gone)
        deleted = draft.staged(table).delete(gone.found(twice="refused"))
        inserted = 0
        if arrived is not None:
            arrived.stage(draft, table)
            inserted = arrived.count
            draft.staged(table).looked |= bool(inserted)
        count = updated + deleted + inserted
        return count if self.statement.returning is None else self._shown(self.statement.returning, count)

    def _found(self, places: Places, gone: Places) -> Found:
        """The rows that get new values; none of them may be deleted as well."""
        both = Places(places.places, [*places.parts, *gone.parts])
        both.found(twice="refused")
        return places.found(twice="refused")

    # ---- Reading ---

    @property
    def alias(self) -> str:
        """What the statement calls the table."""
        return self.statement.alias or self.table.name

    def _compute_source(self) -> None:
        """The source is computed once, so that all clauses see the same rows."""
        query = self.binder.read(f"{self._with}SELECT * FROM {self.statement.source.text}")
        self.source_alias = query.first_name or SOURCE
        (sql,) = self.binder.prepare(query)
        self.source_columns = [name for name, _ in types_of(self.binder, self.running, sql)]
        rows = self.running.rows_of(self.binder)
        self.binder.workbench.keep_temporary(SOURCE)
        rows.begin(f"CREATE OR REPLACE TEMP TABLE {quoted(SOURCE)} AS {sql}", self.binder.used(sql))
        rows.all()
        self.binder.given[SOURCE] = None

    def _from_source(self) -> str:
        return f"{quoted(SOURCE)} AS {quoted(self.source_alias)}"

    @property
    def _with(self) -> str:
        """The WITH before MERGE, which conditions and values can name too."""
        return "" if self.statement.with_ is None else f"{self.statement.with_.text} "

    @property
    def _condition(self) -> str:
        if self.statement.on is not None:
            return self.statement.on.text
        pairs = [
            f"{quoted(self.alias)}.{quoted(name)} = {quoted(self.source_alias)}.{quoted(name)}"
            for name in self.statement.using
        ]
        return " AND ".join(pairs)

    def _clauses(self, match: str) -> list[tuple[int, st.When]]:
        """In the order in which they are tried: one without a condition is the last, as in DuckDB."""
        found = [(at, when) for at, when in enumerate(self.statement.clauses) if when.match == match]
        return sorted(found, key=lambda one: one[1].condition is None)

    def _joined(self, match: str, join: str) -> str | None:
        """The query for clauses that change rows of the table, if there are any."""
        clauses = self._clauses(match)
        if not clauses:
            return None
        action = _first_that_holds(clauses)
        alias = quoted(self.alias)
        values_of = {
            at: self._new_values(when, with_source=match == "matched")
            for at, when in clauses
            if when.action == "update"
        }
        taken = _named(clauses, action)
        selected = [
            self._chosen(column, values_of, taken, f"{alias}.{quoted(column.name)}")
            for column in self.table.columns
        ]
        extras = [f"{alias}.{name}" for name in (ROW_ID, PLACE, POSITION)]
        return (
            f"{self._with}SELECT * FROM (SELECT {action} AS {_ACTION}, {', '.join([*selected, *extras])} "
            f"FROM {quoted(TARGET)} AS {alias} {join} {self._from_source()} ON ({self._condition})) "
            f"WHERE {_ACTION} IS NOT NULL"
        )

    def _inserts(self) -> str | None:
        """The query for clauses that insert, or refuse, rows of the source that meet none of the table."""
        clauses = self._clauses("not matched")
        if not clauses:
            return None
        values_of = {at: self._inserted_values(when) for at, when in clauses if when.action == "insert"}
        action = _first_that_holds(clauses)
        taken = _named(clauses, action)
        selected = [self._chosen(column, values_of, taken, "NULL") for column in self.table.columns]
        return (
            f"{self._with}SELECT * FROM (SELECT {action} AS {_ACTION}, {', '.join(selected)} "
            f"FROM {self._from_source()} ANTI JOIN {quoted(TARGET)} AS {quoted(self.alias)} "
            f"ON ({self._condition})) WHERE {_ACTION} IS NOT NULL"
        )

    def _chosen(
        self, column: Column, values_of: dict[int, dict[str, str]], taken: str, otherwise: str
    ) -> str:
        """The value of a column by the clause that a row takes."""
        cases = [
            f"WHEN {at} THEN {computed(values[column.name], column.data_type)}"
            for at, values in values_of.items()
            if column.name in values
        ]
        kept = computed(otherwise, column.data_type)
        if not cases:
            return assigned(column, otherwise)
        return f"CASE {taken} {' '.join(cases)} ELSE {kept} END AS {quoted(column.name)}"

    def _new_values(self, when: st.When, *, with_source: bool) -> dict[str, str]:
        if when.assignments:
            return assigned_values(when.assignments, self.table.columns, self.alias)
        if not with_source:
            raise InvalidSql("WHEN NOT MATCHED BY SOURCE has no row to take all columns from: UPDATE SET …")
        return self._from_columns(when)

    def _from_columns(self, when: st.When) -> dict[str, str]:
        """All columns from the source: by position, or by name."""
        columns, source = self.table.columns, quoted(self.source_alias)
        if not when.by_name:
            if len(self.source_columns) != len(columns):
                raise InvalidSql(
                    f"the source has {len(self.source_columns)} columns and the table {len(columns)}: "
                    "use BY NAME"
                )
            pairs = zip(columns, self.source_columns, strict=True)
            return {column.name: f"{source}.{quoted(name)}" for column, name in pairs}
        return {_column(columns, name).name: f"{source}.{quoted(name)}" for name in self.source_columns}

    def _inserted_values(self, when: st.When) -> dict[str, str]:
        columns = self.table.columns
        values = {column.name: default_sql(column) for column in columns}
        if when.default_values:
            return values
        if not when.values:
            found = self._from_columns(when)
            if when.columns:
                wanted = {_column(columns, name).name for name in when.columns}
                found = {name: value for name, value in found.items() if name in wanted}
            return values | found
        chosen = [_column(columns, name) for name in when.columns] if when.columns else list(columns)
        if len(chosen) != len(when.values):
            raise InvalidSql(f"INSERT names {len(chosen)} columns and gives {len(when.values)} values")
        given = zip(chosen, when.values, strict=True)
        return values | {
            column.name: default_sql(column) if value is None else f"({value.text})"
            for column, value in given
        }

    # ---- What is done ---

    def _checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """New rows without the number of their clause; refused if a clause says so."""
        for batch in batches:
            chosen = self._of_action(batch, "insert")
            if chosen.num_rows:
                without = chosen.select(chosen.schema.names[1:])
                self._keep("INSERT", without)
                yield without

    def _of_action(self, batch: pa.RecordBatch, action: str) -> pa.RecordBatch:
        """The rows of a batch whose clause does this."""
        clauses = self.statement.clauses
        numbers = batch.column(0)
        for at, when in enumerate(clauses):
            if when.action == "error" and pc.any(pc.equal(numbers, at)).as_py():
                raise InvalidData(self._message(when))
        wanted = pa.array([at for at, when in enumerate(clauses) if when.action == action], numbers.type)
        return batch.filter(pc.is_in(numbers, value_set=wanted))

    def _split(self, batches: Iterator[pa.RecordBatch], gone: Places) -> Iterator[pa.RecordBatch]:
        """The rows that get new values; those that are deleted are noted."""
        for batch in batches:
            deleted = self._of_action(batch, "delete")
            if deleted.num_rows:
                gone.add(deleted)
                self._keep("DELETE", deleted.select(deleted.schema.names[1:]))
            updated = self._of_action(batch, "update")
            if updated.num_rows:
                without = updated.select(updated.schema.names[1:])
                self._keep("UPDATE", without)
                yield without

    def _keep(self, word: str, batch: pa.RecordBatch) -> None:
        if self.statement.returning is not None:
            self.returned.append((word, batch.select(range(len(self.table.columns)))))

    def _message(self, when: st.When) -> str:
        told = "a row meets a clause of MERGE that ends it with an error"
        if when.message is None:
            return told
        return str(value_of(when.message, self.running))

    def _shown(self, returning: st.Fragment, count: int) -> SqlResult:
        names = [column.name for column in self.table.columns]
        tables = [
            pa.Table.from_batches([batch])
            .rename_columns(names)
            .append_column(MERGE_ACTION, pa.array([word] * batch.num_rows, pa.string()))
            for word, batch in self.returned
        ]
        if tables:
            rows = pa.concat_tables(tables, promote_options="permissive")
        else:
            rows = pa.table({name: pa.array([], pa.null()) for name in [*names, MERGE_ACTION]})
        return returned(
            returning, self.binder, self.running, self.alias, rows, count, frozenset({MERGE_ACTION})
        )


def _named(clauses: Sequence[tuple[int, st.When]], action: str) -> str:
    """What other expressions call the number of the clause that a row takes."""
    conditions = (when.condition.text for _, when in clauses if when.condition is not None)
    # DuckDB refuses to use a name of what has a sub-query in it.
    return f"({action})" if any(map(_MAY_BE_QUERY.search, conditions)) else _ACTION


def _first_that_holds(clauses: Sequence[tuple[int, st.When]]) -> str:
    """The number of the clause that a row takes; NULL if it takes none, or one that does nothing."""
    cases: list[str] = []
    for at, when in clauses:
        number = "NULL" if when.action == "nothing" else str(at)
        condition = "true" if when.condition is None else f"({when.condition.text})"
        cases.append(f"WHEN {condition} THEN {number}")
    return f"CASE {' '.join(cases)} ELSE NULL END"


def _column(columns: Columns, name: str) -> Column:
    try:
        return find(columns, [name])
    except ColumnNotFound as error:
        raise ColumnNotFound(f"MERGE: {error}") from None
