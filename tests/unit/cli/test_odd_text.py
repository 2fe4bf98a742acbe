"""Odd names and texts are printed as they are, and a terminal does not obey them."""

from __future__ import annotations

import pytest

import forklake
from tests.unit.command_line import data, done, refusal, run

ODD_NAMES = [
    "[red]x[/red]",
    "[/]",
    'a"b',
    "it's",
    "漢字 é 👩‍🚀",
    ":smile:",
    "-dash",
    "--json",
    "%s {0} \\n $HOME",
    "a.b",
    " blanks ",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_is_printed_as_it_is(name: str, url: str) -> None:
    assert name in done("--lake", url, "create", "--", name)
    with forklake.connect(url) as lake:
        lake.catalog(name).create_schema(name)
        lake.catalog(name).create_table((name, name), [(name, "bigint")])
    assert name in [catalog["name"] for catalog in data("--lake", url, "catalogs")]
    assert any(line.startswith(name) for line in done("--lake", url, "catalogs").splitlines())
    (table,) = data("--lake", url, f"--catalog={name}", "tables")
    assert (table["schema"], table["name"]) == (name, name)
    quoted = '"' + name.replace('"', '""') + '"'
    found = run("--lake", url, f"--catalog={name}", "describe", f"{quoted}.{quoted}")
    assert any(line.startswith(name) for line in found.stdout.split("\n\n")[1].splitlines())
    assert name in refusal("--lake", url, "create", "--", name)
    assert [each["name"] for each in data("--lake", url, "drop", "--", name)] == [name]


def test_a_terminal_is_shown_control_characters_and_does_not_obey_them(url: str) -> None:
    evil = "a\x1b[2Jb\r\nc\x9b\u202ed\u2028e"
    shown = r"a\x1b[2Jb\r\nc\x9b\u202ed\u2028e"
    with forklake.connect(url) as lake:
        lake.create_catalog("turned\u202e")
        shop = lake.catalog("shop")
        shop.table("notes").comment(evil)
        shop.table("notes").comment(evil, column="id")
        with shop.transaction(author=evil, message=evil, extra={"x": evil}) as tx:
            tx.create_schema("s")
    for arguments in (["describe", "notes"], ["snapshots"]):
        text = done("--lake", url, "--catalog", "shop", *arguments)
        assert text.count(shown) == 2
        assert not set("\x1b\r\x9b\u202e\u2028") & set(text)
    assert r"turned\u202e" in done("--lake", url, "catalogs")
    described = data("--lake", url, "--catalog", "shop", "describe", "notes")
    assert (described["comment"], described["columns"][0]["comment"]) == (evil, evil)
    last = data("--lake", url, "--catalog", "shop", "snapshots")[-1]
    assert (last["author"], last["message"], last["extra"]) == (evil, evil, {"x": evil})


def test_a_row_is_one_line_in_a_pipe_however_long(url: str) -> None:
    with forklake.connect(url) as lake, lake.catalog("shop").transaction(message="m" * 3000) as tx:
        tx.create_schema("n" * 255)
    lines = done("--lake", url, "snapshots", COLUMNS="40").splitlines()
    assert "m" * 3000 in lines[-1]
    assert lines[-1].endswith(f"created schema {'n' * 255}")
    assert len(lines) == 1 + len(data("--lake", url, "snapshots"))
