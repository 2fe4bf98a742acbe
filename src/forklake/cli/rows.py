"""The commands that bring rows in and show them, without SQL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from forklake.api.lake import context_of
from forklake.cli.options import At, Settings
from forklake.cli.progress import progress_bar
from forklake.cli.render import Output, render
from forklake.errors import InvalidArgument, TableNotFound
from forklake.model.snapshots import CommitInfo
from forklake.model.types.data_types import to_sql

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog
    from forklake.api.table import Table

TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="The table: orders (in schema main) or sales.orders.")
]
Where = Annotated[
    str | None,
    typer.Option(metavar="CONDITION", help="Only rows that meet a condition in SQL: \"status = 'new'\"."),
]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Rows of files that were appended to a table."""

    table: str
    rows: int
    created: bool
    snapshot: int


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows a table has."""

    table: str
    rows: int


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written."""

    file: str
    rows: int


def load(
    settings: Settings,
    table: TableName,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="CSV, Parquet or JSON files, or patterns such as 'in/*.csv'."),
    ],
    create: Annotated[
        bool, typer.Option("--create", help="Create a table that is not there, with the files' columns.")
    ] = False,
    cast: Annotated[
        bool, typer.Option("--cast", help="Convert strings to dates, doubles to decimals and the like.")
    ] = False,
    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="csv, parquet, json or ndjson; by default by the files' names."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of DuckDB's reader: delim=';'. May be repeated."),
    ] = None,
    **info: Unpack[CommitInfo],
) -> None:
    """Append the rows of files to a table, as one commit: all of them or none."""
    with settings.connect() as lake:
        catalog = settings.find_catalog(lake)
        given: dict[str, Any] = dict(map(_option, option or ()))
        rows = lake.read(files, format=format, **given)
        with progress_bar(settings) as progress:
            found = _found(catalog, table, or_created=create)
            if found is None:
                made = catalog.create_table(table, rows, append=True, progress=progress, **info)
                result = Loaded(made.full_name, made.count(), True, catalog.snapshot)
            else:
                count = found.append(rows, cast=cast, progress=progress, **info)
                result = Loaded(found.full_name, count, False, catalog.snapshot)
        render(result, settings.output)


def head(
    settings: Settings,
    table: TableName,
    number: Annotated[int, typer.Option("--rows", "-n", metavar="N", min=0, help="How many rows.")] = 10,
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these columns, with commas: id,customer.name.")
    ] = None,
    where: Where = None,
    at: At = None,
) -> None:
    """Show some rows of a table, in no particular order."""
    from forklake.cli.rows_shown import render_rows

    names = None if columns is None else [name.strip() for name in columns.split(",")]
    with settings.connect() as lake:
        found = settings.find_catalog(lake, at).table(table)
        scan = found.scan(where, names, limit=number)
        types = [to_sql(column.data_type) for column in scan.selection.columns]
        render_rows(context_of(lake).engine, scan.to_arrow(), types, settings.output)


def count(settings: Settings, table: TableName, where: Where = None, at: At = None) -> None:
    """Print the number of rows of a table; without a condition, from the statistics."""
    with settings.connect() as lake:
        found = settings.find_catalog(lake, at).table(table)
        result = Counted(found.full_name, found.scan(where).count())
    if settings.output is Output.JSON:
        render(result, settings.output)
    else:
        typer.echo(result.rows)


def export(
    settings: Settings,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table; with --sql, leave it out.")],
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A file that ends in .parquet, .csv, .tsv, .json or .ndjson."),
    ] = None,
    sql: Annotated[
        str | None, typer.Option("--sql", metavar="QUERY", help="Instead of a table, the rows of a query.")
    ] = None,
    where: Where = None,
    at: At = None,
) -> None:
    """Write the rows of a table, or of a query, to a file: all of them, or there is no file."""
    from forklake.engine.export_rows import export_format, export_rows

    if (file is None) == (sql is None) or (sql is not None and where is not None):
        raise typer.BadParameter("name a table and a file, or a file and --sql QUERY")
    path = Path(table if file is None else file)
    export_format(path)
    with settings.connect() as lake:
        catalog = settings.find_catalog(lake, at)
        if sql is None:
            source = catalog.table(table).scan(where)
        else:
            source = catalog.sql(sql, read_only=True)
            if not source.columns:
                raise InvalidArgument("the query has no rows: write a SELECT")
        number = export_rows(context_of(lake).engine, source.to_reader(), path)
    render(Exported(str(path), number), settings.output)


def _found(catalog: Catalog, name: str, *, or_created: bool) -> Table | None:
    try:
        return catalog.table(name)
    except TableNotFound as error:
        if or_created:
            return None
        raise TableNotFound(f"{error}; --create makes it with the columns of the files") from None


def _option(text: str) -> tuple[str, Any]:
    """An option of a reader: numbers and true or false are not text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is no option: write NAME=VALUE")
    known: dict[str, Any] = {"true": True, "false": False}
    if value.lower() in known:
        return name, known[value.lower()]
    return name, int(value) if value.lstrip("-").isdecimal() else value
