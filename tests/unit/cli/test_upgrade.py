"""`forklake upgrade`: what it prints, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import forklake
from forklake.store.versions import PRESENT
from tests.unit.command_line import data, done, refusal
from tests.upgrades.lakes import OldLake, unpack


@pytest.fixture
def old(tmp_path: Path) -> OldLake:
    return unpack("0.5-dev1", "sqlite", tmp_path, None)


def test_other_commands_say_that_an_older_lake_is_to_be_upgraded(old: OldLake) -> None:
    assert "`forklake --lake URL upgrade`" in refusal("--lake", old.url, "catalogs")


def test_a_dry_run_prints_a_script_and_changes_nothing(old: OldLake) -> None:
    script = done("--lake", old.url, "upgrade", "--dry-run")
    assert script.startswith("BEGIN IMMEDIATE;\n")
    assert script.endswith("COMMIT;\n")
    assert "\nDROP TABLE ducklake_catalog_merge;\n" in script
    told = data("--lake", old.url, "upgrade", "--dry-run")
    assert (told["from_version"], told["to_version"], told["done"]) == ("0.5-dev1", PRESENT, False)
    assert "".join(f"{statement};\n" for statement in told["statements"]) == script


def test_an_upgrade_says_what_it_did_and_the_lake_can_be_used(old: OldLake) -> None:
    lines = done("--lake", old.url, "upgrade").splitlines()
    assert [line.split()[0] for line in lines] == ["lake", "from_version", "to_version", "done"]
    assert lines[-1].split()[1] == "yes"
    assert done("--lake", old.url, "upgrade").splitlines()[-1].split()[1] == "no"
    assert done("--lake", old.url, "upgrade", "--dry-run").splitlines()[-1].split()[1] == "no"
    assert len(data("--lake", old.url, "catalogs")) == 14
    assert data("--lake", old.url, "upgrade")["from_version"] == PRESENT


def test_a_newer_lake_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/lake.db"
    forklake.connect(url, create=True).close()
    old = OldLake("0.5-dev7", url, tmp_path, {})
    with old.sql() as run:
        run("UPDATE ducklake_metadata SET value = '0.5-dev7' WHERE key = 'version'")
    assert f"install forklake {forklake.__version__} or newer" in refusal("--lake", url, "upgrade")
