"""Updating and merging: rows keep their ids, wherever they were and wherever they go."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import forklake
from forklake.api.upsert import RowsMerged
from forklake.errors import (
    ColumnNotFound,
    InvalidArgument,
    InvalidData,
    InvalidPredicate,
)
from tests.contract.rows.shown import MANY, content, ids, many, numbered


@pytest.fixture
def prices(catalog: forklake.Catalog) -> forklake.Table:
    """150 rows in a file, and rows 150 to 152 inlined."""
    table = catalog.create_table("prices", "id BIGINT NOT NULL, price INT, note VARCHAR DEFAULT 'new'")
    table.append({"id": range(MANY), "price": range(MANY), "note": ["old"] * MANY})
    table.append([{"id": at, "price": at} for at in range(MANY, MANY + 3)])
    return table


def test_an_update_keeps_row_ids_of_files_and_inlined_rows(
    catalog: forklake.Catalog, prices: forklake.Table
) -> None:
    before = catalog.snapshot
    assert prices.update({"price": "price * 10", "NOTE": "note || '!'"}, "id IN (7, 151)") == 2
    assert catalog.snapshot == before + 1
    changed = {7: (7, 7, 70, "old!"), 151: (151, 151, 1510, "new!")}
    expected = [changed.get(at, (at, at, at, "old" if at < MANY else "new")) for at in range(MANY + 3)]
    assert content(prices) == expected
    assert prices.count() == MANY + 3
    assert prices.update({"price": "-id"}) == MANY + 3
    assert [row[:3] for row in content(prices)] == [(at, at, -at) for at in range(MANY + 3)]
    assert content(prices, at=before + 1) == expected
    # New rows count on, whatever was rewritten.
    prices.append([{"id": 999}])
    assert prices.scan("id = 999", row_ids=True).to_pylist()[0]["row_id"] == MANY + 3


def test_an_update_sees_the_old_row_on_all_sides(prices: forklake.Table) -> None:
    prices.update({"id": "price + 1", "price": "id + 2"}, "id = 5")
    assert prices.scan("price = 7 AND id = 6").to_pylist() == [{"id": 6, "price": 7, "note": "old"}]


def test_an_update_that_finds_nothing_is_no_change(catalog: forklake.Catalog, prices: forklake.Table) -> None:
    before = catalog.snapshot
    assert prices.update({"price": "1"}, "id > 1000") == 0
    assert catalog.snapshot == before


@pytest.mark.parametrize(
    ("assignments", "where", "error"),
    [
        ({}, None, InvalidArgument),
        ({"id": "NULL"}, "id = 1", InvalidData),
        ({"price": "'many'"}, "id = 1", InvalidPredicate),
        ({"price": "2147483648"}, "id = 1", InvalidPredicate),
        ({"nothing": "1"}, None, ColumnNotFound),
        ({"price": "nothing"}, None, InvalidPredicate),
        ({"price": "1", "PRICE": "2"}, None, InvalidArgument),
        ({"price": "1"}, "nothing = 1", InvalidPredicate),
    ],
)
def test_an_update_that_cannot_be_leaves_all_as_it_was(
    catalog: forklake.Catalog, prices: forklake.Table, stored, assignments, where, error
) -> None:
    before, files = catalog.snapshot, stored()
    with pytest.raises(error):
        prices.update(assignments, where)
    assert (catalog.snapshot, stored()) == (before, files)
    assert prices.count() == MANY + 3


def test_a_merge_updates_what_matches_and_inserts_the_rest(
    catalog: forklake.Catalog, prices: forklake.Table
) -> None:
    before = catalog.snapshot
    source = [{"id": 7, "price": 70}, {"id": 151, "price": 1}, {"id": 500, "price": 5}]
    assert prices.merge(source, "id") == RowsMerged(updated=2, deleted=0, inserted=1)
    assert catalog.snapshot == before + 1
    found = {row[0]: row[1:] for row in content(prices)}
    assert found[7] == (7, 70, "old")
    assert found[151] == (151, 1, "new")
    # The new row has an id that no other row ever had.
    (new,) = found.keys() - range(MANY + 3)
    assert new > MANY + 2
    assert found[new] == (500, 5, "new")


@pytest.mark.parametrize(
    ("options", "result", "rows"),
    [
        ({"when_matched": "delete"}, RowsMerged(0, 1, 1), [(500, 5, "new")]),
        ({"when_matched": "ignore"}, RowsMerged(0, 0, 1), [(7, 7, "old"), (500, 5, "new")]),
        ({"when_not_matched": "ignore"}, RowsMerged(1, 0, 0), [(7, 70, "old")]),
        (
            {"when_matched": {"price": "target.price + source.price", "note": "source.why"}},
            RowsMerged(1, 0, 1),
            [(7, 77, "because"), (500, 5, "new")],
        ),
        (
            {"when_not_matched": {"id": "source.id * 2", "note": "upper(source.why)"}},
            RowsMerged(1, 0, 1),
            [(7, 70, "old"), (1000, None, "NO")],
        ),
        ({"when_matched": "ignore", "when_not_matched": "ignore"}, RowsMerged(), [(7, 7, "old")]),
    ],
)
def test_a_merge_does_what_it_is_told(prices: forklake.Table, options, result, rows) -> None:
    source = pa.table({"id": [7, 500], "price": [70, 5], "why": ["because", "no"]})
    if not any(isinstance(option, dict) for option in options.values()):
        with pytest.raises(forklake.InvalidData, match="why"):
            prices.merge(source, on=["ID"], **options)
        source = source.drop_columns(["why"])
    assert prices.merge(source, on=["ID"], **options) == result
    found = prices.scan("id = 7 OR id >= 500").to_pylist()
    assert sorted(tuple(row.values()) for row in found) == rows


def test_null_meets_nothing_in_a_merge(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append([{"id": None, "v": "a"}, {"id": 1, "v": "b"}])
    assert table.merge([{"id": None, "v": "c"}], "id") == RowsMerged(0, 0, 1)
    assert sorted(row["v"] for row in table.scan("id IS NULL").to_pylist()) == ["a", "c"]


def test_a_merge_refuses_a_source_that_matches_a_row_twice(
    catalog: forklake.Catalog, prices: forklake.Table, stored
) -> None:
    before, files = catalog.snapshot, stored()
    twice = pa.table({"id": [*range(MANY), 3], "price": [1] * (MANY + 1)})
    with pytest.raises(InvalidData, match="unique"):
        prices.merge(twice, "id")
    assert (catalog.snapshot, stored()) == (before, files)
    assert prices.merge(twice, "id", when_matched="delete") == RowsMerged(0, MANY, 0)
    assert ids(prices) == [150, 151, 152]


@pytest.mark.parametrize(
    ("source", "on", "options", "error"),
    [
        ([{"price": 1}], "id", {}, ColumnNotFound),
        ([{"id": 1}], "nothing", {}, ColumnNotFound),
        ([{"id": 1}], [], {}, InvalidArgument),
        ([{"id": 1}], "id", {"when_matched": "explode"}, InvalidArgument),
        ([{"id": 1}], "id", {"when_not_matched": "update"}, InvalidArgument),
        ([{"id": 1}], "id", {"when_matched": {}}, InvalidArgument),
        ([{"id": 1}], "id", {"when_matched": {"price": "source.nothing"}}, ColumnNotFound),
        ([{"id": "one"}], "id", {}, InvalidData),
        (7, "id", {}, InvalidData),
    ],
)
def test_a_merge_that_cannot_be_is_refused(prices: forklake.Table, source, on, options, error) -> None:
    before = content(prices)
    with pytest.raises(error):
        prices.merge(source, on, **options)
    assert content(prices) == before


def test_a_stream_is_merged_once_or_not_at_all(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append(numbered(1))

    def batches():
        yield from numbered(1, 2, v="new").to_batches()
        raise InvalidArgument("the source broke")

    schema = numbered().schema
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="the source broke"):
            table.merge(pa.RecordBatchReader.from_batches(schema, batches()), "id")
    assert content(table) == [(0, 1, "x")]
    assert table.merge(numbered(1, 2, v="new").to_reader(), "id") == RowsMerged(1, 0, 1)
    assert [row[1:] for row in content(table)] == [(1, "new"), (2, "new")]
    assert content(table)[0][0] == 0


def test_a_merge_into_many_files_reads_those_that_may_match(table: forklake.Table, stored, lake) -> None:
    table.append(many())
    table.append(many(1000))
    first = table.files()[0].path
    Path(lake.data_path, first).rename(f"{lake.data_path}away")
    assert table.merge(numbered(1001, 2000, v="m"), "id") == RowsMerged(1, 0, 1)
    Path(f"{lake.data_path}away").rename(Path(lake.data_path, first))
    assert ids(table, "v = 'm'") == [1001, 2000]


@pytest.mark.parametrize("keys", [["a\0"], ["a\0", "b"], ["a", "b\0c"], ["\0", "z\0"]])
def test_a_merge_takes_keys_that_no_literal_can_be(table: forklake.Table, keys: list[str]) -> None:
    table.append(pa.table({"id": range(len(keys)), "v": keys}))
    table.append(many(1000, v="m"))
    source = pa.table({"id": [100 + at for at in range(len(keys) + 1)], "v": [*keys, "new"]})
    assert table.merge(source, "v") == RowsMerged(len(keys), 0, 1)
    assert ids(table, "id < 1000") == [100 + at for at in range(len(keys) + 1)]
