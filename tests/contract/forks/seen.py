"""What a catalog looks like, through every way of reading it; and what can be done to one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import forklake
from tests.contract.rows.shown import content, feed, many, numbered

Verb = Callable[[forklake.Catalog], object]


def look(catalog: forklake.Catalog) -> dict[str, Any]:
    """All that a catalog holds, as it is now or as the handle shows it."""
    return {
        "schemas": [(each.id, each.uuid, each.name, each.path) for each in catalog.schemas()],
        "tables": {
            (info.schema, info.name): look_at(catalog.table((info.schema, info.name)))
            for info in catalog.tables()
        },
        "views": catalog.views(),
        "macros": catalog.macros(),
        "tags": {
            (kind, each.name): catalog.tags(kind, each.name if kind == "schema" else (each.schema, each.name))
            for kind, listed in (
                ("schema", catalog.schemas()),
                ("view", catalog.views()),
                ("macro", catalog.macros()),
            )
            for each in listed
        },
    }


def look_at(table: forklake.Table) -> dict[str, Any]:
    """All that is known of a table, and its rows."""
    rows = content(table)
    first = table.columns[0].name
    return {
        "id": (table.id, table.uuid),
        "columns": table.columns,
        "tags": (table.tags(), [table.tags(column=column.name) for column in table.columns]),
        "options": table.options(),
        "layout": (table.partitioning, table.sort_order),
        "rows": rows,
        "count": table.count(),
        "bounds": (table.scan().min(first), table.scan().max(first)),
        "files": table.files(),
        "stats": table.stats(),
        "places": [table.locate(row[0]) for row in (*rows[:1], *rows[-1:], (10**9,))],
        "history": [snapshot.id for snapshot in table.history()],
    }


def look_back(catalog: forklake.Catalog, snapshots: list[int]) -> dict[int, Any]:
    """What a catalog looked like at some snapshots, and what its tables tell since the first."""
    told = {
        (info.schema, info.name): feed(catalog.table((info.schema, info.name)), snapshots[0])
        for info in catalog.tables()
    }
    return {snapshots[0]: told, **{at: look(catalog.at(at)) for at in snapshots[1:]}}


def some_past(catalog: forklake.Catalog) -> list[int]:
    """A few snapshots of a catalog, from the first on."""
    return [snapshot.id for snapshot in catalog.snapshots()[::7]]


def fill(catalog: forklake.Catalog, folder: Path) -> forklake.Catalog:
    """Put something of every kind into a catalog.

    `s.t` has 150 rows in a file without 0 to 4 (a delete file) and 5 (inline), and 1000 to 1002 inlined
    without 1001; `u` has inlined rows, some of them updated; `w` has an imported file.
    """
    catalog.create_schema("s")
    catalog.comment("schema", "s", "of the parent")
    table = catalog.create_table("s.t", "id BIGINT, v VARCHAR", partition_by=["v"], sorted_by=["id DESC"])
    table.set_option("data_inlining_row_limit", 3)
    table.comment("of the parent")
    table.comment("its key", column="id")
    table.append(many())
    table.append(numbered(1000, 1001, 1002))
    table.delete("id < 5")
    table.delete("id IN (5, 1001)")
    table.add_column("n", "INT", default="7")
    table.update({"v": "'y'"}, "id = 10")
    small = catalog.create_table("u", "id BIGINT, v VARCHAR")
    small.append(numbered(1, 2, 3))
    small.update({"v": "'y'"}, "id = 2")
    small.rename_column("v", "value")
    imported = folder / "imported.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array([7, 8], pa.int64()), "v": ["a", "b"]}), imported)
    catalog.create_table("w", "id BIGINT, v VARCHAR").add_files(imported, mapping="by_name")
    catalog.create_view("v", "SELECT 1")
    catalog.comment("view", "v", "one")
    catalog.create_macro("m", ["x"], "x + 1")
    catalog.comment("macro", "m", "more")
    catalog.create_table("gone", "id BIGINT").append(numbered(1).select(["id"]))
    catalog.drop_table("gone")
    return catalog


CHANGES: dict[str, Verb] = {
    "append": lambda c: c.table("s.t").append([{"id": 2000, "v": "x"}]),
    "append many": lambda c: c.table("s.t").append(many(3000)),
    "delete inline": lambda c: c.table("s.t").delete("id = 7"),
    "delete many": lambda c: c.table("s.t").delete("id < 20"),
    "delete inlined rows": lambda c: c.table("s.t").delete("id = 1000"),
    "delete all": lambda c: c.table("s.t").delete(),
    "update": lambda c: c.table("s.t").update({"v": "'u'"}, "id IN (8, 10, 1002)"),
    "update small": lambda c: c.table("u").update({"value": "'u'"}),
    "merge": lambda c: c.table("u").merge([{"id": 1, "value": "m"}, {"id": 9, "value": "m"}], "id"),
    "overwrite": lambda c: c.table("s.t").overwrite(many(5000)),
    "flush": lambda c: c.flush_inlined(),
    "delete imported": lambda c: c.table("w").delete("id = 7"),
    "add column": lambda c: c.table("s.t").add_column("z", "INT", default="1"),
    "drop column": lambda c: c.table("s.t").drop_column("n"),
    "rename column": lambda c: c.table("s.t").rename_column("n", "nn"),
    "widen column": lambda c: c.table("s.t").alter_type("n", "BIGINT"),
    "rename table": lambda c: c.table("s.t").rename("main.t2"),
    "drop table": lambda c: c.drop_table("s.t"),
    "replace table": lambda c: (
        c.drop_table("s.t"),
        c.create_table("s.t", "id BIGINT, q INT").append([{"id": 1, "q": 2}]),
    ),
    "create table": lambda c: c.create_table("s.new", "id BIGINT").append([{"id": 1}]),
    "comment": lambda c: c.table("s.t").comment("changed"),
    "remove tag": lambda c: c.table("s.t").comment(None, column="id"),
    "option": lambda c: c.table("s.t").set_option("data_inlining_row_limit", 50),
    "partition": lambda c: (
        c.table("s.t").set_partitioning(["bucket(2, id)"]),
        c.table("s.t").append(many()),
    ),
    "unsort": lambda c: c.table("s.t").set_sort_order([]),
    "replace view": lambda c: c.create_view("v", "SELECT 2", or_replace=True),
    "drop view": lambda c: c.drop_view("v"),
    "replace macro": lambda c: c.create_macro("m", ["x", "y"], "x + y", or_replace=True),
    "drop macro": lambda c: c.drop_macro("m"),
    "rename schema": lambda c: c.rename_schema("s", "s2"),
    "drop schema": lambda c: c.drop_schema("s", cascade=True),
    "create schema": lambda c: c.create_schema("s3"),
}
"""One for each kind of thing that a catalog may change."""
