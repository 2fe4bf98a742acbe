"""From 0.5-dev3 to 0.5-dev4: catalogs, tables and views are found by their names whatever the case."""

from __future__ import annotations

from forklake.store.upgrades.script import Script, named


def upgrade(script: Script) -> None:
    """Make indexes by names without their case, where indexes are looked at for that."""
    sql = named("to_0004_names")
    for table in ("catalogs", "tables", "views"):
        # That of tables was there, and lakes that were made in between have all three.
        script.run(sql[f"drop_{table}"])
        if script.dialect != "duckdb":
            script.run(sql[f"{script.dialect}_{table}"])
