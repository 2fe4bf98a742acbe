"""Partitions, sort orders and options, changed over time; and tables that take the place of others."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import InvalidArgument, InvalidSchemaChange
from forklake.model.options import Options
from tests.contract.rows.shown import MANY, content, ids, many, numbered


@pytest.fixture
def events(catalog: forklake.Catalog) -> forklake.Table:
    return catalog.create_table("events", "id BIGINT, ts TIMESTAMP, region VARCHAR")


def some(start: int = 0, count: int = MANY) -> dict[str, list[object]]:
    at = range(start, start + count)
    return {
        "id": list(at),
        "ts": [datetime(2024, 1, 1) + timedelta(hours=8 * each) for each in at],
        "region": [("eu", "us", None)[each % 3] for each in at],
    }


def test_partitions_are_folders_and_skip_files(events: forklake.Table) -> None:
    events.set_partitioning(["region"])
    assert events.partitioning == ("region",)
    events.append(some())
    files = {file.partition_values: file for file in events.files()}
    assert {key: file.record_count for key, file in files.items()} == {("eu",): 50, ("us",): 50, (None,): 50}
    assert {file.path.split("/")[-2] for file in files.values()} == {
        "region=eu",
        "region=us",
        "region=__HIVE_DEFAULT_PARTITION__",
    }
    for where, kept in (("region = 'eu'", "eu"), ("region IS NULL", None), ("region > 'eu'", "us")):
        plan = events.scan(where).plan()
        assert [file.path for file in plan.files] == [files[(kept,)].path], where
        assert events.scan(where).count() == 50
        assert len(plan.pruned) == 2


def test_buckets_are_found_by_value(events: forklake.Table) -> None:
    events.set_partitioning(["bucket(8, id)"])
    assert events.partitioning == ("bucket(8, id)",)
    events.append(some())
    assert len(events.files()) == 8
    for wanted in (0, 77, 149):
        plan = events.scan(f"id = {wanted}").plan()
        assert len(plan.files) == 1
        assert ids(events, f"id = {wanted}") == [wanted]
        assert {pruned.reason.split(" ")[0] for pruned in plan.pruned} <= {'"id"', "bucket(8,"}
    # No range of ids excludes a file here: the buckets alone do.
    plan = events.scan("id IN (3, 77)").plan()
    assert len(plan.files) == 2
    assert {pruned.reason.split(" is ")[0] for pruned in plan.pruned} == {"bucket(8, id)"}
    assert ids(events, "id IN (3, 77)") == [3, 77]


def test_partitioning_changes_over_time_and_every_file_keeps_its_own(
    catalog: forklake.Catalog, events: forklake.Table
) -> None:
    layouts = [[], ["region"], ["month(ts)"], ["bucket(4, id)", "region"], []]
    for turn, layout in enumerate(layouts):
        events.set_partitioning(layout)
        assert events.partitioning == tuple(layout)
        events.append(some(turn * MANY))
        events.append(some(10_000 + turn, 1))
    everything = [*range(MANY * 5), *range(10_000, 10_005)]
    assert ids(events) == everything
    assert ids(events, "region = 'eu' AND id < 10000") == list(range(0, MANY * 5, 3))
    for wanted in (0, MANY + 1, 2 * MANY + 2, 3 * MANY + 3, 5 * MANY - 1, 10_003):
        assert ids(events, f"id = {wanted}") == [wanted]
    assert ids(events, "ts >= TIMESTAMP '2024-03-01' AND ts < TIMESTAMP '2024-03-02'") == [180, 181, 182]
    months = {file.partition_values for file in events.files() if len(file.partition_values) == 1}
    assert months > {("eu",), ("us",), (None,)}
    assert catalog.flush_inlined() == 5
    assert ids(events) == everything
    events.delete("region IS NULL")
    assert events.scan("region IS NULL").count() == 0
    assert events.count() == len([at for at in everything if at % 3 != 2])


def test_rows_of_a_file_are_sorted_as_the_table_said_when_it_was_written(
    events: forklake.Table, lake: forklake.Lake
) -> None:
    def newest(column: str) -> list[object]:
        last = max(events.files(), key=lambda file: file.begin)
        return pq.read_table(f"{lake.data_path}{last.path}").column(column).to_pylist()

    given = some()
    mixed = {name: [values[(at * 7) % MANY] for at in range(MANY)] for name, values in given.items()}
    events.set_sort_order(["id DESC"])
    assert events.sort_order == ("id DESC NULLS LAST",)
    events.append(mixed)
    assert newest("id") == list(range(MANY - 1, -1, -1))
    events.set_sort_order(["region NULLS FIRST", "ts"])
    events.append(mixed)
    assert newest("region") == [None] * 50 + ["eu"] * 50 + ["us"] * 50
    assert newest("id")[:3] == [2, 5, 8]
    events.rename_column("region", "area")
    assert events.sort_order == ("area ASC NULLS FIRST", "ts ASC NULLS LAST")
    with pytest.raises(InvalidSchemaChange, match="sort"):
        events.drop_column("area")
    events.set_sort_order([])
    assert events.sort_order == ()
    mixed["area"] = mixed.pop("region")
    events.append(mixed)
    assert newest("id") == mixed["id"]
    assert events.count() == 3 * MANY
    # Row ids follow the places that rows have.
    assert [events.locate(at).position for at in (0, MANY, 2 * MANY)] == [0, 0, 0]


@pytest.mark.parametrize(
    "fields", [["nothing"], ["week(ts)"], ["bucket(0, id)"], ["day(id)"], ["region", "region"], "region"]
)
def test_what_cannot_be_partitioned_by_is_refused(
    catalog: forklake.Catalog, events: forklake.Table, fields: list[str]
) -> None:
    before = catalog.snapshot
    with pytest.raises(forklake.ForklakeError):
        events.set_partitioning(fields)
    with pytest.raises(forklake.ForklakeError):
        catalog.create_table("other", "id BIGINT, ts TIMESTAMP, region VARCHAR", partition_by=fields)
    assert (catalog.snapshot, events.partitioning) == (before, ())


def test_a_layout_is_there_as_long_as_it_was(catalog: forklake.Catalog, events: forklake.Table) -> None:
    events.set_partitioning(["region"])
    events.set_sort_order(["id"])
    before = catalog.snapshot
    events.set_partitioning(["region"])
    assert catalog.snapshot == before
    events.set_partitioning([])
    events.set_sort_order([])
    past = catalog.table("events", at=before)
    assert (past.partitioning, past.sort_order) == (("region",), ("id ASC NULLS LAST",))
    assert (events.partitioning, events.sort_order) == ((), ())


def test_a_layout_is_shown_as_it_can_be_given(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("odd", 'id INT, "a b" INT, "bucket(4, id)" INT, "q""q" INT')
    keys = ['"a b"', 'bucket(4, "q""q")', '"bucket(4, id)"', "bucket(4, id)"]
    table.set_partitioning(keys)
    assert table.partitioning == tuple(keys)
    table.set_sort_order(["a b", "id desc", '"q""q" nulls first'])
    order = ('"a b" ASC NULLS LAST', "id DESC NULLS LAST", '"q""q" ASC NULLS FIRST')
    assert table.sort_order == order
    before = catalog.snapshot
    table.set_partitioning(list(table.partitioning))
    table.set_sort_order(list(table.sort_order))
    assert catalog.snapshot == before


def test_options_of_a_table_come_before_those_of_the_lake(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, reopen
) -> None:
    other = catalog.create_table("other", "id BIGINT, v VARCHAR")
    assert table.options() == lake.options() == Options()
    lake.set_option("data_inlining_row_limit", 5)
    lake.set_option("target_file_size", "1MiB")
    table.set_option("data_inlining_row_limit", 2)
    assert table.options() == Options(data_inlining_row_limit=2, target_file_size=2**20)
    fresh = reopen()
    assert fresh.options() == other.options() == Options(data_inlining_row_limit=5, target_file_size=2**20)
    assert fresh.catalog("main_catalog").table("t").options() == table.options()
    for each, inlined in ((table, [True, False]), (other, [True, True])):
        each.append(numbered(1, 2))
        each.append(numbered(3, 4, 5))
        assert sorted((file.path is None for file in each.files()), reverse=True) == inlined
    before = catalog.snapshot
    table.set_option("data_inlining_row_limit", None)
    assert table.options() == lake.options()
    assert catalog.table("t", at=before).options().data_inlining_row_limit == 2


def test_options_are_no_tags(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.set_option("data_inlining_row_limit", 2)
    table.set_tag("owner", "me")
    assert table.tags() == catalog.tags("table", "t") == {"owner": "me"}
    for change in (
        lambda: table.set_tag("option:data_inlining_row_limit", "many"),
        lambda: catalog.set_tag("table", "t", "option:data_inlining_row_limit", None),
    ):
        with pytest.raises(InvalidArgument, match="set_option"):
            change()
    assert table.options().data_inlining_row_limit == 2


def test_options_say_how_files_are_written(lake: forklake.Lake, table: forklake.Table) -> None:
    for name, value in (
        ("data_inlining_row_limit", 0),
        ("parquet_compression", "snappy"),
        ("parquet_row_group_size", 50),
    ):
        table.set_option(name, value)
    table.append(many())
    about = pq.read_metadata(f"{lake.data_path}{table.files()[0].path}")
    assert (about.num_row_groups, about.row_group(0).column(0).compression) == (3, "SNAPPY")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nothing", 1),
        ("nothing", None),
        ("data_inlining_row_limit", -1),
        ("data_inlining_row_limit", "many"),
        ("target_file_size", "big"),
        ("target_file_size", 0),
        ("parquet_compression", "rar"),
    ],
)
def test_options_that_cannot_be_are_refused(lake, catalog, table, name: str, value: object) -> None:
    before = catalog.snapshot
    with pytest.raises(InvalidArgument):
        table.set_option(name, value)
    with pytest.raises(InvalidArgument):
        lake.set_option(name, value)
    assert (catalog.snapshot, table.options(), lake.options()) == (before, Options(), Options())


def test_a_table_that_takes_the_name_of_another_has_rows_of_its_own(
    catalog: forklake.Catalog, table: forklake.Table, raw
) -> None:
    table.append(many())
    table.append(numbered(1000))
    table.delete("id < 120")
    table.delete("id = 140")
    before, rows = catalog.snapshot, content(table)
    with catalog.transaction() as tx:
        tx.table("t").append(numbered(1))
        tx.drop_table("t")
        tx.create_table("t", "id VARCHAR").append([{"id": "a"}])
    new = catalog.table("t")
    assert content(new) == [(0, "a")]
    new.append([{"id": f"n{at}"} for at in range(MANY)])
    new.drop()
    newest = catalog.create_table("t", "id BIGINT")
    assert (newest.count(), newest.files()) == (0, [])
    assert content(catalog.table("t", at=before)) == rows
    assert catalog.table("t", at=before + 1).count() == 1
    live = "SELECT count(*) FROM ducklake_data_file WHERE end_snapshot IS NULL"
    assert raw(live) == [(0,)]
    assert raw(live.replace("data", "delete")) == [(0,)]
    # Its history is told by its id, and ends with it.
    assert [snapshot.id for snapshot in newest.history()] == [catalog.snapshot]
    assert [s.id for s in catalog.table("t", at=before).history()] == list(range(before - 4, before + 1))


def test_rows_in_a_dropped_schema_go_with_it(catalog: forklake.Catalog, raw) -> None:
    catalog.create_schema("s")
    table = catalog.create_table("s.t", "id BIGINT")
    table.append([{"id": at} for at in range(MANY)])
    table.append([{"id": 1000}])
    before = catalog.snapshot
    catalog.drop_schema("s", cascade=True)
    assert raw("SELECT count(*) FROM ducklake_data_file WHERE end_snapshot IS NULL") == [(0,)]
    assert ids(catalog.table("s.t", at=before)) == [*range(MANY), 1000]
    assert catalog.flush_inlined() == 0
