"""What notebooks show: bounded, escaped, by a fixed number of queries, and never an error."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.display import MOST_ROWS, Listing, cell, html_table
from forklake.store.backend import Database

EVIL = "<script>alert('x')</script>&\"\u202e"
ALLOWED = {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}


class Reader(HTMLParser):
    """The tags that a browser would see, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"style"}
        self.tags.add(tag)
        self.open.append(tag)
        self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


def seen(value: Any) -> str:
    """What is shown, after a check that nothing in it is anything but text."""
    html = value._repr_html_()
    assert Reader(html).tags <= ALLOWED
    assert "\u202e" not in html
    assert len(html) < 100_000
    return " | ".join(text for text in Reader(html).cells if text)


@pytest.fixture
def evil(lake: forklake.Lake) -> forklake.Table:
    """A table whose catalog, schema, name, columns, values and comments are all hostile."""
    catalog = lake.create_catalog(EVIL, author=EVIL, message=EVIL, extra={EVIL: EVIL})
    catalog.create_schema(EVIL)
    schema = pa.schema([("id", pa.int64()), (EVIL, pa.string())])
    table = catalog.create_table((EVIL, EVIL), schema, comment=EVIL)
    table.comment(EVIL, column=(EVIL,))
    table.append([{"id": number, EVIL: EVIL} for number in range(3)])
    return table


def test_handles_show_hostile_names_as_text(lake: forklake.Lake, evil: forklake.Table) -> None:
    catalog = lake.catalog(EVIL)
    shown = EVIL.replace("\u202e", "\\u202e")
    assert shown in seen(lake)
    assert "catalogs | 1" in seen(lake)
    assert shown in seen(catalog)
    assert "tables | 1" in seen(catalog)
    assert seen(evil).count(shown) >= 4
    assert "rows | 3" in seen(evil)
    condition = '"' + EVIL.replace('"', '""') + "\" = '<b>'"
    scan = evil.scan(condition)
    assert "<b>" in seen(scan)
    assert seen(scan.plan())
    assert seen(evil.changes(1))
    with catalog.transaction() as tx:
        tx.create_view(EVIL, "SELECT 1")
        tx.table((EVIL, EVIL)).append([{"id": 9}])
        assert shown in seen(tx)
        assert "1 rows added, 0 removed" in seen(tx)
        assert "1 rows added" in seen(tx.table((EVIL, EVIL)))
    assert "committed" in seen(tx)
    for listing in (
        lake.catalogs(),
        lake.snapshots(),
        catalog.snapshots(),
        catalog.tables(),
        evil.history(),
        evil.files(),
    ):
        assert isinstance(listing, Listing)
        assert seen(listing)
    assert shown in seen(catalog.snapshots())
    assert shown in seen(catalog.snapshots()[0])


def test_differences_merges_and_conflicts_are_shown(lake: forklake.Lake, evil: forklake.Table) -> None:
    fork = lake.fork(EVIL, "fork " + EVIL)
    fork.table((EVIL, EVIL)).update({EVIL: "'<i>ours</i>'"}, "id = 1")
    difference = fork.diff()
    shown = EVIL.replace("\u202e", "\\u202e")
    assert shown in seen(difference)
    (table,) = difference.tables
    assert "rows_added | 1" in seen(table)
    assert "RowDiff" in seen(table.rows())
    evil.update({EVIL: "'<i>theirs</i>'"}, "id = 1")
    with pytest.raises(forklake.MergeConflict) as refused:
        fork.merge_into(EVIL)
    assert "both changed the same rows" in seen(refused.value)
    (conflict,) = refused.value.conflicts
    assert "row_count | 1" in seen(conflict)
    (row,) = conflict.rows()
    assert f"{shown} | {shown} | <i>ours</i> | <i>theirs</i>" in seen(row)
    assert "conflicts" in seen(fork.merge_into(EVIL, dry_run=True))
    assert shown in seen(fork.merge_into(EVIL, prefer="source"))
    assert seen(lake.replay(fork, onto=EVIL))
    assert seen(evil.compact())


def test_a_conflict_is_shown_without_reading_its_rows() -> None:
    change = forklake.Change("delete", 1)  # type: ignore[arg-type]

    def read() -> list[Any]:
        raise AssertionError("rows were read")

    assert seen(forklake.Conflict("rule", change, change, 3, row_count=7, read_rows=read))  # type: ignore[arg-type]


def test_many_catalogs_and_tables_are_counted_and_few_are_shown(
    lake: forklake.Lake, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = lake.create_catalog("main")
    table = main.create_table("t", ", ".join(f"c{number} INT" for number in range(50)))
    few = _queries(database, monkeypatch, [lake, main, table])
    lake.fork_many("main", [f"f{number:04}" for number in range(1000)])
    with main.transaction() as tx:
        for number in range(100):
            tx.create_table(f"t{number:03}", "id INT")
    assert _queries(database, monkeypatch, [lake, main, table]) == few
    assert len(few) < 20
    assert "… 981 more" in seen(lake)
    assert "… 81 more" in seen(main)
    assert "… 30 more" in seen(table)
    assert "… 981 more" in seen(lake.catalogs())


def _queries(database: Database, monkeypatch: pytest.MonkeyPatch, handles: list[Any]) -> list[str]:
    ran: list[str] = []
    rows = type(database).rows

    def counted(self: Database, statement: str, /, **params: object) -> Any:
        ran.append(statement)
        return rows(self, statement, **params)

    for handle in handles:
        # What is remembered of the structure is not to count.
        handle._repr_html_()
    with monkeypatch.context() as patch:
        patch.setattr(type(database), "rows", counted)
        for handle in handles:
            handle._repr_html_()
    return ran


def test_stale_handles_say_so_and_raise_nothing(lake_url: str, tmp_path: Path) -> None:
    with forklake.connect(lake_url, create=True, data_path=tmp_path / "files") as lake:
        main, other = lake.create_catalog("main"), lake.create_catalog("other")
        table, gone = main.create_table("t", "id INT"), main.create_table("gone", "id INT")
        gone.drop()
        lake.drop_catalog("other")
        open_one, done = main.transaction(), main.transaction()
        done.rollback()
        assert "was dropped" in seen(other)
        assert "it was dropped or is newer" in seen(gone)
        assert "rolled back" in seen(done)
        scan = table.scan()
        plan = scan.plan()
    for handle in (lake, main, other, table, gone, open_one, done, scan, plan):
        assert seen(handle)
        assert repr(handle)
        assert len(repr(handle)) < 300


def test_a_plan_shows_what_was_pruned_once_somebody_asked(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INT")
    table.set_option("data_inlining_row_limit", 0)
    for number in range(30):
        table.append([{"id": number}])
    plan = table.scan("id = 3").plan()
    assert "pruned" not in seen(plan)
    assert len(plan.pruned) == 29
    assert "pruned | 29 files" in seen(plan)
    assert "… 9 more" in seen(plan)
    assert repr(plan).startswith("<ScanPlan of 't' at snapshot")


def test_cells_are_bounded_whatever_is_in_them() -> None:
    for value in (
        "x" * 10**7,
        list(range(10**6)),
        {n: n for n in range(10**5)},
        set(range(10**6)),
        b"x" * 10**7,
    ):
        assert len(cell(value)) < 1000
    nested: list[Any] = []
    for _ in range(10_000):
        nested = [nested]
    assert len(cell(nested)) < 1000
    many = html_table(["n"], ([number] for number in range(10**4)), 10**4)
    assert len(re.findall("<tr>", many)) == MOST_ROWS + 1
    assert f"… {10**4 - MOST_ROWS:,} more" in many
