"""The named statements: where they stand, and which of them only PostgreSQL has."""

from __future__ import annotations

import re
from pathlib import Path

import forklake
from forklake.store.statements import KINDS as KINDS
from forklake.store.statements import Dialect, parse

DIALECTS: tuple[Dialect, ...] = ("sqlite", "duckdb", "postgresql")
SOURCE = Path(forklake.__file__).parent
SQL_FILES = sorted((SOURCE / "store" / "sql").glob("*.sql"))
STATEMENT_FILES = [path for path in SQL_FILES if path.stem not in DIALECTS]

# PostgreSQL does in one statement what takes embedded databases several.
POSTGRESQL_ONLY = {"lock_and_allocate", "record_snapshot"}
# An embedded database has the clock of its process, and nobody commits beside another.
POSTGRESQL_ONLY_READS = {"clock", "home", "last_announced", "open_commits"}
# What a connection needs to know of a pooler, or to tell it.
CONNECTING = {"set_for_session", "set_for_transaction", "prepared_under"}
POSTGRESQL_ONLY_READS |= CONNECTING
POSTGRESQL_ONLY |= POSTGRESQL_ONLY_READS


def parameters(text: str) -> set[str]:
    return set(re.findall(r"\$(\w+)", text))


def named_in(prefix: str) -> set[str]:
    return {
        name for path in STATEMENT_FILES if path.name.startswith(prefix) for name in parse(path.read_text())
    }


READS = named_in("read") | named_in("files") | named_in("indexes")
WRITES = named_in("write")
# Whoever cleans a lake looks at all catalogs at once.
CLEANING = named_in("clean") | named_in("checkpoint") | named_in("verify")


def reads(dialect: Dialect) -> set[str]:
    return READS if dialect == "postgresql" else READS - POSTGRESQL_ONLY_READS
