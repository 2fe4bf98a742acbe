"""What each command does, and what it prints as text and as JSON."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

import forklake
from forklake.cli.reference import RESULTS
from tests.unit.cli.program import wear
from tests.unit.command_line import data, done, refusal, rows


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
    known = ["schema", "name", "id", "uuid", "comment", "tags", "partitioning", "sort_order", "indexes"]
    assert list(table) == [*known, "columns"]
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


def test_indexes_are_created_listed_and_dropped(url: str) -> None:
    lake = ["--lake", url, "--catalog", "shop"]
    wear(url)
    (made,) = data(*lake, "index", "worn", "by_id", "--kind", "hash", "--column", "id", "--maintain", "later")
    assert (made["table"], made["name"], made["kind"], made["columns"]) == ("worn", "by_id", "hash", ["id"])
    assert data(*lake, "indexes") == data(*lake, "indexes", "worn") == [made]
    (planned,), (built,) = data(*lake, "build", "--dry-run"), data(*lake, "build", "worn", "--name", "by_id")
    assert (planned["files"], planned["segments"]) == (built["files"], built["segments"])
    assert built["table"] == "main.worn" and built["files"] > 0 and data(*lake, "build") == []
    assert 'has no index "other"' in refusal(*lake, "build", "worn", "--name", "other")
    assert data(*lake, "describe", "worn")["indexes"] == [made]
    assert ["indexes", "by_id hash (id)"] in rows(done(*lake, "describe", "worn"))
    assert 'has an index "by_id"' in refusal(*lake, "index", "worn", "by_id", "--column", "id")
    assert "NAME=VALUE" in refusal(*lake, "index", "worn", "other", "--column", "id", "--param", "x")
    assert data(*lake, "index", "worn", "by_id", "--drop") == []
    assert data(*lake, "indexes") == []


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


def test_every_command_documents_the_keys_that_it_prints(url: str, tmp_path: Path) -> None:
    wear(url)
    read = tmp_path / "read.csv"
    read.write_text("a\n1\n")
    lake = ["--lake", url, "--catalog", "shop"]
    printed = {
        "init": data("--lake", f"{url}.new", "init"),
        "moved": data(*lake, "moved"),
        "upgrade": data(*lake, "upgrade"),
        "create": data(*lake, "create", "x"),
        "catalogs": data(*lake, "catalogs")[0],
        "tables": data(*lake, "tables")[0],
        "describe": data(*lake, "describe", "notes"),
        "index": data(*lake, "index", "worn", "by_id", "--column", "id", "--maintain", "later")[0],
        "build": data(*lake, "build")[0],
        "indexes": data(*lake, "indexes", "worn")[0],
        "snapshots": data(*lake, "snapshots")[0],
        "history": data(*lake, "history", "worn")[0],
        "load": data(*lake, "load", "read", str(read), "--create"),
        "export": data(*lake, "export", "worn", f"{tmp_path}/worn.csv"),
        "count": data(*lake, "count", "worn"),
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
        "expire": data(*lake, "expire", "--older-than", "0s"),
        "gc": data(*lake, "gc"),
        "orphans": data(*lake, "orphans"),
        "checkpoint": data(*lake, "checkpoint"),
        "check": data(*lake, "check"),
        "demo": data("demo", "--no-spark"),
    }
    for name, (_, kind) in RESULTS.items():
        if kind is not None:
            assert list(printed[name]) == list(kind.__dataclass_fields__)
