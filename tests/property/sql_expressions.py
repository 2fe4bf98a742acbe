"""Random expressions of SQL over columns that are in scope: typed, and none that could fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

_Choice = TypeVar("_Choice")

INT, STR, DEC, DATE, BOOL, LIST, STRUCT = (
    "INTEGER",
    "VARCHAR",
    "DECIMAL(8,2)",
    "DATE",
    "BOOLEAN",
    "INTEGER[]",
    "STRUCT(city VARCHAR, zip INTEGER)",
)
VALUES: Mapping[str, Sequence[str]] = {
    INT: ("-3", "0", "1", "2", "3", "5", "12"),
    STR: ("''", "'a'", "'b'", "'ab'", "'Ä'", "'it''s'", "'a%'"),
    DEC: ("0.00", "1.25", "-3.50", "99.99"),
    DATE: ("DATE '2024-01-01'", "DATE '2024-01-02'", "DATE '2024-02-29'", "DATE '2023-12-31'"),
    BOOL: ("true", "false"),
    LIST: ("[]::INTEGER[]", "[1]", "[2, NULL, 1]"),
    STRUCT: ("{'city': 'a', 'zip': 1}", "{'city': NULL, 'zip': 3}"),
}
"""Few, so that rows meet."""
PLAIN = (INT, STR, DEC, DATE, BOOL)
COMPARED = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


@dataclass(frozen=True, slots=True)
class Source:
    """What FROM has: an alias and its columns with their types."""

    alias: str
    columns: Mapping[str, str]


Scope = tuple[Source, ...]


def columns_of(scope: Scope, kind: str) -> list[str]:
    """The columns of a type, with their aliases."""
    return [
        f"{source.alias}.{name}" for source in scope for name, type in source.columns.items() if type == kind
    ]


@dataclass(slots=True)
class Expressions:
    """Draws expressions; the values of parameters are kept."""

    random: Random
    params: dict[str, int] = field(default_factory=dict[str, int])
    may_have_params: bool = True

    def one(self, *choices: _Choice) -> _Choice:
        return self.random.choice(choices)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def several(self, most: int, least: int = 1) -> range:
        return range(self.random.randint(least, most))

    def shuffled(self, names: Iterable[str], least: int = 1) -> list[str]:
        """Some of them, in any order."""
        found = list(names)
        return self.random.sample(found, self.random.randint(least, len(found)))

    def literal(self, kind: str) -> str:
        if self.chance(8):
            return f"CAST(NULL AS {kind})"
        if kind == INT and self.may_have_params and self.chance(15):
            name = f"p{len(self.params)}"
            self.params[name] = int(self.one(*VALUES[INT]))
            return f"${name}"
        return self.one(*VALUES[kind])

    def value(self, scope: Scope, kind: str, depth: int = 2) -> str:
        """An expression of a type: most often a column."""
        found = columns_of(scope, kind)
        if found and self.chance(60):
            return self.one(*found)
        if depth and self.chance(60):
            return self._composed(scope, kind, depth - 1)
        return self.literal(kind)

    def _composed(self, scope: Scope, kind: str, depth: int) -> str:
        def sub(of: str = kind) -> str:
            return self.value(scope, of, depth)

        ways: list[Callable[[], str]] = [
            lambda: f"coalesce({sub()}, {sub()})",
            lambda: f"CASE WHEN {self.predicate(scope, depth)} THEN {sub()} ELSE {sub()} END",
        ]
        if kind != BOOL:
            ways.append(lambda: f"nullif({sub()}, {sub()})")
        ways += {
            INT: [
                lambda: f"({sub()} {self.one('+', '-')} {sub()})",
                lambda: f"({sub()} * {self.one('2', '-1', '3')})",
                lambda: f"({sub()} % {self.one('2', '3')})",
                lambda: f"abs({sub()})",
                lambda: f"length({sub(STR)})::INTEGER",
                lambda: f"year({sub(DATE)})::INTEGER",
                lambda: f"len({sub(LIST)})::INTEGER",
                lambda: f"{self._struct(scope)}.zip",
                lambda: f"list_sum(list_transform({sub(LIST)}, lambda x: x + 1))::INTEGER",
                lambda: f"{sub(BOOL)}::INTEGER",
            ],
            STR: [
                lambda: f"({sub()} || {sub()})",
                lambda: f"{self.one('upper', 'reverse', 'trim')}({sub()})",
                lambda: f"substr({sub()}, 1, {self.one('1', '2')})",
                lambda: f"{self._struct(scope)}.city",
                lambda: f"{sub(self.one(INT, DATE, BOOL, DEC))}::VARCHAR",
            ],
            DEC: [lambda: f"({sub()} + {sub()})::{DEC}", lambda: f"({sub()} * 2)::{DEC}"],
            DATE: [lambda: f"({sub()} + {self.one('1', '31')})::DATE"],
            BOOL: [lambda: self.predicate(scope, depth)],
            LIST: [lambda: f"list_concat({sub()}, {sub()})", lambda: f"[{sub(INT)}, {sub(INT)}]"],
            STRUCT: [lambda: f"{{'city': {sub(STR)}, 'zip': {sub(INT)}}}"],
        }[kind]
        return self.one(*ways)()

    def _struct(self, scope: Scope) -> str:
        found = columns_of(scope, STRUCT)
        return self.one(*found) if found else f"({self.one(*VALUES[STRUCT])})"

    def predicate(self, scope: Scope, depth: int = 2) -> str:
        """A condition that may be NULL."""
        if depth and self.chance(35):
            one, two = self.predicate(scope, depth - 1), self.predicate(scope, depth - 1)
            return self.one(f"({one} AND {two})", f"({one} OR {two})", f"(NOT {one})", f"({one} AND {two})")
        kind = self.one(*PLAIN)
        value = self.value(scope, kind, max(depth - 1, 0))
        ways = [
            lambda: f"({value} {self.one(*COMPARED)} {self.value(scope, kind, max(depth - 1, 0))})",
            lambda: f"({value} {self.one(*COMPARED)} {self.literal(kind)})",
            lambda: f"({value} IS {self.one('', 'NOT ')}NULL)",
            lambda: f"({value} BETWEEN {self.literal(kind)} AND {self.literal(kind)})",
            lambda: f"({value} {self.one('', 'NOT ')}IN ({', '.join(self.literal(kind) for _ in 'abc')}))",
        ]
        if kind == STR:
            ways.append(lambda: f"({value} LIKE {self.one(repr('a%'), repr('%b'), repr('_'))})")
        if kind == BOOL:
            ways.append(lambda: f"({value} IS {self.one('', 'NOT ')}{self.one('TRUE', 'FALSE')})")
        if columns_of(scope, LIST):
            ways.append(lambda: f"list_contains({self.one(*columns_of(scope, LIST))}, {self.literal(INT)})")
        return self.one(*ways)()

    def aggregate(self, scope: Scope) -> tuple[str, str]:
        """An aggregate whose result does not depend on the order of rows, with its type."""
        kind = self.one(*PLAIN)
        value = self.value(scope, kind, 1)
        where = f" FILTER (WHERE {self.predicate(scope, 1)})" if self.chance(20) else ""
        number = self.value(scope, INT, 1)
        return self.one(
            (f"count(*){where}", "BIGINT"),
            (f"count({value}){where}", "BIGINT"),
            (f"count(DISTINCT {value}){where}", "BIGINT"),
            (f"sum({number}){where}::INTEGER", INT),
            (f"min({value}){where}", kind),
            (f"max({value}){where}", kind),
            (f"avg({number}){where}", "DOUBLE"),
            (f"bool_or({self.predicate(scope, 1)}){where}", BOOL),
            (f"list(DISTINCT {number} ORDER BY {number}){where}", LIST),
            (f"arg_min({number}, {number}){where}", INT),
        )

    def window(self, scope: Scope) -> tuple[str, str]:
        """A window function whose result does not depend on how ties are broken."""
        order = ", ".join(
            f"{self.value(scope, self.one(*PLAIN), 1)}{self.one('', ' DESC', ' NULLS FIRST')}"
            for _ in self.several(2)
        )
        parts = f"PARTITION BY {self.value(scope, self.one(*PLAIN), 1)} " if self.chance(60) else ""
        number = self.value(scope, INT, 1)
        over = f"OVER ({parts}ORDER BY {order})"
        return self.one(
            (f"rank() {over}", "BIGINT"),
            (f"dense_rank() {over}", "BIGINT"),
            (f"count(*) {over}", "BIGINT"),
            (f"(sum({number}) {over})::INTEGER", INT),
            (f"max({number}) {over}", INT),
            (f"min({number}) OVER ({parts.strip()})", INT),
            (f"cume_dist() {over}", "DOUBLE"),
        )
