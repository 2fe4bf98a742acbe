"""The reference in docs/cli.md, made from the program: `python -m forklake.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from forklake.cli.app import app
from forklake.cli.catalogs import CatalogDropped, CatalogNow, TimeToLive
from forklake.cli.cleaning import Expired
from forklake.cli.commands import CatalogListed, LakeThere
from forklake.cli.demo import DemoResult
from forklake.cli.describe import TableDescription
from forklake.cli.forks import DiffShown, ForkMade
from forklake.cli.history import SnapshotListed
from forklake.cli.merge import Merged, Replayed
from forklake.cli.options import GLOBAL_PANEL
from forklake.cli.rows import Counted, Exported, Loaded
from forklake.compact.compaction import CompactedTable
from forklake.maintenance.build_indexes import BuiltIndex
from forklake.maintenance.check import CheckResult
from forklake.maintenance.checkpoint import CheckpointResult
from forklake.maintenance.collect import GarbageResult
from forklake.maintenance.orphans import OrphansResult
from forklake.model.entities import TableInfo
from forklake.model.fork_tree import ForkTree
from forklake.model.index import IndexInfo
from forklake.store.upgrades.upgrade import UpgradeResult

_HEAD = """\
# The command line

Made by `python -m forklake.cli.reference > docs/cli.md`; a test fails when it is stale.

```text
forklake [--lake URL] [--catalog NAME] [--json] COMMAND
```
"""

_RULES = """\
Global options may be given before the command or after it; after it they take precedence.

- **Text** output leaves out values that are not set; control characters are escaped, such as `\\x1b`. On a
  terminal long cells are wrapped; in a pipe each row is one line.
- **JSON** output (`--json`) is one document in ASCII, with stable keys and ISO 8601 timestamps. Values that
  are not set are `null`.
- **Exit codes**: 0 done; 1 refused, with one line on stderr that says why and what to do; 2 wrong usage;
  130 interrupted; 141 when the reader of the output closed the pipe. A merge with conflicts, also a dry run,
  exits with 1 and lists them on stdout.
- **Snapshot ids** are lake-wide: within one catalog they have gaps.
"""

RESULTS: dict[str, tuple[str, type[Any] | None]] = {
    "init": ("an object", LakeThere),
    "moved": ("an object", LakeThere),
    "upgrade": ("an object", UpgradeResult),
    "create": ("an object", CatalogNow),
    "catalogs": ("a list of objects", CatalogListed),
    "fork": ("an object", ForkMade),
    "tree": ("an object", ForkTree),
    "diff": ("an object", DiffShown),
    "merge": ("an object", Merged),
    "replay": ("an object", Replayed),
    "rename": ("an object", CatalogNow),
    "ttl": ("an object", TimeToLive),
    "materialize": ("an object", CatalogNow),
    "drop": ("a list of objects", CatalogDropped),
    "undrop": ("an object", CatalogNow),
    "restore": ("an object", CatalogNow),
    "undo": ("an object", CatalogNow),
    "tables": ("a list of objects", TableInfo),
    "describe": ("an object", TableDescription),
    "indexes": ("a list of objects", IndexInfo),
    "index": ("a list of objects", IndexInfo),
    "build": ("a list of objects", BuiltIndex),
    "snapshots": ("a list of objects", SnapshotListed),
    "history": ("a list of objects", SnapshotListed),
    "sql": ("a list of objects", None),
    "load": ("an object", Loaded),
    "export": ("an object", Exported),
    "head": ("a list of objects", None),
    "count": ("an object", Counted),
    "compact": ("a list of objects", CompactedTable),
    "expire": ("an object", Expired),
    "gc": ("an object", GarbageResult),
    "orphans": ("an object", OrphansResult),
    "checkpoint": ("an object", CheckpointResult),
    "check": ("an object", CheckResult),
    "demo": ("an object", DemoResult),
}
"""What each command prints as JSON; None stands for rows, whose keys are their columns."""


def reference() -> str:
    """The whole page."""
    command = typer.main.get_command(app)
    if not isinstance(command, TyperGroup):
        raise TypeError("the program has several commands, so it is a group")
    sections = [_section(name, inner) for name, inner in command.commands.items()]
    return "\n".join([_HEAD, _table(command.params), _RULES, *sections])


def _section(name: str, command: Any) -> str:
    own = [param for param in command.params if param.rich_help_panel != GLOBAL_PANEL]
    return "\n".join([f"## `{name}`\n", f"{command.help}\n", *_usage(name, own), _json(name)])


def _usage(name: str, params: list[TyperArgument | TyperOption]) -> Iterator[str]:
    arguments = [_argument(param) for param in params if isinstance(param, TyperArgument)]
    options = ["[OPTIONS]"] if len(params) > len(arguments) else []
    yield f"```text\n{' '.join(['forklake', name, *arguments, *options])}\n```\n"
    if params:
        yield _table(params)


def _argument(param: TyperArgument) -> str:
    name = param.metavar or ""
    return (name if param.required else f"[{name}]") + ("..." if param.nargs != 1 else "")


def _table(params: Iterable[Any]) -> str:
    return "\n".join(["| | |", "|---|---|", *map(_line, params)]) + "\n"


def _line(param: TyperArgument | TyperOption) -> str:
    names = [] if isinstance(param, TyperArgument) else param.opts
    name = " ".join([*names, *filter(None, [param.metavar])])
    variable = f" By default the environment variable `{param.envvar}`." if param.envvar else ""
    shown = [text.replace("|", "\\|") for text in (f"`{name}`", f"{param.help}{variable}")]
    return f"| {' | '.join(shown)} |"


def _json(name: str) -> str:
    form, kind = RESULTS[name]
    if kind is None:
        return f"JSON: {form}, one for each row, with its columns.\n"
    return f"JSON: {form} with {', '.join(f'`{field.name}`' for field in fields(kind))}.\n"


if __name__ == "__main__":
    typer.echo(reference(), nl=False)
