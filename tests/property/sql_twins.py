"""A catalog, and a DuckDB with plain tables that is told the same and says what is right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import duckdb
from hypothesis import note

import forklake
from tests.property.sql_queries import SHAPES, Query

_TABLE = re.compile("⟦(.*?)\\|(.*?)\\|(.*?)⟧")
Rows = list[tuple[Any, ...]]


@dataclass(slots=True)
class Twins:
    """Both sides, and the past: a copy of every table for each snapshot."""

    lake: forklake.Lake
    catalog: forklake.Catalog
    oracle: duckdb.DuckDBPyConnection
    versions: dict[str, int] = field(default_factory=dict[str, int])
    """Names of past states, and the snapshots that they are."""

    @classmethod
    def create(cls, lake: forklake.Lake) -> Twins:
        oracle = duckdb.connect(":memory:", config={"threads": 1})
        oracle.execute("SET TimeZone = 'UTC'")
        return cls(lake, lake.create_catalog(f"c{uuid4().hex}"), oracle)

    def close(self) -> None:
        self.oracle.close()

    def fork(self) -> None:
        """Go on in a fork, which has the past too."""
        self.catalog = self.lake.fork(self.catalog, f"c{uuid4().hex}")

    def define(self, layout: str, rest: Mapping[str, str], inlined: int) -> None:
        """Make the tables, on the side of the lake with a layout."""
        for name, columns in SHAPES.items():
            listed = ", ".join(f"{column} {kind}{rest.get(column, '')}" for column, kind in columns.items())
            self.oracle.execute(f"CREATE TABLE {name} ({listed})")
            self.catalog.sql(f"CREATE TABLE {name} ({listed})")
            self.catalog.table(name).set_option("data_inlining_row_limit", inlined)
            if layout:
                self.catalog.sql(f"ALTER TABLE {name} {layout}")

    def remember(self) -> None:
        """Keep the present state as a version."""
        version = f"v{len(self.versions)}"
        for name in SHAPES:
            self.oracle.execute(f"CREATE TABLE {name}_{version} AS FROM {name}")
        self.versions[version] = self.catalog.snapshot

    def ours(self, text: str) -> str:
        def written(found: re.Match[str]) -> str:
            name, version, alias = found.groups()
            at = f" AT (VERSION => {self.versions[version]})" if version else ""
            return f"{name} AS {alias}{at}"

        return _TABLE.sub(written, text)

    @staticmethod
    def theirs(text: str) -> str:
        def written(found: re.Match[str]) -> str:
            name, version, alias = found.groups()
            return f"{name}_{version} AS {alias}" if version else f"{name} AS {alias}"

        return _TABLE.sub(written, text)

    def expected(self, text: str, params: Mapping[str, int] | None = None) -> tuple[list[str], Rows] | str:
        """What DuckDB answers, or why it refuses."""
        try:
            cursor = self.oracle.execute(self.theirs(text), *((dict(params),) if params else ()))
            names = [column[0] for column in cursor.description or ()]
            return names, cursor.fetchall() if names else []
        except duckdb.Error as error:
            return str(error)

    def answered(self, text: str, params: Mapping[str, int] | None = None) -> tuple[list[str], Rows] | str:
        """What the catalog answers, or why it refuses."""
        try:
            found = self.catalog.sql(self.ours(text), dict(params) if params else None)
            return list(found.columns), found.to_rows()
        except forklake.ForklakeError as error:
            return f"{type(error).__name__}: {error}"

    def same(self, query: Query) -> None:
        """Both answer alike."""
        expected = self.expected(query.sql, query.params)
        answered = self.answered(query.sql, query.params)
        _compare(self.ours(query.sql), query.params, expected, answered, is_ordered=query.is_ordered)

    def do(self, text: str) -> bool:
        """Run a statement on both; they answer alike. Returns whether it was run."""
        note(f"{self.ours(text)};")
        expected, answered = self.expected(text), self.answered(text)
        _compare(text, None, expected, answered, is_ordered=False)
        return not isinstance(expected, str)

    def check(self) -> None:
        """The tables are alike."""
        for name in SHAPES:
            self.same(Query(f"FROM ⟦{name}||{name}⟧", {}, False))

    def check_past(self) -> None:
        """So are all of their past states."""
        for version in self.versions:
            for name in SHAPES:
                self.same(Query(f"FROM ⟦{name}|{version}|a⟧", {}, False))


def _compare(
    text: str,
    params: Mapping[str, int] | None,
    expected: tuple[list[str], Rows] | str,
    answered: tuple[list[str], Rows] | str,
    *,
    is_ordered: bool,
) -> None:
    shown = f"{text}\n{params or ''}"
    if isinstance(expected, str) or isinstance(answered, str):
        assert isinstance(expected, str) and isinstance(answered, str), (
            f"{shown}\nDuckDB: {expected}\nforklake: {answered}"
        )
        return
    if not expected[0] or not answered[0]:
        # Statements without rows: DuckDB has a column for some of them.
        assert not expected[1] and not answered[1], f"{shown}\n{expected}\n{answered}"
        return
    assert answered[0] == expected[0], shown
    ours, theirs = answered[1], expected[1]
    if not is_ordered:
        ours, theirs = sorted(ours, key=repr), sorted(theirs, key=repr)
    assert ours == theirs, f"{shown}\nforklake: {ours}\nDuckDB:   {theirs}"
