"""SET VARIABLE, as in DuckDB: a value for the statements of a handle."""

from __future__ import annotations

import pytest

import forklake
from tests.contract.sql.conftest import Twins

VALUES = (
    "7",
    "NULL",
    "'it''s'",
    "(SELECT max(id) FROM t)",
    "[1, 2, NULL]",
    "{'a': 1, 'b': 'x'}",
    "1.25::DECIMAL(5,2)",
    "DATE '2026-01-02'",
    "123456789012345678901234567890::HUGEINT",
)


def test_variables_are_those_of_duckdb(twins: Twins) -> None:
    twins.do("CREATE TABLE t (id INTEGER, v DECIMAL(5,2))")
    twins.do("INSERT INTO t VALUES (1, 1.5), (2, NULL), (3, 9)")
    for value in VALUES:
        for run in (twins.catalog.sql, twins.oracle.execute):
            run(f"SET VARIABLE Wanted = {value}")
        twins.same("SELECT getvariable('wanted') AS a, typeof(getvariable('WANTED')) AS b")
    for run in (twins.catalog.sql, twins.oracle.execute):
        run("SET VARIABLE wanted = 2; SET VARIABLE next = getvariable('wanted') + 1")
    twins.same("SELECT * FROM t WHERE id >= getvariable('wanted') ORDER BY id")
    twins.do("UPDATE t SET v = getvariable('next') WHERE id = getvariable('wanted')")
    twins.do("DELETE FROM t WHERE id = getvariable('next')")
    twins.do("INSERT INTO t VALUES (getvariable('next') * 10, 0)")
    twins.same("SELECT * FROM t ORDER BY ALL")
    for run in (twins.catalog.sql, twins.oracle.execute):
        run("RESET VARIABLE wanted")
    twins.same("SELECT getvariable('wanted') AS a, getvariable('next') AS b, getvariable('never') AS c")


def test_variables_are_of_one_handle(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.sql("SET VARIABLE secret = 'mine'")
    other = lake.catalog(catalog.name)
    assert other.sql("SELECT getvariable('secret') AS s").to_rows() == [(None,)]
    assert catalog.sql("SELECT getvariable('secret') AS s").to_rows() == [("mine",)]
    assert other.sql("SELECT getvariable('secret') AS s").to_rows() == [(None,)]


def test_a_variable_prunes_as_a_literal_does(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id BIGINT)")
    catalog.table("t").set_option("data_inlining_row_limit", 0)
    for start in (0, 10, 20):
        catalog.sql("INSERT INTO t FROM range($1, $1 + 10)", [start])
    catalog.sql("SET VARIABLE wanted = 15")
    assert catalog.sql("FROM t WHERE id = getvariable('wanted')").to_rows() == [(15,)]
    plan = dict(catalog.sql("EXPLAIN FROM t WHERE id = getvariable('wanted')").to_rows())
    assert [value for key, value in plan.items() if key.startswith("scan of")] == [
        "reads 1 of 3 files and 0 inlined rows"
    ]


def test_a_variable_reaches_no_further_than_a_query(catalog: forklake.Catalog) -> None:
    for value in ("getenv('HOME')", "(SELECT content FROM read_text('/etc/hostname'))", "(SELECT nothing)"):
        with pytest.raises(forklake.InvalidSql):
            catalog.sql(f"SET VARIABLE x = {value}")
    assert catalog.sql("SET VARIABLE x = 1; SELECT getvariable('x') AS x", read_only=True).to_rows() == [(1,)]
    with pytest.raises(forklake.InvalidSql, match=r"is outside of the lake|takes the names|would reach"):
        catalog.sql("SET VARIABLE p = '/etc/hostname'; SELECT * FROM read_text(getvariable('p'))")
