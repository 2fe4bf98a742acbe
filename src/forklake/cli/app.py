"""The program: its commands, its global options, and what becomes of errors."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import forklake
from forklake.cli import catalogs as managing
from forklake.cli import commands
from forklake.cli import forks as forking
from forklake.cli import maintenance as maintaining
from forklake.cli import merge as merging
from forklake.cli import restore as going_back
from forklake.cli.demo import demo
from forklake.cli.options import CatalogOption, JsonOption, LakeOption, Settings, with_settings
from forklake.cli.render import Output
from forklake.cli.tree import tree
from forklake.display import literal
from forklake.errors import ForklakeError

REFUSED = 1
INTERRUPTED = 130
PIPE_CLOSED = 141


class Command(TyperCommand):
    """A command, with help in the words of the reference."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows its name: an argument that is needed has no braces around it."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def get_params(self, ctx: Any) -> list[Any]:
        """Its arguments and options."""
        return _plain(super().get_params(ctx))


class Program(TyperGroup):
    """The group of commands. An error that has a message for the user becomes one line on stderr."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the program."""
        return _plain(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _forget_stdout()
            raise typer.Exit(PIPE_CLOSED) from None
        except OSError as error:
            _forget_stdout()
            raise _refusal(str(error), REFUSED) from error
        except ForklakeError as error:
            raise _refusal(str(error), REFUSED) from error
        except KeyboardInterrupt as error:
            raise _refusal("interrupted", INTERRUPTED) from error


def _plain(params: list[Any]) -> list[Any]:
    """Flags take no value, so their help names no type of one."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


def _refusal(message: str, code: int) -> typer.Exit:
    line = " ".join(part.strip() for part in message.splitlines())
    typer.echo(f"forklake: {literal(line)}", err=True)
    return typer.Exit(code)


def _forget_stdout() -> None:
    """Send what is still buffered nowhere, or the interpreter would complain on its way out."""
    with contextlib.suppress(OSError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


# Errors of our own making are bugs: a plain traceback is what a report needs.
app = typer.Typer(
    name="forklake",
    cls=Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forklake {forklake.__version__}")
        raise typer.Exit


@app.callback()
def program(
    context: typer.Context,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    json: JsonOption = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A lakehouse that keeps many catalogs in one metadata database."""
    context.obj = Settings(lake, catalog, Output.JSON if json else Output.TEXT)


# Nothing is imported late: `forklake/__init__.py`, which runs before any of this, has loaded it all already.
COMMANDS: tuple[Callable[..., None], ...] = (
    commands.init,
    commands.moved,
    commands.create,
    commands.catalogs,
    forking.fork,
    tree,
    forking.diff,
    merging.merge,
    merging.replay,
    managing.rename,
    managing.ttl,
    managing.materialize,
    managing.drop,
    going_back.undrop,
    going_back.restore,
    going_back.undo,
    commands.tables,
    commands.describe,
    commands.snapshots,
    maintaining.compact,
    demo,
)
for command in COMMANDS:
    app.command(cls=Command)(with_settings(command))


def main() -> None:
    """Run the program on the arguments of the process, and exit."""
    app()
