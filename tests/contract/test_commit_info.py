"""Every verb that commits takes `author`, `message` and `extra`, and the snapshot shows them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

import forklake
from forklake.api.scoped import scope_of
from forklake.compact.run import run
from forklake.distributed import write_part
from forklake.model.snapshots import author_of

INFO: dict[str, Any] = {"author": "ada", "message": "why", "extra": {"run": 7}}

# What commits nothing: it reads, or changes what has no history. Statements of SQL say who and why by
# set_commit_message.
READS = {
    "Lake": "catalog catalogs check close collect_garbage expire_reservations now options read "
    "remove_orphans set_option set_ttl snapshots sql tree",
    "Catalog": "at begin_distributed cancel_distributed diff expire macros plan_compaction "
    "plan_rewrite_deletes reservations schema_options schemas snapshots sql table tables tags views",
    "Table": "changes count files head history indexes locate options scan search stats tags to_arrow "
    "to_batches to_pandas to_polars to_pylist to_reader",
}
# What takes the keywords for commits to come.
FOR_LATER = {"Catalog": "transaction with_commit_info"}


def verbs(kind: type) -> set[str]:
    found = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
    others = f"{READS[kind.__name__]} {FOR_LATER.get(kind.__name__, '')}".split()
    assert set(others) <= found
    return found - set(others)


def takes_info(member: Callable[..., Any]) -> bool:
    last = list(inspect.signature(member).parameters.values())[-1]
    return last.kind is inspect.Parameter.VAR_KEYWORD and last.annotation == "Unpack[CommitInfo]"


def lake_calls(lake: forklake.Lake) -> dict[str, Callable[..., Any]]:
    lake.create_catalog("base")
    brief = [f"brief{number}" for number in range(8)]
    for name in ("old", "gone", "d1", "expiring", *brief):
        lake.fork("base", name)
    lake.fork("base", "late")
    side = lake.fork("base", "side")
    side.create_table("t", "id INT")
    lake.set_ttl("expiring", timedelta(microseconds=1))

    def expire(**info: Any) -> Any:
        lake.set_ttl(brief.pop(), timedelta(microseconds=1))
        return lake.expire(older_than=timedelta(days=1), **info)

    def checkpoint(**info: Any) -> Any:
        lake.set_ttl(brief.pop(), timedelta(microseconds=1))
        return lake.checkpoint(**info)

    return {
        "create_catalog": lambda **info: lake.create_catalog("new", **info),
        "fork": lambda **info: lake.fork("base", "f", **info),
        "fork_many": lambda **info: lake.fork_many("base", ["f1", "f2"], **info),
        "merge": lambda **info: lake.merge("side", "base", **info),
        "drop_expired": lambda **info: lake.drop_expired(**info),
        "rename_catalog": lambda **info: lake.rename_catalog("old", "new_name", **info),
        "drop_catalog": lambda **info: lake.drop_catalog("gone", **info),
        "drop_catalogs": lambda **info: lake.drop_catalogs(["d1"], **info),
        "undrop_catalog": lambda **info: lake.undrop_catalog("d1", **info),
        "replay": lambda **info: lake.replay("late", "base", **info),
        "expire": expire,
        "checkpoint": checkpoint,
    }


def catalog_calls(lake: forklake.Lake) -> dict[str, Callable[..., Any]]:
    origin = lake.create_catalog("origin")
    origin.create_table("inherited", "id INT")
    catalog = lake.fork(origin, "work")
    behind = lake.fork(origin, "behind")
    small = lake.create_catalog("small")
    small.create_table("t", "id INT").append([{"id": 1}])
    for name in ("s1", "s2"):
        catalog.create_schema(name)
    for name in ("compacted", "holed", "elsewhere"):
        table = catalog.create_table(name, "id INT")
        for first in (0, 100):
            table.append([{"id": n} for n in range(first, first + 50)])
            catalog.flush_inlined(name)
    catalog.table("holed").delete("id < 10")
    catalog.table("holed").create_index("i", kind="hash", columns=["id"], maintain="later")
    catalog.create_table("dropped", "id INT")
    catalog.create_table("inlined", "id INT").append([{"id": 1}])
    for name in ("v1", "v2"):
        catalog.create_view(name, "SELECT 1")
        catalog.create_macro(f"m{name}", ["a"], "a")

    def rewrites(**info: Any) -> None:
        plan = catalog.plan_compaction("elsewhere")
        done = [run(rewrite, scope_of(catalog).context.engine, []) for rewrite in plan]
        catalog.commit_rewrites(done, **info)

    def distributed(**info: Any) -> None:
        ds = catalog.begin_distributed(["inlined"])
        part = write_part(ds, "inlined", [{"id": 5}], part=0)
        catalog.commit_distributed(ds, [part], **info)

    start = catalog.snapshot
    return {
        "create_schema": lambda **info: catalog.create_schema("s", **info),
        "set_schema_option": lambda **info: catalog.set_schema_option("s", "sort_on_insert", True, **info),
        "rename_schema": lambda **info: catalog.rename_schema("s1", "s3", **info),
        "drop_schema": lambda **info: catalog.drop_schema("s2", **info),
        "create_table": lambda **info: catalog.create_table("created", "id INT", **info),
        "drop_table": lambda **info: catalog.drop_table("dropped", **info),
        "flush_inlined": lambda **info: catalog.flush_inlined("inlined", **info),
        "compact": lambda **info: catalog.compact("compacted", **info),
        "checkpoint": lambda **info: small.checkpoint(**info),
        "rewrite_deletes": lambda **info: catalog.rewrite_deletes(table="holed", threshold=0, **info),
        "build_indexes": lambda **info: catalog.build_indexes(**info),
        "commit_rewrites": rewrites,
        "create_view": lambda **info: catalog.create_view("v", "SELECT 1", **info),
        "rename_view": lambda **info: catalog.rename_view("v1", "v3", **info),
        "drop_view": lambda **info: catalog.drop_view("v2", **info),
        "create_macro": lambda **info: catalog.create_macro("m", ["a"], "a", **info),
        "rename_macro": lambda **info: catalog.rename_macro("mv1", "mv3", **info),
        "drop_macro": lambda **info: catalog.drop_macro("mv2", **info),
        "set_tag": lambda **info: catalog.set_tag("table", "compacted", "k", "v", **info),
        "comment": lambda **info: catalog.comment("table", "compacted", "text", **info),
        "materialize": lambda **info: catalog.materialize(**info),
        "commit_distributed": distributed,
        "fork": lambda **info: catalog.fork("forked", **info),
        "merge_into": lambda **info: catalog.merge_into("origin", **info),
        "replay": lambda **info: behind.replay(**info),
        "restore_table": lambda **info: catalog.restore_table("inlined", start, **info),
        "undrop_table": lambda **info: catalog.undrop_table("dropped", **info),
        "undo": lambda **info: catalog.undo(catalog.snapshot, **info),
        "restore": lambda **info: catalog.restore(start, **info),
    }


def table_calls(lake: forklake.Lake, folder: Any) -> dict[str, Callable[..., Any]]:
    catalog = lake.create_catalog("tables")
    table = catalog.create_table("t", "id INT, n INT, gone INT, struct STRUCT(a INT)")
    table.append([{"id": n, "n": 0} for n in range(50)])
    catalog.flush_inlined()
    table.append([{"id": n, "n": 0} for n in range(50, 100)])
    imported = catalog.create_table("imported", "id INT")
    pq.write_table(table.scan(columns=["id"]).to_arrow(), folder / "in.parquet")
    start = catalog.snapshot
    return {
        "compact": lambda **info: table.compact(**info),
        "append": lambda **info: table.append([{"id": 1, "n": 1}], **info),
        "flush_inlined": lambda **info: table.flush_inlined(**info),
        "overwrite": lambda **info: table.overwrite([{"id": 1, "n": 1}, {"id": 2, "n": 1}], "id = 1", **info),
        "delete": lambda **info: table.delete("id = 2", **info),
        "rewrite_deletes": lambda **info: table.rewrite_deletes(0, **info),
        "update": lambda **info: table.update({"n": "5"}, "id = 3", **info),
        "merge": lambda **info: table.merge([{"id": 3, "n": 9}], on="id", **info),
        "add_files": lambda **info: imported.add_files(folder / "in.parquet", mapping="by_name", **info),
        "add_column": lambda **info: table.add_column("c", "INT", **info),
        "drop_column": lambda **info: table.drop_column("gone", **info),
        "rename_column": lambda **info: table.rename_column("c", "d", **info),
        "alter_type": lambda **info: table.alter_type("n", "BIGINT", **info),
        "set_default": lambda **info: table.set_default("n", 7, **info),
        "drop_default": lambda **info: table.drop_default("n", **info),
        "set_nullable": lambda **info: table.set_nullable("id", False, **info),
        "reorder": lambda **info: table.reorder(["n"], **info),
        "set_partitioning": lambda **info: table.set_partitioning(["id"], **info),
        "set_sort_order": lambda **info: table.set_sort_order(["id"], **info),
        "set_option": lambda **info: table.set_option("data_inlining_row_limit", 5, **info),
        "set_tag": lambda **info: table.set_tag("k", "v", **info),
        "comment": lambda **info: table.comment("text", **info),
        "create_index": lambda **info: table.create_index("i", kind="hash", columns=["id"], **info),
        "drop_index": lambda **info: table.drop_index("i", **info),
        "rename": lambda **info: table.rename("t2", **info),
        "drop": lambda **info: imported.drop(**info),
        "restore": lambda **info: table.restore(start, **info),
    }


def check(lake: forklake.Lake, kind: type, calls: dict[str, Callable[..., Any]]) -> None:
    assert verbs(kind) - set(calls) == set(), "these verbs are in no list of this file"
    assert set(calls) - verbs(kind) == set()
    for name, call in calls.items():
        before = lake.snapshots()[-1].id
        call(**INFO)
        made = [snapshot for snapshot in lake.snapshots() if snapshot.id > before and snapshot.author]
        assert len(made) == 1, name
        # A distributed commit adds a summary of its own.
        assert made[0].extra is not None, name
        assert (made[0].author, made[0].message, made[0].extra["run"]) == ("ada", "why", 7), name
        # What is no keyword of `create_index` is meant for the kind.
        with pytest.raises(forklake.ForklakeError if name == "create_index" else TypeError):
            call(autor="ada")


def test_every_verb_of_a_lake_says_who_and_why(lake: forklake.Lake) -> None:
    check(lake, forklake.Lake, lake_calls(lake))


def test_every_verb_of_a_catalog_says_who_and_why(lake: forklake.Lake) -> None:
    check(lake, forklake.Catalog, catalog_calls(lake))


def test_every_verb_of_a_table_says_who_and_why(lake: forklake.Lake, tmp_path) -> None:
    check(lake, forklake.Table, table_calls(lake, tmp_path))


@pytest.mark.parametrize("kind", [forklake.Lake, forklake.Catalog, forklake.Table])
def test_what_commits_nothing_takes_no_author(kind: type) -> None:
    for name in READS[kind.__name__].split():
        assert not takes_info(getattr(kind, name)), name


def test_inside_of_a_transaction_no_verb_takes_them(lake: forklake.Lake, tmp_path) -> None:
    catalog = lake.create_catalog("c")
    catalog.create_table("t", "id INT, n INT")
    before = catalog.snapshots()
    with catalog.transaction(author="ada") as tx:
        table = tx.table("t")
        for call in (
            lambda: tx.create_schema("s", author="bob"),
            lambda: tx.create_table("u", "id INT", message="no"),
            lambda: tx.compact(extra={"a": 1}),
            lambda: table.append([{"id": 1}], author="bob"),
            lambda: table.add_column("c", "INT", message="no"),
            lambda: table.merge([{"id": 1}], on="id", author="bob"),
        ):
            with pytest.raises(forklake.InvalidArgument, match=r"where it begins: catalog.transaction\("):
                call()
        table.append([{"id": 1}], author=None, message=None)
    (made,) = catalog.snapshots()[len(before) :]
    assert (made.author, made.changes) == ("ada", f"inlined_insert:{catalog.table('t').id}")


def test_a_bad_author_is_refused_before_anything_is_written(catalog: forklake.Catalog, tmp_path) -> None:
    table = catalog.create_table("t", "id INT")
    before = catalog.snapshot
    for info in (
        {"author": 5},
        {"message": "a\0b"},
        {"extra": {"x": object()}},
        {"extra": [1]},
    ):
        with pytest.raises(forklake.ForklakeError):
            table.append([{"id": n} for n in range(1000)], **info)
    assert catalog.snapshot == before
    assert not list((tmp_path / "files").rglob("*.parquet"))


def test_a_catalog_may_say_the_same_of_all_its_commits(catalog: forklake.Catalog) -> None:
    signed = catalog.with_commit_info(author="agent-7", extra={"run": 1})
    table = signed.create_table("t", "id INT")
    signed.table("t").append([{"id": 1}], message="first")
    table.append([{"id": 2}])
    with signed.transaction(message="both") as tx:
        tx.table("t").append([{"id": 3}])
    made = catalog.snapshots()[1:]
    assert [(s.author, s.message) for s in made] == [
        ("agent-7", None),
        ("agent-7", "first"),
        ("agent-7", None),
        ("agent-7", "both"),
    ]
    assert all(snapshot.extra == {"run": 1} for snapshot in made)
    catalog.table("t").append([{"id": 4}])
    assert catalog.snapshots()[-1].author is None


@pytest.mark.parametrize("extra", ["{'barks': 7}", "", "5", "[1]", '"x"'])
def test_extra_info_may_be_text_that_is_no_object(catalog: forklake.Catalog, extra: str) -> None:
    catalog.create_schema("s", extra=extra)
    catalog.create_schema("t", extra='{"run":7}')
    assert [made.extra for made in catalog.snapshots()[1:]] == [extra, {"run": 7}]
    with catalog.transaction() as tx:
        tx.sql("CALL set_commit_message('Ada', 'why', extra_info => $1)", [extra])
        tx.create_schema("u")
    shown = "SELECT author, commit_extra_info FROM snapshots() ORDER BY snapshot_id DESC LIMIT 1"
    assert catalog.sql(shown).to_rows() == [("Ada", extra)]


def test_text_becomes_a_part_of_the_extra_info_of_a_distributed_snapshot() -> None:
    author = author_of(author="ada", extra="text").with_extra({"summary": {"rows": 1}})
    assert (author.author, author.extra) == ("ada", {"text": "text", "summary": {"rows": 1}})
