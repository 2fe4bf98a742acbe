"""A query that was read, and what its functions are called by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from forklake.engine.query.tables import QueryTable
from forklake.engine.query.tree import QueryTree, hide_columns
from forklake.engine.query.workbench import Workbench
from forklake.lazy.arrow import pa


class CallFunction(Protocol):
    """Calls a function of ours by its name and arguments; None if there is none of this name."""

    def __call__(
        self,
        name: Sequence[str],
        positional: Sequence[Any],
        named: Mapping[str, Any],
        /,
        *,
        only_columns: bool = False,
    ) -> pa.Table | None:
        """With `only_columns`, one that changes something does not, and returns no rows."""
        ...


def no_function(*_: Any, only_columns: bool = False) -> None:
    """There are no functions of ours."""


@dataclass(slots=True)
class Query:
    """A query that was read: its text, and its tree."""

    text: str
    tree: QueryTree
    lists: list[str] = field(default_factory=list[str])
    """Lists of values that PIVOT needs, to be found before the query is run."""
    shown: dict[int, tuple[str, QueryTable]] = field(default_factory=dict[int, tuple[str, QueryTable]])
    """Nodes of the tree that show a table of a lake, with the name that the query gives it."""
    answers: dict[int, tuple[str, frozenset[str]]] = field(
        default_factory=dict[int, tuple[str, frozenset[str]]]
    )
    """Nodes that show what a function returned, with their name and the columns that `*` does not mean."""

    @property
    def first_name(self) -> str | None:
        """What the query calls the first table that it reads; a WITH before it is not looked at."""
        node = self.tree.root["statements"][0]["node"].get("from_table")
        if node is None:
            return None
        return str(node.get("alias") or node.get("table_name") or "") or None

    def sql(self, workbench: Workbench) -> str:
        """As it is to be run: as it was written, if it can be."""
        hidden = self.answers | {
            node: (name, frozenset(table.virtual))
            for node, (name, table) in self.shown.items()
            if table.virtual
        }
        if hidden:
            hide_columns(self.tree, hidden)
        return self.tree.sql(workbench.connection) if self.tree.is_changed else self.text
