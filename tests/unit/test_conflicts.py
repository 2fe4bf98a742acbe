"""Every pair of verbs, on the same thing and on different things."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.commit.conflicts import CATALOG_VERBS, DROPPED, conflict_error, conflicts
from forklake.model.changes import UNDONE, Change, Verb
from forklake.model.ids import SnapshotId

VERBS = [verb for verb in Verb if verb not in CATALOG_VERBS]
NOUNS = {"schema", "table", "view", "macro"}

# What happens when ours follows theirs on the same object (columns: ours). "x" collides, "." commutes.
# Objects of different kinds have different ids, so only verbs of one kind can meet on one object.
TABLE = """
               rename_table alter_table require_column drop_table restore_table tag_table tag_column insert delete compact flush   create_index drop_index build_index
rename_table   x            x           x              x          x             .         .          .      .      .       .       .            .          .
alter_table    x            x           x              x          x             .         x          x      x      x       x       x            .          .
require_column x            x           x              x          x             .         x          x      x      x       x       x            .          .
drop_table     x            x           x              x          x             x         x          x      x      x       x       x            x          x
tag_table      .            .           .              x          x             x         x          .      .      .       .       .            .          .
tag_column     .            x           x              x          x             x         x          .      .      .       .       .            .          .
insert         .            .           x              .          x             .         .          .      .      .       .       .            .          .
delete         .            .           .              .          x             .         .          .      x      x       x       .            .          .
compact        .            .           .              .          x             .         .          .      x      x       x       .            .          .
flush          .            .           .              .          x             .         .          .      x      x       x       .            .          .
restore_table  .            .           .              .          x             .         .          .      .      .       .       .            .          .
create_index   .            x           x              x          x             .         .          .      .      .       .       x            .          .
drop_index     .            .           .              x          x             .         .          .      .      .       .       .            x          x
build_index    .            .           .              .          .             .         .          .      .      .       .       .            .          x
"""  # noqa: E501 - a table
VIEW = """
              rename_view alter_view drop_view tag_view
rename_view   x           x          x         .
alter_view    x           x          x         .
drop_view     x           x          x         x
tag_view      .           .          x         x
"""
MACRO = """
               rename_macro drop_macro tag_macro
rename_macro   x            x          .
drop_macro     x            x          x
tag_macro      .            x          x
"""
SCHEMA = """
                rename_schema drop_schema tag_schema
rename_schema   x             x           .
drop_schema     x             x           x
tag_schema      .             x           x
"""


def cells(text: str) -> list[tuple[Verb, Verb, bool]]:
    header, *rows = [line.split() for line in text.strip().splitlines()]
    return [
        (Verb(row[0]), Verb(ours), mark == "x")
        for row in rows
        for ours, mark in zip(header, row[1:], strict=True)
    ]


MATRIX = [cell for text in (TABLE, VIEW, MACRO, SCHEMA) for cell in cells(text)]


def change(
    verb: Verb, object_id: int, *, name: str, schema: int | None, files: frozenset[int] = frozenset({1})
) -> Change:
    inside = None if verb.endswith("_schema") else schema
    return Change(verb, object_id, inside, "main", name, detail="same", files=files)


def collide(theirs: Change, ours: Change) -> bool:
    return bool(conflicts([(SnapshotId(7), theirs)], [ours]))


@pytest.mark.parametrize(("theirs", "ours", "expected"), MATRIX, ids=lambda value: str(value))
def test_the_matrix_says_which_verbs_collide_on_one_object(theirs: Verb, ours: Verb, expected: bool) -> None:
    # Names differ, so that only the object is common.
    first = change(theirs, 5, name="before", schema=1)
    second = change(ours, 5, name="after", schema=1)
    assert collide(first, second) is expected


def test_an_index_is_built_once_for_a_file_and_its_model_is_trained_once() -> None:
    def built(name: str, *files: int) -> Change:
        return Change(Verb.BUILD_INDEX, 5, 1, "main", "t", detail=name, files=frozenset(files))

    assert collide(built("i", 1, 2), built("I", 2, 3))
    assert collide(built("i"), built("i"))
    assert not collide(built("i", 1, 2), built("i", 3))
    assert not collide(built("i"), built("i", 1))
    assert not collide(built("i", 1), built("j", 1))


@pytest.mark.parametrize("theirs", VERBS)
@pytest.mark.parametrize("ours", VERBS)
def test_changes_of_different_objects_elsewhere_commute(theirs: Verb, ours: Verb) -> None:
    assert not collide(change(theirs, 5, name="p", schema=1), change(ours, 6, name="q", schema=2))


@pytest.mark.parametrize("theirs", VERBS)
@pytest.mark.parametrize("ours", VERBS)
def test_two_objects_collide_on_one_name_only_if_both_claim_it(theirs: Verb, ours: Verb) -> None:
    claims = {"create", "rename"}
    (first, _, left), (second, _, right) = theirs.partition("_"), ours.partition("_")
    relations = {"table", "view"}
    shared = left == right or {left, right} <= relations
    expected = first in claims and second in claims and shared and left in NOUNS
    assert (
        collide(change(theirs, 5, name="same", schema=1), change(ours, 6, name="SAME", schema=1)) is expected
    )


@pytest.mark.parametrize("ours", [verb for verb in VERBS if not verb.endswith("_schema")])
def test_nothing_can_happen_in_a_schema_that_was_dropped(ours: Verb) -> None:
    dropped = change(Verb.DROP_SCHEMA, 1, name="s", schema=None)
    assert collide(dropped, change(ours, 5, name="t", schema=1))
    assert not collide(dropped, change(ours, 5, name="t", schema=2))


@pytest.mark.parametrize("theirs", [verb for verb in VERBS if not verb.endswith("_schema")])
def test_a_schema_that_something_came_into_is_not_dropped(theirs: Verb) -> None:
    enters = theirs.startswith(("create_", "rename_")) and theirs is not Verb.CREATE_INDEX
    ours = change(Verb.DROP_SCHEMA, 1, name="s", schema=None)
    assert collide(change(theirs, 5, name="t", schema=1), ours) is enters


@pytest.mark.parametrize("theirs", [Verb.DELETE, Verb.COMPACT, Verb.FLUSH])
@pytest.mark.parametrize("ours", [Verb.DELETE, Verb.COMPACT, Verb.FLUSH])
@given(left=st.frozensets(st.integers(0, 5)), right=st.frozensets(st.integers(0, 5)))
def test_rows_are_taken_from_different_files_in_parallel(theirs: Verb, ours: Verb, left, right) -> None:
    first = change(theirs, 5, name="t", schema=1, files=left)
    second = change(ours, 5, name="t", schema=1, files=right)
    assert collide(first, second) is bool(left & right)


@pytest.mark.parametrize("verb", sorted(CATALOG_VERBS))
@pytest.mark.parametrize("other", VERBS)
def test_renaming_a_catalog_disturbs_nobody(verb: Verb, other: Verb) -> None:
    whole = change(verb, 5, name="c", schema=1)
    assert not collide(whole, change(other, 5, name="c", schema=1))


def test_what_one_commit_did_is_undone_beside_others() -> None:
    undone = replace(change(Verb.RESTORE_TABLE, 5, name="t", schema=1), detail=UNDONE)
    assert collide(change(Verb.INSERT, 5, name="t", schema=1), replace(undone, detail=None))
    assert not collide(change(Verb.INSERT, 5, name="t", schema=1), undone)


@pytest.mark.parametrize("theirs", VERBS)
def test_a_catalog_is_restored_only_if_nothing_else_happened(theirs: Verb) -> None:
    happened = theirs is not Verb.BUILD_INDEX
    assert collide(change(theirs, 5, name="t", schema=1), Change(Verb.RESTORE_CATALOG, 0)) is happened


@pytest.mark.parametrize("ours", VERBS)
def test_nothing_goes_on_in_a_catalog_that_was_dropped(ours: Verb) -> None:
    dropped = (SnapshotId(7), Change(Verb.DROP_CATALOG, 0, name="c"))
    (found,) = conflicts([dropped], [change(ours, 5, name="t", schema=1)], [DROPPED])
    assert "dropped" in str(found)


def test_different_tags_of_one_table_commute() -> None:
    tag = change(Verb.TAG_TABLE, 5, name="t", schema=None)
    assert collide(tag, tag)
    assert not collide(tag, replace(tag, detail="other"))


def test_every_verb_stands_in_the_matrix() -> None:
    creates = {verb for verb in VERBS if verb.startswith("create_")}
    assert {theirs for theirs, _, _ in MATRIX} | creates == set(VERBS)
    assert {ours for _, ours, _ in MATRIX} | creates == set(VERBS)


def test_the_error_names_what_collided_and_what_to_do() -> None:
    theirs = change(Verb.ALTER_TABLE, 5, name='us"ers', schema=1)
    ours = change(Verb.INSERT, 5, name='us"ers', schema=1)
    error = conflict_error(conflicts([(SnapshotId(44), theirs)], [ours]), SnapshotId(41))
    assert str(error) == (
        'since snapshot 41, where this transaction started, table "us""ers" was altered in snapshot 44 '
        "(rows were written for the old definition): refresh and run it again"
    )
    (conflict,) = error.conflicts
    assert (conflict.ours, conflict.theirs, conflict.snapshot) == (ours, theirs, 44)
