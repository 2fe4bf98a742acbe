"""Commands that create and move lakes, and what every command that commits can say."""

from __future__ import annotations

import inspect
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import forklake
from forklake.cli.app import COMMANDS, function_of
from tests.unit.command_line import data, done, refusal, rows, the_line

PROGRAM = [sys.executable, "-m", "forklake"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path}/lake.db"
    with forklake.init(address) as lake:
        table = lake.create_catalog("shop").create_table("t", "id INT")
        table.append([{"id": n} for n in range(100)])
        lake.catalog("shop").flush_inlined()
    return address


def at_a_terminal(answer: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode())
        return subprocess.run(
            [*PROGRAM, *arguments], stdin=theirs, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)


def test_init_makes_no_folder_unless_it_is_told_to(tmp_path: Path) -> None:
    lake = f"sqlite:///{tmp_path}/new/lake.db"
    said = refusal("--lake", lake, "init")
    assert f"no folder {tmp_path}/new" in said and "--yes" in said
    assert not (tmp_path / "new").exists()
    done("--lake", lake, "init", "--yes")
    assert data("--lake", lake, "catalogs") == []


@pytest.mark.parametrize("answer", ["n\n", "\n", "y\n"])
def test_at_a_terminal_init_asks_before_it_makes_a_folder(tmp_path: Path, answer: str) -> None:
    result = at_a_terminal(answer, "--lake", f"sqlite:///{tmp_path}/new/lake.db", "init")
    question = f"There is no folder {tmp_path}/new. Make it? [y/N] "
    assert result.stderr.startswith(question)
    if answer == "y\n":
        assert (result.returncode, (tmp_path / "new" / "lake.db").exists()) == (0, True)
    else:
        assert result.returncode == 1
        assert "nothing was created" in the_line(result.stderr.removeprefix(question).lstrip())
        assert not (tmp_path / "new").exists()


def test_moved_says_where_the_lake_is_now(url: str, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "lake.db", tmp_path / "copy" / "lake.db")
    copy = f"sqlite:///{tmp_path}/copy/lake.db"
    assert [table["name"] for table in data("--lake", copy, "--catalog", "shop", "tables")] == ["t"]
    assert "`forklake --lake URL moved`" in refusal("--lake", copy, "fork", "shop", "f")
    assert "are not in" in refusal("--lake", copy, "moved", "--data-path", str(tmp_path / "none"))
    shutil.copytree(tmp_path / "lake.db.files", tmp_path / "files")
    said = rows(done("--lake", copy, "moved", "--data-path", str(tmp_path / "files")))
    assert said == [["lake", copy], ["data_path", f"{tmp_path}/files/"]]
    done("--lake", copy, "fork", "shop", "f")
    forced = data("--lake", copy, "moved", "--data-path", str(tmp_path / "none"), "--force")
    assert forced["data_path"] == f"{tmp_path}/none/"


def test_every_command_that_commits_says_who_and_why(url: str, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id\n1000\n", encoding="utf-8")
    with forklake.connect(url) as lake:
        table = lake.catalog("shop").table("t")
        table.append([{"id": n} for n in range(100)])
        lake.fork("shop", "side").create_schema("s")
        lake.create_catalog("other")
    calls = {
        "compact": ["--catalog", "shop", "compact"],
        "create": ["create", "new"],
        "fork": ["fork", "shop", "f"],
        "replay": ["replay", "side", "--onto", "shop"],
        "merge": ["merge", "side", "--into", "shop"],
        "rename": ["rename", "new", "newer"],
        "materialize": ["materialize", "f"],
        "drop": ["drop", "other"],
        "undrop": ["undrop", "other"],
        "undo": ["--catalog", "shop", "undo", "LAST"],
        "restore": ["--catalog", "shop", "restore", "--all", "--at", "FIRST"],
        "load": ["--catalog", "shop", "load", "t", str(tmp_path / "more.csv")],
        "checkpoint": ["--catalog", "shop", "checkpoint"],
        "index": ["--catalog", "shop", "index", "t", "by_key", "--column", "id", "--maintain", "later"],
        "build": ["--catalog", "shop", "build", "t"],
    }
    commits = {
        command
        for command in COMMANDS
        if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function_of(command)).parameters.values())
    }
    assert commits == set(calls)
    # What is left makes no commit in the lake of --lake.
    others = (
        "init moved upgrade catalogs tree diff ttl tables describe indexes snapshots demo expire gc orphans "
        "check sql head count history export"
    )
    assert set(COMMANDS) - commits == set(others.split())
    for name, arguments in calls.items():
        known = [str(entry["id"]) for entry in data("--lake", url, "--catalog", "shop", "snapshots")]
        words = {"LAST": known[-1], "FIRST": known[2]}
        done(
            "--lake",
            url,
            *(words.get(word, word) for word in arguments),
            "--author",
            "ada",
            "--message",
            name,
        )
        # A replay also makes a fork and drops it again.
        last = [entry for entry in data("--lake", url, "snapshots") if entry["author"]][-1]
        assert (last["author"], last["message"]) == ("ada", name)
