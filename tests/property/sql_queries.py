"""Random queries: joins, sub-queries, aggregates, windows, set operations and the past of tables.

A table of the lake stands in a query as `⟦name|version|alias⟧`, so that each side can write it in its way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.property.sql_expressions import (
    BOOL,
    DATE,
    DEC,
    INT,
    LIST,
    PLAIN,
    STR,
    STRUCT,
    Expressions,
    Scope,
    Source,
)

SHAPES: Mapping[str, Mapping[str, str]] = {
    "t0": {"id": INT, "k": INT, "name": STR, "price": DEC, "day": DATE},
    "t1": {"id": INT, "k": INT, "flag": BOOL, "tags": LIST, "home": STRUCT},
    "t2": {"k": INT, "name": STR},
}
"""The tables, and what their columns hold."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query with its parameters, and whether its rows have an order."""

    sql: str
    params: Mapping[str, int]
    is_ordered: bool


Made = tuple[str, Mapping[str, str]]
"""A query with the names and types of its columns."""


@dataclass(slots=True)
class Queries:
    """Draws queries."""

    words: Expressions
    versions: Sequence[str] = ()
    """Past states of tables that can be named."""
    views: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    made: int = 0
    ctes: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def _name(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    # ---- FROM ---

    def table(self) -> tuple[str, Source]:
        """A table, now or as it was."""
        name, alias = self.words.one(*SHAPES), self._name("a")
        version = self.words.one(*self.versions) if self.versions and self.words.chance(25) else ""
        return f"⟦{name}|{version}|{alias}⟧", Source(alias, SHAPES[name])

    def relation(self, depth: int) -> tuple[str, Source]:
        """A table, a view, a common table expression or a sub-query."""
        known = {**self.views, **self.ctes}
        if known and self.words.chance(25):
            name, alias = self.words.one(*known), self._name("a")
            return f"{name} AS {alias}", Source(alias, known[name])
        if depth and self.words.chance(20):
            (sql, columns), alias = self.query(depth - 1), self._name("s")
            return f"({sql}) AS {alias}", Source(alias, columns)
        return self.table()

    def from_(self, depth: int) -> tuple[str, Scope]:
        """Relations, joined."""
        words = self.words
        text, first = self.relation(depth)
        scope: Scope = (first,)
        for _ in words.several(2, 0):
            other, source = self.relation(depth)
            both = (*scope, source)
            shared = [
                name
                for name, kind in first.columns.items()
                if source.columns.get(name) == kind and kind in (INT, STR)
            ]
            keys = [
                f"{one.alias}.{left} = {source.alias}.{right}"
                for one in scope
                for left, kind in one.columns.items()
                for right, other_kind in source.columns.items()
                if kind == other_kind and kind in PLAIN
            ]
            if len(scope) == 1 and shared and words.chance(15):
                # Qualified names of both sides stay what they are.
                text += f" {words.one('JOIN', 'LEFT JOIN')} {other} USING ({words.one(*shared)})"
                scope = both
                continue
            if not keys or words.chance(10):
                text, scope = f"{text} CROSS JOIN {other}", both
                continue
            join = words.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "JOIN")
            on = words.one(*keys)
            if words.chance(30):
                on += f" AND {words.predicate(both, 1)}"
            text = f"{text} {join} {other} ON {on}"
            scope = scope if join in ("SEMI JOIN", "ANTI JOIN") else both
        return text, scope

    # ---- WHERE ---

    def where(self, scope: Scope, depth: int) -> str:
        """A condition, with sub-queries too."""
        words = self.words
        if not depth or words.chance(65):
            return words.predicate(scope)
        inner, source = self.table()
        kind = words.one(INT, STR)
        outside, inside = words.value(scope, kind, 0), words.value((source,), kind, 0)
        own = words.predicate((source,), 1)
        return words.one(
            f"{outside} {words.one('', 'NOT ')}IN (SELECT {inside} FROM {inner} WHERE {own})",
            f"{words.one('', 'NOT ')}EXISTS (SELECT 1 FROM {inner} WHERE {inside} = {outside} AND {own})",
            f"{outside} {words.one('=', '<', '>=')} (SELECT max({inside}) FROM {inner} WHERE {own})",
            f"{outside} <> ALL (SELECT {inside} FROM {inner} WHERE {own})",
            f"(SELECT count(*) FROM {inner} WHERE {inside} = {outside}) > {words.one('0', '1')}",
        )

    # ---- SELECT ---

    def select(self, depth: int, kinds: Sequence[str] | None = None) -> Made:
        """A SELECT; its columns have the given types, if they are given."""
        words = self.words
        from_, scope = self.from_(depth)
        where = f" WHERE {self.where(scope, depth)}" if words.chance(60) else ""
        if kinds is None and words.chance(35):
            return self._grouped(from_, scope, where)
        wanted = kinds or [words.one(*PLAIN) for _ in words.several(3)]
        items = [(words.value(scope, kind), kind) for kind in wanted]
        if kinds is None and words.chance(25):
            items.append(words.window(scope))
        if kinds is None and words.chance(15):
            inner, source = self.table()
            key = f"{words.value((source,), INT, 0)} = {words.value(scope, INT, 0)}"
            items.append((f"(SELECT max({source.alias}.k) FROM {inner} WHERE {key})", INT))
        names = [self._name("c") for _ in items]
        listed = ", ".join(f"{value} AS {name}" for (value, _), name in zip(items, names, strict=True))
        distinct = words.one("", "", "", "DISTINCT ")
        kinds_of = dict(zip(names, (kind for _, kind in items), strict=True))
        return f"SELECT {distinct}{listed} FROM {from_}{where}", kinds_of

    def _grouped(self, from_: str, scope: Scope, where: str) -> Made:
        words = self.words
        keys = [words.one(*PLAIN) for _ in words.several(2, 0)]
        groups = [(words.value(scope, kind, 1), kind) for kind in keys]
        # A literal after GROUP BY would be the place of a column.
        groups = [(value, kind) for value, kind in groups if "." in value]
        aggregates = [words.aggregate(scope) for _ in words.several(2)]
        items = [*groups, *aggregates]
        names = [self._name("g") for _ in items]
        listed = ", ".join(f"{value} AS {name}" for (value, _), name in zip(items, names, strict=True))
        sql = f"SELECT {listed} FROM {from_}{where}"
        if groups:
            expressions = ", ".join(value for value, _ in groups)
            sql += words.one(" GROUP BY ALL", f" GROUP BY {expressions}", f" GROUP BY ROLLUP ({expressions})")
        if words.chance(30):
            sql += f" HAVING {words.one('count(*) > 1', f'max({words.value(scope, INT, 0)}) >= 2')}"
        return sql, dict(zip(names, (kind for _, kind in items), strict=True))

    def query(self, depth: int = 2) -> Made:
        """A SELECT, or several that are combined."""
        words = self.words
        if depth and words.chance(20):
            kinds = [words.one(*PLAIN) for _ in words.several(2)]
            left, columns = self.select(depth - 1, kinds)
            right, _ = self.select(depth - 1, kinds)
            how = words.one("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
            return f"({left}) {how} ({right})", columns
        return self.select(depth)

    def statement(self) -> Query:
        """A whole query: common table expressions, a query, and perhaps an order."""
        words = self.words
        with_: list[str] = []
        for _ in words.several(2, 0):
            (sql, columns), name = self.query(1), self._name("w")
            with_.append(f"{name} AS {words.one('', 'MATERIALIZED ')}({sql})")
            self.ctes[name] = columns
        sql, columns = self.query()
        if words.chance(15):
            from_, _ = self.relation(1)
            sql, columns = f"FROM {from_}", {}
        is_ordered = bool(columns) and words.chance(40)
        if is_ordered:
            sql = f"SELECT * FROM ({sql}) AS q ORDER BY ALL{words.one('', ' DESC', ' NULLS FIRST')}"
            sql += words.one("", " LIMIT 3", " LIMIT 2 OFFSET 1")
        self.ctes = {}
        text = f"WITH {', '.join(with_)} {sql}" if with_ else sql
        named = set(re.findall(r"\$(p\d+)", text))
        used = {name: value for name, value in words.params.items() if name in named}
        return Query(text, used, is_ordered)
