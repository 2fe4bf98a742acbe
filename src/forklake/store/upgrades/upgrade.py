"""Bringing a lake to the present version of the metadata schema: in place, and all or nothing.

Each step is a module of its own and leads from one version to the next. All of them run in one transaction
that has the lake to itself; views are dropped before it and made anew after it, as the schema file has them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from forklake.store.backend import PAUSES, Database, Interrupted
from forklake.store.statements import schema_script
from forklake.store.upgrades import (
    to_0002_version_vectors,
    to_0003_cleaning,
    to_0004_names,
    to_0005_macros,
    to_0006_indexes,
)
from forklake.store.upgrades.script import Script, named
from forklake.store.versions import MADE_BY, PRESENT, is_older, number_of, stored_version
from forklake.version import VERSION

Step = Callable[[Script], None]

STEPS: tuple[Step, ...] = (
    to_0002_version_vectors.upgrade,
    to_0003_cleaning.upgrade,
    to_0004_names.upgrade,
    to_0005_macros.upgrade,
    to_0006_indexes.upgrade,
)
"""The first leads from 0.5-dev1 to 0.5-dev2, the next from there on, the last to the present version."""

_VIEW = re.compile(r"^CREATE VIEW .*?;$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """What an upgrade did, or with `dry_run` would do."""

    lake: str
    from_version: str
    to_version: str
    done: bool
    """Whether anything was changed: not by a dry run, and not if the lake has the present version already."""
    statements: tuple[str, ...] = ()
    """All that is run, in one transaction."""


def upgrade_lake(database: Database, *, dry_run: bool = False) -> UpgradeResult:
    """Bring a lake to the present version, or say by which statements that would be done."""
    version, made_by = stored_version(database)
    if not is_older(database.url, version, made_by):
        return UpgradeResult(database.url, version, version, done=False)
    for pause in PAUSES:
        try:
            return _upgrade(database, dry_run=dry_run)
        except Interrupted:
            # Somebody who was writing was in the way; nothing has been changed.
            time.sleep(pause)
    return _upgrade(database, dry_run=dry_run)


def _upgrade(database: Database, *, dry_run: bool) -> UpgradeResult:
    home = database.home()
    with database.begin_upgrade() as session:
        script = Script(session, database.dialect, home)
        # Nobody else can change it from now on; but somebody may have, while we waited.
        setting = named("version")["setting"]
        version, made_by = (
            next((row[0] for row in script.rows(setting, key=key)), None) for key in ("version", MADE_BY)
        )
        if not is_older(database.url, version or "", made_by):
            return UpgradeResult(database.url, PRESENT, PRESENT, done=False)
        with _views_made_anew(script):
            for step in STEPS[(number_of(version or "") or 1) - 1 :]:
                step(script)
        _store_version(script)
        if not dry_run:
            session.commit()
        shown = (*session.opening, *script.statements, "COMMIT")
        return UpgradeResult(database.url, version or "", PRESENT, not dry_run, shown)


@contextmanager
def _views_made_anew(script: Script) -> Generator[None]:
    """Without the views, tables can be changed; afterwards they are what they are in a new lake."""
    catalog = named(f"catalog.{script.dialect}")
    grants = script.rows(catalog["grants"]) if "grants" in catalog else []
    views = [view for (view,) in script.rows(catalog["views"])]
    if script.dialect == "postgresql":
        # Together: some are made of others.
        script.run(f"DROP VIEW {', '.join(views)}")
    else:
        for view in views:
            script.run(f"DROP VIEW {view}")
    yield
    for text in _VIEW.findall(schema_script(script.dialect)):
        script.run(text.removesuffix(";"))
    if grants:
        there = {name for (name,) in script.rows(catalog["relations"])}
        held = set(script.rows(catalog["grants"]))
        for name, text in grants:
            if (name, text) not in held and name in there:
                script.run(text)


def _store_version(script: Script) -> None:
    sql = named("version")
    script.run(sql["store_version"], version=PRESENT)
    script.run(sql["forget_maker"], key=MADE_BY)
    script.run(sql["store_maker"], key=MADE_BY, version=VERSION)
