"""The range of values that a predicate leaves to a column."""

from __future__ import annotations

import pytest

from forklake.model.sql.predicate import is_one_range, ranges
from forklake.model.types.sort_keys import HIGHEST, LOWEST
from tests.unit.predicate.columns import BY_NAME, key, tree


def hull(text, **options):
    return [(low, high, nulls) for _, low, high, nulls in ranges(tree(text), **options)]


def test_a_range_covers_what_a_column_may_be():
    one, five, nine = (key("id", n) for n in (1, 5, 9))
    assert hull("id = 5") == [(five, five, False)]
    assert hull("id in (9, 1, 5)") == hull("id = 1 or id = 9") == [(one, nine, False)]
    assert hull("id between 1 and 9") == hull("not (id < 1 or id > 9)") == [(one, nine, False)]
    assert hull("id > 1 and id < 9 and id >= 5") == [(five, nine, False)]
    assert hull("id < 5") == [(LOWEST, five, False)]
    assert hull("not id <= 5") == [(five, HIGHEST, False)]
    assert hull("name like 'a%'") == [("61", "61~", False)]
    assert hull("(id = 1 and flag) or (id = 9 and i = 2)") == [(one, nine, False)]
    assert hull("id = 1 or false or null") == [(one, one, False)]


NO_RANGE = ["id is null", "id is not null", "id <> 1", "id not in (1)", "id = 1 or i = 2", "false", "true"]
NO_RANGE += ["name not like 'a%'", "name like '%'", "id < 5 or id > 3", "id = 1 or abs(id) = 2"]


@pytest.mark.parametrize("text", NO_RANGE)
def test_what_excludes_no_range_has_none(text):
    assert hull(text) == hull(text, with_nulls=True) == []


def test_ranges_that_want_null_have_to_be_asked_for():
    one = key("id", 1)
    assert hull("id = 1 or id is null") == []
    assert hull("id = 1 or id is null", with_nulls=True) == [(one, one, True)]
    assert hull("(id = 1 or id is null) and id is not null and id < 5") == [(one, one, False)]


def test_the_most_selective_range_comes_first():
    text = "f >= 1 and price between 1 and 2 and name like 'a%' and i = 1 and id in (1, 2)"
    order = [found.column_id for found in ranges(tree(text))]
    assert order[0] == BY_NAME["i"].id
    assert set(order[1:3]) == {BY_NAME["Name"].id, BY_NAME["id"].id}
    assert order[3:] == [BY_NAME["price"].id, BY_NAME["f"].id]


def test_one_closed_range_is_told_from_everything_else():
    assert all(is_one_range(tree(text)) for text in ("id = 1", "id >= 1 and id <= 5", "name ^@ 'a'"))
    others = (
        "id < 1",
        "id in (1, 5)",
        "id = 1 and i = 1",
        "id = 1 or id = 2",
        "id is null",
        "abs(id) = 1",
        "not id = 1",
        "true",
    )
    assert not any(is_one_range(tree(text)) for text in others)
