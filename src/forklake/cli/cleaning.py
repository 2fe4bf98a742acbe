"""The commands that remove what nobody needs any more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import typer

from forklake.cli.options import Settings, span
from forklake.cli.progress import progress_bar
from forklake.cli.render import render
from forklake.errors import InvalidArgument, StorageError
from forklake.maintenance.collect import KeptFile

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")]


@dataclass(frozen=True, slots=True)
class Expired:
    """What was expired, of one catalog or of all."""

    catalog: str | None = None
    snapshots: tuple[int, ...] = ()
    oldest: int | None = None
    catalogs: int = 0
    dropped: tuple[str, ...] = ()
    forgotten: int = 0
    dry_run: bool = False


def _age(purpose: str) -> Any:
    return typer.Option(metavar="SPAN", help=f"{purpose}: 90s, 30m, 12h or 7d, or 0s for everything.")


def expire(
    settings: Settings,
    older_than: Annotated[str | None, _age("Expire snapshots older than this")] = None,
    version: Annotated[
        list[int] | None,
        typer.Option(metavar="SNAPSHOT", help="Expire this snapshot; may be repeated. Needs --catalog."),
    ] = None,
    keep_last: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="Keep so many of the latest snapshots in any case.")
    ] = 1,
    dry_run: DryRun = False,
) -> None:
    """Expire snapshots of one catalog, or of all: they can no longer be read.

    Without --catalog, catalogs whose time to live is over are dropped, and catalogs that were dropped before
    that time can no longer be brought back. No catalog loses anything by what another one expires.
    """
    age = None if older_than is None else _span(older_than)
    with settings.connect() as lake, progress_bar(settings) as progress:
        if settings.catalog:
            catalog = settings.find_catalog(lake)
            one = catalog.expire(older_than=age, versions=version, keep_last=keep_last, dry_run=dry_run)
            result = Expired(
                one.catalog, one.snapshots, one.oldest, int(bool(one.snapshots)), dry_run=dry_run
            )
        elif age is None or version:
            raise InvalidArgument(
                "say of which catalog: --catalog NAME; or pass --older-than for all of them"
            )
        else:
            every = lake.expire(older_than=age, keep_last=keep_last, dry_run=dry_run, progress=progress)
            result = Expired(
                catalogs=every.catalogs,
                dropped=every.dropped,
                forgotten=every.forgotten,
                dry_run=dry_run,
            )
    render(result, settings.output)


def gc(
    settings: Settings,
    older_than: Annotated[str, _age("Remove files that have been out of reach for this long")] = "2d",
    dry_run: DryRun = False,
) -> None:
    """Remove metadata that no catalog can reach, and the files that it named."""
    with settings.connect() as lake, progress_bar(settings) as progress:
        result = lake.collect_garbage(older_than=_span(older_than), dry_run=dry_run, progress=progress)
    render(result, settings.output)
    _refuse_kept(result.kept)


def orphans(
    settings: Settings,
    older_than: Annotated[str, _age("Remove files that are older than this")] = "7d",
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Remove files too whose names are not the lake's.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Remove files in the data paths that no metadata names, left by writers that did not commit."""
    with settings.connect() as lake, progress_bar(settings) as progress:
        result = lake.remove_orphans(
            older_than=_span(older_than), unknown=unknown, dry_run=dry_run, progress=progress
        )
    render(result, settings.output)
    _refuse_kept(result.kept)


def _span(text: str) -> timedelta:
    return timedelta(0) if text.strip() in ("0", "0s") else span(text)


def _refuse_kept(kept: tuple[KeptFile, ...]) -> None:
    """Let the exit code say that some files could not be removed; the next run tries them again."""
    failed = [file for file in kept if file.failed]
    if failed:
        raise StorageError(
            f"{len(failed)} files could not be removed, such as {failed[0].path}: {failed[0].why}"
        )
