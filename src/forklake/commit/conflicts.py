"""The table of conflict rules. Pure.

A transaction that started at snapshot B may be published at head H if nothing that the catalog committed in
(B, H] collides with it. A rule names the verbs that were committed first (theirs), the verbs that come after
them (ours), and what the two must have in common to collide. Pairs that no rule names commute: ours is
published on top of theirs as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from forklake.errors import CommitConflict
from forklake.model.alike import fold
from forklake.model.changes import REWRITTEN, UNDONE, UNLESS_THERE, Change, Conflict, Verb
from forklake.model.ids import SnapshotId

CREATES = frozenset({Verb.CREATE_SCHEMA, Verb.CREATE_TABLE, Verb.CREATE_VIEW, Verb.CREATE_MACRO})
RENAMES = frozenset({Verb.RENAME_SCHEMA, Verb.RENAME_TABLE, Verb.RENAME_VIEW, Verb.RENAME_MACRO})
DROPS = frozenset({Verb.DROP_SCHEMA, Verb.DROP_TABLE, Verb.DROP_VIEW, Verb.DROP_MACRO})
RESHAPES = frozenset({Verb.ALTER_TABLE, Verb.REQUIRE_COLUMN, Verb.ALTER_VIEW})
ALTERS = RENAMES | RESHAPES
TAGS = frozenset({Verb.TAG_SCHEMA, Verb.TAG_TABLE, Verb.TAG_COLUMN, Verb.TAG_VIEW, Verb.TAG_MACRO})
COLUMN_TAGS = frozenset({Verb.TAG_COLUMN})
DML = frozenset({Verb.INSERT, Verb.DELETE, Verb.COMPACT, Verb.FLUSH})
INSERTS = frozenset({Verb.INSERT})
RESTORES = frozenset({Verb.RESTORE_TABLE})
CHANGES_ROWS = frozenset({Verb.INSERT, Verb.DELETE})
MERGES = frozenset({Verb.MERGE_CATALOG})
CREATES_INDEX = frozenset({Verb.CREATE_INDEX})
DROPS_INDEX = frozenset({Verb.DROP_INDEX})
BUILDS_INDEX = frozenset({Verb.BUILD_INDEX})
RETIRES = frozenset({Verb.DELETE, Verb.COMPACT, Verb.FLUSH})
CATALOG_VERBS = frozenset(verb for verb in Verb if verb.endswith("_catalog"))
ENTERS = (CREATES | RENAMES) - {Verb.CREATE_SCHEMA, Verb.RENAME_SCHEMA}
EVERYTHING = frozenset(Verb) - CATALOG_VERBS

TAKEN = "the name is taken"
OUTDATED = "rows were written for the old definition"
ALTERED = "its columns were altered"
COMMENTED = "a comment was set on its columns"
INDEXED = "an index was created on its columns"
INDEX_TAKEN = "the table has an index of that name"
YIELDING = frozenset({OUTDATED, ALTERED})
"""Where it is enough to know of theirs before ours is made: the other way round, they do not collide."""

Meets = Callable[[Change, Change], bool]


def same_object(theirs: Change, ours: Change) -> bool:
    """Both changed the same schema, table, view or macro."""
    return theirs.object_id == ours.object_id


def same_name(theirs: Change, ours: Change) -> bool:
    """Both claim one name in one namespace, whatever its case.

    Tables and views share theirs; an expression and a query may be macros of the same name.
    """
    if (_namespace(theirs), theirs.schema_id) != (_namespace(ours), ours.schema_id):
        return False
    return fold(theirs.name or "") == fold(ours.name or "")


def same_file(theirs: Change, ours: Change) -> bool:
    """Both took rows from the same data file."""
    return theirs.object_id == ours.object_id and not theirs.files.isdisjoint(ours.files)


def same_path(theirs: Change, ours: Change) -> bool:
    """Both made the same file part of the same table."""
    return theirs.object_id == ours.object_id and not theirs.paths.isdisjoint(ours.paths)


def ours_looked(theirs: Change, ours: Change) -> bool:
    """Ours adds rows to a table because there were none with their keys, and theirs has added some."""
    met = theirs.object_id == ours.object_id and ours.detail == UNLESS_THERE
    return met and theirs.detail != REWRITTEN


def ours_restores(theirs: Change, ours: Change) -> bool:
    """Ours makes the table what it was, and theirs has changed it: then it would be something else."""
    return theirs.object_id == ours.object_id and ours.detail != UNDONE


def always(theirs: Change, ours: Change) -> bool:
    """Whatever they are about."""
    return True


def same_tag(theirs: Change, ours: Change) -> bool:
    """Both set the same tag of the same object or column."""
    return theirs.object_id == ours.object_id and theirs.detail == ours.detail


def same_index(theirs: Change, ours: Change) -> bool:
    """Both are about an index of one name of the same table."""
    return theirs.object_id == ours.object_id and fold(theirs.detail or "") == fold(ours.detail or "")


def same_segment(theirs: Change, ours: Change) -> bool:
    """Both built an index for the same data files, or trained its model."""
    common = not theirs.files.isdisjoint(ours.files) or not (theirs.files or ours.files)
    return common and same_index(theirs, ours)


def ours_inside_theirs(theirs: Change, ours: Change) -> bool:
    """Ours happened in the schema that theirs changed."""
    return ours.schema_id == theirs.object_id


def theirs_inside_ours(theirs: Change, ours: Change) -> bool:
    """Theirs happened in the schema that ours changes."""
    return theirs.schema_id == ours.object_id


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs of theirs and of ours that collide when they meet."""

    reason: str
    theirs: frozenset[Verb]
    ours: frozenset[Verb]
    meets: Meets


RULES: tuple[Rule, ...] = (
    Rule(TAKEN, CREATES | RENAMES, CREATES | RENAMES, same_name),
    Rule("it is gone", DROPS, EVERYTHING, same_object),
    Rule("its schema is gone", frozenset({Verb.DROP_SCHEMA}), EVERYTHING, ours_inside_theirs),
    Rule("the schema is no longer empty", ENTERS, frozenset({Verb.DROP_SCHEMA}), theirs_inside_ours),
    Rule("both change its definition", ALTERS, ALTERS | DROPS, same_object),
    Rule("a comment was set on what ours drops", TAGS, DROPS, same_object),
    Rule(OUTDATED, RESHAPES, DML, same_object),
    Rule(
        "rows were written that may hold NULL",
        INSERTS,
        frozenset({Verb.REQUIRE_COLUMN}),
        same_object,
    ),
    Rule("both take rows from one data file", RETIRES, RETIRES, same_file),
    Rule("both import one file", INSERTS, INSERTS, same_path),
    Rule("rows were added that ours has not looked at", INSERTS, INSERTS, ours_looked),
    Rule("both set the same tag", TAGS, TAGS, same_tag),
    Rule(ALTERED, RESHAPES, COLUMN_TAGS, same_object),
    Rule(COMMENTED, COLUMN_TAGS, RESHAPES, same_object),
    Rule(INDEX_TAKEN, CREATES_INDEX, CREATES_INDEX, same_index),
    Rule("the index is gone", DROPS_INDEX, DROPS_INDEX | BUILDS_INDEX, same_index),
    Rule("the index was built for the same files", BUILDS_INDEX, BUILDS_INDEX, same_segment),
    Rule(ALTERED, RESHAPES, CREATES_INDEX, same_object),
    Rule(INDEXED, CREATES_INDEX, RESHAPES, same_object),
    Rule("its indexes were changed", CREATES_INDEX | DROPS_INDEX, DROPS, same_object),
    # What is built finds the same rows in the same files, whatever else becomes of them.
    Rule("ours restores it as it was before that", EVERYTHING - BUILDS_INDEX, RESTORES, ours_restores),
    Rule(
        "ours restores all as it was before that",
        EVERYTHING - BUILDS_INDEX,
        frozenset({Verb.RESTORE_CATALOG}),
        always,
    ),
)

# Who drops a table in a transaction has seen what it holds, or nearly so; a fork may be of long ago.
MERGE_RULES: tuple[Rule, ...] = (
    *RULES,
    Rule("ours drops it with rows that it has not seen", CHANGES_ROWS, DROPS, same_object),
    # What another merge brings may be the same: then it must be told apart anew.
    Rule("something was merged meanwhile", MERGES, MERGES, always),
)


# A merge asks what happened to a catalog in all its life; a transaction, whether what it has read still is.
DROPPED = Rule("the catalog was dropped and brought back", frozenset({Verb.DROP_CATALOG}), EVERYTHING, always)


def conflicts(
    theirs: Iterable[tuple[SnapshotId, Change]], ours: Sequence[Change], rules: Sequence[Rule] = RULES
) -> list[Conflict]:
    """Every pair of changes that collides, in the order in which theirs were committed."""
    return [
        Conflict(rule.reason, change, committed, snapshot)
        for snapshot, committed in theirs
        for change in ours
        for rule in rules
        if committed.verb in rule.theirs and change.verb in rule.ours and rule.meets(committed, change)
    ]


def conflict_error(found: Sequence[Conflict], base: SnapshotId) -> CommitConflict:
    """The exception for collisions, saying what to do."""
    shown = "; ".join(str(conflict) for conflict in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return CommitConflict(
        f"since snapshot {base}, where this transaction started, {shown}{more}: refresh and run it again",
        found,
    )


def _namespace(change: Change) -> str:
    match change.verb.partition("_")[2]:
        case "table" | "view":
            return "relation"
        case "macro":
            return f"{change.detail} macro"
        case noun:
            return noun
