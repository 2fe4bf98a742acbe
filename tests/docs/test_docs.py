"""What the documentation shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from contextlib import ExitStack
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import forklake
from forklake.store.tables import TABLES
from tests.pgbouncer import PgBouncer, tracks_statements

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)\)")


def examples(page: Path):
    """Python blocks, each followed by what it prints. One that imports begins anew, others go on from it."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    stories: list[list[tuple[str, str]]] = []
    for (kind, code), (next_kind, output) in pairwise(blocks):
        if kind == "python":
            assert not next_kind, f"{page.name} does not say what its Python prints"
            if "import forklake" in code:
                stories.append([])
            stories[-1].append((code, output))
    for number, story in enumerate(stories):
        # By this name all that needs Spark runs in one process.
        spark = "-spark" if any("forklake.spark" in code for code, _ in story) else ""
        yield pytest.param(story, id=f"{page.name}-{number}{spark}")


EXAMPLES = [example for page in PAGES for example in examples(page)]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("story", EXAMPLES)
def test_an_example_prints_what_the_page_says(
    story: list[tuple[str, str]], tmp_path: Path, monkeypatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    if request.node.callspec.id.endswith("-spark"):
        # What the page starts would be the session of all later tests: with a UI, and hundreds of partitions.
        request.getfixturevalue("spark")
    names: dict[str, object] = {}
    for code, output in story:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "example", "exec"), names)  # noqa: S102 - our own page
        assert printed.getvalue() == output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_headings_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    targets = [(page.parent / name if name else page, anchor) for name, anchor in links]
    assert [(target.name, anchor) for target, anchor in targets if anchor not in anchors(target)] == []


def test_every_make_target_that_is_mentioned_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        mentioned = set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8")))
        assert mentioned <= targets, page.name


def test_the_sql_on_the_metadata_page_runs(tmp_path) -> None:
    import sqlite3

    with forklake.connect(f"sqlite:///{tmp_path}/lake.db", create=True) as lake:
        lake.create_catalog("shop").create_table("old", "id INT")
        lake.drop_catalog("shop")
        shop = lake.create_catalog("shop")
        shop.create_table("t", "id INT")
        shop.create_table("dropped", "id INT")
        shop.drop_table("dropped")
        lake.fork("shop", "other").create_table("others", "id INT")
    page = (ROOT / "docs" / "metadata.md").read_text(encoding="utf-8")
    (query,) = [code for kind, code in BLOCK.findall(page) if kind == "sql"]
    with contextlib.closing(sqlite3.connect(tmp_path / "lake.db")) as connection:
        assert connection.execute(query).fetchall() == [("main", "t")]


@pytest.fixture
def operations() -> list[tuple[str, str]]:
    """The blocks of the page for operators: their language, and what they say."""
    return BLOCK.findall((ROOT / "docs" / "operations.md").read_text(encoding="utf-8"))


def test_the_sql_on_the_page_for_operators_runs(
    operations: list[tuple[str, str]], postgres_schema_url: str, tmp_path: Path
) -> None:
    texts = {code.splitlines()[0].removeprefix("-- "): code for kind, code in operations if kind == "sql"}
    schema = postgres_schema_url.rpartition("=")[2]
    with (
        forklake.connect(postgres_schema_url, data_path=tmp_path / "files", create=True) as lake,
        psycopg.connect(postgres_schema_url.partition("?")[0], autocommit=True) as watcher,
        ExitStack() as opened,
    ):
        shop = lake.create_catalog("shop")
        shop.create_table("t", "id BIGINT").append([{"id": 1}])
        lake.fork("shop", "gone", ttl=timedelta(hours=1))
        lake.drop_catalog("gone")
        lake.create_catalog("late")
        reserved = shop.begin_distributed()
        watcher.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        late = lake.catalog("late").id
        watcher.execute(f"UPDATE ducklake_catalog_head SET expires_at = now() WHERE catalog_id = {late}")
        session = opened.enter_context(lake._database.transaction())
        session.lock_head(shop.id)

        def found(begin: str) -> list[tuple[Any, ...]]:
            (text,) = [text for first, text in texts.items() if first.startswith(begin)]
            cursor = watcher.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

        assert sum(commits for _, commits in found("commits per minute")) == len(lake.snapshots())
        assert [row[:2] for row in found("the busiest catalogs")] == [("shop", 3), ("late", 1)]
        assert found("catalogs:") == [(2, 1, 1)]
        assert [(row[1], str(row[2]), row[5]) for row in found("reservations")] == [
            ("shop", reserved.reservation_id, False)
        ]
        process = session._wire.process
        assert [row[1] for row in found("the longest transactions") if row[0] == process] == ["forklake"]
        assert [row[0] for row in found("commits in flight")] == [process]
        assert {row[0] for row in found("sizes of tables")} == TABLES.keys()
        assert found("what vacuum has left") is not None
        session.rollback()
        found("vacuum often")
        assert len(texts) == 9


def test_pgbouncer_takes_the_settings_on_the_page_for_operators(
    operations: list[tuple[str, str]], pgbouncer_program: None, postgres_schema_url: str, tmp_path: Path
) -> None:
    (text,) = [code for kind, code in operations if kind == "ini"]
    settings = dict(re.findall(r"^(\w+) = (\d+|transaction)$", text, re.MULTILINE))
    assert len(settings) == 6
    if not tracks_statements():
        del settings["max_prepared_statements"]
    with PgBouncer(postgres_schema_url, **settings) as pooler:
        url = pooler.through(postgres_schema_url)
        with forklake.connect(url, data_path=tmp_path / "files", create=True) as lake:
            assert lake.create_catalog("shop").snapshot == 1
