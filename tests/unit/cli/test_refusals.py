"""What cannot be done is refused in one line that says what to do."""

from __future__ import annotations

import pytest

from forklake.api.lake import Lake
from forklake.errors import StoreError
from tests.unit.command_line import refusal, run


@pytest.mark.parametrize(
    "command",
    [
        "init",
        "moved",
        "create x",
        "catalogs",
        "drop x",
        "drop --expired",
        "tables",
        "describe x",
        "snapshots",
        "history x",
        "sql -c x",
        "load x y.csv",
        "export x y.csv",
        "head x",
        "count x",
        "fork x y",
        "diff",
        "merge x --into y",
        "rename x y",
        "ttl x 1h",
        "materialize x",
    ],
)
def test_without_a_lake_every_command_says_how_to_name_one(command: str) -> None:
    assert refusal(*command.split()) == "no lake was named: pass --lake URL or set FORKLAKE_LAKE"


@pytest.mark.parametrize(
    "command",
    [
        "tables",
        "describe x",
        "indexes",
        "build",
        "index x y --column z",
        "diff",
        "diff x",
        "materialize",
        "compact",
        "history x",
        "head x",
        "count x",
        "load x y.csv",
        "export x y.csv",
    ],
)
def test_without_a_catalog_the_commands_that_need_one_say_how_to_name_it(command: str, url: str) -> None:
    expected = "no catalog was named: pass --catalog NAME or set FORKLAKE_CATALOG"
    assert refusal("--lake", url, *command.split()) == expected


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["create", "shop"], '"shop" exists'),
        (["create", " "], "empty"),
        (["create", "a\nb"], "control characters"),
        (["create", "x" * 300], "255 characters"),
        (["drop", "nobody"], '"nobody"'),
        (["drop", "nobody", "--dry-run"], '"nobody"'),
        (["catalogs", "--at", "99"], "99"),
        (["catalogs", "--at", "2001-01-01"], "2001-01-01"),
        (["tables", "--catalog", "nobody"], '"nobody"'),
        (["tables", "--catalog", "shop", "--schema", "nowhere"], '"nowhere"'),
        (["tables", "--catalog", "shop", "--at", "99"], "99"),
        (["tables", "--catalog", "shop", "--at", "0"], '"shop"'),
        (["describe", "nothing", "--catalog", "shop"], "nothing"),
        (["describe", "a.b.c", "--catalog", "shop"], "too many parts"),
        (["describe", 'a"."b', "--catalog", "shop"], '"'),
        (["describe", "sales.orders", "--catalog", "shop", "--at", "1"], "sales"),
        (["snapshots", "--catalog", "nobody"], '"nobody"'),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(arguments: list[str], reason: str, url: str) -> None:
    assert reason in refusal("--lake", url, *arguments)
    assert reason in refusal("--lake", url, "--json", *arguments)


@pytest.mark.parametrize(
    ("lake", "reason"),
    [
        ("nonsense", "sqlite:///lake.db"),
        ("sqlite:///:memory:", "does not name a file"),
        ("sqlite:////no/such/lake.db", "init"),
        ("postgresql://nobody@127.0.0.1:1/none", "refused"),
    ],
)
def test_a_lake_that_cannot_be_opened_is_refused_in_one_line(lake: str, reason: str) -> None:
    assert reason in refusal("--lake", lake, "catalogs")


def test_an_error_of_several_lines_is_told_in_one(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("first\n  second \x1b[31m [red]")

    monkeypatch.setattr(Lake, "catalogs", fail)
    assert refusal("--lake", url, "catalogs") == r"first second \x1b[31m [red]"


def test_an_error_of_the_system_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "lake.db")

    monkeypatch.setattr(Lake, "catalogs", fail)
    assert "Permission denied" in refusal("--lake", url, "catalogs")


def test_a_bug_is_not_taken_for_a_refusal(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr(Lake, "catalogs", fail)
    with pytest.raises(KeyError):
        run("--lake", url, "catalogs")
