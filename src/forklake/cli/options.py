"""The options that every command takes, before its name or after it."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forklake.api.connect import connect
from forklake.api.lake import Lake
from forklake.cli.render import Output
from forklake.errors import InvalidArgument
from forklake.model.time_travel import AsOf

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog

GLOBAL_PANEL = "Global options"
_LAST_SNAPSHOT = 2**63 - 1
_SPAN = re.compile(r"(\d{1,9})\s*(s|m|h|d)\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the global options and their environment variables say."""

    lake: str | None = None
    catalog: str | None = None
    output: Output = Output.TEXT

    @property
    def url(self) -> str:
        """The URL of the lake."""
        if not self.lake:
            raise InvalidArgument("no lake was named: pass --lake URL or set FORKLAKE_LAKE")
        return self.lake

    def connect(self) -> Lake:
        """Open the lake."""
        return connect(self.url)

    def find_catalog(self, lake: Lake, at: AsOf | None = None) -> Catalog:
        """The catalog that was named, now or as it was."""
        if not self.catalog:
            raise InvalidArgument("no catalog was named: pass --catalog NAME or set FORKLAKE_CATALOG")
        return lake.catalog(self.catalog, at=at)


def as_of(text: str) -> AsOf:
    """Read the number of a snapshot, or a time."""
    if text.isdecimal():
        if len(text) > len(str(_LAST_SNAPSHOT)) or int(text) > _LAST_SNAPSHOT:
            raise typer.BadParameter("it is larger than the number of any snapshot")
        return int(text)
    try:
        # A time without a zone is local; one that no calendar holds in UTC is refused here.
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter(
            f"{text!r} is neither the number of a snapshot nor a time such as 2025-01-31T12:00:00+00:00"
        ) from None


def span(text: str) -> timedelta:
    """Read how long a catalog is to live."""
    found = _SPAN.match(text.strip())
    length = found and timedelta(**{_UNITS[found[2]]: int(found[1])})
    if not length:
        raise InvalidArgument(f"{text!r} is no time to live: write 90s, 30m, 12h or 7d")
    return length


_AS_OF = "a snapshot by its number, or an ISO 8601 time, local unless it names a zone."


def _as_of_option(purpose: str) -> Any:
    return typer.Option(parser=as_of, metavar="SNAPSHOT|TIME", help=f"{purpose}: {_AS_OF}")


At = Annotated[Any, _as_of_option("Look at the past")]
GoBackTo = Annotated[Any, _as_of_option("What to go back to")]
StartAt = Annotated[Any, _as_of_option("Start from the parent's past")]

_LAKE: dict[str, Any] = {
    "metavar": "URL",
    "help": "The lake: sqlite:///lake.db, duckdb:///lake.duckdb or postgresql://user@host:5432/db.",
}
_CATALOG: dict[str, Any] = {"metavar": "NAME", "help": "The catalog to work on."}
_JSON: dict[str, Any] = {"help": "Print one JSON document instead of text."}

LakeOption = Annotated[str | None, typer.Option("--lake", envvar="FORKLAKE_LAKE", **_LAKE)]
CatalogOption = Annotated[str | None, typer.Option("--catalog", envvar="FORKLAKE_CATALOG", **_CATALOG)]
JsonOption = Annotated[bool, typer.Option("--json", **_JSON)]

# After a command's name the environment is not asked again: it would win over an option before the name.
_AGAIN: dict[str, Any] = {"show_default": False, "rich_help_panel": GLOBAL_PANEL}
_REPEATED = (
    ("lake", Annotated[str | None, typer.Option("--lake", **_LAKE, **_AGAIN)], None),
    ("catalog", Annotated[str | None, typer.Option("--catalog", **_CATALOG, **_AGAIN)], None),
    ("json", Annotated[bool, typer.Option("--json", **_JSON, **_AGAIN)], False),
)


_COMMIT: tuple[tuple[str, Any, Any], ...] = (
    (
        "author",
        Annotated[str | None, typer.Option("--author", metavar="NAME", help="The author of the commit.")],
        None,
    ),
    (
        "message",
        Annotated[str | None, typer.Option("--message", metavar="TEXT", help="The commit message.")],
        None,
    ),
)


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a function of settings and options into a command that takes the global options too.

    One that commits takes `**info`, and so the options that say who commits and why.
    """

    @functools.wraps(command)
    def run(context: typer.Context, lake: str | None, catalog: str | None, json: bool, **given: Any) -> None:
        settings: Settings = context.obj
        settings = Settings(
            settings.lake if lake is None else lake,
            settings.catalog if catalog is None else catalog,
            Output.JSON if json else settings.output,
        )
        command(settings, **given)

    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    named = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    common = _REPEATED if len(named) == len(own) else (*_COMMIT, *_REPEATED)
    parameters = [
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in named),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, annotation, default in common
        ),
    ]
    # Typer reads the signature to learn what a command takes.
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
