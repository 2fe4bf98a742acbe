"""The command line: in this process where possible, and as the installed program where a process matters."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import forklake
from forklake.api.catalog import Catalog
from forklake.api.lake import Lake
from forklake.api.transaction import Transaction
from forklake.cli import demo
from forklake.cli.app import app
from forklake.cli.reference import RESULTS, reference
from forklake.commit import publish
from forklake.demo.catalogs import STEPS, Step, checked
from forklake.errors import StoreError
from forklake.localpg import LocalPostgres
from tests.unit.command_line import data, done, no_settings_from_outside, refusal, rows, run, the_line

__all__ = ["no_settings_from_outside"]

SCRIPT = Path(sys.executable).with_name("forklake")
ROOT = Path(__file__).parents[2]

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


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of a lake with a catalog `shop` that has a past, and an empty catalog `lab`."""
    address = f"sqlite:///{tmp_path}/lake.db"
    with forklake.init(address) as lake:
        shop = lake.create_catalog("shop")
        with shop.transaction(author="me", message="load", extra={"run": 7}) as tx:
            tx.create_schema("sales")
            tx.create_table(
                "sales.orders",
                "id BIGINT NOT NULL, at TIMESTAMPTZ DEFAULT now(), status VARCHAR DEFAULT 'it''s new', "
                "customer STRUCT(name VARCHAR, homes STRUCT(zip INTEGER)[]) COMMENT 'who', "
                "m MAP(VARCHAR, DOUBLE)",
                comment="one row for each order",
            )
            tx.create_table("notes", "id INTEGER")
        shop.table("sales.orders").set_tag("owner", "sales", column="customer.name")
        shop.table("sales.orders").set_tag("class", "internal")
        lake.create_catalog("lab")
        shop.table("sales.orders").add_column("later", "varchar")
    return address


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user may enter, unlike `tmp_path` when root runs the tests."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def script(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=240, **options
    )


# ---- Each command ---


@pytest.mark.parametrize("backend", ["sqlite", "duckdb", "postgresql"])
def test_a_lake_is_made_filled_listed_and_emptied_on_every_database(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if backend == "postgresql":
        lake = request.getfixturevalue("postgres_schema_url")
    else:
        lake = f"{backend}:///{tmp_path}/lake.db"
    made = data("--lake", lake, "init", "--data-path", str(tmp_path / "files"))
    assert made["data_path"] == f"{tmp_path}/files/"
    assert data("--lake", lake, "catalogs") == []
    assert data("--lake", lake, "create", "shop")["name"] == "shop"
    assert [catalog["name"] for catalog in data("--lake", lake, "catalogs")] == ["shop"]
    assert data("--lake", lake, "--catalog", "shop", "tables") == []
    assert data("--lake", lake, "drop", "shop")[0]["dropped"] is True
    assert data("--lake", lake, "catalogs") == []
    assert [snapshot["catalog"] for snapshot in data("--lake", lake, "snapshots")] == [None, "shop", "shop"]


def test_init_says_where_the_lake_and_its_files_are(tmp_path: Path) -> None:
    lake = f"sqlite:///{tmp_path}/lake.db"
    text = done("--lake", lake, "init")
    assert rows(text) == [["lake", lake], ["data_path", f"{tmp_path}/lake.db.files/"]]


def test_init_leaves_an_existing_lake_alone(url: str) -> None:
    assert "already" in refusal("--lake", url, "init")
    assert len(data("--lake", url, "catalogs")) == 2


def test_create_says_which_catalog_is_there_now(url: str) -> None:
    made = data("--lake", url, "create", "new")
    assert list(made) == ["name", "id", "snapshot"]
    assert data("--lake", url, "create", "new", "--if-not-exists") == made
    assert rows(done("--lake", url, "create", "other"))[0] == ["name", "other"]
    assert '"new" exists' in refusal("--lake", url, "create", "new")


def test_catalogs_are_listed_as_text_and_as_json(url: str) -> None:
    found = data("--lake", url, "catalogs")
    assert [catalog["name"] for catalog in found] == ["lab", "shop"]
    assert list(found[0]) == [
        "name", "id", "uuid", "parent", "fork_snapshot", "depth", "created_at", "expires_at",
        "parent_dropped", "expired",
    ]  # fmt: skip
    assert datetime.fromisoformat(found[0]["created_at"]).tzinfo is not None
    header, lab, _ = rows(done("--lake", url, "catalogs"))
    # What is set nowhere has no column.
    assert header == ["name", "id", "uuid", "depth", "created_at"]
    assert lab == [str(found[0][name]) for name in header]


def test_catalogs_of_the_past_are_listed_by_snapshot_and_by_time(url: str) -> None:
    first = next(s for s in data("--lake", url, "snapshots") if s["catalog"] == "shop")
    for at in (str(first["id"]), first["time"]):
        assert [catalog["name"] for catalog in data("--lake", url, "catalogs", "--at", at)] == ["shop"]


def test_an_empty_listing_says_so_in_text(url: str) -> None:
    assert done("--lake", url, "--catalog", "lab", "tables") == "(none)\n"
    assert data("--lake", url, "--catalog", "lab", "tables") == []


def test_drop_says_what_it_dropped_and_where_it_can_still_be_seen(url: str) -> None:
    (dropped,) = data("--lake", url, "drop", "shop")
    assert list(dropped) == ["name", "id", "snapshot", "tables", "dropped"]
    assert (dropped["tables"], dropped["dropped"]) == (2, True)
    assert [catalog["name"] for catalog in data("--lake", url, "catalogs")] == ["lab"]
    past = data("--lake", url, "--catalog", "shop", "tables", "--at", str(dropped["snapshot"]))
    assert len(past) == 2


def test_a_dry_run_of_drop_drops_nothing(url: str) -> None:
    before = data("--lake", url, "snapshots")
    assert [each["dropped"] for each in data("--lake", url, "drop", "shop", "lab", "--dry-run")] == [
        False
    ] * 2
    header, shop = rows(done("--lake", url, "drop", "shop", "--dry-run", "--yes"))
    assert (header[-1], shop[0], shop[-1]) == ("dropped", "shop", "no")
    assert data("--lake", url, "snapshots") == before


def test_catalogs_are_dropped_together_or_not_at_all(url: str) -> None:
    before = data("--lake", url, "snapshots")
    assert '"nobody"' in refusal("--lake", url, "drop", "shop", "nobody", "lab")
    assert "twice" in refusal("--lake", url, "drop", "shop", "shop")
    assert data("--lake", url, "snapshots") == before
    dropped = data("--lake", url, "drop", "shop", "lab")
    assert [(each["name"], each["tables"], each["dropped"]) for each in dropped] == [
        ("shop", 2, True), ("lab", 0, True),
    ]  # fmt: skip
    assert len(data("--lake", url, "snapshots")) == len(before) + 1


def test_tables_are_listed_as_text_and_as_json(url: str) -> None:
    found = data("--lake", url, "--catalog", "shop", "tables")
    assert [(table["schema"], table["name"]) for table in found] == [("main", "notes"), ("sales", "orders")]
    assert list(found[0]) == ["schema", "name", "id", "uuid"]
    header, notes, _ = rows(done("--lake", url, "--catalog", "shop", "tables"))
    assert header == list(found[0])
    assert notes == [str(value) for value in found[0].values()]


def test_tables_of_one_schema_are_listed(url: str) -> None:
    found = data("--lake", url, "--catalog", "shop", "tables", "--schema", "sales")
    assert [table["name"] for table in found] == ["orders"]


def test_tables_of_the_past_are_listed(url: str) -> None:
    first = next(s for s in data("--lake", url, "snapshots") if s["catalog"] == "shop")
    assert data("--lake", url, "--catalog", "shop", "tables", "--at", str(first["id"])) == []


def test_describe_shows_nested_fields_indented(url: str) -> None:
    text = done("--lake", url, "--catalog", "shop", "describe", "sales.orders")
    head, columns = text.split("\n\n")
    assert [name for name, *_ in rows(head)] == ["schema", "name", "id", "uuid", "comment", "tags"]
    assert rows(head)[4:] == [["comment", "one row for each order"], ["tags", '{"class": "internal"}']]
    assert columns.splitlines() == [
        "column       type                      nullable  default      comment  tags                id",
        "id           BIGINT                    no                                                  1",
        "at           TIMESTAMP WITH TIME ZONE  yes       now()                                     2",
        "status       VARCHAR                   yes       'it''s new'                               3",
        "customer     STRUCT                    yes                    who                          4",
        '  name       VARCHAR                   yes                             {"owner": "sales"}  5',
        "  homes      LIST                      yes                                                 6",
        "    element  STRUCT                    yes                                                 7",
        "      zip    INTEGER                   yes                                                 8",
        "m            MAP                       yes                                                 9",
        "  key        VARCHAR                   yes                                                 10",
        "  value      DOUBLE                    yes                                                 11",
        "later        VARCHAR                   yes                                                 12",
    ]


def test_describe_gives_the_same_as_json(url: str) -> None:
    table = data("--lake", url, "--catalog", "shop", "describe", "sales.orders")
    known = ["schema", "name", "id", "uuid", "comment", "tags", "partitioning", "sort_order", "columns"]
    assert list(table) == known
    assert (table["partitioning"], table["sort_order"]) == ([], [])
    assert (table["schema"], table["name"], table["tags"]) == ("sales", "orders", {"class": "internal"})
    identity, at, status, customer, *_ = table["columns"]
    assert list(identity) == ["name", "type", "nullable", "default", "comment", "tags", "id", "children"]
    assert (identity["nullable"], identity["default"]) == (False, None)
    assert at["default"] == {"value": "now()", "kind": "expression"}
    assert status["default"] == {"value": "it's new", "kind": "literal"}
    assert customer["type"] == 'STRUCT("name" VARCHAR, "homes" STRUCT("zip" INTEGER)[])'
    assert customer["comment"] == "who"
    assert customer["children"][0]["tags"] == {"owner": "sales"}
    assert customer["children"][1]["children"][0]["children"][0]["name"] == "zip"


def test_describe_shows_how_rows_are_laid_down(url: str) -> None:
    with forklake.connect(url) as lake:
        columns = "id BIGINT, at TIMESTAMP"
        lake.catalog("shop").create_table(
            "laid", columns, partition_by=["bucket(4, id)", "day(at)"], sorted_by=["at DESC", "id"]
        )
    text = done("--lake", url, "--catalog", "shop", "describe", "laid")
    assert "bucket(4, id), day(at)" in text
    table = data("--lake", url, "--catalog", "shop", "describe", "laid")
    assert table["partitioning"] == ["bucket(4, id)", "day(at)"]
    assert [key.split()[0] for key in table["sort_order"]] == ["at", "id"]
    assert ", ".join(table["sort_order"]) in text


def test_describe_shows_a_table_as_it_was(url: str) -> None:
    loaded = next(s for s in data("--lake", url, "snapshots") if s["message"] == "load")
    past = data("--lake", url, "--catalog", "shop", "describe", "sales.orders", "--at", str(loaded["id"]))
    assert [column["name"] for column in past["columns"]] == ["id", "at", "status", "customer", "m"]
    assert past["tags"] == {}


def test_snapshots_are_those_of_the_lake_or_of_a_catalog(url: str) -> None:
    every = data("--lake", url, "snapshots")
    assert list(every[0]) == [
        "id", "time", "catalog", "changes", "author", "message", "extra", "schema_version", "summary",
    ]  # fmt: skip
    shop = data("--lake", url, "snapshots", "--catalog", "shop")
    assert shop == [snapshot for snapshot in every if snapshot["catalog"] == "shop"]
    assert data("--lake", url, "snapshots", "--catalog", "", FORKLAKE_CATALOG="") == every
    load = shop[1]
    assert (load["author"], load["message"], load["extra"]) == ("me", "load", {"run": 7})
    header, *lines = rows(done("--lake", url, "snapshots"))
    assert header == ["id", "time", "catalog", "author", "message", "extra", "schema_version", "summary"]
    assert len(lines) == len(every)
    assert lines[2] == [
        str(load["id"]), load["time"], "shop", "me", "load", '{"run": 7}', "1", load["summary"],
    ]  # fmt: skip


def wear(url: str) -> None:
    """Give the catalog a table of small files, one of which has lost rows."""
    with forklake.connect(url) as lake:
        table = lake.catalog("shop").create_table("worn", "id BIGINT")
        table.set_option("data_inlining_row_limit", 0)
        for start in (0, 10, 20):
            table.append([{"id": n} for n in range(start, start + 10)])
        table.delete("id BETWEEN 11 AND 15")


def test_compact_says_what_became_of_files(url: str) -> None:
    wear(url)
    lake = ("--lake", url, "--catalog", "shop")
    (planned,) = data(*lake, "compact", "--dry-run")
    assert data(*lake, "compact", "worn", "--deletes", "0.6") == []
    (rewritten,) = data(*lake, "compact", "--deletes", "0.5")
    (merged,) = data(*lake, "compact")
    statistics = ("table", "files_in", "files_out", "rows", "rows_dropped")
    assert [[told[name] for name in statistics] for told in (planned, rewritten, merged)] == [
        ["main.worn", 3, 1, 25, 5],
        ["main.worn", 1, 1, 5, 5],
        ["main.worn", 3, 1, 25, 0],
    ]
    assert done(*lake, "compact") == "(none)\n"
    assert 'no table "main.gone"' in refusal(*lake, "compact", "gone")


def test_every_command_documents_the_keys_that_it_prints(url: str) -> None:
    wear(url)
    lake = ["--lake", url, "--catalog", "shop"]
    printed = {
        "init": data("--lake", f"{url}.new", "init"),
        "moved": data(*lake, "moved"),
        "upgrade": data(*lake, "upgrade"),
        "create": data(*lake, "create", "x"),
        "catalogs": data(*lake, "catalogs")[0],
        "tables": data(*lake, "tables")[0],
        "describe": data(*lake, "describe", "notes"),
        "snapshots": data(*lake, "snapshots")[0],
        "compact": data(*lake, "compact", "worn")[0],
        "fork": data(*lake, "fork", "shop", "agent"),
        "tree": data(*lake, "tree"),
        "diff": data("--lake", url, "--catalog", "agent", "diff"),
        "merge": data(*lake, "merge", "agent", "--into", "shop"),
        "replay": data(*lake, "replay", "agent", "--onto", "shop"),
        "rename": data(*lake, "rename", "x", "y"),
        "ttl": data(*lake, "ttl", "y", "1h"),
        "materialize": data(*lake, "materialize", "agent"),
        "drop": data(*lake, "drop", "y")[0],
        "undrop": data(*lake, "undrop", "y"),
        "restore": data(*lake, "restore", "--all", "--at", "4"),
        "undo": data(*lake, "undo", str(data(*lake, "snapshots")[-1]["id"])),
        "demo": data("demo", "--no-spark"),
    }
    for name, (_, kind) in RESULTS.items():
        assert list(printed[name]) == list(kind.__dataclass_fields__)


# ---- Options ---


def test_the_environment_stands_in_for_the_options(url: str) -> None:
    assert len(data("tables", FORKLAKE_LAKE=url, FORKLAKE_CATALOG="shop")) == 2


def test_an_option_counts_more_than_the_environment(url: str) -> None:
    env = {"FORKLAKE_LAKE": "sqlite:////no/such.db", "FORKLAKE_CATALOG": "nobody"}
    assert len(data("--lake", url, "--catalog", "shop", "tables", **env)) == 2
    assert len(data("tables", "--lake", url, "--catalog", "shop", **env)) == 2


def test_global_options_may_stand_after_the_command(url: str) -> None:
    before = done("--lake", url, "--catalog", "shop", "--json", "tables")
    assert done("tables", "--lake", url, "--json", "--catalog", "shop") == before
    assert (
        done("--lake", "nowhere", "--catalog", "lab", "tables", "--catalog=shop", f"--lake={url}", "--json")
        == before
    )


def test_the_version_is_printed() -> None:
    assert done("--version") == f"forklake {forklake.__version__}\n"


@pytest.mark.parametrize("name", ["", *RESULTS])
def test_every_command_and_option_has_help(name: str) -> None:
    program: Any = get_command(app)
    command = program.commands[name] if name else program
    assert command.help
    assert all(param.help for param in command.params)
    text = done(*filter(None, [name]), "--help")
    assert "Usage: forklake" in text
    for param in command.params:
        assert (param.opts[0] if param.param_type_name == "option" else param.metavar) in text
    assert "<bool>" not in text
    assert "{" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("catalogs", "--nonsense"),
        ("catalogs", "surplus"),
        ("create",),
        ("drop",),
        ("drop", "shop", "--expired"),
        ("--lake",),
        ("catalogs", "--at", "yesterday"),
        ("catalogs", "--at", "-1"),
        ("catalogs", "--at", ""),
        ("catalogs", "--at", str(2**63)),
        ("catalogs", "--at", "9" * 5000),
        ("catalogs", "--at", "0001-01-01T00:00:00+14:00"),
        ("compact", "--deletes", "1.1"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...], url: str) -> None:
    result = run(*arguments, FORKLAKE_LAKE=url)
    assert result.exit_code == 2
    assert "Usage: forklake" in result.output or "Error" in result.stderr


# ---- Refusals ---


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


@pytest.mark.parametrize("command", ["tables", "describe x", "diff", "diff x", "materialize", "compact"])
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


# ---- Odd names and texts ---


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


# ---- As a process ---


def test_the_installed_program_works(url: str) -> None:
    env = {**os.environ, "FORKLAKE_LAKE": url, "FORKLAKE_CATALOG": "shop"}
    result = script("--json", "tables", env=env)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == done("--json", "tables", FORKLAKE_LAKE=url, FORKLAKE_CATALOG="shop")


def test_the_installed_program_refuses_in_one_line() -> None:
    result = script("--lake", "sqlite:////no/such/lake.db", "catalogs")
    assert (result.returncode, result.stdout) == (1, "")
    assert the_line(result.stderr)


def test_the_installed_program_exits_with_2_on_wrong_usage() -> None:
    result = script("nonsense")
    assert (result.returncode, result.stdout) == (2, "")


def test_a_reader_that_stops_reading_is_no_reason_to_complain(url: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        result = subprocess.run(
            [SCRIPT, "--lake", url, "snapshots"],
            stdout=theirs,
            stderr=subprocess.PIPE,
            check=False,
            timeout=240,
        )
    finally:
        os.close(theirs)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_reported_in_one_line(url: str) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [SCRIPT, "--lake", url, "--json", "snapshots"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=240,
        )  # fmt: skip
    assert result.returncode == 1
    assert "No space left" in the_line(result.stderr)


def test_streams_that_are_closed_do_no_harm(url: str) -> None:
    command = 'exec "$0" --lake "$1" drop lab <&- >&-'
    result = subprocess.run(
        ["/bin/sh", "-c", command, SCRIPT, url], stderr=subprocess.PIPE, check=False, timeout=240
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert len(data("--lake", url, "catalogs")) == 1


def test_text_is_printed_in_any_locale(url: str) -> None:
    done("--lake", url, "create", "漢字")
    env = {**os.environ, "PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}
    result = script("--lake", url, "create", "漢字", "--if-not-exists", env=env)
    assert (result.returncode, result.stderr) == (0, "")
    assert r"\u6f22\u5b57" in result.stdout


@pytest.fixture
def at_a_terminal(url: str) -> Iterator[Callable[..., tuple[subprocess.Popen[str], int]]]:
    """Starts the program with a terminal as stdin, and waits for its question."""
    ours, theirs = pty.openpty()
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], int]:
        process = subprocess.Popen(
            [SCRIPT, "--lake", url, *arguments],
            stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stderr is not None
        question = 'Drop catalog "shop" with 2 tables? [y/N] '
        assert process.stderr.read(len(question)) == question
        return process, ours

    yield start
    for process in started:
        process.kill()
        process.communicate()
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("answer", ["y", "YES"])
def test_at_a_terminal_drop_asks_first(answer: str, at_a_terminal: Any, url: str) -> None:
    process, terminal = at_a_terminal("--json", "drop", "shop")
    assert len(data("--lake", url, "catalogs")) == 2
    os.write(terminal, f"{answer}\n".encode())
    stdout, _ = process.communicate(timeout=240)
    assert (process.returncode, json.loads(stdout)[0]["dropped"]) == (0, True)
    assert len(data("--lake", url, "catalogs")) == 1


@pytest.mark.parametrize("answer", ["n\n", "\n", "yet\n", "\x04"])
def test_at_a_terminal_any_other_answer_is_no(answer: str, at_a_terminal: Any, url: str) -> None:
    process, terminal = at_a_terminal("drop", "shop")
    os.write(terminal, answer.encode())
    stdout, stderr = process.communicate(timeout=240)
    assert (process.returncode, stdout) == (1, "")
    assert "nothing was dropped" in the_line(stderr.removeprefix(answer).lstrip("\n"))
    assert len(data("--lake", url, "catalogs")) == 2


def test_an_interrupt_is_told_in_one_line(at_a_terminal: Any, url: str) -> None:
    process, _ = at_a_terminal("drop", "shop")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=240)
    assert (process.returncode, stdout) == (130, "")
    assert the_line(stderr.lstrip("\n")) == "interrupted"
    assert len(data("--lake", url, "catalogs")) == 2


def test_yes_and_dry_run_ask_nothing_at_a_terminal(url: str) -> None:
    ours, theirs = pty.openpty()
    try:
        for option in ("--dry-run", "--yes"):
            result = script("--lake", url, "drop", "shop", option, stdin=theirs)
            assert (result.returncode, result.stderr) == (0, "")
    finally:
        os.close(ours)
        os.close(theirs)
    assert len(data("--lake", url, "catalogs")) == 1


def seen_at_a_terminal(stream: str, *arguments: str) -> str:
    """What the program shows on one of its streams if that is a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        env = {**os.environ, "COLUMNS": "60", "TERM": "xterm"}
        streams: dict[str, int] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
        process = subprocess.Popen([SCRIPT, *arguments], env=env, **streams)
        os.close(theirs)
        shown = b""
        try:
            while piece := terminal.read(4096):
                shown += piece
        except OSError:
            pass  # Linux ends a terminal whose other side is closed with an error.
        assert process.wait(240) == 0
    return shown.decode()


def test_a_terminal_shows_how_far_a_compaction_is(url: str) -> None:
    wear(url)
    shown = seen_at_a_terminal("stderr", "--lake", url, "--catalog", "shop", "compact")
    assert "main.worn" in shown
    assert "3/3" in shown


def test_a_terminal_shows_how_far_other_commands_are(url: str) -> None:
    shown = seen_at_a_terminal("stderr", "--lake", url, "fork", "shop", "copied", "--copy")
    assert "fork shop" in shown
    assert "catalogs" in shown
    assert "drop catalogs" in seen_at_a_terminal("stderr", "--lake", url, "drop", "copied", "--yes")


def test_programs_see_no_bar(url: str) -> None:
    wear(url)
    arguments = ("--lake", url, "--catalog", "shop", "compact")
    assert run(*arguments, "--dry-run").stderr == ""
    assert seen_at_a_terminal("stderr", "--json", *arguments) == ""


def test_a_narrow_terminal_folds_long_cells_and_cuts_nothing(url: str) -> None:
    name = "".join(chr(0x4E00 + number) for number in range(60))
    done("--lake", url, "create", name)
    shown = seen_at_a_terminal("stdout", "--lake", url, "catalogs")
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "…" not in text
    assert set(name) <= set(text)
    assert max(len(line) for line in text.splitlines()) <= 60


# ---- The demo ---


def test_the_demo_tells_its_story_and_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = done("demo", "--no-spark")
    for number, title in enumerate(["A lake on SQLite", *(step.title for step in STEPS)], start=1):
        assert f"{number}. {title}  " in text
    assert "refresh and run it again" in text
    assert "All of it was checked" in text
    assert "2 files were not:" in text
    assert text.count(".parquet, because ") == 2
    assert "snapshot 0 of no catalog: the empty lake" in text
    assert "The demo's lake is removed now; forklake demo --keep keeps it." in text
    assert "\x1b" not in text
    assert list(tmp_path.iterdir()) == []


def test_the_demo_tells_the_same_as_json() -> None:
    story = data("demo", "--no-spark")
    assert [step["title"] for step in story["steps"]] == ["A lake on SQLite", *(step.title for step in STEPS)]
    assert all(step["said"] and step["milliseconds"] >= 0 for step in story["steps"])
    agents = {f"agent_{number:04}" for number in range(1, 29)} | {"one_more"}
    assert {snapshot["catalog"] for snapshot in story["snapshots"]} == {None, "shop", "lab", "bikes"} | agents
    assert story["kept"] is None


def test_the_demo_keeps_its_lake_when_asked(tmp_path: Path) -> None:
    place = tmp_path / "a b?c"
    text = done("demo", "--no-spark", "--keep", "--folder", str(place))
    assert f"Kept in {place}" in text
    assert "removed" not in text
    story_lake = text.split("   sqlite:")[1].split("\n")[0]
    assert [c["name"] for c in data("--lake", f"sqlite:{story_lake}", "catalogs")] == ["bikes", "lab", "shop"]
    assert "is not an empty folder" in refusal("demo", "--no-spark", "--folder", str(place))


def test_the_demo_leaves_a_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done("demo", "--no-spark", "--folder", str(tmp_path / "empty"))
    done("demo", "--no-spark", "--folder", str(tmp_path / "new"))
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_the_demo_refuses_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    assert "is not an empty folder" in refusal("demo", "--no-spark", "--folder", str(tmp_path / "file"))
    assert "is not an empty folder" in refusal("demo", "--no-spark", "--folder", str(tmp_path))
    assert (tmp_path / "file").read_text() == "precious"
    assert refusal("demo", "--no-spark", "--folder", str(tmp_path / "file" / "below"))


def test_a_claim_that_does_not_hold_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_: Lake) -> Iterator[str]:
        yield checked(False, "pigs fly")

    monkeypatch.setattr(demo, "STEPS", (*STEPS, Step("A false claim", wrong)))
    result = run("demo", "--no-spark", "--folder", str(tmp_path / "lake"))
    assert result.exit_code == 1
    assert the_line(result.stderr) == "the demo expected otherwise: pigs fly"
    assert "All of it was checked" not in result.stdout
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("target", "attribute", "broken"),
    [
        (publish, "conflicts", lambda *_: []),
        (Transaction, "rollback", lambda tx: tx.commit()),
        (Catalog, "at", lambda catalog, _: catalog),
    ],
)
def test_the_demo_notices_a_lake_that_is_broken(
    target: Any, attribute: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, attribute, broken)
    result = run("demo", "--no-spark")
    assert result.exit_code == 1
    assert "the demo expected otherwise" in the_line(result.stderr)


def test_the_demo_runs_on_a_real_postgresql_and_cleans_up(open_folder: Path) -> None:
    env = {**os.environ, "TMPDIR": str(open_folder)}
    result = script("demo", "--no-spark", "--postgres", env=env)
    assert (result.returncode, result.stderr) == (0, "")
    assert "1. A lake on a real PostgreSQL server  " in result.stdout
    assert "   postgresql://postgres@127.0.0.1:" in result.stdout
    assert "All of it was checked" in result.stdout
    assert list(open_folder.iterdir()) == []


def test_the_demo_keeps_a_postgresql_that_can_be_started_again(open_folder: Path) -> None:
    place = open_folder / "kept"
    result = script("demo", "--no-spark", "--postgres", "--keep", "--folder", str(place), "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["kept"] == str(place)
    with LocalPostgres(place / "postgres") as server, forklake.connect(server.url) as lake:
        assert [catalog.name for catalog in lake.catalogs()] == ["bikes", "lab", "shop"]


def test_the_demo_shows_on_a_terminal_what_goes_on(tmp_path: Path) -> None:
    text = seen_at_a_terminal("stdout", "demo", "--no-spark", "--folder", str(tmp_path / "lake"))
    for number, title in enumerate(["A lake on SQLite", *(step.title for step in STEPS)], start=1):
        assert f"{number}. {title}" in text
    # A mark turns before it while it goes on.
    assert f" 2. {STEPS[0].title}" in text


def no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be one where PySpark is not installed."""
    known = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "pyspark" else known(name, *more)
    )
    for name in [name for name in sys.modules if name.split(".")[:2] == ["forklake", "spark"]]:
        monkeypatch.delitem(sys.modules, name)


def test_without_pyspark_the_demo_says_how_to_get_it_and_shows_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_pyspark(monkeypatch)
    text = done("demo", "--folder", str(tmp_path / "lake"))
    number = len(STEPS) + 2
    assert f"{number}. Spark is passed over" in text
    assert "   PySpark is not installed: run pip install '" in text and "[spark]'" in text
    assert f"{number + 1}. " not in text
    assert "All of it was checked" in text


def test_whoever_names_a_master_needs_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    no_pyspark(monkeypatch)
    assert "PySpark is not installed: run pip install" in refusal("demo", "--master", "local[2]")


def test_a_cluster_needs_a_folder_that_its_executors_reach() -> None:
    for master in ("spark://host:7077", "yarn", "k8s://https://host", "sc://host"):
        assert "--folder" in refusal("demo", "--master", master)
    assert "give one" in refusal("demo", "--master", "local[2]", "--no-spark")


# ---- The reference ---


def test_the_reference_is_fresh() -> None:
    page = ROOT / "docs" / "cli.md"
    assert page.read_text() == reference(), "run: python -m forklake.cli.reference > docs/cli.md"


def test_the_reference_is_printed_by_its_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "forklake.cli.reference"],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert result.stdout == reference()
