"""From 0.5-dev4 to 0.5-dev5: two kinds of macros may share a name, and no default is the literal NULL."""

from __future__ import annotations

from forklake.store.upgrades.script import Script, named


def upgrade(script: Script) -> None:
    """Names of macros are no longer unique; the index on DuckDB never was."""
    sql = named("to_0005_macros")
    script.run(sql["no_defaults"])
    if script.dialect != "duckdb":
        script.run(sql["drop_unique"])
        script.run(sql["by_name"])
