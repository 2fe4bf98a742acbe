"""The reference of SQL, made from the parser: `python -m scripts.sql_reference > docs/sql-reference.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from forklake.sql.functions.function import SqlFunction
from forklake.sql.functions.registry import FUNCTIONS
from forklake.sql.parser.refused import CREATED, DROPPED, STATEMENTS
from forklake.sql.parser.synopsis import SYNOPSES

_HEAD = """\
# SQL reference

Made by `python -m scripts.sql_reference > docs/sql-reference.md`; a test fails when it is stale, and makes
statements of what is below to have them parsed. [SQL](sql.md) explains, [a tutorial](sql-tutorial.md) shows.

Words in capitals are written as they are, in any case; other words stand for something. `[ ]` may be left
out, `{ | }` is a choice, `[, …]` more of the word or the brackets before it. Names have up to three parts,
`catalog.schema.table`, and double quotes where they are no plain words. Queries and expressions are DuckDB's:
whatever it reads, such as window functions, `EXCLUDE`, lambdas and `ASOF JOIN`, is run as it was written.
Parameters are `?`, `$1` and `$name`.

## Statements
"""
_FUNCTIONS = """\
## Functions

Each is called by `CALL name(…)`, or read by `FROM name(…)`. `ducklake_name('catalog', …)` does the same, with
the catalog before the arguments. Arguments in `[ ]` may be left out; those after `=>` are given by name.
"""
_REFUSED = """\
## Refused

Statements of DuckDB and PostgreSQL that mean something else here, or reach outside of the lake:

| statement | instead |
|---|---|"""


def reference() -> str:
    """The whole page."""
    parts = [_HEAD, *_statements(), _FUNCTIONS]
    parts += [part for name in sorted(FUNCTIONS) for part in _function(FUNCTIONS[name])]
    parts += [_REFUSED, *_refused(STATEMENTS, CREATED, DROPPED)]
    return "\n".join(parts)


def _statements() -> Iterator[str]:
    for name, synopsis in SYNOPSES.items():
        yield f"### {name}\n"
        yield f"```text\n{synopsis}\n```\n"


def _function(function: SqlFunction) -> Iterator[str]:
    yield f"### `{function.name}`\n"
    yield f"{function.summary}\n"
    signatures = "\n".join(function.signatures())
    yield f"```text\n{signatures}\n```\n"
    if function.columns is not None:
        listed = ", ".join(f"`{name}` {kind}" for name, kind in function.columns.items())
        yield f"Returns {listed}.\n"


def _refused(*tables: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    for table in tables:
        for statement, instead in dict(table.values()).items():
            yield f"| `{statement}` | {instead.replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    sys.stdout.write(reference() + "\n")
