"""Functions about catalogs: forks, merges, what differs, and going back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import forklake
from tests.contract.sql.functions.conftest import Call, Refused


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    """A table `t` with two rows."""
    table = catalog.create_table("t", "id BIGINT, note VARCHAR")
    table.append([{"id": 1, "note": "a"}, {"id": 2, "note": "b"}])
    return table


def test_catalogs_are_forked_listed_and_dropped(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, call: Call, refused: Refused
) -> None:
    point = catalog.snapshot
    (made,) = call("fork", catalog.name, "one", ttl="7 days")
    fork = lake.catalog("one")
    assert made == {
        "catalog_name": "one",
        "catalog_id": fork.id,
        "parent": catalog.name,
        "fork_snapshot": point,
    }
    call("fork", "two", at=point - 1)
    assert lake.catalog("two").table("t").count() == 0
    assert call("fork", "two", if_not_exists=True)[0]["catalog_id"] == lake.catalog("two").id
    assert "is taken" in refused("fork", "two")
    call("fork", "one", "three", mode="copy", ttl=timedelta(days=1), on=fork)
    listed = {row["catalog_name"]: row for row in call("catalogs")}
    assert {name: (row["parent"], row["depth"]) for name, row in listed.items()} == {
        catalog.name: (None, 0),
        "one": (catalog.name, 1),
        "two": (catalog.name, 1),
        "three": ("one", 2),
    }
    assert listed["one"]["expires_at"] - listed["one"]["created_at"] == timedelta(days=7)
    assert str(listed["one"]["catalog_uuid"]) == {info.name: info.uuid for info in lake.catalogs()}["one"]
    assert [row["catalog_name"] for row in call("catalogs", at=point)] == [catalog.name]
    assert call("drop_catalog", "three") == [
        {"catalog_name": "three", "catalog_id": listed["three"]["catalog_id"]}
    ]
    assert call("drop_catalog", "three", if_exists=True) == []
    assert 'no catalog is named "three"' in refused("drop_catalog", "three")
    assert call("undrop_catalog", "three", as_name="four")[0]["catalog_id"] == listed["three"]["catalog_id"]
    assert call("rename_catalog", "four", "five")[0]["catalog_name"] == "five"
    call("set_ttl", "five", timedelta(microseconds=1))
    assert call("drop_expired") == [{"catalog_name": "five"}]
    call("set_ttl", "one", None)
    assert [row["expires_at"] for row in call("catalogs") if row["catalog_name"] == "one"] == [None]
    assert call("create_catalog", "six")[0]["catalog_name"] == "six"
    assert call("create_catalog", "six", if_not_exists=True)[0]["catalog_id"] == lake.catalog("six").id


def test_a_fork_may_write_elsewhere(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, call: Call, tmp_path: Path
) -> None:
    call("fork_catalog", catalog.name, "agent", str(tmp_path / "own"))
    lake.catalog("agent").table("t").append([{"id": at, "note": "x"} for at in range(200)])
    (file,) = call("list_files", "t", on=lake.catalog("agent"))
    assert Path(file["data_file"]).is_relative_to(tmp_path / "own")


def test_merges_say_what_they_took_over(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, call: Call, refused: Refused
) -> None:
    fork = lake.fork(catalog, "agent")
    fork.table("t").append([{"id": 3, "note": "c"}])
    fork.table("t").update({"note": "'z'"}, "id = 1")
    planned = {
        "source": "agent",
        "target": catalog.name,
        "snapshot_id": None,
        "table_name": "main.t",
        "rows_added": 2,
        "rows_removed": 1,
    }
    keys = planned.keys()
    (found,) = call("merge", "agent", dry_run=True)
    assert {key: found[key] for key in keys} == planned
    assert table.count() == 2
    # In the fork itself, the parent is meant.
    (done,) = call("merge", on=fork)
    assert {key: done[key] for key in keys} == {**planned, "snapshot_id": catalog.snapshot}
    assert table.count() == 3
    (nothing,) = call("merge", "agent", into=catalog.name)
    assert (nothing["snapshot_id"], nothing["table_name"], nothing["rows_added"]) == (None, None, 0)
    assert "was not forked from another catalog" in refused("merge", catalog.name)
    assert 'no catalog is named "nope"' in refused("merge", "nope")
    assert "prefer is 'source' or 'target', not 'mine'" in refused("merge", "agent", prefer="mine")


def test_conflicts_are_listed_before_a_merge(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, call: Call, refused: Refused
) -> None:
    fork = lake.fork(catalog, "agent")
    fork.table("t").update({"note": "'fork'"}, "id = 1")
    assert call("conflicts", "agent") == []
    table.update({"note": "'parent'"}, "id = 1")
    (found,) = call("conflicts", "agent", into=catalog.name)
    assert (found["row_count"], found["snapshot_id"]) == (1, catalog.snapshot)
    assert found["theirs"] == 'table "t" lost rows' or "t" in found["theirs"]
    assert "changed" in refused("merge", "agent")
    assert call("conflicts", "agent", prefer="target") == []
    call("merge", "agent", prefer="source")
    assert table.scan("id = 1").to_pylist() == [{"id": 1, "note": "fork"}]


def test_merges_may_be_of_some_tables(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, call: Call
) -> None:
    fork = lake.fork(catalog, "agent")
    fork.table("t").append([{"id": 3}])
    fork.create_table("new", "id BIGINT")
    assert [row["table_name"] for row in call("merge", "agent", tables=["main.t"])] == ["main.t"]
    assert ("t" in catalog, "new" in catalog) == (True, False)


def test_differences_are_listed_with_their_rows(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, call: Call, refused: Refused
) -> None:
    fork = lake.fork(catalog, "agent")
    fork.table("t").append([{"id": 3, "note": "c"}])
    fork.table("t").add_column("more", "INT")
    fork.create_view("v", "SELECT 1")
    found = call("diff", "agent")
    assert found == call("diff", on=fork)
    assert [(row["kind"], row["name"], row["change"], row["rows_added"]) for row in found] == [
        ("view", "main.v", "created", None),
        ("table", "main.t", "altered", 1),
    ]
    assert found[1]["details"]
    assert call("diff", "agent", catalog.name) == found
    (row,) = call("diff_rows", "t", on=fork)
    assert (row["change_type"], row["id"], row["more"]) == ("insert", 3, None)
    assert call("diff_rows", "t", catalog.name, on=fork) == [row]
    assert 'table "main.nope" is not different' in refused("diff_rows", "nope", on=fork)
    assert "was not forked from another catalog" in refused("diff")


def test_a_fork_is_replayed_on_its_parent(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, call: Call
) -> None:
    fork = lake.fork(catalog, "agent")
    fork.table("t").update({"note": "'fork'"}, "id = 1")
    fork.table("t").append([{"id": 3, "note": "c"}])
    table.update({"note": "'parent'"}, "id = 1")
    (dry,) = call("replay", "agent", dry_run=True)
    assert (dry["snapshot_id"], dry["refused"] is None) == (None, False)
    (done,) = call("replay", on=fork)
    assert (done["fork"], done["onto"], done["snapshot_id"]) == ("agent", catalog.name, fork.snapshot)
    assert sorted(row["note"] for row in fork.table("t").scan().to_pylist()) == ["b", "c", "parent"]


def test_a_fork_is_made_independent(
    lake: forklake.Lake, catalog: forklake.Catalog, table, call: Call
) -> None:
    fork = lake.fork(catalog, "agent")
    call("materialize", on=fork)
    assert "materialized" in fork.snapshots()[-1].changes


def test_catalogs_and_tables_go_back(
    catalog: forklake.Catalog, table: forklake.Table, call: Call, refused: Refused
) -> None:
    before = catalog.snapshots()[-1]
    table.delete("id = 1")
    deleted = catalog.snapshot
    call("undo", deleted)
    assert table.count() == 2
    call("restore_table", "t", deleted)
    assert table.count() == 1
    call("restore", before.time)
    assert table.count() == 2
    table.drop()
    call("undrop_table", "t", as_name="again")
    assert catalog.table("again").count() == 2
    call("restore_table", "t", before.id, as_name="third", schema="main")
    assert catalog.table("third").count() == 2
    with catalog.transaction() as tx:
        call("restore", before.id, work=tx)
        assert tx.table("t").count() == 2
        tx.rollback()
    assert "snapshot is a whole number, not 'x'" in refused("undo", "x")
    assert "at is the id of a snapshot or a timestamp, not True" in refused("restore", True)


def test_catalogs_are_no_part_of_a_transaction(
    catalog: forklake.Catalog, call: Call, refused: Refused
) -> None:
    with catalog.transaction() as tx:
        for name, given in {
            "fork": ("x",),
            "merge": ("x",),
            "drop_catalog": ("x",),
            "replay": (),
            "create_catalog": ("x",),
            "materialize": (),
        }.items():
            assert f"{name} cannot be part of a transaction: COMMIT or ROLLBACK first" in refused(
                name, *given, work=tx
            )
