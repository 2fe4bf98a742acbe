"""Indexes of hashes find what DuckDB finds, whatever was merged and whichever types were widened."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forklake.errors import InvalidIndex, InvalidQuery
from forklake.index.hash import Hash
from forklake.index.key_hash import form_of, hashes, spark_key
from forklake.model.index import Support
from forklake.model.types.data_types import parse
from tests.unit.index.random_files import TYPES, WIDER, files, picked, rows_that_match, widened, with_more
from tests.unit.index.segments import VALUES, Index, array, as_lists, column, condition


@st.composite
def listing(draw: st.DrawFn, name: str, type: str) -> str:
    """A condition that lists values of a column."""
    values = st.sampled_from(VALUES[type]).map(lambda value: f"CAST('{value}' AS {type})")
    if draw(st.booleans()):
        return f"{name} = {draw(values)}"
    listed = draw(st.lists(st.one_of(values, st.just("NULL")), min_size=1, max_size=4))
    return f"{name} IN ({', '.join(listed)})"


@st.composite
def lookups(draw: st.DrawFn, types: tuple[str, ...]) -> str:
    """A condition that lists keys, maybe beside others."""
    text = " AND ".join(draw(listing(f"c{at}", type)) for at, type in enumerate(types))
    if draw(st.booleans()):
        other = " AND ".join(draw(listing(f"c{at}", type)) for at, type in enumerate(types))
        text = f"({text}) OR ({other})"
    return text


@settings(max_examples=40)
@given(st.data())
def test_keys_that_a_condition_lists_are_found(data: st.DataObject) -> None:
    types = tuple(data.draw(st.lists(TYPES, min_size=1, max_size=2)))
    now = tuple(data.draw(st.sampled_from((type, *WIDER.get(type, ())))) for type in types)
    old_keys, keys = (
        tuple(column(at + 1, f"c{at}", type) for at, type in enumerate(each)) for each in (types, now)
    )
    include = data.draw(st.sampled_from(((), (column(9, "more", "VARCHAR"),))))
    before, after = data.draw(files(types)), with_more(widened(data.draw(files(types)), now))
    predicate = condition(data.draw(lookups(now)), keys)
    with TemporaryDirectory() as folder:
        old, index = (Index(Hash(), each, Path(folder), include) for each in (old_keys, keys))
        segments = [old.build("first", with_more(before)), index.build("second", after)]
        tree = predicate.tree
        assert index.kind.supports(index.spec, tree) is Support.INEXACT
        present = (with_more(widened(before, now)), after)
        expected = rows_that_match(present, predicate)
        found = index.kind.filter(index.spec, segments, tree, with_rows=True)
        assert as_lists(found) == expected
        estimate = sum(index.kind.estimate(index.spec, segment, tree) for segment in segments)
        assert estimate >= sum(map(len, expected.values()))

        merged = index.merge("merged", segments, [{0: 1, 2: 0}, {0: 2, 1: 5}])
        becomes = {(0, 0): 1, (0, 2): 0, (1, 0): 2, (1, 1): 5}
        kept = {(0, becomes[key]): positions for key, positions in expected.items() if key in becomes}
        assert as_lists(index.kind.filter(index.spec, [merged], tree)) == kept

        rows = picked(present, expected)
        wanted = pa.table({str(key.id): rows.column(key.name) for key in keys})
        assert as_lists(index.kind.probe(index.spec, segments, wanted)) == expected
        if include:
            assert sorted(found.rows.column("9").to_pylist()) == sorted(rows.column("more").to_pylist())
            assert [found.rows.schema.field(str(key.id)).type for key in keys] == [
                rows.schema.field(key.name).type for key in keys
            ]
        else:
            assert found.rows is None


@pytest.mark.parametrize(
    ("text", "supported"),
    [
        ("a = 1 AND b = 'x'", True),
        ("b IN ('x', 'y') AND a IN (1, 2, NULL) AND c > 7", True),
        ("(a = 1 AND b = 'x' AND c = 2) OR (b = 'y' AND a = 2)", True),
        ("c = 7 AND (a = 1 AND b = 'x' OR b = 'y' AND a = 2)", True),
        ("a = 1 AND b = NULL", True),
        ("a = 1", False),
        ("a = 1 OR b = 'x'", False),
        ("a = 1 AND b <> 'x'", False),
        ("a = 1 AND NOT (b = 'x')", False),
        ("a = 1 AND b LIKE 'x%'", False),
        ("(a = 1 AND b = 'x') OR c = 1", False),
        ("a IS NULL AND b = 'x'", False),
        ("a + 0 = 1 AND b = 'x'", False),
    ],
)
def test_conditions_that_list_every_key_are_supported(text: str, supported: bool) -> None:
    keys = (column(1, "a", "INTEGER"), column(2, "b", "VARCHAR"))
    index = Index(Hash(), keys, Path())
    tree = condition(text, (*keys, column(3, "c", "INTEGER"))).tree
    assert index.kind.supports(index.spec, tree) is (Support.INEXACT if supported else Support.NO)


def test_values_that_a_column_cannot_have_are_found_nowhere(tmp_path: Path) -> None:
    key = (column(1, "a", "INTEGER"),)
    index = Index(Hash(), key, tmp_path)
    segment = index.build("one", {0: pa.table({"a": pa.array([2, 3], pa.int32())})})
    for text in ("a = 2.5", "a = 99999999999999", "a IN (2.0, 3.5)"):
        found = as_lists(index.kind.filter(index.spec, [segment], condition(text, key).tree))
        assert found == ({(0, 0): [0]} if "2.0" in text else {})


def test_what_an_index_cannot_be_is_refused() -> None:
    kind = Hash()
    good = Index(kind, (column(1, "a", "INTEGER"),), Path(), params={})
    assert kind.check(good.spec) == {"row_group_rows": 32_768}
    for index, told in [
        (Index(kind, (), Path(), params={}), "1 to 32 columns"),
        (Index(kind, (column(1, "j", "JSON"),), Path(), params={}), '"j" is JSON'),
        (Index(kind, good.keys, Path(), (column(2, "i", "INTERVAL"),), {}), "INTERVAL, which no index holds"),
        (Index(kind, good.keys, Path(), good.keys, {}), '"a" is there twice'),
        (Index(kind, good.keys, Path(), params={"rows": 1}), "there are row_group_rows"),
        (Index(kind, good.keys, Path(), params={"row_group_rows": 3}), "from 1,024"),
    ]:
        with pytest.raises(InvalidIndex, match=told):
            kind.check(index.spec)
    with pytest.raises(InvalidQuery, match="nothing to search"):
        kind.search(good.spec, [], None, "text", 10, lambda *_: pa.array([]), {})


def test_hashes_are_those_that_spark_gives() -> None:
    known = {
        ("VARCHAR", "Spark"): -4294468057691064905,
        ("VARCHAR", ""): -7444071767201028348,
        ("BIGINT", "1"): -7001672635703045582,
        ("INTEGER", "1"): -7001672635703045582,
        ("DOUBLE", "-0.0"): -5252525462095825812,
    }
    for (type, value), hash in known.items():
        values, has = hashes([array([value, None], type)], [parse(type)], [form_of(parse(type)) or ""])
        assert (values[0], has.tolist()) == (hash, [True, False])
    assert all(spark_key("key", parse(type)) for type in VALUES)
