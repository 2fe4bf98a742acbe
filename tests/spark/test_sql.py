"""`SparkCatalog.sql`: what it answers is what the local engine answers."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

import forklake
from forklake.spark import SparkCatalog

HERE = Path(__file__).parent
TABLES = (HERE / "sql_tables.sql").read_text()
CORPUS = [query for query in re.split(r";$\n", (HERE / "sql_corpus.sql").read_text(), flags=re.M) if query]
REFUSED = [
    "SELECT list_sort(tags) FROM sales.orders",
    "SELECT rowid FROM people",
    "SELECT id FROM people WHERE name ~ 'A.*'",
    "PIVOT people ON name USING count(*)",
    "FROM people, range(3)",
    "SELECT id FROM people UNION ALL BY NAME SELECT id FROM sales.orders",
    "SELECT list(id ORDER BY name) FROM people",
    "FROM people TABLESAMPLE 10%",
    'SELECT id AS "{x}" FROM people',
    "SELECT tags[1:2] FROM sales.orders",
    "EXPLAIN FROM people",
    "COPY people TO 'x.parquet'",
    "UPDATE people SET name = o.region FROM sales.orders o WHERE o.id = people.id",
    "DELETE FROM people WHERE id IN (SELECT id FROM sales.orders)",
    "DELETE FROM people WHERE id = 1 RETURNING *",
    "MERGE INTO people USING sales.orders o ON people.id = o.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
]


@pytest.fixture(scope="module")
def shop(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("sql")
    with forklake.connect(f"sqlite:///{folder}/lake.db", data_path=folder / "files", create=True) as lake:
        lake.set_option("data_inlining_row_limit", 2)
        catalog = lake.create_catalog("main_catalog")
        catalog.sql(TABLES)
        yield SparkCatalog(spark, catalog)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(_plain(value) for value in row.values()) for row in _named(table).to_pylist()]


def _named(table: pa.Table) -> pa.Table:
    return table.rename_columns([f"c{at}" for at in range(table.num_columns)])


def _plain(value: Any) -> Any:
    match value:
        case float():
            return f"{value:.10g}"
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
        case list():
            return [_plain(one) for one in value]
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case _:
            return value


def check(sc: SparkCatalog, query: str, params: Any = None) -> int:
    """Check that Spark answers as the local engine does; returns the number of rows."""
    expected = sc.catalog.sql(query, params)
    found = sc.sql(query, params)
    assert isinstance(found, DataFrame)
    assert tuple(found.columns) == expected.columns
    rows, others = rows_of(found.toArrow()), rows_of(expected.to_arrow())
    if "ORDER BY" not in query.rsplit(")", 1)[-1]:
        rows, others = sorted(rows, key=repr), sorted(others, key=repr)
    assert rows == others
    return len(rows)


@pytest.mark.parametrize("query", CORPUS)
def test_query_answers_as_the_local_engine_does(shop: SparkCatalog, query: str) -> None:
    assert check(shop, query)


@pytest.mark.parametrize("statement", REFUSED)
def test_what_spark_cannot_do_is_refused_before_anything_changes(shop: SparkCatalog, statement: str) -> None:
    before = shop.catalog.snapshot
    with pytest.raises((forklake.InvalidSql, forklake.InvalidPredicate)) as error:
        shop.sql(statement)
    assert "\n" not in str(error.value)
    assert shop.catalog.snapshot == before


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT no FROM people", "no"),
        ("FROM peopel", 'did you mean "people"'),
        ("FROM other.sales.orders", "no table or view"),
        ("SELECT FROM WHERE", "syntax error"),
        ("SELECT getenv('HOME') FROM people", "getenv"),
        ("SELECT id FROM people WHERE id = $1", r"\$1"),
        ("FROM read_parquet('/etc/x.parquet')", "outside of the lake"),
    ],
)
def test_bad_query_gets_the_message_of_the_local_engine(shop: SparkCatalog, query: str, problem: str) -> None:
    with pytest.raises(forklake.ForklakeError, match=problem) as ours:
        shop.sql(query)
    with pytest.raises(forklake.ForklakeError) as local:
        shop.catalog.sql(query)
    assert str(ours.value) == str(local.value)


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT id FROM sales.orders WHERE id > ? AND region = ?", [2, "EU"]),
        (
            "SELECT id FROM sales.orders WHERE region = $a OR day < $b",
            {"a": "x' OR '1'='1", "b": date(2024, 1, 4)},
        ),
        (
            "SELECT id FROM sales.orders WHERE ts < $1 AND price >= $2",
            [datetime(2024, 3, 10, 2, 30), Decimal("1.25")],
        ),
        ("SELECT $1, $2, $1 FROM people", ["{a} ${b} \\", 2**70]),
        ("SELECT id FROM people LIMIT ?", [2]),
        ("SELECT id FROM people WHERE name IS NOT DISTINCT FROM ?", [None]),
    ],
)
def test_parameters_are_bound(shop: SparkCatalog, query: str, params: Any) -> None:
    assert check(shop, query, params)


def test_at_reads_the_past_and_the_present_in_one_query(shop: SparkCatalog) -> None:
    catalog = shop.catalog
    catalog.sql("CREATE TABLE past (id BIGINT)")
    first = catalog.sql("INSERT INTO past VALUES (1), (2)") and catalog.snapshot
    catalog.sql("DELETE FROM past WHERE id = 1")
    assert (
        check(shop, f"SELECT a.id, b.id FROM past AS a AT (VERSION => {first}) LEFT JOIN past b USING (id)")
        == 2
    )
    assert check(shop, "SELECT id FROM past AT (VERSION => $1) WHERE id >= $2", [first, 0]) == 2
    with pytest.raises(forklake.SnapshotNotFound):
        shop.sql("FROM past AT (VERSION => 99999)")


def test_files_that_cannot_match_are_not_read(shop: SparkCatalog) -> None:
    catalog = shop.catalog
    catalog.create_table("parts", "id BIGINT")
    for start in range(3):
        catalog.table("parts").append(pa.table({"id": range(start * 10, start * 10 + 10)}))
    df = shop.sql("SELECT p.id FROM parts p JOIN people USING (id) WHERE p.id < 10")
    assert isinstance(df, DataFrame)
    files = {file.rsplit("/", 1)[-1] for file in df.inputFiles()}
    assert (
        len([file.path for file in catalog.table("parts").files() if file.path.rsplit("/", 1)[-1] in files])
        == 1
    )
