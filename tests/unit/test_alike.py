"""Names that differ only in case, and the nearest name to one that is not there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.errors import AmbiguousName
from forklake.model.alike import all_letters, fold, instead, instead_of, nearest, pick
from forklake.model.names import QualifiedName


@given(st.text())
def test_folding_changes_letters_of_ascii_and_nothing_else(name: str) -> None:
    folded = fold(name)
    assert len(folded) == len(name)
    assert all(a == b or (a.isascii() and a.lower() == b) for a, b in zip(name, folded, strict=True))
    assert not any("A" <= letter <= "Z" for letter in folded)
    assert fold(folded) == folded


def test_the_exact_name_is_picked_or_the_only_one_in_another_case() -> None:
    assert pick("a", ["A", "a"], "table") == "a"
    assert pick("a", ["A", "b"], "table") == "A"
    assert pick("a", ["b"], "table") is None
    assert pick("ä", ["Ä"], "table") is None
    assert pick("ä", ["Ä"], "column", all_letters) == "Ä"
    with pytest.raises(AmbiguousName, match=r'^column "ab" may be "AB" and "Ab", which differ only in case'):
        pick("ab", ["Ab", "AB"], "column")


def test_the_nearest_of_many_names_is_found_and_nothing_far_away() -> None:
    many = [f"Table_{number}" for number in range(5000)]
    assert nearest("tabel_77", many) == "Table_77"
    assert nearest("xyz", many) is None
    assert instead("ordesr", ["users", "orders"]) == 'did you mean "orders"?'
    assert instead("xyz", ["users", "orders"]) == 'there are "users", "orders"'
    assert instead("xyz", []) == "there are none"
    assert instead("?", many[:12]).endswith('"Table_9" and 2 more')


def test_what_is_in_another_schema_is_named_with_it() -> None:
    known = [QualifiedName("main", "users"), QualifiedName("sales", "Orders")]
    assert instead_of(QualifiedName("main", "orders"), known) == 'did you mean "sales.Orders"?'
    assert instead_of(QualifiedName("main", "ordesr"), known) == 'did you mean "sales.Orders"?'
    assert instead_of(QualifiedName("main", "user"), known) == 'did you mean "main.users"?'
    assert instead_of(QualifiedName("main", "xyz"), known) == 'there are "main.users", "sales.Orders"'
