"""Names as DuckDB writes them: in quotes only where they need them. Pure."""

from __future__ import annotations

import re

from forklake.model.names import quoted

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
KEYWORDS = frozenset(
    """
    all analyse analyze and anti any array as asc asof asymmetric at authorization between bigint binary
    bit boolean both by case cast char character check coalesce collate collation column columns
    concurrently constraint create cross dec decimal default deferrable desc describe distinct do else
    end except exists extract false fetch float for foreign freeze from full generated glob group
    grouping grouping_id having ilike in initially inner inout int integer intersect interval into is
    isnull join lambda lateral leading left like limit map national natural nchar none not notnull null
    nullif numeric offset on only or order out outer overlaps overlay pivot pivot_longer pivot_wider
    placing position positional precision primary qualify real references returning right row select
    semi setof show similar smallint some struct substring summarize symmetric table tablesample then
    time timestamp to trailing treat trim true try_cast union unique unpack unpivot using values varchar
    variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest
    xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
    """.split()  # noqa: SIM905 - one word on each line would be a long list.
)
"""Words of DuckDB's grammar that are no names unless they are quoted."""


def optionally_quoted(name: str) -> str:
    """A name as DuckDB writes it."""
    return name if _PLAIN.match(name) and name.lower() not in KEYWORDS else quoted(name)
