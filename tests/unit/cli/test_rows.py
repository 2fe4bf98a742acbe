"""Commands that bring rows in, show them and write them to files, without SQL."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.unit.command_line import data, done, refusal, rows, run


@pytest.fixture
def lake(url: str) -> tuple[str, ...]:
    return ("--lake", url, "--catalog", "shop")


@pytest.fixture
def csv(tmp_path: Path) -> str:
    path = tmp_path / "in.csv"
    path.write_text("id,name,day\n1,a,2026-01-31\n2,,2026-02-01\n3,c,\n")
    return str(path)


def test_files_become_a_table_and_are_appended_to_it(lake: tuple[str, ...], csv: str, tmp_path: Path) -> None:
    assert "--create makes it" in refusal(*lake, "load", "people", csv)
    made = data(*lake, "load", "people", csv, "--create", "--message", "first")
    assert (made["table"], made["rows"], made["created"]) == ("main.people", 3, True)
    more = tmp_path / "more.ndjson"
    more.write_text('{"id": 4, "name": "d", "day": "2026-03-01"}\n')
    added = data(*lake, "load", "people", str(more), "--cast", "--create")
    assert (added["rows"], added["created"]) == (1, False)
    assert added["snapshot"] > made["snapshot"]
    assert done(*lake, "count", "people") == "4\n"
    assert [one["message"] for one in data(*lake, "history", "people")] == ["first", None]


def test_options_say_how_a_file_is_read(lake: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "odd.data"
    path.write_text("1;x\n2;y\n")
    read = ["--format", "csv", "--option", "delim=;", "--option", "header=false", "--option", "skip=1"]
    done(*lake, "load", "odd", str(path), "--create", *read)
    assert data(*lake, "head", "odd") == [{"column0": 2, "column1": "y"}]
    assert run(*lake, "load", "odd", str(path), "--option", "delim").exit_code == 2


def test_a_file_that_does_not_fit_changes_nothing(lake: tuple[str, ...], csv: str, tmp_path: Path) -> None:
    done(*lake, "load", "people", csv, "--create")
    for name, text in (("extra.csv", "id,more\n5,x\n"), ("words.csv", "id\nfive\n")):
        (tmp_path / name).write_text(text)
        refusal(*lake, "load", "people", csv, str(tmp_path / name), "--cast")
    assert "no file" in refusal(*lake, "load", "people", f"{tmp_path}/none.csv")
    assert "format" in refusal(*lake, "load", "people", f"{tmp_path}/what.xyz")
    assert done(*lake, "count", "people") == "3\n"


def test_head_shows_some_rows_and_count_how_many(lake: tuple[str, ...], csv: str) -> None:
    done(*lake, "load", "people", csv, "--create")
    past = data(*lake, "snapshots")[-1]["id"]
    shown = rows(done(*lake, "head", "people", "--where", "id <= 2", "--columns", "id, day"))
    assert shown[0] == ["id", "| day"]
    assert shown[-1] == ["(2 rows)"]
    assert data(*lake, "head", "people", "-n", "1", "--where", "name IS NULL") == [
        {"id": 2, "name": None, "day": "2026-02-01"}
    ]
    assert data(*lake, "head", "people", "-n", "0") == []
    assert data(*lake, "count", "people", "--where", "day IS NULL") == {"table": "main.people", "rows": 1}
    done(*lake, "sql", "-c", "DELETE FROM people")
    assert (done(*lake, "count", "people"), done(*lake, "count", "people", "--at", str(past))) == (
        "0\n",
        "3\n",
    )
    assert '"nothing"' in refusal(*lake, "head", "people", "--columns", "nothing")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("out.csv", "id,name,day\n1,a,2026-01-31\n"),
        ("out.tsv", "id\tname\tday\n1\ta\t2026-01-31\n"),
        ("out.ndjson", '{"id":1,"name":"a","day":"2026-01-31"}\n'),
        ("out.json", None),
        ("out.parquet", None),
    ],
)
def test_rows_are_written_to_files_by_their_names(
    name: str, content: str | None, lake: tuple[str, ...], csv: str, tmp_path: Path
) -> None:
    done(*lake, "load", "people", csv, "--create")
    path = tmp_path / name
    assert data(*lake, "export", "people", str(path), "--where", "id = 1") == {"file": str(path), "rows": 1}
    if content is not None:
        assert path.read_text() == content
    elif name.endswith("json"):
        assert json.loads(path.read_text()) == [{"id": 1, "name": "a", "day": "2026-01-31"}]
    else:
        assert pq.read_table(path).column_names == ["id", "name", "day"]
    assert data(*lake, "export", str(path), "--sql", "SELECT 7 AS seven")["rows"] == 1
    assert sorted(child.name for child in tmp_path.iterdir() if child.name.startswith((".out", "out"))) == [
        name
    ]


def test_a_file_that_cannot_be_written_is_refused_and_not_begun(
    lake: tuple[str, ...], csv: str, tmp_path: Path
) -> None:
    done(*lake, "load", "people", csv, "--create")
    assert "let it end in" in refusal(*lake, "export", "people", f"{tmp_path}/out.xlsx")
    assert "cannot be written" in refusal(*lake, "export", "people", f"{tmp_path}/no/such/out.csv")
    old = tmp_path / "old.csv"
    old.write_text("precious")
    query = (
        "SELECT CASE WHEN i = 900000 THEN CAST('x' AS INTEGER) ELSE i END AS i FROM range(1000000) AS t(i)"
    )
    refusal(*lake, "export", str(old), "--sql", query)
    assert old.read_text() == "precious"
    assert [child.name for child in tmp_path.iterdir() if child.name.startswith(".")] == []
    assert "only reading" in refusal(*lake, "export", str(old), "--sql", "DELETE FROM people")
    assert run(*lake, "export", "people").exit_code == 2
    assert run(*lake, "export", "people", str(old), "--sql", "SELECT 1").exit_code == 2
