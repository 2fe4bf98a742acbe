"""SQL on the command line, as a filter: what it prints, where it stops, and what stays."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from forklake.cli.app import app
from tests.unit.command_line import data, done, refusal, run, the_line


@pytest.fixture
def lake(url: str) -> tuple[str, ...]:
    return ("--lake", url, "--catalog", "shop")


def test_every_result_is_printed_with_types_and_counts(lake: tuple[str, ...]) -> None:
    script = (
        "CREATE TABLE t (id INTEGER, name VARCHAR);"
        "INSERT INTO t VALUES (1, 'a'), (20, NULL);"
        "SELECT * FROM t ORDER BY id; DELETE FROM t WHERE id = 1"
    )
    assert done(*lake, "sql", "-c", script).splitlines() == [
        "CREATE TABLE",
        "(2 rows changed)",
        " id      | name",
        " integer | varchar",
        "---------+---------",
        "       1 | a",
        "      20 | NULL",
        "(2 rows)",
        "(1 row changed)",
    ]


def test_scripts_come_from_stdin_files_and_options(lake: tuple[str, ...], tmp_path: Path) -> None:
    piped = CliRunner().invoke(app, [*lake, "sql", "--csv"], input="SELECT 1 AS a;\nSELECT 2 AS b, NULL AS c")
    assert (piped.exit_code, piped.stdout) == (0, "b,c\n2,\n")
    file = tmp_path / "script.sql"
    file.write_text("SELECT 'ü' AS b -- no semicolon")
    assert data(*lake, "sql", "-f", str(file)) == [{"b": "ü"}]
    assert data(*lake, "sql", "-c", "SELECT 1 AS a", "-c", "SELECT 2 AS b;") == [{"b": 2}]
    assert (done(*lake, "sql", "-c", ""), done(*lake, "sql", "--csv", "-c", "-- nothing")) == ("", "")
    assert data(*lake, "sql", "-c", "CREATE TABLE t (id INTEGER)") == []
    file.write_bytes(b"SELECT '\xff'")
    assert "UTF-8" in refusal(*lake, "sql", "-f", str(file))
    assert "No such file" in refusal(*lake, "sql", "-f", f"{tmp_path}/none.sql")
    assert run(*lake, "sql", "-f", str(file), "-c", "SELECT 1").exit_code == 2
    assert run(*lake, "--json", "sql", "--csv", "-c", "SELECT 1").exit_code == 2


def test_json_has_the_rows_of_the_last_result(lake: tuple[str, ...]) -> None:
    query = "SELECT 1.50::DECIMAL(4, 2) AS d, 0.1::FLOAT AS f, 5::HUGEINT AS h, [1, 2] AS l, {'a': NULL} AS s"
    text = done(*lake, "--json", "sql", "-c", f"SELECT 1 AS other; {query}; CREATE SCHEMA later")
    assert json.loads(text) == [{"d": 1.5, "f": 0.1, "h": 5, "l": [1, 2], "s": {"a": None}}]
    assert '"d": 1.50' in text
    assert data(*lake, "sql", "-c", "CREATE TABLE t AS SELECT 1 AS a; UPDATE t SET a = 2") == [{"Count": 1}]


def test_rows_go_to_a_file(lake: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    written = data(*lake, "sql", "-o", str(path), "-c", "SELECT i AS id FROM range(300000) AS t(i)")
    assert written == {"file": str(path), "rows": 300_000}
    assert pq.read_table(path).column("id")[-1].as_py() == 299_999
    assert "let it end in" in refusal(*lake, "sql", "-o", f"{tmp_path}/x.doc", "-c", "CREATE SCHEMA s")
    assert "s" not in done(
        *lake,
        "--json",
        "sql",
        "-c",
        "SELECT schema_name FROM information_schema.schemata WHERE schema_name = 's'",
    )


def test_parameters_are_bound_by_name(lake: tuple[str, ...]) -> None:
    given = ["--param", "n=7", "--param", "name=it's", "--param", "none=null"]
    query = "SELECT $n + 1 AS n, $name AS name, $none AS nothing"
    assert data(*lake, "sql", *given, "-c", query) == [{"n": 8, "name": "it's", "nothing": None}]
    assert "no statement has a parameter $nn; there is $n" in refusal(
        *lake, "sql", "--param", "nn=1", "-c", "SELECT $n"
    )
    refusal(*lake, "sql", "-c", "SELECT $n")
    assert run(*lake, "sql", "--param", "n", "-c", "SELECT $n").exit_code == 2


def test_the_first_error_ends_a_script_and_says_where_it_is(lake: tuple[str, ...]) -> None:
    make = "CREATE TABLE t (id INTEGER);\nINSERT INTO t VALUES (1);\n"
    script = f"{make}  INSERT INTO nothing VALUES (1);\nDROP TABLE t"
    result = run(*lake, "sql", "-c", script)
    assert (result.exit_code, result.stdout) == (1, "CREATE TABLE\n(1 row changed)\n")
    assert the_line(result.stderr).startswith("line 3, column 3: ")
    assert data(*lake, "sql", "-c", "FROM t") == [{"id": 1}]


def test_a_script_that_does_not_parse_is_not_begun(lake: tuple[str, ...]) -> None:
    told = refusal(*lake, "sql", "-c", "CREATE TABLE t (id INTEGER);\nSELEC 1")
    assert "line 2, column 1" in told
    assert '"SELEC"' in told
    assert '"t"' in refusal(*lake, "sql", "-c", "FROM t") or "t" in refusal(*lake, "describe", "t")


def test_one_transaction_is_all_or_nothing(lake: tuple[str, ...]) -> None:
    before = len(data(*lake, "snapshots"))
    good = "CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1)"
    result = run(*lake, "sql", "-1", "-c", f"{good}; FROM nothing")
    assert result.exit_code == 1
    assert len(data(*lake, "snapshots")) == before
    done(*lake, "sql", "-1", "-c", good)
    assert len(data(*lake, "snapshots")) == before + 1
    result = run(*lake, "sql", "-c", "BEGIN; INSERT INTO t VALUES (2)")
    assert result.exit_code == 1
    assert "end it with COMMIT" in the_line(result.stderr)
    done(*lake, "sql", "-c", "BEGIN; INSERT INTO t VALUES (3); COMMIT")
    assert data(*lake, "sql", "-c", "SELECT list(id ORDER BY id) AS ids FROM t") == [{"ids": [1, 3]}]


def test_what_it_may_do_can_be_limited(lake: tuple[str, ...], tmp_path: Path) -> None:
    assert "only reading" in refusal(*lake, "sql", "--read-only", "-c", "CREATE TABLE t (id INTEGER)")
    assert "more than 5 rows" in refusal(*lake, "sql", "--max-rows", "5", "-c", "FROM range(6)")
    slow = "SELECT count(*) FROM range(1000000000000) AS t(i) WHERE hash(i) % 7 = 3"
    assert "0.05 seconds" in refusal(*lake, "sql", "--max-seconds", "0.05", "-c", slow)
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "x.csv").write_text("a\n1\n")
    query = f"FROM '{tmp_path}/away/x.csv'"
    assert data(*lake, "sql", "--allow", f"{tmp_path}/away", "-c", query) == [{"a": 1}]
    assert "outside of the lake" in refusal(*lake, "sql", "--allow", f"{tmp_path}/else", "-c", query)


def test_without_a_catalog_names_begin_with_one(url: str) -> None:
    query = "SELECT count(*) AS n FROM shop.sales.orders"
    assert data("--lake", url, "sql", "-c", query) == [{"n": 0}]
    assert data("--lake", url, "sql", "-c", "USE shop; SELECT count(*) AS n FROM sales.orders") == [{"n": 0}]
    refusal("--lake", url, "sql", "-c", "FROM orders")
    assert '"nobody"' in refusal("--lake", url, "--catalog", "nobody", "sql", "-c", "SELECT 1")
