"""What is typed into a search box, and where it is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.errors import InvalidQuery
from forklake.index.bm25.syntax import Boost, Everything, Group, Operator, Text, Tree, parse

COLUMNS = ("title", "my text")
A, B, C = Text("a"), Text("b"), Text("c")


def may(*parts: Tree) -> Group:
    return Group(tuple(("may", part) for part in parts))


def must(*parts: Tree) -> Group:
    return Group(tuple(("must", part) for part in parts))


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("a", A),
        ("(a)", A),
        ("a b", may(A, B)),
        ("a OR b", may(A, B)),
        ("a AND b", must(A, B)),
        ("a AND b c", may(must(A, B), C)),
        ("a OR b AND c", may(A, must(B, C))),
        ("a AND (b OR c)", must(A, may(B, C))),
        ("+a -b c", Group((("must", A), ("must not", B), ("may", C)))),
        ("a NOT b", Group((("may", A), ("must not", B)))),
        ("a AND NOT b", Group((("must", A), ("must not", B)))),
        ('"a b"', Text("a b", quoted=True)),
        ('"a b"~2', Text("a b", quoted=True, slop=2)),
        ('"a b"*', Text("a b", quoted=True, prefix=True)),
        ('"a b*"', Text("a b", quoted=True, prefix=True)),
        ('"a b*"~2 b', may(Text("a b", quoted=True, prefix=True, slop=2), B)),
        ('"a* b\\*"', Text("a* b*", quoted=True)),
        ('"*"', Text("*", quoted=True)),
        ("a*", Text("a", prefix=True)),
        ("*", Everything()),
        ("a^2.5 b", may(Boost(A, 2.5), B)),
        ("(a b)^2", Boost(may(A, B), 2.0)),
        ("title:a", Text("a", "title")),
        ("Title:(a b)", may(Text("a", "Title"), Text("b", "Title"))),
        ('my\\ text:"a b"', Text("a b", "my text", quoted=True)),
        ("don't e-mail c++ :-)"[:-1], may(Text("don't"), Text("e-mail"), Text("c++"), Text(":-"))),
        ("12\\:30 \\*a \\(b \\AND", may(Text("12:30"), Text("*a"), Text("(b"), Text("AND"))),
        ("a - b", may(A, Text("-"), B)),
        ("and or", may(Text("and"), Text("or"))),
    ],
)
def test_a_query_becomes_a_tree(query: str, tree: Tree) -> None:
    assert parse(query, COLUMNS) == tree


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("a b", must(A, B)),
        ("a OR b c", may(A, must(B, C))),
        ("a -b", Group((("must", A), ("must not", B)))),
    ],
)
def test_words_side_by_side_may_all_be_needed(query: str, tree: Tree) -> None:
    assert parse(query, COLUMNS, "and") == tree


@pytest.mark.parametrize(
    ("query", "place", "why"),
    [
        ("", 1, "is empty"),
        ("  ", 1, "is empty"),
        ('red "bicycle', 5, "quote is never closed"),
        ("red (a b", 5, "parenthesis is never closed"),
        ("red) a", 4, "never opened"),
        ("red AND", 8, "should stand here"),
        ("red AND OR b", 9, "OR stands between words"),
        ("AND b", 1, "AND stands between words"),
        ("titel:red", 1, 'no column "titel"'),
        ("a 12:30", 3, 'no column "12"'),
        ("title: red", 7, "what to search in it"),
        ("title:(title:a)", 8, "inside of another"),
        ("a*b", 2, "only at the end"),
        ("title:*", 7, "leave out the column"),
        ("a^b", 2, "followed by a number"),
        ("-a", 1, "only left out"),
        ("a (-b)", 4, "only left out"),
        ("()", 2, "should stand here"),
        ("(" * 65 + "a", 65, "nested"),
    ],
)
def test_a_query_that_does_not_parse_is_told_with_its_place(query: str, place: int, why: str) -> None:
    with pytest.raises(InvalidQuery, match=rf"at character {place}: .*{why}"):
        parse(query, COLUMNS)


@given(st.text('ab"()*^:+-~ 1\\') | st.text(), st.sampled_from(["or", "and"]))
def test_every_text_parses_or_is_refused(query: str, operator: Operator) -> None:
    try:
        parse(query, COLUMNS, operator)
    except InvalidQuery as error:
        assert "at character" in str(error)


def test_a_query_of_any_length_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="100,001 characters"):
        parse("a" * 100_001, COLUMNS)
