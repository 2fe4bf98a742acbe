"""Definitions of columns: they stay text, but what no table of a lake has is refused where it stands."""

from __future__ import annotations

from forklake.sql.parser.reader import Reader
from forklake.sql.statements import Fragment

_CONSTRAINTS = {
    "PRIMARY": ("PRIMARY KEY", "rows have no enforced key; MERGE INTO … USING (id) keeps one row of each"),
    "UNIQUE": ("UNIQUE", "rows have no enforced key; MERGE INTO … USING (id) keeps one row of each"),
    "CHECK": ("CHECK", "say NOT NULL, or put the condition into the query that inserts"),
    "FOREIGN": ("FOREIGN KEY", "references between tables are not checked: leave it out"),
    "REFERENCES": ("REFERENCES", "references between tables are not checked: leave it out"),
    "CONSTRAINT": ("CONSTRAINT", "a column can be NOT NULL and have a DEFAULT: leave it out"),
    "GENERATED": ("GENERATED", "a view computes columns: CREATE VIEW v AS SELECT *, a + b AS c FROM t"),
    "AS": ("a generated column", "a view computes columns: CREATE VIEW v AS SELECT *, a + b AS c FROM t"),
    "COLLATE": ("COLLATE", "write it where values are compared: ORDER BY name COLLATE nocase"),
    "USING": ("USING COMPRESSION", "files are compressed as a whole: WITH (parquet_compression = 'zstd')"),
    "DEFERRABLE": ("DEFERRABLE", "there are no keys that could be checked later: leave it out"),
    "INITIALLY": ("INITIALLY", "there are no keys that could be checked later: leave it out"),
}  # fmt: skip
_OF_TABLES = frozenset({"PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"})


def refuse_constraint(reader: Reader) -> None:
    """Refuse a constraint of a table where a column could be defined."""
    if reader.word in _OF_TABLES:
        raise reader.refuse(*_CONSTRAINTS[reader.word])


def definition(reader: Reader, what: str = "a type") -> Fragment:
    """What follows the name of a column: its type, NOT NULL, DEFAULT and COMMENT."""
    _refuse(reader)
    if reader.kind not in ("word", "quoted") or reader.word in ("NOT", "NULL", "DEFAULT"):
        raise reader.expected(what)
    part = reader.until(*_CONSTRAINTS, comma=True, what=what)
    _refuse(reader)
    return part


def _refuse(reader: Reader) -> None:
    if reader.word in _CONSTRAINTS:
        raise reader.refuse(*_CONSTRAINTS[reader.word])


def definitions(reader: Reader) -> Fragment:
    """Columns in brackets."""
    reader.expect("(")
    start = reader.start
    while True:
        refuse_constraint(reader)
        reader.name("a column name")
        definition(reader)
        end = reader.past
        if not reader.take(",") or reader.word == ")":
            break
    if reader.word != ")":
        raise reader.expected('"," or ")"')
    reader.next()
    return Fragment(reader.text[start:end], start)
