"""Statements that control transactions, settings, catalogs and maintenance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forklake.sql.statements.parts import Fragment, ObjectName


@dataclass(frozen=True, slots=True)
class TransactionControl:
    """BEGIN, COMMIT, ROLLBACK."""

    action: Literal["begin", "commit", "rollback"]
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """USE, SET schema and SET search_path; RESET of these is `main`."""

    name: ObjectName


@dataclass(frozen=True, slots=True)
class SetVariable:
    """SET VARIABLE, RESET VARIABLE."""

    name: str
    value: Fragment | None


@dataclass(frozen=True, slots=True)
class Call:
    """CALL function(arguments)."""

    name: ObjectName
    arguments: Fragment


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """CHECKPOINT."""

    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class ForkCatalog:
    """FORK CATALOG [IF NOT EXISTS] parent AS child [AT (VERSION => n)] [TTL '7 days']."""

    parent: str
    child: str
    at: tuple[Literal["version", "timestamp"], Fragment] | None = None
    ttl: str | Fragment | None = None
    """A parameter is a fragment."""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class MergeCatalog:
    """MERGE CATALOG source INTO target [PREFER SOURCE | TARGET] [TABLES (a, b)] [DRY RUN]."""

    source: str
    target: str | None
    prefer: Literal["source", "target"] | None = None
    tables: tuple[ObjectName, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DropCatalog:
    """DROP CATALOG name."""

    name: str
    if_exists: bool = False
