"""The commands that look after a whole lake: checkpoint and check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Unpack

import typer

from forklake.cli.cleaning import DryRun
from forklake.cli.options import Settings
from forklake.cli.progress import progress_bar
from forklake.cli.render import Output, render
from forklake.errors import CorruptMetadata, StorageError
from forklake.maintenance.check import CheckResult
from forklake.maintenance.checkpoint import CheckpointResult, RewrittenTable
from forklake.maintenance.expire import ExpireResult
from forklake.model.snapshots import CommitInfo


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a checkpoint, for people."""

    step: str
    result: str


def checkpoint(settings: Settings, dry_run: DryRun = False, **info: Unpack[CommitInfo]) -> None:
    """Flush, expire, compact, rewrite deletes, build indexes, collect garbage and remove orphans.

    All of it as the lake's options say. With --catalog, the first five for that catalog. What fails is listed
    and stops nothing else; the exit code is 1 then.
    """
    with settings.connect() as lake, progress_bar(settings) as progress:
        if settings.catalog:
            catalog = settings.find_catalog(lake)
            result = catalog.checkpoint(dry_run=dry_run, progress=progress, **info)
        else:
            result = lake.checkpoint(dry_run=dry_run, progress=progress, **info)
    render(result if settings.output is Output.JSON else list(_steps(result)), settings.output)
    _refuse_failures(result)


def check(
    settings: Settings,
    repair: Annotated[
        bool, typer.Option("--repair", help="Correct statistics, and nothing else; while nobody writes.")
    ] = False,
    data: Annotated[
        bool, typer.Option("--data", help="Read the files too, and not only their footers.")
    ] = False,
) -> None:
    """Verify that every file is there as it was committed, and that the metadata holds together.

    Lists every difference with catalog, table and path; the exit code is 1 if there is one that was not
    repaired.
    """
    with settings.connect() as lake, progress_bar(settings) as progress:
        result = lake.check(repair=repair, data=data, progress=progress)
    render(result if settings.output is Output.JSON else result.differences, settings.output)
    _refuse_differences(result)


def _steps(result: CheckpointResult) -> Iterator[Step]:
    rows = sum(one.rows for one in result.flush)
    yield Step("flush", f"{rows} rows of {len(result.flush)} tables")
    match result.expire:
        case None:
            pass
        case ExpireResult():
            yield Step("expire", f"{len(result.expire.snapshots)} snapshots")
        case every:
            yield Step(
                "expire",
                f"{every.catalogs} catalogs, {len(every.dropped)} dropped, {every.forgotten} forgotten",
            )
    yield Step("compact", _rewritten(result.compact))
    yield Step("rewrite", _rewritten(result.rewrite))
    files = sum(one.built.files for one in result.index)
    yield Step("index", f"{files} files in {sum(one.built.segments for one in result.index)} new segments")
    if result.collect is not None:
        found = result.collect
        yield Step(
            "collect",
            f"{found.scheduled} files ({found.scheduled_bytes} bytes) out of reach, "
            f"{found.removed} files ({found.removed_bytes} bytes) removed",
        )
    if result.orphans is not None:
        yield Step("orphans", f"{result.orphans.files} files ({result.orphans.bytes} bytes) removed")
    for failure in result.failures:
        where = ".".join(filter(None, (failure.catalog, failure.table)))
        yield Step("failed", f"{failure.step} {where}: {failure.error}")
    yield Step("would free" if result.dry_run else "freed", f"{result.files} files, {result.bytes} bytes")


def _rewritten(tables: tuple[RewrittenTable, ...]) -> str:
    given = sum(one.rewritten.files_in for one in tables)
    made = sum(one.rewritten.files_out for one in tables)
    return f"{given} files of {len(tables)} tables became {made}"


def _refuse_failures(result: CheckpointResult) -> None:
    """Let the exit code say that something could not be done; the next run tries it again."""
    kept = [file for part in (result.collect, result.orphans) if part is not None for file in part.kept]
    failed = [f"{one.step} {one.catalog or ''} {one.table or ''}: {one.error}" for one in result.failures]
    failed += [f"{file.path}: {file.why}" for file in kept if file.failed]
    if failed:
        raise StorageError(f"{len(failed)} parts of the checkpoint failed, such as {failed[0]}")


def _refuse_differences(result: CheckResult) -> None:
    left = result.found - result.repaired
    if left:
        first = next(one for one in result.differences if not one.repaired)
        where = first.path or ".".join(filter(None, (first.catalog, first.table))) or "the lake"
        raise CorruptMetadata(f"{left} differences were found, such as {where}: {first.message}")
