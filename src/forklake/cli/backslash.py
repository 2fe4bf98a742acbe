"""What begins with a backslash at the prompt: looking around, and settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from forklake.cli.describe import describe_table, render_description
from forklake.cli.render import Output, to_plain, write_record, write_table
from forklake.errors import InvalidArgument, TableNotFound
from forklake.model.names import QualifiedName
from forklake.sql.parser.synopsis import found
from forklake.sql.session import session_of

if TYPE_CHECKING:
    from forklake.model.entities import ViewInfo
    from forklake.sql.session import Session

HELP = """\
  \\d            tables and views             \\d NAME       a table or a view, with its columns
  \\dt [NAMES]   tables, as in sales.* or ord*
  \\dv [NAMES]   views                        \\dn          schemas
  \\l            catalogs of the lake         \\c NAME       go to another catalog
  \\x            rows as blocks: on or off    \\timing      time of each statement: on or off
  \\pager        pages for long results: on or off
  \\i FILE       run the statements of a file
  \\h NAME       how a statement is written, as in \\h merge
  \\?            this list                    \\q           leave, as Ctrl-D does

A statement ends with a semicolon and may have many lines. Tab completes words and names. Ctrl-C ends
the statement that runs, or forgets what was typed. Between BEGIN and COMMIT, all is one commit."""


@dataclass(slots=True)
class PromptState:
    """What a prompt knows beside the session."""

    session: Session
    run: Callable[[str], None]
    """Runs the statements of a text, and shows what comes of them."""
    blocks: bool = False
    timing: bool = False
    pager: bool = True


class Leave(Exception):
    """The person wants to leave."""


def run_backslash(line: str, state: PromptState) -> None:
    """Do what a line says."""
    word, _, argument = line.strip().rstrip(";").partition(" ")
    action = COMMANDS.get(word)
    if action is None:
        raise InvalidArgument(f"there is no {word}: \\? lists what there is")
    action(state, argument.strip())


def _help(state: PromptState, argument: str) -> None:
    typer.echo(HELP)


def _show_synopsis(state: PromptState, argument: str) -> None:
    shown = found(argument)
    if not shown:
        raise InvalidArgument(f"there is no statement {argument.upper()}: \\h lists all")
    if not argument:
        typer.echo("\n".join(shown))
        return
    typer.echo("\n\n".join(f"{text};" for text in shown.values()))


def _leave(state: PromptState, argument: str) -> None:
    raise Leave


def _toggle_blocks(state: PromptState, argument: str) -> None:
    state.blocks = not state.blocks
    typer.echo(f"Rows as blocks: {_on(state.blocks)}.")


def _toggle_timing(state: PromptState, argument: str) -> None:
    state.timing = not state.timing
    typer.echo(f"Timing: {_on(state.timing)}.")


def _toggle_pager(state: PromptState, argument: str) -> None:
    state.pager = not state.pager
    typer.echo(f"Pages: {_on(state.pager)}.")


def _run_file(state: PromptState, argument: str) -> None:
    name = _needed(argument, "\\i FILE")
    try:
        text = Path(name).expanduser().read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{name} is no text in UTF-8: {error.reason}") from error
    state.run(text)


def _change_catalog(state: PromptState, argument: str) -> None:
    session, name = state.session, _needed(argument, "\\c NAME")
    if session.open is not None:
        raise InvalidArgument("a transaction is open: COMMIT or ROLLBACK it first")
    state.session = session_of(session.lake, session.lake.catalog(name.strip('"')))


def _list_catalogs(state: PromptState, argument: str) -> None:
    write_table(to_plain(state.session.lake.catalogs()))


def _list_schemas(state: PromptState, argument: str) -> None:
    write_table([{"schema": schema.name} for schema in state.session.work.schemas()])


def _list_tables(state: PromptState, argument: str) -> None:
    write_table(_matching(_tables(state.session), argument))


def _list_views(state: PromptState, argument: str) -> None:
    write_table(_matching(_views(state.session), argument))


def _describe(state: PromptState, argument: str) -> None:
    session = state.session
    if not argument:
        write_table([*_tables(session), *_views(session)])
        return
    name = QualifiedName.parse(argument)
    if "." not in argument:
        name = QualifiedName(session.schema, name.name)
    try:
        render_description(describe_table(session.work, name), Output.TEXT)
    except TableNotFound:
        view = _view(session, name)
        if view is None:
            raise
        write_record({"schema": view.schema, "name": view.name, "query": view.sql})
        columns = session.run(f"FROM {name} LIMIT 0")
        typer.echo()
        write_table(
            [
                {"column": column, "type": kind}
                for column, kind in zip(columns.columns, columns.types, strict=True)
            ]
        )
        columns.close()


def _on(flag: bool) -> str:
    return "on" if flag else "off"


def _needed(argument: str, usage: str) -> str:
    if not argument:
        raise InvalidArgument(f"something is missing: {usage}")
    return argument


def _tables(session: Session) -> list[dict[str, Any]]:
    return [{"schema": one.schema, "name": one.name, "kind": "table"} for one in session.work.tables()]


def _views(session: Session) -> list[dict[str, Any]]:
    return [{"schema": one.schema, "name": one.name, "kind": "view"} for one in session.work.views()]


def _matching(rows: Sequence[dict[str, Any]], pattern: str) -> list[dict[str, Any]]:
    """Those of a pattern: `ord*` in any schema, `sales.*` in one."""
    if not pattern:
        return list(rows)
    schema, dot, name = pattern.lower().rpartition(".")
    return [
        row
        for row in rows
        if fnmatchcase(row["name"].lower(), name) and (not dot or fnmatchcase(row["schema"].lower(), schema))
    ]


def _view(session: Session, name: QualifiedName) -> ViewInfo | None:
    for view in session.work.views():
        if (view.schema.lower(), view.name.lower()) == (name.schema.lower(), name.name.lower()):
            return view
    return None


COMMANDS: Mapping[str, Callable[[PromptState, str], None]] = {
    "\\?": _help,
    "\\c": _change_catalog,
    "\\d": _describe,
    "\\dn": _list_schemas,
    "\\dt": _list_tables,
    "\\dv": _list_views,
    "\\h": _show_synopsis,
    "\\i": _run_file,
    "\\l": _list_catalogs,
    "\\pager": _toggle_pager,
    "\\q": _leave,
    "\\timing": _toggle_timing,
    "\\x": _toggle_blocks,
}
