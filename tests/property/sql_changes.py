"""Random statements that change rows, alone and in transactions."""

from __future__ import annotations

from dataclasses import dataclass

from tests.property.sql_expressions import DEC, INT, STR, Expressions, Scope, Source
from tests.property.sql_queries import SHAPES, Queries

DEFAULTS = {"k": " DEFAULT 7", "name": " DEFAULT 'new'", "price": " NOT NULL DEFAULT 1.5"}
"""What follows the type of a column."""


@dataclass(slots=True)
class Changes:
    """Draws statements on the tables."""

    queries: Queries

    @property
    def words(self) -> Expressions:
        return self.queries.words

    def statement(self) -> str:
        """One statement."""
        table = self.words.one(*SHAPES)
        often = (self.insert, self.update, self.merge)
        return self.words.one(*often, *often, self.insert_query, self.delete, self.truncate)(table)

    def insert(self, table: str) -> str:
        """INSERT of rows that are written out."""
        words, columns = self.words, SHAPES[table]
        names = list(columns)
        if words.chance(40):
            names = words.shuffled(names)
        rows = ", ".join(
            f"({', '.join(self._given(columns[name]) for name in names)})" for _ in words.several(4)
        )
        return f"INSERT INTO {table} ({', '.join(names)}) VALUES {rows}{self._returning()}"

    def _given(self, kind: str) -> str:
        return "DEFAULT" if self.words.chance(10) else self.words.literal(kind)

    def insert_query(self, table: str) -> str:
        """INSERT of a query, by position or by name."""
        words, columns = self.words, SHAPES[table]
        if words.chance(10):
            return f"INSERT INTO {table} DEFAULT VALUES"
        from_, scope = self.queries.from_(0)
        by_name = words.chance(40)
        names = list(columns)
        if by_name:
            names = words.shuffled(names)
        listed = ", ".join(f"{words.value(scope, columns[name], 1)} AS {name}" for name in names)
        where = f" WHERE {words.predicate(scope, 1)}"
        return (
            f"INSERT INTO {table}{' BY NAME' if by_name else ''} SELECT {listed} FROM {from_}{where}"
            f"{self._returning()}"
        )

    def _returning(self) -> str:
        return " RETURNING *" if self.words.chance(20) else ""

    def _unique(self, alias: str) -> tuple[str, Source]:
        """A source with one row for each `k`, so that what meets what is never a matter of order."""
        from_, scope = self.queries.from_(0)
        if not any("k" in one.columns for one in scope):
            return self._unique(alias)
        words = self.words
        columns = {"k": INT, "id": INT, "name": STR, "price": DEC}
        values = [f"max({words.value(scope, kind, 1)}) AS {name}" for name, kind in list(columns.items())[1:]]
        key = words.one(*(f"{one.alias}.k" for one in scope if "k" in one.columns))
        return f"(SELECT {key} AS k, {', '.join(values)} FROM {from_} GROUP BY {key}) AS {alias}", Source(
            alias, columns
        )

    def _assigned(self, table: str, scope: Scope) -> str:
        words, columns = self.words, SHAPES[table]
        names = words.shuffled(columns)[:2]
        return ", ".join(
            f"{name} = {'DEFAULT' if words.chance(8) else words.value(scope, columns[name], 1)}"
            for name in names
        )

    def update(self, table: str) -> str:
        """UPDATE, also FROM other rows."""
        words, target = self.words, Source(table, SHAPES[table])
        if words.chance(50):
            set_ = self._assigned(table, (target,))
            return f"UPDATE {table} SET {set_} WHERE {words.predicate((target,))}{self._returning()}"
        source, other = self._unique("s")
        both = (target, other)
        set_ = self._assigned(table, both)
        more = f" AND {words.predicate(both, 1)}" if words.chance(50) else ""
        return f"UPDATE {table} SET {set_} FROM {source} WHERE {table}.k = s.k{more}{self._returning()}"

    def delete(self, table: str) -> str:
        """DELETE, also USING other rows."""
        words, target = self.words, Source(table, SHAPES[table])
        if words.chance(50):
            return f"DELETE FROM {table} WHERE {words.predicate((target,))}{self._returning()}"
        source, other = self.queries.table()
        on = f"{table}.k = {other.alias}.k AND {words.predicate((target, other), 1)}"
        return f"DELETE FROM {table} USING {source} WHERE {on}"

    def truncate(self, table: str) -> str:
        """TRUNCATE, now and then."""
        return f"TRUNCATE {table}" if self.words.chance(30) else f"DELETE FROM {table} WHERE k = 1"

    def merge(self, table: str) -> str:
        """MERGE INTO with any clauses."""
        words, columns = self.words, SHAPES[table]
        source, other = self._unique("s")
        target = Source("t", columns)
        both = (target, other)
        clauses = [self._clause(table, target, other, both) for _ in words.several(4)]
        on = words.one("ON t.k = s.k", "USING (k)", f"ON (t.k = s.k AND {words.predicate((other,), 1)})")
        # DuckDB shows bytes of anything for rows that NOT MATCHED BY SOURCE updates.
        is_shown = words.chance(20) and not any("BY SOURCE" in one for one in clauses)
        returning = f" RETURNING {words.one('merge_action, *', '*')}" if is_shown else ""
        return f"MERGE INTO {table} AS t USING {source} {on} {' '.join(clauses)}{returning}"

    def _clause(self, table: str, target: Source, other: Source, both: Scope) -> str:
        words, columns = self.words, SHAPES[table]
        kind = words.one("MATCHED", "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE")
        scope = {"MATCHED": both, "NOT MATCHED": (other,), "NOT MATCHED BY SOURCE": (target,)}[kind]
        condition = f" AND {words.predicate(scope, 1)}" if words.chance(60) else ""
        if kind == "NOT MATCHED":
            names = words.shuffled(columns)
            values = ", ".join(words.value(scope, columns[name], 1) for name in names)
            action = words.one(
                f"INSERT ({', '.join(names)}) VALUES ({values})", "INSERT BY NAME", "DO NOTHING"
            )
            if action == "INSERT BY NAME" and not set(other.columns) <= set(columns):
                action = "INSERT DEFAULT VALUES"
        else:
            action = words.one(f"UPDATE SET {self._assigned(table, scope)}", "DELETE", "DO NOTHING")
        return f"WHEN {kind}{condition} THEN {action}"
