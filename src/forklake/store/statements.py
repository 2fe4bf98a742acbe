"""Named SQL statements, read from the `.sql` files beside this module.

A file holds statements, each introduced by `-- name: something`. `read.sql`, `files.sql`, `indexes.sql`,
`write.sql`, `clean.sql`, `checkpoint.sql` and `verify.sql` serve every backend; `write.embedded.sql` is for
SQLite and DuckDB, `read.postgresql.sql` for PostgreSQL, and so on: what stands in a narrower file counts.

`x IN ids($name)` compares with a set of numbers, `x IN texts($name)` with one of texts, and
`FROM texts($name) AS k(value)` lists texts; all are bound as JSON, as are `FROM spans($name)`, which lists
`k.catalog_id, k.low, k.high`, `FROM copies($name)`, which lists `k.old_id, k.new_id, k.data_file_id`, and
`FROM keys($name)`, which lists `k.catalog_id, k.id`. `forever()` is the number that no snapshot has.
`folded(x)` is what names have in common that differ only in case. DuckDB finds more names alike than the
other databases, which know the letters of ASCII alone, so what was found is compared again.
`NOT masked(f.data_file)` asks whether a catalog has ended a row that it inherited, `out_of_reach(data_file)`
whether nobody can reach a row `e`, `reason_of(e)` why, `unseen(e.catalog_id)` whether nobody has anything of
a catalog, `nothing_left(e.catalog_id)` whether no table has a row of it, and `nothing_to_see(e.catalog_id)`
whether none has one that others might see.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from forklake.model.ids import FOREVER
from forklake.store.built_statements import (
    ADOPTED,
    COPIED,
    RETURNED,
    Dialect,
    adopt_rows,
    copy_rows,
    not_masked,
    return_rows,
)
from forklake.store.entity_rows import STORED
from forklake.store.reach_conditions import (
    PARTS,
    REASON,
    VERSIONED,
    drop_masks,
    drop_parts,
    drop_rows,
    masks_of_nothing,
    nothing_left,
    nothing_to_see,
    out_of_reach,
    unseen,
)

KINDS = ("read", "files", "indexes", "write", "clean", "checkpoint", "verify")
_HEADER = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_BODY = re.compile(r"^-- forklake:body.*?$(.*)^-- forklake:end", re.MULTILINE | re.DOTALL)
_IDS = re.compile(r"\bIN ids\((\$\w+)\)")
_SETS: dict[Dialect, str] = {
    "sqlite": r"IN (SELECT value FROM json_each(\1))",
    "duckdb": r"""IN (SELECT unnest(from_json(\1, '["BIGINT"]')))""",
    # An array is looked up in an index, number by number; a sub-select is joined.
    "postgresql": r"= ANY (ARRAY(SELECT json_array_elements_text(\1::json)::bigint))",
}
_IN_TEXTS = re.compile(r"\bIN texts\((\$\w+)\)")
_TEXT_SETS: dict[Dialect, str] = {
    "sqlite": _SETS["sqlite"],
    "duckdb": r"""IN (SELECT unnest(from_json(\1, '["VARCHAR"]')))""",
    "postgresql": r"= ANY (ARRAY(SELECT json_array_elements_text(\1::json)))",
}
_MASKED = re.compile(r"\bNOT masked\((\w+\.)?(\w+)(?:, (\w+))?\)")
_TEXTS = re.compile(r"\btexts\((\$\w+)\) AS k\(value\)")
_LISTS: dict[Dialect, str] = {
    "sqlite": r"json_each(\1) AS k",
    "duckdb": r"""(SELECT unnest(from_json(\1, '["VARCHAR"]'))) AS k(value)""",
    "postgresql": r"json_array_elements_text(\1::json) AS k(value)",
}
_FOLDED = re.compile(r"\bfolded\(([\w.$]+)\)")
_FOLDS: dict[Dialect, str] = {
    "sqlite": r"\1 COLLATE NOCASE",
    "duckdb": r"lower(\1)",
    # Whatever the collation of the database: an index has to fit queries of other databases and versions.
    "postgresql": r'lower(\1 COLLATE "C")',
}
_OUT_OF_REACH = re.compile(r"\bout_of_reach\((\w+)\)")
_NOTHING_LEFT = re.compile(r"\bnothing_left\(([\w.]+)\)")
_NOTHING_TO_SEE = re.compile(r"\bnothing_to_see\(([\w.]+)\)")
_UNSEEN = re.compile(r"\bunseen\(([\w.]+)\)")
_TUPLES = re.compile(r"\b(spans|copies|keys)\((\$\w+)\)")
_TUPLE_NAMES = {
    "spans": ("catalog_id", "low", "high"),
    "copies": ("old_id", "new_id", "data_file_id"),
    "keys": ("catalog_id", "id"),
}
_TUPLE_VALUES: dict[Dialect, tuple[str, str, int]] = {
    # How one number is taken out, where the tuples come from, and what the first number is called.
    "sqlite": ("json_extract(one, '$[{at}]')", "SELECT value AS one FROM json_each({given})", 0),
    "duckdb": ("one[{at}]::BIGINT", """SELECT unnest(from_json({given}, '[["BIGINT"]]')) AS one""", 1),
    "postgresql": ("(one ->> {at})::bigint", "SELECT one FROM json_array_elements({given}::json) AS one", 0),
}
_FAMILIES: dict[Dialect, tuple[str, ...]] = {
    "sqlite": ("", ".embedded", ".sqlite"),
    "duckdb": ("", ".embedded", ".duckdb"),
    "postgresql": ("", ".postgresql"),
}


@cache
def statements(dialect: Dialect) -> Mapping[str, str]:
    """Every statement as one backend runs it, by name."""
    found: dict[str, str] = {}
    for family in _FAMILIES[dialect]:
        for kind in KINDS:
            source = files("forklake.store").joinpath("sql", f"{kind}{family}.sql")
            if source.is_file():
                found.update(parse(source.read_text(encoding="utf-8")))
    found |= {f"copy_{table}": copy_rows(table) for table in COPIED}
    found |= {f"return_{table}": return_rows(table) for table in RETURNED}
    found |= {f"adopt_{table}": adopt_rows(table) for table in ADOPTED}
    found |= {f"drop_{table}": drop_parts(table) for table in PARTS}
    found |= {f"drop_rows_of_{entity}": drop_rows(entity) for entity in VERSIONED}
    found |= {f"drop_masks_of_{entity}": drop_masks(entity) for entity in STORED}
    found |= {f"masks_of_nothing_{entity}": masks_of_nothing(entity) for entity in STORED}
    return {name: _written_out(text, dialect) for name, text in found.items()}


def _written_out(text: str, dialect: Dialect) -> str:
    for pattern, written in (
        (_IDS, _SETS[dialect]),
        (_IN_TEXTS, _TEXT_SETS[dialect]),
        (_TEXTS, _LISTS[dialect]),
        (_FOLDED, _FOLDS[dialect]),
    ):
        text = pattern.sub(written, text)
    text = _OUT_OF_REACH.sub(lambda match: out_of_reach(match[1]), text.replace("reason_of(e)", REASON))
    text = _NOTHING_LEFT.sub(lambda match: nothing_left(match[1]), text)
    text = _NOTHING_TO_SEE.sub(lambda match: nothing_to_see(match[1]), text)
    text = _UNSEEN.sub(lambda match: unseen(match[1]), text)
    text = text.replace("forever()", str(FOREVER))
    text = _TUPLES.sub(lambda match: _tuples(match[1], match[2], dialect), text)
    return _MASKED.sub(
        lambda match: not_masked(
            match[2], of=match[1] or "", among=match[3], as_array=dialect == "postgresql"
        ),
        text,
    )


def _tuples(kind: str, given: str, dialect: Dialect) -> str:
    """A relation `k` of numbers that are bound as JSON, one array for each row."""
    value, source, first = _TUPLE_VALUES[dialect]
    columns = ", ".join(
        f"{value.format(at=at)} AS {name}" for at, name in enumerate(_TUPLE_NAMES[kind], first)
    )
    return " ".join(("(SELECT", columns, "FROM", f"({source.format(given=given)}) AS given) AS k"))


def parse(text: str) -> dict[str, str]:
    """Split a file into its named statements, without comments."""
    parts = _HEADER.split(text)[1:]
    return {
        name: re.sub(r"^\s*--.*\n", "", body, flags=re.MULTILINE).strip().rstrip(";")
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def schema_script(dialect: Dialect) -> str:
    """What creates an empty lake in the current schema of a database."""
    text = files("forklake.store").joinpath("sql", f"{dialect}.sql").read_text(encoding="utf-8")
    match = _BODY.search(text)
    if match is None:
        raise AssertionError(f"{dialect}.sql has lost its forklake:body marks")
    return match.group(1)
