"""The command that runs SQL: an interactive prompt, or a filter for scripts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from forklake.cli.options import Settings
from forklake.cli.render import Output, is_terminal
from forklake.errors import InvalidArgument


def sql(
    settings: Settings,
    command: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", metavar="TEXT", help="Run these statements. May be repeated."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Run the statements of a file.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the rows to a file that ends in .parquet, .csv, .tsv, .json or .ndjson.",
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="The value of a parameter $NAME. May be repeated."),
    ] = None,
    one_transaction: Annotated[
        bool, typer.Option("--one-transaction", "-1", help="Commit all statements together, or none.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse statements that change something.")
    ] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="FOLDER", help="A folder whose files may be read and written. May be repeated."),
    ] = None,
    max_rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="End a statement that returns more rows.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0.001, help="End a statement that takes longer.")
    ] = None,
    max_memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="End a statement that needs more memory, as in 512MiB.")
    ] = None,
) -> None:
    r"""Run SQL on a catalog, or on the whole lake: at a terminal a prompt, elsewhere a filter.

    Statements come from --command, --file or stdin. As text, every result is printed; as JSON, as CSV and in
    a file, the rows of the last statement that has a result. The first error ends it and says where it is.
    What was committed before stays, unless --one-transaction. At the prompt, \\? lists what is beside SQL.
    """
    from forklake.cli.sql_output import ScriptOutput
    from forklake.cli.sql_script import Script, read_parameters
    from forklake.sql.options import checked_options
    from forklake.sql.session import session_of

    if csv and settings.output is Output.JSON:
        raise typer.BadParameter("--csv and --json are two forms: choose one")
    if command and file is not None:
        raise typer.BadParameter("statements come from --command or from --file, not from both")
    form = "json" if settings.output is Output.JSON else "csv" if csv else "text"
    printed = ScriptOutput(form, output)
    options = checked_options(
        {
            "read_only": read_only,
            "allow": allow or (),
            "max_rows": max_rows,
            "max_seconds": max_seconds,
            "max_memory": max_memory,
        }
    )
    params = read_parameters(param or [])
    with settings.connect() as lake:
        session = session_of(lake, lake.catalog(settings.catalog) if settings.catalog else None)
        if command is None and file is None and printed.is_text and _is_prompt():
            from forklake.cli.prompt import Prompt

            Prompt(session, options, params).run()
            return
        text = "\n;\n".join(command) if command else _read(file)
        Script(text, params, options, one_transaction).run(session, printed)


def _is_prompt() -> bool:
    """Whether a person types and reads."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def _read(file: Path | None) -> str:
    try:
        if file is not None:
            return file.read_text(encoding="utf-8")
        return "" if sys.stdin is None else sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{file or 'the input'} is no text in UTF-8: {error.reason}") from error
