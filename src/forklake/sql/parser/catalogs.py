"""FORK CATALOG and MERGE CATALOG, which DuckDB does not have."""

from __future__ import annotations

from typing import Literal

from forklake.sql.parser.reader import Reader
from forklake.sql.statements import ForkCatalog, Fragment, MergeCatalog, ObjectName


def fork(reader: Reader) -> ForkCatalog:
    """FORK CATALOG, whose words were read."""
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    parent = reader.catalog()
    reader.expect("AS")
    child = reader.catalog()
    at: tuple[Literal["version", "timestamp"], Fragment] | None = None
    ttl: str | Fragment | None = None
    while not reader.at_end:
        if at is None and reader.take("AT"):
            at = _at(reader)
        elif ttl is None and reader.take("TTL"):
            reader.take("INTERVAL")
            ttl = reader.string_or_parameter("a duration such as '7 days'")
        elif not if_not_exists and reader.take("IF", "NOT", "EXISTS"):
            if_not_exists = True
        else:
            raise reader.expected("AT, TTL, IF NOT EXISTS or the end of the statement")
    return ForkCatalog(parent, child, at, ttl, if_not_exists)


def _at(reader: Reader) -> tuple[Literal["version", "timestamp"], Fragment]:
    reader.expect("(")
    word = reader.one_of("VERSION", "TIMESTAMP")
    if word is None:
        raise reader.expected("VERSION or TIMESTAMP")
    reader.expect("=>")
    value = reader.until(what="a snapshot" if word == "VERSION" else "a timestamp")
    reader.expect(")")
    return ("version" if word == "VERSION" else "timestamp"), value


def merge(reader: Reader) -> MergeCatalog:
    """MERGE CATALOG, whose words were read."""
    source = reader.catalog()
    target = reader.catalog() if reader.take("INTO") else None
    prefer: Literal["source", "target"] | None = None
    tables: tuple[ObjectName, ...] = ()
    dry_run = False
    while not reader.at_end:
        if prefer is None and reader.take("PREFER"):
            word = reader.one_of("SOURCE", "TARGET")
            if word is None:
                raise reader.expected("SOURCE or TARGET")
            prefer = "source" if word == "SOURCE" else "target"
        elif not tables and reader.take("TABLES"):
            tables = reader.list(lambda: reader.object_name("the name of a table"))
        elif not dry_run and reader.take("DRY", "RUN"):
            dry_run = True
        else:
            raise reader.expected(
                "INTO, PREFER, TABLES, DRY RUN or the end of the statement"
                if target is None
                else "PREFER, TABLES, DRY RUN or the end of the statement"
            )
    return MergeCatalog(source, target, prefer, tables, dry_run)
