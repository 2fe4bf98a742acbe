"""Queries on one table with indexes: the first rows of an order, and columns that an index holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.index import segment_parquet
from tests.index_kinds import data_files
from tests.index_segments import build_segment

FILES, ROWS = 4, 100


@pytest.fixture
def twins(catalog: forklake.Catalog) -> list[forklake.Table]:
    """The same rows twice: of one table, a B-tree has four files of five, and some rows were deleted."""
    made: list[forklake.Table] = []
    for name in ("plain", "indexed"):
        table = catalog.create_table(name, "k INTEGER, s VARCHAR, x DOUBLE, id BIGINT NOT NULL")
        table.set_option("data_inlining_row_limit", 3)
        for number in range(FILES + 1):
            at = range(number, (FILES + 1) * ROWS, FILES + 1)
            table.append(
                pa.table(
                    {
                        "k": pa.array([None if i % 50 == 7 else i * 37 % 211 for i in at], pa.int32()),
                        "s": [f"s{i % 90:02}" for i in at],
                        "x": [(float("nan"), None, i / 7, -i / 3)[i % 4] for i in at],
                        "id": list(at),
                    }
                )
            )
            if number == FILES - 1 and name == "indexed":
                for index, kind, keys, include in (
                    ("by_k", "btree", ["k", "s"], []),
                    ("by_x", "btree", ["x"], []),
                    ("by_id", "hash", ["id"], ["k", "s"]),
                ):
                    table.create_index(index, kind=kind, columns=keys, include=include, maintain="later")
                    files = data_files(table)
                    build_segment(table, index, files[:3])
                    build_segment(table, index, files[3:])
        table.append([{"k": 3, "s": "last", "x": 0.5, "id": 7000}])
        table.delete("k < 3 OR id = 100")
        made.append(table)
    return made


def rows_of(catalog: forklake.Catalog, sql: str, params: list[Any] | None = None) -> list[list[str]]:
    """What a query says of either table; NaN equals itself as text."""
    said = [catalog.sql(sql.format(t=name), params).to_pylist() for name in ("plain", "indexed")]
    return [[str(row) for row in rows] for rows in said]


def told(catalog: forklake.Catalog, sql: str) -> str:
    """What EXPLAIN says of the table with indexes."""
    return " ".join(f"{value}" for _, value in catalog.sql(f"EXPLAIN {sql.format(t='indexed')}").to_rows())


USED = (
    ("SELECT k, s FROM {t} ORDER BY k, s LIMIT 5 OFFSET 3", "by_k"),
    ("SELECT k, s FROM {t} ORDER BY k DESC NULLS FIRST, s DESC NULLS FIRST LIMIT 12", "by_k"),
    ("SELECT k FROM {t} WHERE k > 40 AND k <= 60 ORDER BY k DESC LIMIT 3", "by_k"),
    ("SELECT x FROM {t} ORDER BY x DESC LIMIT 30", "by_x"),
    ("SELECT k FROM {t} WHERE k > 200 ORDER BY k DESC LIMIT 40", ""),
    ("SELECT k FROM {t} WHERE id > 40 ORDER BY k LIMIT 3", ""),
    ("SELECT k FROM {t} ORDER BY k LIMIT 5000", ""),
)


def test_the_first_rows_of_an_order_are_found_by_b_trees(
    lake: forklake.Lake, catalog: forklake.Catalog, twins: list[forklake.Table]
) -> None:
    for sql, index in USED:
        plain, indexed = rows_of(catalog, sql)
        assert indexed == plain, sql
        assert bool(index and f"index {index}" in told(catalog, sql)) == bool(index), sql
    plain, indexed = rows_of(catalog, "SELECT k FROM {t} WHERE k > $1 ORDER BY k LIMIT $2", [70, 6])
    assert indexed == plain
    # A transaction and a fork have rows of their own.
    with catalog.transaction() as tx:
        for table in twins:
            tx.table(table.name).append([{"k": 4, "s": "new", "x": 0.0, "id": 1}] * 2)
            tx.table(table.name).delete("k = 5")
        plain, indexed = rows_of(tx, USED[0][0])
        assert indexed == plain
    fork = lake.fork("main_catalog", "fork")
    for table in twins:
        fork.table(table.name).delete("k BETWEEN 3 AND 9")
    plain, indexed = rows_of(fork, USED[0][0])
    assert indexed == plain
    for path in Path(catalog._context.storage.data_path).rglob("index-*"):
        path.unlink()
    segment_parquet.forget()
    plain, indexed = rows_of(catalog, USED[0][0])
    assert indexed == plain
    assert "is missing" in told(catalog, USED[0][0])


def test_columns_that_an_index_holds_are_read_from_it(
    catalog: forklake.Catalog, twins: list[forklake.Table]
) -> None:
    queries = (
        ("SELECT k, s FROM {t} WHERE id = 12", True),
        ("SELECT a.s || 'x' AS s, k + 1 AS n FROM {t} AS a WHERE a.id IN (12, 17, 100) ORDER BY n", True),
        ("SELECT count(*) AS n FROM {t} WHERE id = 12", True),
        ("SELECT * FROM {t} WHERE id = 12", False),
        ("SELECT a FROM {t} AS a WHERE id = 12", False),
        ("SELECT x, k FROM {t} WHERE id = 12", False),
        ("SELECT COLUMNS('k|s') FROM {t} WHERE id = 12", False),
        ("SELECT k, rowid >= 0 AS y FROM {t} WHERE id = 12", False),
        ("SELECT k, (SELECT max(x) FROM {t}) AS y FROM {t} WHERE id = 12", False),
    )
    for sql, _ in queries:
        plain, indexed = rows_of(catalog, sql)
        assert indexed == plain, sql
    # Without the data files that it covers, what the index holds is what is left.
    for file in twins[1].files()[:FILES]:
        Path(catalog._context.storage.address(file.path)).unlink()
    for sql, is_held in queries:
        if is_held:
            assert len(catalog.sql(sql.format(t="indexed")).to_pylist()) >= 1, sql
        else:
            with pytest.raises(forklake.ForklakeError):
                catalog.sql(sql.format(t="indexed")).to_pylist()
