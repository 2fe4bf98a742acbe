"""What tests of bad input share.

`table`     a table with a file, a delete file, inlined rows and an inlined delete
`state`     all that must be as before after a failure: the snapshot, the rows with their ids, the files
`refuse`    does something that has to fail, by itself and inside a transaction, and compares the state
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forklake

DDL = (
    "id INT NOT NULL, small SMALLINT, name VARCHAR, price DECIMAL(5,2), tags INT[], s STRUCT(a INT, b DATE), "
    "at TIMESTAMP, ok BOOLEAN"
)


@pytest.fixture
def files(tmp_path: Path) -> Callable[[], set[str]]:
    folder = tmp_path / "files"
    return lambda: {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def table(catalog: forklake.Catalog, files: Callable[[], set[str]]) -> forklake.Table:
    table = catalog.create_table("t", DDL)
    table.set_option("data_inlining_row_limit", 3)
    table.append([{"id": n, "small": n, "name": f"n{n}", "tags": [n], "s": {"a": n}} for n in range(20)])
    table.delete("id < 5")
    table.append([{"id": 20, "name": "x"}, {"id": 21}])
    table.delete("id = 20")
    assert {path.rpartition("/")[2][:7] == "delete-" for path in files()} == {True, False}
    assert len(files()) == 2
    return table


@pytest.fixture
def state(catalog: forklake.Catalog, files: Callable[[], set[str]]) -> Callable[[], Any]:
    def look() -> Any:
        rows = catalog.table("t").scan(row_ids=True).to_arrow().to_pylist()
        return (
            catalog.snapshot,
            sorted(rows, key=lambda row: row["row_id"]),
            files(),
            catalog.table("t").count(),
        )

    return look


@pytest.fixture
def refuse(catalog: forklake.Catalog, table: forklake.Table, state: Callable[[], Any]) -> Callable[..., str]:
    def attempt(
        do: Callable[[forklake.Table], Any],
        error: type[Exception] = forklake.InvalidData,
        *words: str,
        at_commit: bool = False,
    ) -> str:
        before = state()
        messages = []

        def check(caught: pytest.ExceptionInfo[Exception]) -> None:
            message = str(caught.value)
            is_null = error is forklake.InvalidData and "is NOT NULL" in message
            assert type(caught.value) is (forklake.NullNotAllowed if is_null else error), message
            for word in words:
                assert word in message, message
            assert state() == before, message
            messages.append(message)

        with pytest.raises(error) as caught:
            do(table)
        check(caught)
        with pytest.raises(error) as caught, catalog.transaction() as tx:
            if not at_commit:
                # A transaction may go on after a refusal, and has nothing of what was refused.
                with pytest.raises(error):
                    do(tx.table("t"))
                rows = tx.table("t").scan(row_ids=True).to_arrow().to_pylist()
                assert sorted(rows, key=lambda row: row["row_id"]) == before[1]
            do(tx.table("t"))
        check(caught)
        return messages[0]

    return attempt
