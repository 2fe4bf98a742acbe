"""The commands that change a catalog as a whole: another name, a time to live, its own metadata, its end."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Self, Unpack

import typer

from forklake.api.lake import Lake
from forklake.cli.options import Settings, span
from forklake.cli.progress import progress_bar
from forklake.cli.render import agreed, is_terminal, render
from forklake.errors import InvalidArgument
from forklake.model.snapshots import CommitInfo

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog


@dataclass(frozen=True, slots=True)
class CatalogNow:
    """A catalog and where it stands."""

    name: str
    id: int
    snapshot: int

    @classmethod
    def of(cls, catalog: Catalog) -> Self:
        """What a handle shows."""
        return cls(catalog.name, catalog.id, catalog.snapshot)


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """When a catalog expires."""

    name: str
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class CatalogDropped:
    """A catalog that was dropped, or would be, and the last snapshot that shows it."""

    name: str
    id: int
    snapshot: int
    tables: int
    dropped: bool


def rename(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the catalog.")],
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    **info: Unpack[CommitInfo],
) -> None:
    """Rename a catalog."""
    with settings.connect() as lake:
        render(CatalogNow.of(lake.rename_catalog(name, new_name, **info)), settings.output)


def ttl(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the catalog.")],
    time: Annotated[str, typer.Argument(metavar="TIME", help="90s, 30m, 12h, 7d from now, or none.")],
) -> None:
    """Set the time to live of a catalog, or remove it. An expired catalog works until `drop --expired`."""
    lifetime = None if time == "none" else span(time)
    with settings.connect() as lake:
        lake.set_ttl(name, lifetime)
        (found,) = [info for info in lake.catalogs() if info.name == name]
        render(TimeToLive(name, found.expires_at), settings.output)


def materialize(
    settings: Settings,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name of the catalog; by default --catalog.")
    ] = None,
    **info: Unpack[CommitInfo],
) -> None:
    """Copy the metadata that a fork inherits, so that it no longer depends on its ancestors."""
    chosen = settings if name is None else replace(settings, catalog=name)
    with settings.connect() as lake:
        catalog = chosen.find_catalog(lake)
        with progress_bar(settings) as progress:
            catalog.materialize(progress=progress, **info)
        render(CatalogNow.of(catalog), settings.output)


def drop(
    settings: Settings,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="The names of the catalogs.")
    ] = None,
    expired: Annotated[bool, typer.Option("--expired", help="Drop every expired catalog.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be dropped.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    **info: Unpack[CommitInfo],
) -> None:
    """Drop catalogs in one commit. Past snapshots still show them; no other catalog loses anything."""
    if bool(names) == expired:
        raise typer.BadParameter("name the catalogs to drop, or pass --expired")
    with settings.connect() as lake:
        wanted = _expired(lake) if expired else names or []
        found = [_about(lake.catalog(name)) for name in wanted]
        dropped: list[str] = []
        if found and not dry_run:
            if is_terminal(sys.stdin) and not yes:
                _ask(found)
            with progress_bar(settings) as progress:
                if expired:
                    # One whose time was extended meanwhile is kept.
                    dropped = lake.drop_expired(progress=progress, **info)
                else:
                    lake.drop_catalogs(wanted, progress=progress, **info)
                    dropped = wanted
        render([replace(each, dropped=each.name in dropped) for each in found], settings.output)


def _expired(lake: Lake) -> list[str]:
    now = lake.now()
    return [info.name for info in lake.catalogs() if info.expires_at is not None and info.expires_at <= now]


def _about(catalog: Catalog) -> CatalogDropped:
    return CatalogDropped(catalog.name, catalog.id, catalog.snapshot, len(catalog.tables()), dropped=False)


def _ask(found: list[CatalogDropped]) -> None:
    tables = sum(each.tables for each in found)
    what = f'catalog "{found[0].name}"' if len(found) == 1 else f"{len(found)} catalogs"
    if not agreed(f"Drop {what} with {tables} tables?"):
        raise InvalidArgument("nothing was dropped: the answer was not yes")
