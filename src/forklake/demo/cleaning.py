"""The last chapter of the demo's story: the lake is cleaned, and nothing is left that nobody needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from forklake.api.lake import Lake
from forklake.demo.steps import Step, checked
from forklake.errors import CatalogNotFound
from forklake.maintenance.checkpoint import CheckpointResult

AGENT = "agent_0001"


def clean(lake: Lake) -> Iterator[str]:
    """Snapshots expire, files that nobody reads go, and every row stays."""
    before, counts = _stored(lake), _counts(lake)
    # A lake that people use keeps its past for some weeks, and files for as long as the longest query takes.
    for name in ("expire_older_than", "delete_older_than", "orphans_older_than", "rewrite_delete_threshold"):
        lake.set_option(name, 0 if name == "rewrite_delete_threshold" else "0 seconds")
    planned = lake.checkpoint(dry_run=True)
    yield checked(
        _stored(lake) == before,
        f"of {len(before)} files with {sum(before.values()) / 1e6:.1f} MB, a checkpoint would remove "
        f"{planned.files} at once: they belong to dropped forks and to the past",
    )
    lake.checkpoint()
    # What the first one compacted is in the past now.
    kept = _kept(lake.checkpoint())
    after, named = _stored(lake), _named(lake)
    more = f"and {len(kept)} that a job of Spark may still commit, " if kept else ""
    yield checked(
        set(after) - kept == named and _counts(lake) == counts,
        f"after it, storage has {len(after)} files with {sum(after.values()) / 1e6:.1f} MB, exactly those "
        f"that the catalogs read, {more}and all {sum(counts.values()):,} rows are still there",
    )


def nothing_is_left(lake: Lake) -> Iterator[str]:
    """What was dropped cannot come back, and what is there is whole."""
    try:
        lake.undrop_catalog(AGENT)
        is_gone = False
    except CatalogNotFound:
        is_gone = True
    known = {node.name for node in lake.tree(dropped=True).nodes}
    yield checked(
        is_gone and known == {catalog.name for catalog in lake.catalogs()},
        "nothing tells of the dropped forks any more, and nothing can bring them back",
    )
    found = lake.check(data=True)
    again = lake.checkpoint(dry_run=True)
    yield checked(
        found.is_clean and (again.files, again.flush, again.compact, again.rewrite) == (0, (), (), ()),
        f"all {found.files} files were read and compared with the metadata: no differences, and a checkpoint "
        "has nothing left to do",
    )


def _kept(done: CheckpointResult) -> set[str]:
    """Files that wait for the end of the time that a distributed snapshot has."""
    return set() if done.collect is None else {file.path for file in done.collect.kept if not file.failed}


def _stored(lake: Lake) -> dict[str, int]:
    """Files of the lake and their sizes; the demo's are in a folder."""
    folder = Path(lake.data_path)
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*.parquet")
        if path.is_file()
    }


def _named(lake: Lake) -> set[str]:
    """Files of all tables of all catalogs, as they are now."""
    catalogs = [lake.catalog(info.name) for info in lake.catalogs()]
    return {
        file.path
        for catalog in catalogs
        for table in catalog.tables()
        for file in catalog.table((table.schema, table.name)).files()
        if file.path is not None
    }


def _counts(lake: Lake) -> dict[str, int]:
    """The rows of every table."""
    catalogs = [lake.catalog(info.name) for info in lake.catalogs()]
    return {
        f"{catalog.name}.{table.schema}.{table.name}": catalog.table((table.schema, table.name)).count()
        for catalog in catalogs
        for table in catalog.tables()
    }


STEPS = (
    Step("The lake is cleaned", clean),
    Step("Nothing is left", nothing_is_left),
)
