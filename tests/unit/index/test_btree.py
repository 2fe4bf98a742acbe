"""B-trees find what DuckDB finds, whatever was merged and whichever types were widened."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forklake.errors import InvalidQuery
from forklake.index.btree import Btree
from forklake.index.hash import Hash
from forklake.model.index import Support
from forklake.model.sql.predicate import Always, ranges
from tests.unit.index.indexing import only
from tests.unit.index.random_files import TYPES, WIDER, files, picked, rows_that_match, widened, with_more
from tests.unit.index.segments import VALUES, Index, array, as_lists, column, condition, in_order


@st.composite
def leaves(draw: st.DrawFn, name: str, type: str) -> str:
    """A condition on one column."""
    values = st.sampled_from(VALUES[type]).map(lambda value: f"CAST('{value}' AS {type})")
    forms = ["op", "op", "in", "between", "null", "not null", *(["begins"] if type == "VARCHAR" else [])]
    match draw(st.sampled_from(forms)):
        case "op":
            op = draw(st.sampled_from(("=", "<>", "<", "<=", ">", ">=")))
            return f"{name} {op} {draw(values)}"
        case "in":
            return f"{name} IN ({', '.join(draw(st.lists(values, min_size=1, max_size=4)))})"
        case "between":
            return f"{name} BETWEEN {draw(values)} AND {draw(values)}"
        case "begins":
            return f"starts_with({name}, '{draw(st.sampled_from(('', 'a', 'ab', 'x', 'y' * 200, 'Ü')))}')"
        case other:
            return f"{name} IS {other}"


def conditions(types: tuple[str, ...]) -> st.SearchStrategy[str]:
    leaf = st.one_of([leaves(f"c{at}", type) for at, type in enumerate(types)])
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda both: f"({both[0]} AND {both[1]})"),
            st.tuples(inner, inner).map(lambda both: f"({both[0]} OR {both[1]})"),
            inner.map(lambda one: f"NOT ({one})"),
        ),
        max_leaves=4,
    )


@settings(max_examples=60)
@given(st.data())
def test_rows_for_which_a_condition_holds_are_found(data: st.DataObject) -> None:
    types = tuple(data.draw(st.lists(TYPES, min_size=1, max_size=3)))
    now = tuple(data.draw(st.sampled_from((type, *WIDER.get(type, ())))) for type in types)
    old_keys, keys = (
        tuple(column(at + 1, f"c{at}", type) for at, type in enumerate(each)) for each in (types, now)
    )
    include = (column(9, "more", "VARCHAR"),)
    before, after = data.draw(files(types)), with_more(widened(data.draw(files(types)), now))
    predicate = condition(data.draw(conditions(now)), keys)
    tree = predicate.tree
    with TemporaryDirectory() as folder:
        old, index = (Index(Btree(), each, Path(folder), include) for each in (old_keys, keys))
        segments = [old.build("first", with_more(before)), index.build("second", after)]
        present = (with_more(widened(before, now)), after)
        expected = rows_that_match(present, predicate)

        rows = picked(present, expected)
        wanted = pa.table({str(key.id): rows.column(key.name) for key in keys})
        probed = as_lists(index.kind.probe(index.spec, segments, wanted))
        no_null = " AND ".join(f"{key.name} IS NOT NULL" for key in keys)
        complete = rows_that_match(present, condition(f"({predicate.text}) AND {no_null}", keys))
        assert {key: set(found) for key, found in complete.items()}.keys() <= probed.keys()
        assert all(set(found) <= set(probed[key]) for key, found in complete.items())

        support = index.kind.supports(index.spec, tree)
        if support is Support.NO:
            return
        assert support is Support.EXACT
        found = index.kind.filter(index.spec, segments, tree, with_rows=True)
        assert as_lists(found) == expected
        assert sorted(found.rows.column("9").to_pylist()) == sorted(rows.column("more").to_pylist())
        for segment, each in zip(segments, range(2), strict=True):
            hits = sum(len(positions) for (number, _), positions in expected.items() if number == each)
            assert index.kind.estimate(index.spec, segment, tree) >= hits
            facts = segment.file.facts
            for bounds in ranges(tree):
                if bounds.column_id == 1 and hits:
                    assert facts.min_key <= bounds.high and facts.max_key >= bounds.low

        merged = index.merge("merged", segments, [{0: 1, 2: 0}, {0: 2, 1: 5}])
        becomes = {(0, 0): 1, (0, 2): 0, (1, 0): 2, (1, 1): 5}
        kept = {(0, becomes[key]): positions for key, positions in expected.items() if key in becomes}
        assert as_lists(index.kind.filter(index.spec, [merged], tree)) == kept


@pytest.mark.parametrize("type", VALUES)
@pytest.mark.parametrize("kind", [Btree(), Hash()], ids=lambda kind: kind.name)
def test_every_value_of_every_type_is_found(kind: Btree | Hash, type: str, tmp_path: Path) -> None:
    keys = (column(1, "c0", type),)
    index = Index(kind, keys, tmp_path, (column(9, "more", type),))
    rows = {
        at: pa.table({"c0": array(VALUES[type], type), "more": array(VALUES[type], type)}) for at in (0, 1)
    }
    built = index.build("built", rows)
    for segment in (built, index.merge("merged", [built], [{0: 0, 1: 1}])):
        for value in VALUES[type]:
            predicate = condition(f"c0 = CAST('{value}' AS {type})", keys)
            expected = rows_that_match((rows,), predicate)
            found = index.kind.filter(index.spec, [segment], predicate.tree, with_rows=True)
            assert as_lists(found) == expected, value
            shown = picked((rows,), expected)
            assert str(found.rows.column("1").to_pylist()) == str(shown.column("c0").to_pylist())
            assert str(found.rows.column("9").to_pylist()) == str(shown.column("more").to_pylist())
            probed = index.kind.probe(index.spec, [segment], pa.table({"1": array([value], type)}))
            assert as_lists(probed) == expected, value


@settings(max_examples=40)
@given(st.data())
def test_the_first_rows_in_the_order_of_the_keys(data: st.DataObject) -> None:
    types = tuple(data.draw(st.lists(TYPES, min_size=1, max_size=2)))
    keys = tuple(column(at + 1, f"c{at}", type) for at, type in enumerate(types))
    present = (data.draw(files(types)), data.draw(files(types)))
    k, descending = data.draw(st.integers(1, 9)), data.draw(st.booleans())
    node = data.draw(st.sampled_from((Always(True), condition("c0 IS NOT NULL", keys).tree)))
    with TemporaryDirectory() as folder:
        index = Index(Btree(), keys, Path(folder))
        segments = [index.build(f"{number}", each) for number, each in enumerate(present)]
        rows = [
            table.append_column("segment", pa.array([number] * len(table), pa.int64()))
            .append_column("ordinal", pa.array([at] * len(table), pa.int64()))
            .append_column("position", pa.array(range(len(table)), pa.int64()))
            for number, each in enumerate(present)
            for at, table in each.items()
        ]
        everything = pa.concat_tables(rows)
        place = ("segment", "ordinal", "position")
        kept = set(zip(*(everything.column(name).to_pylist() for name in place), strict=True))
        kept = {each for each in sorted(kept) if data.draw(st.booleans())}
        found = index.kind.first(index.spec, segments, k, only(kept), node=node, descending=descending)
        direction = "DESC NULLS FIRST" if descending else "NULLS LAST"
        order = ", ".join(f"c{at} {direction}" for at in range(len(types)))
        condition_sql = "TRUE" if isinstance(node, Always) else "c0 IS NOT NULL"
        best = [
            each
            for each in in_order(everything, condition_sql, f"{order}, segment, ordinal, position", place)
            if each in kept
        ]
        assert list(zip(*(found.column(name).to_pylist() for name in place), strict=True)) == best[:k]
        assert [found.schema.field(str(key.id)).type for key in keys] == [
            everything.schema.field(key.name).type for key in keys
        ]


@pytest.mark.parametrize(
    ("text", "support"),
    [
        ("a = 1", Support.EXACT),
        ("a > 1 AND b IS NULL", Support.EXACT),
        ("a > 1 AND c = 1", Support.INEXACT),
        ("a > 1.5 AND NOT (b = 'x' OR a = 2)", Support.EXACT),
        ("a = 1 OR (a = 2 AND c = 1)", Support.INEXACT),
        ("b = 'x'", Support.NO),
        ("a <> 1", Support.NO),
        ("a = 1 OR b = 'x'", Support.NO),
        ("a = 1 OR c = 1", Support.NO),
        ("a + 0 = 1", Support.NO),
        ("NOT (a = 1 AND a + b = 2)", Support.NO),
    ],
)
def test_conditions_have_to_limit_the_first_key(text: str, support: Support) -> None:
    keys = (column(1, "a", "INTEGER"), column(2, "b", "VARCHAR"))
    index = Index(Btree(), keys, Path())
    assert (
        index.kind.supports(index.spec, condition(text, (*keys, column(3, "c", "INTEGER"))).tree) is support
    )


def test_literals_between_the_values_of_a_column(tmp_path: Path) -> None:
    key = (column(1, "a", "TINYINT"),)
    index = Index(Btree(), key, tmp_path)
    segment = index.build("one", {0: pa.table({"a": pa.array([2, None, 3, -128, 127], pa.int8())})})
    for text, positions in [
        ("a > 2.5", [2, 4]),
        ("a <= 2.5", [0, 3]),
        ("a < 999", [0, 2, 3, 4]),
        ("a > 999", []),
        ("a >= -999", [0, 2, 3, 4]),
        ("a < -999", []),
        ("a = 2.5", []),
        ("a < 'nan'::DOUBLE", [0, 2, 3, 4]),
    ]:
        tree = condition(text, key).tree
        expected = {(0, 0): positions} if positions else {}
        assert as_lists(index.kind.filter(index.spec, [segment], tree)) == expected, text
    with pytest.raises(InvalidQuery, match="nothing to search"):
        index.kind.search(index.spec, [], None, "text", 10, lambda *_: pa.array([]), {})
