"""Every verb of Spark that commits says who and why, and a handle says where it is."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import forklake
from forklake.spark import SparkCatalog

INFO: dict[str, Any] = {"author": "ada", "message": "why", "extra": {"run": 7}}
# Reads, and `sql`, which says who and why in its own words (`CALL set_commit_message('ada', 'why')`).
OTHERS = {"read", "search", "changes", "sql", "register_views", "on"}


def test_every_verb_says_who_and_why(spark: Any, tmp_path: Any) -> None:
    with forklake.connect(f"sqlite:///{tmp_path}/lake.db", create=True) as lake:
        catalog = lake.create_catalog("c")
        on_spark = SparkCatalog(spark, catalog)
        df = spark.createDataFrame([(n, 0) for n in range(50)], "id INT, n INT")
        few = spark.createDataFrame([(1, 5), (99, 5)], "id INT, n INT")

        def checkpoint(**info: Any) -> None:
            catalog.create_table("inlined", "id INT").append([{"id": 1}])
            before.append(catalog.snapshot)
            on_spark.checkpoint(**info)

        def indexed(**info: Any) -> None:
            catalog.table("t").create_index("i", kind="hash", columns=["id"], maintain="later")
            before.append(catalog.snapshot)
            on_spark.build_indexes(**info)

        before: list[int] = []
        calls = {
            "create_table": lambda **info: on_spark.create_table("t", df, **info),
            "append": lambda **info: on_spark.append(df, "t", **info),
            "overwrite": lambda **info: on_spark.overwrite(df, "t", "id < 5", **info),
            "update": lambda **info: on_spark.update("t", {"n": "1"}, "id < 9", **info),
            "delete": lambda **info: on_spark.delete("t", "id = 3", **info),
            "merge": lambda **info: on_spark.merge(few, "t", "id", **info),
            "rewrite_deletes": lambda **info: on_spark.rewrite_deletes("t", 0, **info),
            "compact": lambda **info: on_spark.compact("t", **info),
            "checkpoint": lambda **info: checkpoint(**info),
            "build_indexes": lambda **info: indexed(**info),
        }
        found = inspect.getmembers(SparkCatalog, inspect.isfunction)
        assert {name for name, _ in found if not name.startswith("_")} - OTHERS == set(calls)
        for name, call in calls.items():
            before.append(catalog.snapshot)
            call(**INFO)
            (made,) = [snapshot for snapshot in catalog.snapshots() if snapshot.id > before[-1]]
            assert made.extra is not None, name
            assert (made.author, made.message, made.extra["run"]) == ("ada", "why", 7), name
        on_spark.delete("t", **INFO)
        assert catalog.snapshots()[-1].author == "ada"
        assert repr(on_spark) == f"<SparkCatalog <Catalog 'c' at snapshot {catalog.snapshot}>>"
        with catalog.transaction() as tx:
            inside = SparkCatalog(spark, tx)
            with pytest.raises(forklake.InvalidArgument, match="where it begins"):
                inside.append(df, "t", author="bob")
            with pytest.raises(forklake.InvalidArgument, match="where it begins"):
                inside.delete("t", message="no")
        assert on_spark.read("t").count() == 0
