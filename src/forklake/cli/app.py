"""The program: its commands, its global options, and what becomes of errors."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import forklake
from forklake.cli.options import CatalogOption, JsonOption, LakeOption, Settings, with_settings
from forklake.cli.render import Output
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


COMMANDS = {
    "init": "commands",
    "moved": "commands",
    "upgrade": "maintenance",
    "create": "commands",
    "catalogs": "commands",
    "fork": "forks",
    "tree": "tree",
    "diff": "forks",
    "merge": "merge",
    "replay": "merge",
    "rename": "catalogs",
    "ttl": "catalogs",
    "materialize": "catalogs",
    "drop": "catalogs",
    "undrop": "restore",
    "restore": "restore",
    "undo": "restore",
    "tables": "commands",
    "describe": "commands",
    "indexes": "indexes",
    "index": "indexes",
    "build": "indexes",
    "snapshots": "commands",
    "history": "history",
    "sql": "sql",
    "load": "rows",
    "export": "rows",
    "head": "rows",
    "count": "rows",
    "compact": "maintenance",
    "expire": "cleaning",
    "gc": "cleaning",
    "orphans": "cleaning",
    "checkpoint": "checkpoint",
    "check": "checkpoint",
    "demo": "demo",
}
"""Each command, in the order of the help, and the module that has a function of its name."""


def function_of(command: str) -> Callable[..., None]:
    """The function behind a command."""
    return getattr(import_module(f"forklake.cli.{COMMANDS[command]}"), command)


class Commands(Mapping[str, Any]):
    """The commands by name; what one needs is loaded when it is asked for, since most programs run one."""

    def __getitem__(self, name: str) -> Any:
        """A command, ready to run."""
        if name not in COMMANDS:
            raise KeyError(name)
        alone = typer.Typer(add_completion=False)
        alone.command(name, cls=Command)(with_settings(function_of(name)))
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(COMMANDS)

    def __len__(self) -> int:
        """How many there are."""
        return len(COMMANDS)


class Program(TyperGroup):
    """The group of commands. An error that has a message for the user becomes one line on stderr."""

    def __init__(self, **settings: Any) -> None:
        """Take the commands from their table."""
        super().__init__(**settings)
        self.commands: Any = Commands()

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


def main() -> None:
    """Run the program on the arguments of the process, and exit."""
    app()
