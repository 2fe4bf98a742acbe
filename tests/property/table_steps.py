"""Programs as values: a table, the steps that are done to it, and what a step makes of its columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tests.property.table_model import Condition, Table

DML = ("append", "delete", "update", "overwrite", "merge")
LAYOUT = ("flush", "compact", "rewrite_deletes", "set_partitioning", "set_sort_order", "set_option")
"""What changes where rows are, and never what they are."""
DDL = (
    "add_column",
    "drop_column",
    "rename_column",
    "alter_type",
    "set_default",
    "drop_default",
    "set_nullable",
    "reorder",
    "rename",
    "add_field",
    "drop_field",
    "rename_field",
    "alter_field",
)

Op = tuple[Any, ...]


@dataclass(frozen=True)
class Look:
    """A question about the rows."""

    where: Condition
    columns: tuple[str, ...]
    form: str
    extreme: str


@dataclass(frozen=True)
class Step:
    """Something that happens, and a question that is asked afterwards."""

    handle: int
    action: str
    """`do` one thing, a `transaction` or a `rollback` of many, an `overlap` of two handles, or `reopen`."""
    ops: tuple[Op, ...] = ()
    look: Look | None = None
    theirs: Op | None = None


@dataclass(frozen=True)
class Program:
    """A whole story."""

    ddl: str
    start: Table = field(repr=False)
    steps: tuple[Step, ...] = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """As hypothesis shows it."""
        printer.text(str(self))

    def __str__(self) -> str:
        lines = [f"create table ({self.ddl})"]
        for step in self.steps:
            theirs = "" if step.theirs is None else f" while the other does {step.theirs}"
            lines.append(f"[{step.handle}] {step.action}{theirs}")
            lines += [f"    {op}" for op in step.ops]
            if step.look is not None:
                lines.append(f"    look: {step.look}")
        return "\n".join(lines)


def reshaped(table: Table, op: Op) -> Table:
    """A table of the model after a change of its structure; anything else leaves it as it is."""
    match op:
        case "add_column", name, type, default, nullable:
            return table.create(name, type, default=default, nullable=nullable)
        case "add_field", path, type:
            return table.add_field(path, type)
        case "drop_column", path:
            return table.drop_column(path)
        case "rename_column", path, name:
            return table.rename_column(path, name)
        case "alter_type", path, type:
            return table.alter_type(path, type)
        case "set_default", name, default:
            return table.set_default(name, default)
        case "set_nullable", name, flag:
            return table.set_nullable(name, flag)
        case "reorder", names:
            return table.reorder(names)
        case "rename", name:
            return replace(table, name=name)
        case "set_partitioning", _, keys:
            return replace(table, laid_out=frozenset(keys))
        case "set_sort_order", _, keys:
            return replace(table, sorted_by=frozenset(keys))
        case _:
            return table
