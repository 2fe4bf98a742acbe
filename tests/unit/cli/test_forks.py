"""The commands about forks, and about catalogs as a whole."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import forklake
from tests.unit.command_line import data, done, refusal, rows, run, the_line


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a lake with a catalog `shop`, and its fork `a1` that did something of every kind."""
    address = f"sqlite:///{tmp_path}/lake.db"
    with forklake.init(address) as lake:
        shop = lake.create_catalog("shop")
        shop.create_table("orders", "id BIGINT").append([{"id": number} for number in range(200)])
        fork = lake.fork("shop", "a1")
        fork.table("orders").delete("id < 10")
        fork.table("orders").append([{"id": 1000}])
        fork.create_table("notes", "id BIGINT")
        fork.create_view("v", "SELECT 1")
    return address


def collide(url: str) -> None:
    """Let `shop` change what `a1` has changed."""
    with forklake.connect(url) as lake:
        lake.catalog("shop").table("orders").delete("id = 5")
        lake.catalog("shop").create_view("v", "SELECT 2")


def as_table(text: str) -> list[dict[str, str]]:
    """Rows by the columns of their header, told by where these begin."""
    header, *lines = text.splitlines()
    names = header.split()
    starts = [header.index(name) for name in names]
    ends = [*starts[1:], None]
    places = list(zip(names, starts, ends, strict=True))
    return [{name: line[start:end].strip() for name, start, end in places} for line in lines]


# ---- fork ---


def test_a_fork_is_made_and_shown(url: str) -> None:
    made = data("--lake", url, "fork", "shop", "a2", "--ttl", "2h")
    assert (made["parent"], made["fork_snapshot"]) == ("shop", 3)
    expires = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=1, minutes=59) < expires < timedelta(hours=2)
    assert data("--lake", url, "fork", "shop", "a2", "--if-not-exists", "--ttl", "1s") == made
    past = data("--lake", url, "fork", "shop", "a3", "--at", "2", "--copy")
    assert past["fork_snapshot"] == 2
    assert "no fork of this one" in refusal("--lake", url, "fork", "a1", "a2", "--if-not-exists")


@pytest.mark.parametrize("text", ["0s", "0d", "1", "h", "-1h", "1h1m", "", "none", "9" * 5000 + "s"])
def test_what_is_no_time_to_live_is_refused(text: str, url: str) -> None:
    for arguments in (["fork", "shop", "x", f"--ttl={text}"], ["ttl", "a1", "--", text]):
        if arguments[0] == "fork" or text != "none":
            assert "is no time to live: write 90s, 30m, 12h or 7d" in refusal("--lake", url, *arguments)
    assert "a thousand years" in refusal("--lake", url, "ttl", "a1", "999999999d")


# ---- diff ---


def test_a_diff_shows_its_base_and_one_line_for_each_object(url: str) -> None:
    head, table = done("--lake", url, "--catalog", "a1", "diff").split("\n\n")
    assert rows(head) == [["catalog", "a1"], ["snapshot", "8"], ["base_snapshot", "3"]]
    shown = as_table(table)
    assert [(line["kind"], line["name"], line["change"]) for line in shown] == [
        ("view", "main.v", "created"),
        ("table", "main.orders", "changed"),
        ("table", "main.notes", "created"),
    ]
    statistics = ("files_added", "files_retired", "files_with_deletes", "rows_added", "rows_removed")
    assert [[line[name] for name in statistics] for line in shown] == [
        ["", "", "", "", ""],
        ["0", "0", "1", "1", "10"],
        ["0", "0", "0", "0", "0"],
    ]
    told = data("--lake", url, "--catalog", "a1", "diff", "shop")
    assert (told["base_snapshot"], len(told["objects"])) == (3, 1)
    orders = told["tables"][0]
    assert (orders["rows_added"], orders["inlined_added"], orders["files_added"]) == (1, 1, [])
    assert len(orders["files_with_deletes"]) == 1


def test_a_diff_of_nothing_says_so(url: str) -> None:
    done("--lake", url, "fork", "shop", "a2")
    assert done("--lake", url, "--catalog", "a2", "diff").endswith("\n\n(none)\n")


def test_a_catalog_is_not_compared_with_itself(url: str) -> None:
    assert "compared with itself" in refusal("--lake", url, "--catalog", "shop", "diff", "shop")


def test_a_fork_shows_the_past_that_it_inherited(url: str) -> None:
    for at, expected in (("1", []), ("2", ["orders"]), ("7", ["notes", "orders"])):
        found = data("--lake", url, "--catalog", "a1", "tables", "--at", at)
        assert [table["name"] for table in found] == expected


# ---- merge ---


def test_a_merge_says_what_it_did_and_then_that_there_is_nothing_left(url: str) -> None:
    before = data("--lake", url, "snapshots")
    tried = data("--lake", url, "merge", "a1", "--into", "shop", "--dry-run")
    assert (tried["merged"], tried["snapshot"], tried["rows_removed"]) == (False, None, 10)
    assert data("--lake", url, "snapshots") == before
    shown = dict(rows(done("--lake", url, "merge", "a1", "--into", "shop", "--message", "well done")))
    assert (shown["merged"], shown["snapshot"], shown["rows_removed"]) == ("yes", "9", "10")
    assert "conflicts" not in shown
    assert data("--lake", url, "snapshots")[-1]["message"] == "well done"
    for option in ([], ["--dry-run"]):
        text = done("--lake", url, "merge", "a1", "--into", "shop", *option)
        assert text == 'nothing to merge: "shop" has all that "a1" did\n'
        again = data("--lake", url, "merge", "a1", "--into", "shop", *option)
        assert (again["merged"], again["changes"], again["conflicts"]) == (False, 0, [])


@pytest.mark.parametrize("option", ["--dry-run", "--message=x"])
def test_a_merge_with_conflicts_is_refused_and_lists_them(option: str, url: str) -> None:
    collide(url)
    before = data("--lake", url, "snapshots")
    result = run("--lake", url, "merge", "a1", "--into", "shop", option)
    assert result.exit_code == 1
    assert '"a1" cannot be merged into "shop": ' in the_line(result.stderr)
    head, table = result.stdout.split("\n\n")
    assert ["merged", "no"] in rows(head)
    listed = as_table(table)
    assert {(line["name"].split(".")[-1], line["ours"], line["theirs"]) for line in listed} == {
        ("orders", "delete", "delete"),
        ("v", "create_view", "create_view"),
    }
    assert {line["theirs_snapshot"] for line in listed} == {"9", "10"}
    assert data("--lake", url, "snapshots") == before


@pytest.mark.parametrize("option", ["--dry-run", "--message=x"])
def test_conflicts_are_values_in_json(option: str, url: str) -> None:
    collide(url)
    result = run("--json", "--lake", url, "merge", "a1", "--into", "shop", option)
    assert result.exit_code == 1
    assert '"a1" cannot be merged into "shop": ' in the_line(result.stderr)
    told: dict[str, Any] = json.loads(result.stdout)
    assert (told["source"], told["into"], told["merged"]) == ("a1", "shop", False)
    by_name = {conflict["ours"]["name"]: conflict for conflict in told["conflicts"]}
    assert set(by_name) == {"orders", "v"}
    orders = by_name["orders"]
    assert (orders["ours"]["verb"], orders["theirs"]["verb"], orders["snapshot"]) == ("delete", "delete", 9)
    assert len(orders["files"]) == len(orders["ours"]["files"]) == 1
    assert orders["rule"]


# ---- rename, ttl, materialize, drop ---


def test_a_catalog_is_renamed(url: str) -> None:
    renamed = data("--lake", url, "rename", "a1", "b1")
    assert (renamed["name"], renamed["snapshot"]) == ("b1", 9)
    assert [catalog["name"] for catalog in data("--lake", url, "catalogs")] == ["b1", "shop"]
    assert '"shop" exists' in refusal("--lake", url, "rename", "b1", "shop")


def test_a_catalog_is_materialized_by_name_or_as_the_one_to_work_on(url: str) -> None:
    assert data("--lake", url, "materialize", "a1")["snapshot"] == 9
    done("--lake", url, "fork", "shop", "a2")
    assert data("--lake", url, "--catalog", "a2", "materialize")["name"] == "a2"
    changes = [snapshot["changes"].partition(":")[0] for snapshot in data("--lake", url, "snapshots")[-3:]]
    assert changes == ["materialized", "forked_from", "materialized"]


def test_what_has_expired_is_marked_and_dropped(url: str) -> None:
    with forklake.connect(url) as lake:
        lake.fork_many("shop", ["due1", "due2"], ttl=timedelta(milliseconds=1))
    assert data("--lake", url, "ttl", "a1", "1h")["expires_at"] > datetime.now(UTC).isoformat()
    time.sleep(0.01)
    marks = {catalog["name"]: catalog["expired"] for catalog in data("--lake", url, "catalogs")}
    assert marks == {"a1": False, "due1": True, "due2": True, "shop": None}
    assert [line["expired"] for line in as_table(done("--lake", url, "catalogs"))] == ["no", "yes", "yes", ""]
    tried = data("--lake", url, "drop", "--expired", "--dry-run")
    assert [(each["name"], each["dropped"]) for each in tried] == [("due1", False), ("due2", False)]
    assert data("--lake", url, "ttl", "due2", "none") == {"name": "due2", "expires_at": None}
    gone = data("--lake", url, "drop", "--expired")
    assert [(each["name"], each["tables"], each["dropped"]) for each in gone] == [("due1", 1, True)]
    assert [catalog["name"] for catalog in data("--lake", url, "catalogs")] == ["a1", "due2", "shop"]
    assert done("--lake", url, "drop", "--expired") == "(none)\n"


# ---- Ways to resolve ---


def test_a_merge_prefers_a_side_and_takes_single_tables(url: str) -> None:
    collide(url)
    told = json.loads(run("--json", "--lake", url, "merge", "a1", "--into", "shop", "--dry-run").stdout)
    by_name = {conflict["ours"]["name"]: conflict for conflict in told["conflicts"]}
    assert by_name["v"]["rows"] == []
    assert len(by_name["orders"]["rows"]) == by_name["orders"]["row_count"] == 1
    assert set(by_name["orders"]["rows"][0]) == {"row_id", "base", "ours", "theirs"}
    result = data("--lake", url, "merge", "a1", "--into", "shop", "--table", "orders", "--prefer", "source")
    assert result["merged"] is True
    rest = json.loads(run("--json", "--lake", url, "merge", "a1", "--into", "shop").stdout)
    assert [conflict["ours"]["name"] for conflict in rest["conflicts"]] == ["v"]


def test_a_fork_is_replayed_and_what_is_lost_by_that_is_listed(url: str) -> None:
    collide(url)
    shown = run("--lake", url, "replay", "a1", "--onto", "shop", "--dry-run")
    assert shown.exit_code == 0
    assert {line["name"].split(".")[-1] for line in as_table(shown.stdout.split("\n\n")[1])} == {
        "orders",
        "v",
    }
    told = data("--lake", url, "replay", "a1", "--onto", "shop")
    assert {conflict["theirs"]["name"] for conflict in told["refused"]} == {"orders", "v"}
    assert told["snapshot"] is not None
    assert data("--lake", url, "merge", "a1", "--into", "shop")["conflicts"] == []


# ---- tree ---


def test_the_tree_is_drawn_as_text_as_json_and_as_a_picture(url: str, tmp_path: Path) -> None:
    done("--lake", url, "fork", "a1", "a2")
    lines = done("--lake", url, "tree").splitlines()
    assert [line.split("  forked")[0].split("  at")[0] for line in lines] == ["shop", "└─ a1", "   └─ a2"]
    assert "4 commits" in lines[1]
    found = data("--lake", url, "tree", "a1", "--depth", "0")
    assert [(node["name"], node["parent"], node["more"]) for node in found["nodes"]] == [("a1", "shop", 1)]
    assert found["more"] == 0
    file = tmp_path / "tree.svg"
    assert data("--lake", url, "tree", "--svg", str(file)) == {"svg": str(file), "catalogs": 3}
    assert file.read_text(encoding="utf-8").startswith("<svg ")


def test_a_tree_shows_some_forks_and_dropped_ones_on_request(url: str) -> None:
    done("--lake", url, "fork", "shop", "a2")
    done("--lake", url, "drop", "a2")
    assert [node["name"] for node in data("--lake", url, "tree")["nodes"]] == ["shop", "a1"]
    with_dropped = data("--lake", url, "tree", "--dropped")
    assert [node["name"] for node in with_dropped["nodes"]] == ["shop", "a1", "a2"]
    assert done("--lake", url, "tree", "--dropped", "--limit", "1").splitlines()[-1] == "└─ … 1 more"
    assert "nobody" in refusal("--lake", url, "tree", "nobody")
    assert "nowhere" in refusal("--lake", url, "tree", "--svg", "/nowhere/tree.svg")
