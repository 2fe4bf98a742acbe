"""Every statement is run, with exactly its parameters, and none stands in the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from forklake.store.statements import statements
from tests.unit.statements.named import CLEANING, POSTGRESQL_ONLY, READS, SOURCE, WRITES, parameters

EVERY = READS | WRITES | CLEANING
METHODS = {"rows", "ask", "execute", "_rows", "_run", "_rows_once"}
# What the helper of a module adds to what its callers give.
GIVEN = {"store/catalog_state.py": {"catalog", "at"}, "store/files.py": {"catalog", "table", "at"}}


Call = tuple[str, str, str, set[str] | None]
"""A place that runs a named statement: where, how, which, with what (None: cannot be seen)."""


@cache
def calls() -> list[Call]:
    """Every place in the source that runs a named statement."""
    return list(_calls())


def _calls() -> Iterator[Call]:
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{place}:{getattr(node, 'lineno', 0)}"
            match node:
                case ast.Call(func=ast.Attribute(attr="_of"), args=[ast.Constant(value=str() as name), _]):
                    # FileReader._of reads what is about all files of a table, or about some that it names.
                    yield where, "_rows", name, set()
                    yield where, "_rows", f"{name}_of", {"files"}
                case ast.For(target=ast.Name(id=variable), iter=ast.Tuple(elts=names), body=body):
                    yield from (
                        (where, call.func.attr, name.value, {str(keyword.arg) for keyword in call.keywords})
                        for statement in body
                        for call in ast.walk(statement)
                        if isinstance(call, ast.Call)
                        and isinstance(call.func, ast.Attribute)
                        and call.func.attr in METHODS
                        and isinstance(call.args[0], ast.Name)
                        and call.args[0].id == variable
                        for name in names
                        if isinstance(name, ast.Constant)
                    )
                case ast.Call(
                    func=ast.Attribute(attr=method), args=[ast.Constant(value=str() as name), *others]
                ) if method in METHODS and re.fullmatch(r"[a-z]\w*", name):
                    keywords = {keyword.arg for keyword in node.keywords}
                    known = None if others or None in keywords else {str(keyword) for keyword in keywords}
                    yield where, method, name, known
                case ast.Subscript(
                    value=ast.Attribute(attr="statements") | ast.Name(id="statements"),
                    slice=ast.Constant(value=str() as name),
                ):
                    yield where, "statements", name, None
                case _:
                    pass


def test_every_statement_that_is_run_exists() -> None:
    unknown = [(where, name) for where, _, name, _ in calls() if name not in EVERY]
    assert unknown == []


def test_every_statement_that_exists_is_run() -> None:
    assert {name for _, _, name, _ in calls()} == EVERY


def test_every_statement_is_given_exactly_its_parameters() -> None:
    checked = 0
    for where, method, name, given in calls():
        if given is not None and name != "metadata_exists":
            known = statements("postgresql" if name in POSTGRESQL_ONLY else "sqlite")
            expected = parameters(known[name])
            added = GIVEN[where.partition(":")[0]] if method == "_rows" else set()
            assert given | added == expected, (where, name)
            checked += 1
    assert checked > 50


def test_no_statement_text_stands_in_the_source() -> None:
    """SQL on the lake's tables lives in the files, or is built from declared names: see test_row_sets.

    What is out of reach is one condition for every entity, and stands where it is built.
    """
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "reach_conditions.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(r"\b(SELECT|INSERT|UPDATE|DELETE)\b.*\b(ducklake|visible)_\w+", node.value, re.DOTALL)
    ]
    assert found == []
