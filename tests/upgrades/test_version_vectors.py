"""What the first step works out of merges is what merges store now: programs of forks and merges tell."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import forklake
from forklake.store.upgrades.to_0002_version_vectors import Brought, Merged, version_vectors
from tests.upgrades.lakes import sql_on

LINEAGES = (
    "SELECT catalog_id, source_catalog_id, COALESCE(copied_snapshot, max_snapshot) "
    "FROM ducklake_catalog_lineage"
)
# A merge says in its changes what its source was, and brings that up to where the source stood.
MERGES = """
SELECT m.catalog_id, m.merge_snapshot, m.source_catalog_id, m.source_snapshot
  FROM ducklake_catalog_merge m
  JOIN ducklake_snapshot_changes c ON c.catalog_id = m.catalog_id AND c.snapshot_id = m.merge_snapshot
 WHERE c.changes_made LIKE '%merged_from:' || m.source_catalog_id
    OR c.changes_made LIKE '%merged_from:' || m.source_catalog_id || ',%'
"""


def run_program(lake: forklake.Lake, seed: int, steps: int) -> None:
    """Forks of forks and of the past, copies, drops, and merges in all directions."""
    dice = random.Random(seed)
    lake.create_catalog("c0").create_table("t", "id BIGINT")
    names, row = ["c0"], 0
    for step in range(1, steps):
        catalog = lake.catalog(dice.choice(names))
        match dice.choices(("append", "fork", "merge", "drop", "copy"), (3, 2, 5, 0.3, 0.3))[0]:
            case "append":
                row += 1
                catalog.table("t").append([{"id": row}])
            case "fork" if len(names) < 9:
                own = [s.id for s in catalog.snapshots() if s.id <= catalog.snapshot and s.id > 1]
                at = dice.choice(own) if own and dice.random() < 0.3 else None
                mode = dice.choice(("reference", "reference", "copy"))
                names.append(f"c{step}")
                lake.fork(catalog, names[-1], at=at, mode=mode)
            case "merge" if len(names) > 1:
                lake.merge(dice.choice([name for name in names if name != catalog.name]), catalog.name)
            case "drop" if len(names) > 3 and catalog.name != "c0":
                names.remove(catalog.name)
                lake.drop_catalog(catalog.name)
            case "copy" if catalog.name != "c0":
                catalog.materialize()
            case _:
                pass


@pytest.mark.parametrize("seed", range(12))
def test_vectors_are_worked_out_as_merges_store_them(tmp_path: Path, seed: int) -> None:
    url = f"sqlite:///{tmp_path}/lake.db"
    with forklake.connect(url, create=True) as lake:
        run_program(lake, seed, steps=60)
    with sql_on(url) as run:
        stored = {Brought(*row) for row in run("SELECT * FROM ducklake_catalog_merge")}
        lineages, merges = run(LINEAGES), [Merged(*row) for row in run(MERGES)]
    # Every merge is there once, as an earlier version would have stored it.
    assert {merge.snapshot for merge in merges} == {entry.snapshot for entry in stored}
    assert len(merges) == len({merge.snapshot for merge in merges}) > 2
    assert set(version_vectors(lineages, merges)) == stored


def test_many_merges_into_one_catalog_take_no_longer_than_they_bring() -> None:
    many = 20_000
    lineages = [(0, 0, 2**62)]
    merges: list[Merged] = []
    for fork in range(1, many):
        snapshot = 10 * fork
        lineages += [(fork, 0, snapshot), (fork, fork, 2**62)]
        merges.append(Merged(0, snapshot + 3, fork, snapshot + 2))
    found = list(version_vectors(lineages, merges))
    # Each brings its own commits, and no other: the target has seen the rest, or done it.
    assert found == [
        Brought(0, merge.snapshot, merge.source, 0, -1, merge.source_snapshot) for merge in merges
    ]
