"""The commands about indexes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Unpack, cast

import typer

from forklake.api.scoped import scope_of
from forklake.cli.options import At, Settings
from forklake.cli.progress import progress_bar
from forklake.cli.render import render
from forklake.commit.create_index import create_index, index_info
from forklake.errors import InvalidArgument
from forklake.model.index import IndexInfo, Maintenance
from forklake.model.snapshots import CommitInfo

_Table = Annotated[str, typer.Argument(metavar="TABLE", help="The table.")]


def indexes(
    settings: Settings,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="Only those of this table.")] = None,
    at: At = None,
) -> None:
    """List the indexes of a table, or of all tables of a catalog."""
    with settings.connect() as lake:
        catalog = settings.find_catalog(lake, at)
        if table is not None:
            found = list(catalog.table(table).indexes())
        else:
            draft = scope_of(catalog).read()
            found = [index_info(draft, draft.table(one.table_id), one) for one in draft.all_indexes()]
        render(sorted(found, key=_place), settings.output)


def _place(index: IndexInfo) -> tuple[str, str, int]:
    return index.schema, index.table, index.id


def index(
    settings: Settings,
    table: _Table,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the index.")],
    kind: Annotated[str, typer.Option(metavar="KIND", help="btree, hash, rstar, bm25, vector.")] = "btree",
    column: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that it is of.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column whose values it holds too.")
    ] = None,
    maintain: Annotated[
        str | None, typer.Option(metavar="WHEN", help="commit: built with new files; later: by checkpoint.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter of its kind.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop it.")] = False,
    **info: Unpack[CommitInfo],
) -> None:
    """Create an index of a table, or drop one; prints the indexes that the table has then."""
    if drop == bool(column):
        raise typer.BadParameter("name the columns of the index by --column, or pass --drop")
    with settings.connect() as lake:
        catalog = settings.find_catalog(lake)
        found = catalog.table(table)
        if drop:
            found.drop_index(name, **info)
        else:
            params, when = dict(_parameters(param or [])), cast("Maintenance | None", maintain)
            columns, others = column or [], include or []
            scope_of(catalog).with_commit_info(**info).apply(
                lambda draft: create_index(
                    draft, draft.table(found.id), name, kind, columns, others, when, params
                )
            )
        render(list(found.indexes()), settings.output)


def build(
    settings: Settings,
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="The table; every table of the catalog by default.")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this index; may be repeated.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be built, before segments are merged.")
    ] = False,
    **info: Unpack[CommitInfo],
) -> None:
    """Build what indexes lack: segments for data files that have none. Many small ones are merged."""
    with settings.connect() as lake, progress_bar(settings) as progress:
        catalog = settings.find_catalog(lake)
        result = catalog.build_indexes(table, name or None, dry_run=dry_run, progress=progress, **info)
    render(result.indexes, settings.output)


def _parameters(given: Iterable[str]) -> Iterable[tuple[str, object]]:
    """Numbers, true and false as JSON has them; all else is text."""
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InvalidArgument(f"a parameter of an index is written NAME=VALUE, not {text!r}")
        try:
            read: Any = json.loads(value)
        except ValueError:
            read = value
        yield name, read
