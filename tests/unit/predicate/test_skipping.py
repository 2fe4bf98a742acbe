"""How a predicate decides about files by their bounds and counts."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from operator import eq, ge, gt, le, lt, ne

import pytest

from forklake.model.table.files import ColumnStats, FileStatistics
from forklake.model.types.sort_keys import HIGHEST, LOWEST
from forklake.scan.prune import skip_reason
from tests.unit.predicate.columns import BY_NAME, key, tree


def facts(rows=10, **stats):
    return FileStatistics(
        rows, {BY_NAME[name].id: ColumnStats(BY_NAME[name].id, rows, *known) for name, known in stats.items()}
    )


def known(name, low, high, nulls=0, nan=None):
    return (nulls, None, None, key(name, low), key(name, high), nan)


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        ("id = 0", True), ("id = 1", False), ("id = 9", False), ("id = 10", True), ("id < 1", True),
        ("id <= 1", False),
        ("id > 9", True), ("id >= 9", False), ("id in (0, 10)", True), ("id in (0, 5)", False),
        ("id is null", True),
        ("id is not null", False), ("id <> 5", False), ("not id <= 9", True),
        ("not (id >= 1 and id <= 9)", True),
        ("id = 0 or id = 10", True), ("id = 0 or abs(id) = 0", False), ("abs(id) = 0 and id = 0", True),
        ("id = null", True),
        ("not id = null", True), ("id is distinct from 5", False), ("id is not distinct from null", True),
        ("id not in (1, null)", True),
        ("i = 5", True), ("i = 7", False), ("i <> 7", True), ("i not in (1, 7)", True),
        ("i is distinct from 7", False), ("i is null", False),
        ("not (i = 7)", True), ("i = 7 and i is not null", False), ("not (i = 7 or i is null)", True),
        ("f > 9", False), ("f < 1", True), ("g > 9", True), ("g = 'nan'", True), ("f = 'nan'", False),
        ("name like 'b%'", True), ("name like 'ab%'", False), ("name not like 'a%'", True),
        ("name not like 'ab%'", False),
        ("name like 'b_%'", True), ("d = '2024-01-01'", True), ("d is null", False), ("d is not null", True),
        ("price = 1", True), ("price is null", False), ("price is not null", True),
        ("ts = '2024-01-01'", False), ("u is null", False),
        ("false", True), ("true", False), ("null", True), ("flag", True), ("not flag", False),
        ("flag is not true", False),
        ("s.a = 1", True), ("s.a is null", False), ("s.a <> 5", True),
    ],
)  # fmt: skip
def test_a_file_is_skipped_if_its_bounds_and_counts_allow_it(text, skipped):
    file = facts(
        id=known("id", 1, 9),
        i=(3, None, None, key("i", 7), key("i", 7)),
        f=known("f", 1.0, 9.0),
        g=known("g", 1.0, 9.0, nan=False),
        Name=known("Name", "aa", "ac", nulls=2),
        d=(10,),
        price=(None,),
        ts=(3,),
        u=(None, None, None, LOWEST, HIGHEST),
        flag=known("flag", False, False),
        A=known("A", 5, 5, nulls=1),
    )
    assert (skip_reason(tree(text), file) is not None) == skipped


SMALL = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
SMALL_FILES = [rows for size in (1, 2, 3) for rows in combinations_with_replacement((0, 1, 2, None), size)]


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("op", SMALL)
def test_comparisons_decide_about_every_small_file_as_its_rows_do(op, negated):
    for asked, rows in product((-1, 0, 1, 2, 3), SMALL_FILES):
        values = [row for row in rows if row is not None]
        found = any(SMALL[op](value, asked) != negated for value in values)
        nulls = len(rows) - len(values)
        bounds = (key("id", min(values)), key("id", max(values))) if values else (None, None)
        file = facts(len(rows), id=(nulls, None, None, *bounds))
        skipped = skip_reason(tree(f"{'not ' * negated}id {op} {asked}"), file) is not None
        assert not (found and skipped), (rows, asked)
        # Only a gap between the bounds is not seen: there, and nowhere else, a file is read in vain.
        in_gap = bool(values) and min(values) < asked < max(values)
        assert found or skipped or in_gap, (rows, asked)


@pytest.mark.parametrize("negated", [False, True])
def test_lists_decide_about_every_small_file_as_its_rows_do(negated):
    for size, rows in product((1, 2, 3), SMALL_FILES):
        for asked in combinations((-1, 0, 1, 2, 3), size):
            values = [row for row in rows if row is not None]
            found = any((value in asked) != negated for value in values)
            bounds = (key("id", min(values)), key("id", max(values))) if values else (None, None)
            file = facts(len(rows), id=(len(rows) - len(values), None, None, *bounds))
            word = "not in" if negated else "in"
            skipped = skip_reason(tree(f"id {word} ({', '.join(map(str, asked))})"), file) is not None
            assert not (found and skipped), (rows, asked)
            assert found or skipped or min(values) < max(values), (rows, asked)


@pytest.mark.parametrize("negated", [False, True])
def test_prefixes_decide_about_every_small_file_as_its_rows_do(negated):
    texts = ("", "a", "aa", "ab", "b", "ba")
    for prefix, low, high in product(texts, texts, texts):
        if low <= high:
            found = any(text.startswith(prefix) != negated for text in (low, high))
            word = "not like" if negated else "like"
            skipped = (
                skip_reason(tree(f"name {word} '{prefix}%'"), facts(Name=known("Name", low, high)))
                is not None
            )
            assert not (found and skipped), (prefix, low, high)
            assert found or skipped or low < prefix < high, (prefix, low, high)


def test_what_a_file_does_not_say_excludes_nothing():
    for text in ("id = 1", "id is null", "id is not null", "not id = 1"):
        assert skip_reason(tree(text), facts()) is None
        assert (
            skip_reason(
                tree(text), FileStatistics(10, {BY_NAME["id"].id: ColumnStats(BY_NAME["id"].id, 0, 0)})
            )
            is None
        )
    assert skip_reason(tree("true"), facts(rows=0)) == "it holds no rows"


def test_the_reason_names_the_column_and_its_bounds():
    column = BY_NAME["A"].id
    file = FileStatistics(1, {column: ColumnStats(column, 1, 0, "10", "20", key("A", 10), key("A", 20))})
    assert skip_reason(tree("s.a = 5"), file) == '"s.A" lies between 10 and 20'
    assert (
        skip_reason(tree("s.a = 5 or s.a is null"), file)
        == '"s.A" lies between 10 and 20 and "s.A" is never NULL'
    )
