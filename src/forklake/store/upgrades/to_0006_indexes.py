"""From 0.5-dev5 to 0.5-dev6: tables have indexes."""

from __future__ import annotations

from forklake.store.upgrades.script import Script, named


def upgrade(script: Script) -> None:
    """Add the tables of indexes; no table has one yet."""
    sql, dialect = named("to_0006_indexes"), script.dialect
    # Lakes that were made in between have the new tables under the old version.
    if script.rows(named(f"catalog.{dialect}")["columns"], table="ducklake_index"):
        return
    script.run(sql["create_index_text" if dialect == "sqlite" else "create_index"])
    script.run(sql["create_index_column"])
    script.run(sql["create_index_file_bytewise" if dialect == "postgresql" else "create_index_file"])
    script.run(sql["create_index_coverage"])
    script.run(sql["live_name_duckdb" if dialect == "duckdb" else "live_name"])
    script.run(sql["files_by_table"])
