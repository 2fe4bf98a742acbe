"""Merges whose clauses have conditions, also for rows that no row of the source meets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.api.upsert import RowsMerged
from forklake.errors import ColumnNotFound, InvalidArgument, InvalidData, InvalidPredicate

Row = tuple[int, int | None, str | None]


@pytest.fixture
def stock(catalog: forklake.Catalog) -> forklake.Table:
    """Rows 0 to 5 in a file, rows 6 to 8 inlined."""
    table = catalog.create_table("stock", "id BIGINT NOT NULL, n INT DEFAULT 7, note VARCHAR DEFAULT 'new'")
    table.set_option("data_inlining_row_limit", 0)
    table.append({"id": range(6), "n": range(6), "note": ["old"] * 6})
    table.set_option("data_inlining_row_limit", 10)
    table.append({"id": [6, 7, 8], "n": [6, 7, 8], "note": ["old"] * 3})
    return table


SOURCE = pa.table(
    {"id": [1, 2, 3, 7, 20, 21, 22], "n": [10, 20, 30, 70, 200, 210, 220], "op": list("udxduiz")}
)


def rows(table: forklake.Table) -> list[Row]:
    return sorted((row["id"], row["n"], row["note"]) for row in table.scan().to_pylist())


def kept(*changed: Row, without: tuple[int, ...] = ()) -> list[Row]:
    """The rows as they were, but for some."""
    made: dict[int, Row] = {at: (at, at, "old") for at in range(9) if at not in without}
    return sorted((made | {row[0]: row for row in changed}).values())


@pytest.mark.parametrize(
    ("options", "result", "expected"),
    [
        (
            {"when_matched": [("source.op = 'd'", "delete"), ("source.op = 'u'", {"n": "source.n"})]},
            RowsMerged(1, 2, 3),
            kept((1, 10, "old"), (20, 200, "new"), (21, 210, "new"), (22, 220, "new"), without=(2, 7)),
        ),
        (
            {
                "when_matched": [("source.op = 'x'", "ignore"), ("target.n > 5", "delete"), "update"],
                "when_not_matched": ("source.op <> 'i'", "insert"),
            },
            RowsMerged(2, 1, 2),
            kept((1, 10, "old"), (2, 20, "old"), (20, 200, "new"), (22, 220, "new"), without=(7,)),
        ),
        (
            {
                "when_matched": "ignore",
                "when_not_matched": [
                    ("source.op = 'i'", {"id": "source.id", "note": "'first'"}),
                    ("source.n > 210", {"id": "source.id + 1", "n": "source.n + 1"}),
                    "insert",
                ],
            },
            RowsMerged(0, 0, 3),
            kept((20, 200, "new"), (21, 7, "first"), (23, 221, "new")),
        ),
        (
            {
                "when_matched": "ignore",
                "when_not_matched": "ignore",
                "when_not_matched_by_source": [("target.id > 5", "delete"), {"note": "target.note || '!'"}],
            },
            RowsMerged(3, 2, 0),
            kept((0, 0, "old!"), (4, 4, "old!"), (5, 5, "old!"), without=(6, 8)),
        ),
        (
            {"when_not_matched": "ignore", "when_not_matched_by_source": "delete"},
            RowsMerged(4, 5, 0),
            [(1, 10, "old"), (2, 20, "old"), (3, 30, "old"), (7, 70, "old")],
        ),
        ({"when_matched": ("source.n > 1000", "delete"), "when_not_matched": "ignore"}, RowsMerged(), kept()),
    ],
)  # fmt: skip
def test_a_row_takes_the_first_clause_that_holds(
    catalog: forklake.Catalog, stock: forklake.Table, options: Any, result: RowsMerged, expected: list[Row]
) -> None:
    before = catalog.snapshot
    reads = any(not isinstance(option, str) for key, option in options.items() if "by_source" not in key)
    source = SOURCE if reads else SOURCE.drop_columns(["op"])
    ids = {row["id"]: row["row_id"] for row in stock.scan(row_ids=True).to_pylist()}
    assert stock.merge(source, "id", **options) == result
    assert rows(stock) == expected
    assert catalog.snapshot == before + (result != RowsMerged())
    now = {row["id"]: row["row_id"] for row in stock.scan("id < 9", row_ids=True).to_pylist()}
    assert now.items() <= ids.items()


def test_clauses_do_what_merge_into_does(lake: forklake.Lake, stock: forklake.Table) -> None:
    twin = lake.fork("main_catalog", "twin")
    done = stock.merge(
        SOURCE,
        "id",
        when_matched=[("source.op = 'd'", "delete"), {"n": "target.n + source.n", "note": "source.op"}],
        when_not_matched=("source.n <> 210", {"id": "source.id"}),
        when_not_matched_by_source=("target.n % 2 = 0", {"n": "-target.n"}),
    )
    values = ", ".join(str(tuple(row.values())) for row in SOURCE.to_pylist())
    counted = twin.sql(
        f"MERGE INTO stock AS target USING (VALUES {values}) AS source(id, n, op) ON target.id = source.id "
        "WHEN MATCHED AND source.op = 'd' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET n = target.n + source.n, note = source.op "
        "WHEN NOT MATCHED AND source.n <> 210 THEN INSERT (id) VALUES (source.id) "
        "WHEN NOT MATCHED BY SOURCE AND target.n % 2 = 0 THEN UPDATE SET n = -target.n"
    )
    assert counted.rows_affected == done.updated + done.deleted + done.inserted == 10
    assert rows(stock) == rows(twin.table("stock"))


def test_clauses_see_rows_of_their_own_transaction(catalog: forklake.Catalog, stock: forklake.Table) -> None:
    with catalog.transaction() as tx:
        table = tx.table("stock")
        table.append([{"id": 20, "n": 5}, {"id": 30, "n": 6}])
        done = table.merge(
            [{"id": 20, "n": 9}],
            "id",
            when_matched=("target.n = 5", "update"),
            when_not_matched_by_source=("target.id < 30", "delete"),
        )
        assert done == RowsMerged(1, 9, 0)
    assert rows(stock) == [(20, 9, "new"), (30, 6, "new")]


def test_an_empty_source_meets_no_row(stock: forklake.Table) -> None:
    nothing = SOURCE.schema.empty_table().drop_columns(["op"])
    assert stock.merge(nothing, "id", when_not_matched_by_source="delete") == RowsMerged(0, 9, 0)
    assert stock.count() == 0


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"when_matched": []}, InvalidArgument, "lists no clause"),
        ({"when_matched": ["delete", ("source.n > 1", "update")]}, InvalidArgument, "put that one last"),
        ({"when_matched": ("source.n > 1", "delete", "update")}, InvalidArgument, r"\(condition, action\)"),
        ({"when_matched": (1, "delete")}, InvalidArgument, r"\(condition, action\)"),
        ({"when_matched": ("source.n > 1", "insert")}, InvalidArgument, "update, delete, ignore"),
        ({"when_not_matched": ("source.n > 1", "delete")}, InvalidArgument, "insert, ignore"),
        ({"when_not_matched_by_source": "update"}, InvalidArgument, "delete, ignore"),
        ({"when_not_matched_by_source": ("source.n > 1", "delete")}, InvalidPredicate, "source"),
        ({"when_not_matched": ("target.n > 1", "insert")}, InvalidPredicate, "target"),
        ({"when_matched": ("n > 1", "delete")}, InvalidPredicate, "source.n or target.n"),
        ({"when_matched": ("target.none > 1", "delete")}, ColumnNotFound, "none"),
        ({"when_matched": ("source.op::INT > 1", "delete")}, InvalidPredicate, "Could not convert"),
        ({"when_not_matched": [("true", {"n": "5"})]}, InvalidData, "id"),
    ],
)
def test_clauses_that_make_no_sense_are_refused(
    catalog: forklake.Catalog, stock: forklake.Table, options: Any, error: type[Exception], told: str
) -> None:
    before = catalog.snapshot
    source = SOURCE if "source.op" in str(options) else SOURCE.drop_columns(["op"])
    with pytest.raises(error, match=told):
        stock.merge(source, "id", **options)
    assert (catalog.snapshot, rows(stock)) == (before, kept())


def test_a_row_that_is_updated_and_deleted_is_refused(stock: forklake.Table) -> None:
    twice = pa.table({"id": [1, 1], "n": [0, 5]})
    with pytest.raises(InvalidData, match="several rows of the source"):
        stock.merge(twice, "id", when_matched=[("source.n = 5", "delete"), "update"])
    assert stock.merge(twice, "id", when_matched=("source.n = 5", "update")) == RowsMerged(1, 0, 0)
