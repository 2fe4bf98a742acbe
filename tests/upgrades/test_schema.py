"""An upgraded lake has the tables of a new one; and no schema changes without a step and a version."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

import forklake
from forklake.store.statements import Dialect, schema_script
from forklake.store.upgrades.upgrade import STEPS
from forklake.store.versions import PRESENT, number_of
from tests.upgrades.lakes import VERSIONS, OldLake, structure

DIGESTS: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parent / "schema_digests.json").read_text(encoding="utf-8")
)
HOW = "see 'Changing the metadata schema' in CONTRIBUTING.md"


def digest(dialect: Dialect) -> str:
    """Of what a schema file makes: not of its comments."""
    text = re.sub(r"--.*", "", schema_script(dialect))
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgresql"])
def test_a_schema_that_changes_has_a_new_version(dialect: Dialect) -> None:
    recorded = DIGESTS.get(PRESENT, {}).get(dialect)
    assert digest(dialect) == recorded, f"{dialect}.sql is not that of {PRESENT}: {HOW}"


def test_there_is_a_step_to_every_version_and_a_lake_of_each_that_is_upgraded() -> None:
    assert number_of(PRESENT) == len(STEPS) + 1, f"a version has a step that leads to it: {HOW}"
    assert list(DIGESTS) == [f"0.5-dev{number}" for number in range(1, len(STEPS) + 2)]
    assert VERSIONS[0] == "0.5-dev1"
    assert PRESENT not in VERSIONS


def test_an_upgraded_lake_has_the_tables_indexes_and_views_of_a_new_one(
    upgraded: OldLake, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"{upgraded.backend}:///{tmp_path}/new.db"
    if upgraded.backend == "postgresql":
        url = request.getfixturevalue("postgres_schema_url")
    forklake.init(url, data_path=tmp_path / "files").close()
    expected, found = structure(url), structure(upgraded.url)
    assert found.keys() == expected.keys(), HOW
    for kind, description in expected.items():
        assert found[kind] == description, f"{kind} differ after the upgrade: {HOW}"
