"""The `.sql` files are split into statements, of which every database has its form."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from forklake.model.ids import FOREVER
from forklake.store.built_statements import ADOPTED, COPIED, RETURNED, not_masked
from forklake.store.entity_rows import STORED
from forklake.store.reach_conditions import (
    PARTS,
    REASON,
    VERSIONED,
    nothing_left,
    nothing_to_see,
    out_of_reach,
    unseen,
)
from forklake.store.statements import Dialect, parse, schema_script, statements
from tests.unit.statements.named import (
    CLEANING,
    DIALECTS,
    KINDS,
    POSTGRESQL_ONLY,
    READS,
    SOURCE,
    STATEMENT_FILES,
    WRITES,
    named_in,
    parameters,
)

SHORT = "folded|ids|texts|masked|spans|copies|keys|out_of_reach|reason_of|unseen|nothing_left|forever"
# Asks for what came and what went, so that it looks at masks by itself.
LISTING_MASKS = {"files_changed_in_tables"}

# Several statements, of which PostgreSQL makes one.
EMBEDDED_ONLY = {"lock_head", "add_snapshot", "add_changes"}

# What a copy of a catalog, a merge or a restore takes is built from the names of tables and columns.
COPIES = {f"copy_{table}" for table in COPIED} | {f"adopt_{table}" for table in ADOPTED}
COPIES |= {f"return_{table}" for table in RETURNED}

# Rows that are out of reach are removed from every table by one condition.
DROPS = {f"drop_{table}" for table in PARTS} | {f"drop_rows_of_{entity}" for entity in VERSIONED}
DROPS |= {f"drop_masks_of_{entity}" for entity in STORED}
DROPS |= {f"masks_of_nothing_{entity}" for entity in STORED}


def test_a_file_is_split_into_its_statements_without_comments() -> None:
    text = """-- What stands before the first name belongs to nobody.
SELECT 'nobody';

-- name: first
-- Says something.
SELECT a
  -- in the middle
  FROM t
 WHERE b = '-- not a comment' AND c = $c;

-- name: second
DELETE FROM t;
"""
    assert parse(text) == {
        "first": "SELECT a\n  FROM t\n WHERE b = '-- not a comment' AND c = $c",
        "second": "DELETE FROM t",
    }


def test_a_file_without_names_holds_no_statements() -> None:
    assert parse("-- only\n-- comments\n") == {}


@pytest.mark.parametrize("path", STATEMENT_FILES, ids=lambda path: path.name)
def test_every_file_names_each_statement_once(path: Path) -> None:
    names = re.findall(r"^-- name: (.*)$", path.read_text(), re.MULTILINE)
    assert names
    assert len(names) == len(set(names)) == len(parse(path.read_text()))


@pytest.mark.parametrize("path", STATEMENT_FILES, ids=lambda path: path.name)
def test_every_name_stands_before_one_statement(path: Path) -> None:
    for name, text in parse(path.read_text()).items():
        assert text, name
        assert ";" not in text, name
        assert not text.startswith("--"), name


def test_no_name_stands_in_two_kinds_of_files() -> None:
    kinds = [named_in(kind) for kind in KINDS]
    assert sum(map(len, kinds)) == len(READS | WRITES | CLEANING)
    assert all(path.name.split(".")[0] in KINDS for path in STATEMENT_FILES)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_database_has_every_statement(dialect: Dialect) -> None:
    foreign = EMBEDDED_ONLY if dialect == "postgresql" else POSTGRESQL_ONLY
    assert set(statements(dialect)) == ((READS | WRITES | CLEANING) - foreign) | COPIES | DROPS


FOLDED = {
    "sqlite": r"\1 COLLATE NOCASE",
    "duckdb": r"lower(\1)",
    "postgresql": r'lower(\1 COLLATE "C")',
}


def test_a_database_has_its_own_form_of_a_statement_where_one_is_given() -> None:
    for dialect in DIALECTS:
        for kind in KINDS:
            path = SOURCE / "store" / "sql" / f"{kind}.{dialect}.sql"
            own = parse(path.read_text()) if path.exists() else {}
            common = parse((SOURCE / "store" / "sql" / f"{kind}.sql").read_text())
            for name in own.keys() | common.keys():
                text = own.get(name) or common[name]
                # Only sets of numbers and of texts and folded names are written otherwise on each of them,
                # and masks on all.
                text = re.sub(r"\bfolded\(([\w.$]+)\)", FOLDED[dialect], text)
                parts = re.split(
                    r"(\bIN (?:ids|texts)\(\$\w+\)|\btexts\(\$\w+\) AS k\(value\)|\b(?:spans|keys)\(\$\w+\))",
                    spelled_out(text, dialect),
                )
                pattern = "".join(
                    f"[^;]*{re.escape('$' + parameters(part).pop())}[^;]*" if at % 2 else re.escape(part)
                    for at, part in enumerate(parts)
                )
                assert re.fullmatch(pattern, statements(dialect)[name]), (dialect, name)
                assert not re.search(rf"\b({SHORT})\(", statements(dialect)[name])
    assert "nextval" in statements("postgresql")["allocate"]
    assert "ducklake_counter" in statements("sqlite")["allocate"]


def spelled_out(text: str, dialect: Dialect) -> str:
    def unmasked(match: re.Match[str]) -> str:
        of, entity, files = match.groups()
        return not_masked(entity, of=of or "", among=files, as_array=dialect == "postgresql")

    text = re.sub(r"\bout_of_reach\((\w+)\)", lambda match: out_of_reach(match[1]), text)
    text = re.sub(r"\bnothing_left\(([\w.]+)\)", lambda match: nothing_left(match[1]), text)
    text = re.sub(r"\bunseen\(([\w.]+)\)", lambda match: unseen(match[1]), text)
    text = re.sub(r"\bnothing_to_see\(([\w.]+)\)", lambda match: nothing_to_see(match[1]), text)
    text = text.replace("forever()", str(FOREVER))
    return re.sub(r"NOT masked\((\w+\.)?(\w+)(?:, (\w+))?\)", unmasked, text.replace("reason_of(e)", REASON))


def test_files_that_are_read_without_masks_are_asked_whether_they_are_masked() -> None:
    asked = 0
    for name in READS - POSTGRESQL_ONLY - LISTING_MASKS:
        text = parse_all()[name]
        for entity in ("data_file", "delete_file"):
            without = len(re.findall(rf"\bvisible_{entity}_unmasked\b", text))
            assert without == len(re.findall(rf"NOT masked\((\w+\.)?{entity}\b", text)), name
            asked += without
    assert asked > 5


def parse_all() -> dict[str, str]:
    return {name: text for path in STATEMENT_FILES for name, text in parse(path.read_text()).items()}


def test_a_statement_takes_the_same_parameters_on_every_database() -> None:
    # DuckDB alone has to be told in which schema to look.
    for name in (READS | WRITES | CLEANING) - {"metadata_exists"} - EMBEDDED_ONLY - POSTGRESQL_ONLY:
        assert len({frozenset(parameters(statements(dialect)[name])) for dialect in DIALECTS}) == 1, name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_schema_script_is_what_stands_between_the_marks(dialect: Dialect) -> None:
    text = files("forklake.store").joinpath("sql", f"{dialect}.sql").read_text(encoding="utf-8")
    script = schema_script(dialect)
    assert script in text
    before, after = text.split(script)
    assert before.rstrip().splitlines()[-1].startswith("-- forklake:body")
    assert after.splitlines() == ["-- forklake:end", "COMMIT;"]
    assert "BEGIN;" in before
    # The script runs inside a transaction and a schema that are there already.
    assert not re.search(r"^\s*(BEGIN;|COMMIT;|(USE|SET|CREATE SCHEMA)\b)", script, re.MULTILINE)
