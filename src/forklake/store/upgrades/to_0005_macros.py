"""From 0.5-dev4 to 0.5-dev5: an expression and a query may be macros of the same name."""

from __future__ import annotations

from forklake.store.upgrades.script import Script, named


def upgrade(script: Script) -> None:
    """Names of macros are no longer unique; the index on DuckDB never was."""
    if script.dialect != "duckdb":
        sql = named("to_0005_macros")
        script.run(sql["drop_unique"])
        script.run(sql["by_name"])
