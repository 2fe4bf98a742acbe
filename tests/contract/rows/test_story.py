"""Two lives of a table, told on every backend, with files on a disk and in a bucket."""

from __future__ import annotations

from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

import forklake
from forklake.api.scoped import scope_of
from forklake.api.upsert import RowsMerged
from forklake.errors import CommitConflict, InvalidData
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered

DDL = "id BIGINT NOT NULL, ts TIMESTAMP, region VARCHAR, s STRUCT(a INT)"


def orders(start: int, count: int) -> pa.Table:
    at = range(start, start + count)
    return pa.table(
        {
            "id": at,
            "ts": [datetime(2024, 1, 1) + timedelta(hours=each) for each in at],
            "region": [("eu", "us", None)[each % 3] for each in at],
            "s": [{"a": each} for each in at],
        }
    )


def test_a_table_lives_through_everything(anywhere: forklake.Catalog, lake_url: str, data_path: str) -> None:
    catalog = anywhere
    table = catalog.create_table("orders", DDL, partition_by=["region"], sorted_by=["ts"])
    born = catalog.snapshot
    assert table.append(orders(0, MANY)) == MANY
    assert table.append(orders(1000, 3)) == 3
    states = {catalog.snapshot: content(table)}
    assert table.delete("id IN (0, 1, 1001)") == 3
    assert table.delete("id BETWEEN 20 AND 139") == 120
    states[catalog.snapshot] = content(table)
    assert table.update({"region": "'fr'", "s": "{'a': id + 1}"}, "id IN (3, 1000)") == 2
    source = [{"id": 4, "region": "de"}, {"id": 2000, "region": "de"}]
    assert table.merge(source, "id") == RowsMerged(1, 0, 1)
    states[catalog.snapshot] = content(table)
    table.rename_column("region", "area")
    table.rename_column("s.a", "b")
    table.add_column("n", "INT", default="7")
    with catalog.transaction(author="me") as tx:
        inside = tx.table("orders")
        inside.append([{"id": 3000, "n": 1}])
        inside.delete("id = 5")
        inside.update({"n": "n + 1"}, "id IN (6, 3000)")
        assert inside.count() == 31
    before = content(table)
    assert catalog.flush_inlined() > 0
    assert content(table) == before
    flushed = len(table.files())
    assert catalog.compact().files_in > 0
    assert len(table.files()) < flushed
    assert content(table) == before
    found = {row["id"]: (row["area"], row["s"], row["n"]) for row in table.scan().to_pylist()}
    assert found[3] == ("fr", {"b": 4}, 7)
    assert found[4] == ("de", {"b": 4}, 7)
    assert found[6] == ("eu", {"b": 6}, 8)
    assert found[1000] == ("fr", {"b": 1001}, 7)
    assert found[2000] == ("de", None, 7)
    assert found[3000] == (None, None, 2)
    assert sorted(found) == [2, 3, 4, *range(6, 20), *range(140, 150), 1000, 1002, 2000, 3000]
    assert table.count() == len(found) == 31
    # Another program sees the same, in the past too.
    with forklake.connect(lake_url, data_path=data_path) as other:
        again = other.catalog("main_catalog").table("orders")
        assert content(again) == before
        assert {at: content(again, at=at) for at in states} == states
        told = feed(again, born)
    assert told == feed(table, born)
    live: dict[int, object] = {}
    for kind, _, row, *values in told:
        if kind in ("insert", "update_postimage"):
            live[row] = values
        elif kind == "delete":
            del live[row]
    assert sorted(live) == [row[0] for row in before]
    gone = next(row for kind, _, row, *_ in told if kind == "delete")
    assert table.locate(gone) is None
    for row_id in sorted(live)[::8]:
        place = table.locate(row_id)
        assert place is not None
        assert place.path is not None
    with duckdb.connect() as connection:
        relation = table.scan("area = 'eu'").to_duckdb(connection)
        assert relation.count("*").fetchall() == [(sum(row[0] == "eu" for row in found.values()),)]
    plan = table.scan("id = 3000").plan()
    assert len(plan.files) < len(table.files())
    assert table.scan().max("id") == 3000
    assert table.overwrite(orders(0, 1).rename_columns(["id", "ts", "area", "s"]).drop(["s"])) == 1
    assert content(table, at=catalog.snapshot - 1) == before
    table.drop()
    assert content(catalog.table("orders", at=catalog.snapshot - 1))[0][1] == 0


def test_what_is_refused_leaves_no_file_behind(anywhere: forklake.Catalog) -> None:
    table = anywhere.create_table("t", "id BIGINT NOT NULL, v VARCHAR")
    table.append(many())
    storage = scope_of(anywhere).context.storage

    def stored() -> set[str]:
        return {file.path for file in storage.files("")}

    files = stored()
    with pytest.raises(InvalidData):
        table.append([{"id": at} for at in range(MANY)] + [{"id": None}])
    tx = anywhere.transaction()
    tx.table("t").append(many(1000))
    tx.table("t").update({"v": "'u'"}, "id < 120")
    table.delete("id = 3")
    with pytest.raises(CommitConflict):
        tx.commit()
    with pytest.raises(KeyError), anywhere.transaction() as tx:
        tx.table("t").append(many(1000))
        raise KeyError
    with anywhere.transaction() as tx:
        tx.table("t").append(many(1000))
        tx.table("t").delete("id >= 1000")
        tx.table("t").append(numbered(5000))
    assert stored() == files
    assert ids(table) == [*(at for at in range(MANY) if at != 3), 5000]
