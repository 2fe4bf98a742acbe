"""Expressions over a source and a target."""

from __future__ import annotations

import pytest

from forklake.errors import ColumnNotFound, ForklakeError, InvalidPredicate
from forklake.model.expressions import check_qualified

SIDES = {"source": {"id", "delta"}, "target": {"id", "n"}}


@pytest.mark.parametrize(
    "text", ["source.delta + target.n", "SOURCE.Delta", "1", "upper('x') || source.id::VARCHAR"]
)
def test_an_expression_that_names_its_sides_is_kept(text: str) -> None:
    assert text in check_qualified(text, SIDES)


@pytest.mark.parametrize("text", ["delta", "other.delta", "id + 1"])
def test_a_column_without_its_side_is_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate, match=r"source\.\w+ or target\.\w+"):
        check_qualified(text, SIDES)


def test_a_column_that_its_side_does_not_have_is_refused() -> None:
    with pytest.raises(ColumnNotFound, match="target has no column"):
        check_qualified("target.delta", SIDES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "source.id)",
        "source.id) FROM x --",
        "(SELECT 1)",
        "sum(source.id)",
        "source.*",
        "source.id, target.id",
        "source.id; DROP TABLE x",
        "$1",
        "source.id -- more",
        "row_number() OVER ()",
        "a b c",
        "\0",
        None,
    ],
)
def test_what_is_not_one_expression_over_rows_is_refused(text: object) -> None:
    with pytest.raises(ForklakeError):
        check_qualified(text, SIDES)
