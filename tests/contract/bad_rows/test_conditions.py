"""Conditions and expressions that are none, or that fail: refused by name, before anything changes."""

from __future__ import annotations

import pytest

import forklake
from forklake.errors import InvalidArgument, InvalidData, InvalidPredicate


@pytest.mark.parametrize("where", ["id", "'x'", "7", "id + 1", "lower(name)", "price", "ok AND id", "s.a"])
def test_what_is_no_condition_is_refused(refuse, where: str) -> None:
    for do in (
        lambda t: t.scan(where),
        lambda t: t.delete(where),
        lambda t: t.update({"name": "'x'"}, where),
        lambda t: t.overwrite([{"id": 1}], where),
        lambda t: t.changes(2, where=where),
    ):
        refuse(do, InvalidPredicate, repr(where), "no condition")


def test_what_duckdb_finds_true_or_false_is_a_condition(table: forklake.Table) -> None:
    for where, count in (
        ("contains(name, 'n1')", 10),
        ("CASE WHEN id > 7 THEN TRUE END", 13),
        ("(id > 7)::BOOLEAN", 13),
        ("ok", 0),
        ("NULL", 0),
        ("random() < 2", 16),
    ):
        assert table.scan(where).count() == count, where


def test_a_condition_that_fails_is_named(refuse) -> None:
    where = "id > 'abc'"
    for do in (
        lambda t: t.scan(where).to_arrow(),
        lambda t: list(t.scan(where).to_batches()),
        lambda t: t.scan(where).count(),
        lambda t: t.scan(where).min("id"),
        lambda t: t.delete(where),
        lambda t: t.update({"name": "'x'"}, where),
        lambda t: t.changes(2, where=where).count(),
    ):
        refuse(do, InvalidPredicate, f"the predicate {where!r}", "abc")
    refuse(lambda t: t.scan("nope(id)"), InvalidPredicate, "the predicate 'nope(id)'")


def test_a_new_value_that_is_none_is_refused_as_an_expression(refuse) -> None:
    said = refuse(lambda t: t.update({"id": object()}), InvalidData, '"id"')
    assert "predicate" not in said
    said = refuse(lambda t: t.update({"name": "hello"}), InvalidPredicate, '"name"', "\"'hello'\"")
    assert "predicate" not in said
    merge = lambda t: t.merge([{"id": 7}], on="id", when_matched={"name": "hello"})  # noqa: E731
    refuse(merge, InvalidPredicate, "single quotes")


def test_row_ids_are_not_shown_beside_a_column_of_that_name(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("r", "id INT, Row_ID INT")
    table.append([{"id": 1, "row_id": 7}])
    with pytest.raises(InvalidArgument, match='"row_id"'):
        table.scan(row_ids=True)
    assert table.scan(columns=["id"], row_ids=True).to_pylist() == [{"id": 1, "row_id": 0}]
    assert table.scan("row_id = 7").to_pylist() == [{"id": 1, "Row_ID": 7}]
