"""From 0.5-dev2 to 0.5-dev3: catalogs know their oldest snapshot, and files to be removed are claimed."""

from __future__ import annotations

from forklake.store.upgrades.script import Script, named


def upgrade(script: Script) -> None:
    """Add what expiry and the collection of garbage store."""
    sql, there = named("to_0003_cleaning"), named(f"catalog.{script.dialect}")["columns"]
    # Lakes that were made in between have the new tables under the old version.
    if ("oldest_snapshot",) in script.rows(there, table="ducklake_catalog_head"):
        return
    for name in ("oldest_snapshots", "create_expired_snapshots", "create_reach", "index_reach"):
        script.run(sql[name])
    script.run(sql["claims_text" if script.dialect == "sqlite" else "claims_timestamptz"])
