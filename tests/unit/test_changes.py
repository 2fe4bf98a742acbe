"""The record of a commit: DuckLake's notation for people, a footprint for the next commit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.model.changes import Change, Verb, describe, from_footprint, notation, to_footprint

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)
CHANGES = st.builds(
    Change,
    st.sampled_from(Verb),
    st.integers(0, 2**63 - 1),
    st.none() | st.integers(0, 2**63 - 1),
    st.none() | NAMES,
    st.none() | NAMES,
    st.none() | NAMES,
    st.frozensets(st.integers(0, 2**63 - 1)),
)


@given(st.lists(CHANGES))
def test_a_footprint_reads_back_as_it_was(changes: list[Change]) -> None:
    assert from_footprint(to_footprint(changes)) == tuple(changes)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change(Verb.CREATE_SCHEMA, 3, name='s"2'), 'created_schema:"s""2"'),
        (Change(Verb.CREATE_TABLE, 3, 1, "main", "t"), 'created_table:"main"."t"'),
        (Change(Verb.RENAME_TABLE, 3, 1, "main", "t"), "altered_table:3"),
        (Change(Verb.ALTER_TABLE, 3, 1, "main", "t"), "altered_table:3"),
        (Change(Verb.TAG_TABLE, 3), "altered_table:3"),
        (Change(Verb.DROP_TABLE, 3), "dropped_table:3"),
        (Change(Verb.CREATE_VIEW, 3, 1, "main", "v"), 'created_view:"main"."v"'),
        (Change(Verb.TAG_VIEW, 3), "altered_view:3"),
        (Change(Verb.DROP_VIEW, 3), "dropped_view:3"),
        (Change(Verb.CREATE_MACRO, 3, 1, "main", "m", "scalar"), 'created_scalar_macro:"main"."m"'),
        (Change(Verb.CREATE_MACRO, 3, 1, "main", "m", "table"), 'created_table_macro:"main"."m"'),
        (Change(Verb.DROP_MACRO, 3, detail="table"), "dropped_table_macro:3"),
        (Change(Verb.DROP_SCHEMA, 3), "dropped_schema:3"),
        (Change(Verb.INSERT, 3), "inserted_into_table:3"),
        (Change(Verb.DELETE, 3), "deleted_from_table:3"),
        (Change(Verb.COMPACT, 3), "merge_adjacent:3"),
        (Change(Verb.FLUSH, 3), "inline_flush:3"),
    ],
)
def test_the_notation_is_ducklakes(change: Change, text: str) -> None:
    assert notation([change]) == text


def test_one_table_altered_in_many_ways_is_noted_once() -> None:
    verbs = (Verb.RENAME_TABLE, Verb.ALTER_TABLE, Verb.REQUIRE_COLUMN, Verb.TAG_TABLE)
    assert (
        notation([Change(verb, 3) for verb in verbs] + [Change(Verb.DROP_TABLE, 4)])
        == "altered_table:3,dropped_table:4"
    )


@pytest.mark.parametrize("verb", list(Verb))
def test_every_verb_can_be_told_in_words_and_in_notation(verb: Verb) -> None:
    change = Change(verb, 3, 1, "main", "thing")
    assert describe(change).split()[0] in {"catalog", "schema", "table", "view", "macro", "index"}
    assert '"thing"' in describe(change)
    assert ":" in notation([change])
