"""What a commit did: verbs on objects, as values, as DuckLake's notation and as a stored footprint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from forklake.display import MOST_ROWS, Shown, html_table, html_title
from forklake.errors import InvalidArgument
from forklake.model.ids import ColumnId, SnapshotId
from forklake.model.names import quoted


class Verb(StrEnum):
    """Everything that a commit can do to one object."""

    CREATE_CATALOG = "create_catalog"
    RENAME_CATALOG = "rename_catalog"
    DROP_CATALOG = "drop_catalog"
    UNDROP_CATALOG = "undrop_catalog"
    RESTORE_CATALOG = "restore_catalog"
    FORK_CATALOG = "fork_catalog"
    COPY_CATALOG = "copy_catalog"
    MERGE_CATALOG = "merge_catalog"
    CREATE_SCHEMA = "create_schema"
    RENAME_SCHEMA = "rename_schema"
    DROP_SCHEMA = "drop_schema"
    CREATE_TABLE = "create_table"
    RENAME_TABLE = "rename_table"
    ALTER_TABLE = "alter_table"
    REQUIRE_COLUMN = "require_column"
    DROP_TABLE = "drop_table"
    RESTORE_TABLE = "restore_table"
    CREATE_VIEW = "create_view"
    RENAME_VIEW = "rename_view"
    ALTER_VIEW = "alter_view"
    DROP_VIEW = "drop_view"
    CREATE_MACRO = "create_macro"
    RENAME_MACRO = "rename_macro"
    DROP_MACRO = "drop_macro"
    CREATE_INDEX = "create_index"
    DROP_INDEX = "drop_index"
    BUILD_INDEX = "build_index"
    TAG_SCHEMA = "tag_schema"
    TAG_TABLE = "tag_table"
    TAG_COLUMN = "tag_column"
    TAG_VIEW = "tag_view"
    TAG_MACRO = "tag_macro"
    INSERT = "insert"
    DELETE = "delete"
    COMPACT = "compact"
    FLUSH = "flush"


UNLESS_THERE = "unless there"
"""The detail of an insert of rows whose keys were looked for first."""
RESOLVED = "resolved"
"""The detail of a delete of rows that both sides of a merge had changed: the merge itself did that."""
REWRITTEN = "rewritten"
"""The detail of an insert of rows that were there before, with other values."""
SORTED = "sorted"
"""The detail of an altered table whose files get another sort order, and whose columns are what they were."""
UNDONE = "undone"
"""The detail of a restored table of which only what one commit did was taken back."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object, with what another commit would have to change to conflict with it."""

    verb: Verb
    object_id: int
    schema_id: int | None = None
    schema: str | None = None
    name: str | None = None
    """The name of the object after the change."""
    detail: str | None = None
    """The key of a tag, with its column; the kind of a macro; the name of an index of the table; what an
    insert depends on."""
    files: frozenset[int] = frozenset()
    """Ids of data files that a delete, compaction or flush changed, or that an index was built for."""
    paths: frozenset[str] = frozenset()
    """Paths of imported files."""
    rows: frozenset[int] = frozenset()
    """Ids of rows that `prefer` of a merge decided."""
    words: tuple[str, ...] = field(default=(), compare=False)
    """What DuckLake calls it, where that says how it was done; others need not know."""

    def __str__(self) -> str:
        """One clause for people, such as `table "users" was altered`."""
        return describe(self)

    @property
    def tag(self) -> tuple[ColumnId | None, str]:
        """The column and the key of the tag that was set."""
        column, _, key = (self.detail or "").partition(":")
        return (ColumnId(int(column)) if column else None), key

    def renumbered(self, ids: Callable[[int], int]) -> Change:
        """The same change after provisional ids were replaced by those the commit was given."""
        schema_id = None if self.schema_id is None else ids(self.schema_id)
        return replace(self, object_id=ids(self.object_id), schema_id=schema_id)


def tag_detail(column: ColumnId | None, key: str) -> str:
    """The detail of a change of a tag."""
    return f"{'' if column is None else column}:{key}"


@dataclass(frozen=True, slots=True)
class RowConflict:
    """A row that both sides changed: before, and in each of them. None where it is deleted."""

    row_id: int
    base: dict[str, Any] | None
    ours: dict[str, Any] | None
    """The row in the source of the merge."""
    theirs: dict[str, Any] | None
    """The row in the target."""

    def _repr_html_(self) -> str:
        """For notebooks: its columns, as each side has them."""
        sides = (self.base, self.ours, self.theirs)
        names = list(dict.fromkeys(name for side in sides for name in side or ()))
        rows = [
            (name, *("(deleted)" if side is None else side.get(name) for side in sides))
            for name in names[:MOST_ROWS]
        ]
        listed = html_table(("column", "base", "ours", "theirs"), rows, len(names))
        return html_title("RowConflict", f"row {self.row_id}") + listed


@dataclass(frozen=True, slots=True)
class Conflict(Shown):
    """Two changes that conflict: ours, and theirs, which was committed first."""

    rule: str
    ours: Change
    theirs: Change
    snapshot: SnapshotId
    """The snapshot id of theirs."""
    ours_snapshot: SnapshotId | None = None
    """The snapshot id of ours in the source of a merge; None in a transaction."""
    files: tuple[str, ...] = ()
    """The paths of the data files from which both deleted rows."""
    row_count: int = 0
    """The number of rows that both changed."""
    read_rows: Callable[[], list[RowConflict]] = field(default=list, repr=False, compare=False)

    def rows(self) -> list[RowConflict]:
        """Read the rows that both changed; empty if the conflict is not about rows."""
        return self.read_rows()

    def __str__(self) -> str:
        """One clause for people, such as `table "users" was altered in snapshot 44`."""
        rows = f": {self.row_count}" if self.row_count else ""
        what = describe(self.theirs, changed=self.row_count > 0)
        return f"{what} in snapshot {self.snapshot} ({self.rule}{rows})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets all but the rows: they are read by the one that merged."""
        kept = [getattr(self, each.name) for each in fields(self) if each.compare]
        return Conflict, (*kept, _rows_elsewhere if self.row_count else list)


def _rows_elsewhere() -> list[RowConflict]:
    raise InvalidArgument(
        "the rows of a conflict are read in the process that merged: merge again with dry_run"
    )


_PAST = {
    "create": "was created",
    "rename": "was renamed",
    "alter": "was altered",
    "require": "was altered",
    "drop": "was dropped",
    "undrop": "was brought back",
    "restore": "was restored",
    "fork": "was forked",
    "copy": "was materialized",
    "merge": "was merged",
    "tag": "was commented",
    "insert": "got rows",
    "delete": "lost rows",
    "compact": "was compacted",
    "flush": "was flushed",
    "build": "was built",
}


def describe(change: Change, *, changed: bool = False) -> str:
    """What happened to which object, as a clause; `changed` if rows were updated or deleted."""
    action, _, noun = change.verb.partition("_")
    noun = {"": "table", "column": "table"}.get(noun, noun)
    label = "" if change.name is None else " " + quoted(change.name)
    if change.name is not None and change.schema not in (None, "main"):
        label = f" {quoted(change.schema or '')}.{quoted(change.name)}"
    if noun == "index":
        noun, label = "index", f" {quoted(change.detail or '')} of table{label}"
    return f"{noun}{label} {'has changed rows' if changed else _PAST[action]}"


def notation(changes: Iterable[Change]) -> str:
    """`changes_made` as DuckLake writes it, each entry once."""
    return ",".join(dict.fromkeys(entry for change in changes for entry in _entries(change)))


def _entries(change: Change) -> Iterable[str]:
    if change.words:
        return [f"{word}:{change.object_id}" for word in change.words]
    return [_entry(change)]


def _entry(change: Change) -> str:
    word = _WORDS.get(change.verb, "altered_table").format(kind=change.detail)
    match change.verb:
        case Verb.CREATE_CATALOG | Verb.CREATE_SCHEMA:
            return f"{word}:{quoted(change.name or '')}"
        case Verb.CREATE_TABLE | Verb.CREATE_VIEW | Verb.CREATE_MACRO:
            return f"{word}:{quoted(change.schema or '')}.{quoted(change.name or '')}"
        case _:
            return f"{word}:{change.object_id}"


# Renames, new requirements and comments of a table are all "altered" to DuckLake.
_WORDS = {
    Verb.CREATE_CATALOG: "created_catalog",
    Verb.RENAME_CATALOG: "altered_catalog",
    Verb.DROP_CATALOG: "dropped_catalog",
    Verb.UNDROP_CATALOG: "undropped_catalog",
    Verb.RESTORE_CATALOG: "restored_catalog",
    Verb.FORK_CATALOG: "forked_from",
    Verb.COPY_CATALOG: "materialized",
    Verb.MERGE_CATALOG: "merged_from",
    Verb.CREATE_SCHEMA: "created_schema",
    Verb.RENAME_SCHEMA: "altered_schema",
    Verb.DROP_SCHEMA: "dropped_schema",
    Verb.TAG_SCHEMA: "altered_schema",
    Verb.CREATE_TABLE: "created_table",
    Verb.DROP_TABLE: "dropped_table",
    Verb.RESTORE_TABLE: "restored_table",
    Verb.CREATE_VIEW: "created_view",
    Verb.RENAME_VIEW: "altered_view",
    Verb.ALTER_VIEW: "altered_view",
    Verb.DROP_VIEW: "dropped_view",
    Verb.TAG_VIEW: "altered_view",
    Verb.CREATE_MACRO: "created_{kind}_macro",
    Verb.RENAME_MACRO: "altered_macro",
    Verb.DROP_MACRO: "dropped_{kind}_macro",
    Verb.TAG_MACRO: "altered_macro",
    Verb.INSERT: "inserted_into_table",
    Verb.DELETE: "deleted_from_table",
    Verb.COMPACT: "merge_adjacent",
    Verb.FLUSH: "inline_flush",
}


def to_footprint(changes: Iterable[Change]) -> str:
    """The changes as compact JSON, one object each, leaving out what is not set."""
    return json.dumps([_to_json(change) for change in changes], separators=(",", ":"), ensure_ascii=False)


def _to_json(change: Change) -> dict[str, Any]:
    fields = {
        "verb": str(change.verb),
        "id": change.object_id,
        "schema_id": change.schema_id,
        "schema": change.schema,
        "name": change.name,
        "detail": change.detail,
        "files": sorted(change.files) or None,
        "paths": sorted(change.paths) or None,
        "rows": sorted(change.rows) or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def from_footprint(text: str) -> tuple[Change, ...]:
    """Read back what `to_footprint` wrote."""
    return tuple(
        Change(
            Verb(entry["verb"]),
            entry["id"],
            schema_id=entry.get("schema_id"),
            schema=entry.get("schema"),
            name=entry.get("name"),
            detail=entry.get("detail"),
            files=frozenset(entry.get("files", ())),
            paths=frozenset(entry.get("paths", ())),
            rows=frozenset(entry.get("rows", ())),
        )
        for entry in json.loads(text)
    )
