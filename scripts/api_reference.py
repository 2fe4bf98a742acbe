"""The reference in docs/api.md, made from docstrings: `python -m scripts.api_reference > docs/api.md`."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import Any

import forklake
import forklake.distributed
import forklake.spark
from forklake import errors
from forklake.api.table_statistics import ColumnFacts
from forklake.commit.reservation_cleanup import Swept
from forklake.fork.replay import ReplayResult
from forklake.model.changes import RowConflict
from forklake.model.distributed import ReservationInfo
from forklake.model.entities import CatalogInfo, Column, MacroInfo, Schema, TableInfo, ViewInfo
from forklake.model.snapshots import Snapshot
from forklake.scan.scan_plan import Pruned, ScanFile, ScanRows

_HEAD = """\
# Python API

Made by `python -m scripts.api_reference > docs/api.md`; a test fails when it is stale.

What is below can be imported from `forklake`, `forklake.spark` and `forklake.distributed`. Anything else may
change.

- `**commit_info` stands for the keywords `author=`, `message=` and `extra=`, which are stored with the
  commit. A transaction takes them when it begins.
- `AsOf` is a snapshot id, a `datetime` or an ISO 8601 string; without a time zone it is local time.
- A `Name` is `"orders"` (in schema `main`), `"sales.orders"`, or a pair `("sales", "orders")`.
- `Rows` are Arrow tables, batches and streams, pandas and polars DataFrames, DuckDB relations, a scan, files
  (`Lake.read`), a dict of columns, or a list of dicts.
- A condition (`where`) is a DuckDB SQL expression over the row: `"price > 10 AND city = 'Lyon'"`.
"""

HANDLES = ("connect", "init", "Lake", "Catalog", "Transaction", "Table", "Scan", "ChangeFeed")
"""What is shown first, in this order."""

RETURNED = (
    Snapshot,
    CatalogInfo,
    Schema,
    TableInfo,
    ViewInfo,
    MacroInfo,
    Column,
    ColumnFacts,
    RowConflict,
    ReplayResult,
    ReservationInfo,
    Swept,
    ScanFile,
    ScanRows,
    Pruned,
)
"""Values that methods return, and that nobody has to import."""

INTERNAL = {
    "Scan": {"selection"},
    "ChangeFeed": {"predicate", "source"},
    "RowDiff": {"predicate", "source"},
    "Change": {"renumbered"},
    "Options": {"with_settings"},
    "Rewrite": {"newest_row"},
    "ScanPlan": {"find_pruned", "has_old_names", "mappings", "steady"},
    "Schema": {"origin", "path"},
    "Column": {"order", "origin"},
    "BaseFile": {"inlined_since", "replaces"},
    "Conflict": {"read_rows"},
    "Manifest": {"at", "digest", "piece", "sizes"},
    "ForklakeDataSource": {
        "name",
        "reader",
        "schema",
        "simpleStreamReader",
        "streamReader",
        "streamWriter",
        "writer",
    },
}
"""Members that other parts of forklake use, and that users have no use for."""


class _Shown:
    """Which functions stand on the page already, and under which class."""

    def __init__(self) -> None:
        self.owners: dict[object, str] = {}


def reference() -> str:
    """The whole page."""
    shown = _Shown()
    names = [*HANDLES, *(name for name in forklake.__all__ if name not in HANDLES and not _is_error(name))]
    parts = [
        _HEAD,
        *_module(forklake, names, shown),
        *_module(forklake.spark, forklake.spark.__all__, shown),
        *_module(forklake.distributed, forklake.distributed.__all__, shown),
        *_returned(shown),
        *_errors(),
    ]
    return "\n".join(parts)


def _returned(shown: _Shown) -> Iterator[str]:
    yield "## Values that methods return\n"
    yield "There is no need to import these.\n"
    for kind in RETURNED:
        yield from _class(kind.__name__, kind, shown)


def _is_error(name: str) -> bool:
    value = getattr(forklake, name)
    return inspect.isclass(value) and issubclass(value, Exception)


def _module(module: ModuleType, names: list[str] | tuple[str, ...], shown: _Shown) -> Iterator[str]:
    yield f"## {module.__name__}\n"
    if module is not forklake:
        yield f"{inspect.getdoc(module)}\n"
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value):
            yield from _class(name, value, shown)
        elif inspect.isfunction(value):
            yield f"### `{name}`\n"
            yield from _function(name, value)
        else:
            yield f"### `{name}`\n"
            yield f"The string `{value!r}`: the name of a column in rows that `write_part` takes.\n"


def _class(name: str, kind: type[Any], shown: _Shown) -> Iterator[str]:
    yield f"### class `{name}`\n"
    yield f"{_doc(kind)}\n"
    yield from _fields(kind)
    for attribute, text in _attributes(kind).items():
        yield f"- **`{attribute}`**: {' '.join(text.split())}\n"
    elsewhere: dict[str, list[str]] = {}
    for member, value in _members(kind):
        if member in INTERNAL.get(name, set()):
            continue
        known = shown.owners.setdefault(_function_of(value), name)
        if known != name:
            elsewhere.setdefault(known, []).append(member)
        elif isinstance(value, property | cached_property):
            yield f"- **`{member}`**: {_one_paragraph(_function_of(value))}\n"
        else:
            yield f"#### `{name}.{member}`\n"
            yield from _function(member, getattr(kind, member))
    for owner, members in elsewhere.items():
        yield f"As in `{owner}`: {', '.join(f'`{member}`' for member in members)}.\n"


def _members(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Methods and properties, those of the class before those of its bases, each as it is written."""
    seen: set[str] = set()
    for owner in kind.__mro__:
        if not owner.__module__.startswith("forklake"):
            continue
        for member, value in vars(owner).items():
            if member.startswith("_") or member in seen:
                continue
            if isinstance(
                value, property | cached_property | classmethod | staticmethod
            ) or inspect.isfunction(value):
                seen.add(member)
                yield member, value


def _function_of(value: Any) -> object:
    if isinstance(value, cached_property):
        return value.func
    if isinstance(value, property):
        return value.fget
    return getattr(value, "__func__", value)


def _function(name: str, function: Any) -> Iterator[str]:
    yield f"```text\n{_signature(name, function)}\n```\n"
    yield f"{_doc(function)}\n"


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    texts = list(_parameters(parameters))
    answer = signature.return_annotation
    end = "" if answer in (inspect.Signature.empty, "None", None) else f" -> {_type(answer)}"
    line = f"{name}({', '.join(texts)}){end}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {text}," for text in texts), f"){end}"])


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    keyword = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            yield _keywords(parameter)
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            keyword = True
            yield "*"
        has_type = parameter.annotation is not inspect.Parameter.empty
        has_default = parameter.default is not inspect.Parameter.empty
        text = f"{parameter.name}: {_type(parameter.annotation)}" if has_type else parameter.name
        yield f"{text} = {parameter.default!r}" if has_default else text


def _keywords(parameter: inspect.Parameter) -> str:
    match _type(parameter.annotation):
        case "Unpack[CommitInfo]":
            return "**commit_info"
        case "Unpack[ForkKeywords]":
            return "**options of Lake.fork"
        case "Unpack[MergeKeywords]":
            return "**options of Lake.merge"
        case other:
            return f"**{parameter.name}: {other}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _fields(kind: type[Any]) -> Iterator[str]:
    """The attributes of a value, with the strings that stand below them."""
    if not is_dataclass(kind):
        return
    described: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if is_dataclass(owner):
            described |= _described(owner)
    hidden = INTERNAL.get(kind.__name__, set())
    rows = [field for field in fields(kind) if not field.name.startswith("_") and field.name not in hidden]
    if rows:
        yield "| attribute | type | |"
        yield "|---|---|---|"
        for field in rows:
            text = " ".join(described.get(field.name, "").split())
            kind_text = _type(field.type).replace("|", "\\|")
            yield f"| `{field.name}` | `{kind_text}` | {text} |"
        yield ""


def _attributes(kind: type[Any]) -> dict[str, str]:
    """What `__init__` sets on a handle, if a string stands below it."""
    return {} if is_dataclass(kind) else _described(kind.__init__, public_only=True)


def _described(owner: Any, *, public_only: bool = False) -> dict[str, str]:
    """Attributes that are assigned in a class or function, with the strings that stand below them."""
    if not (inspect.isclass(owner) or inspect.isfunction(owner)):
        return {}
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    body = tree.body if isinstance(tree, ast.ClassDef | ast.FunctionDef) else []
    found: dict[str, str] = {}
    for before, after in pairwise(body):
        name = _assigned(before)
        if name and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[name] = str(after.value.value)
    return {name: text for name, text in found.items() if not (public_only and name.startswith("_"))}


def _assigned(statement: ast.stmt) -> str | None:
    """The name of the attribute that a statement assigns: `x: int = 1` in a class, `self.x = 1` elsewhere."""
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
        case ast.Assign(targets=[ast.Attribute(attr=name)]):
            return name
        case _:
            return None


def _doc(value: Any) -> str:
    return inspect.getdoc(value) or ""


def _one_paragraph(value: Any) -> str:
    return " ".join(_doc(value).split())


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    yield "All are in `forklake`. An error says what happened and what to do next.\n"
    yield f"```text\n{(inspect.getdoc(errors) or '').split(chr(10), 2)[2]}\n```\n"
    for name in forklake.__all__:
        if _is_error(name):
            yield from _error(name, getattr(forklake, name))


def _error(name: str, kind: type[Exception]) -> Iterator[str]:
    base = kind.__mro__[1].__name__
    carried = [
        key for key in inspect.signature(kind.__init__).parameters if key in ("conflicts", "snapshot_id")
    ]
    more = f" Has `{carried[0]}`." if carried else ""
    yield f"- **`{name}`** ({base}): {_one_paragraph(kind)}{more}"


if __name__ == "__main__":
    sys.stdout.write(reference() + "\n")
