"""Makes the lakes that upgrades are tested with: one of each version of the schema, on each backend.

Run it with the code of the version that is to be kept, and with a name for it:

    git worktree add /tmp/old b629b18
    PYTHONPATH=/tmp/old/src python tests/upgrades/make_lake.py 0.5-dev1

It writes `lakes/<version>/<backend>.tar.xz` beside this file. Each holds the metadata (a database file, or on
PostgreSQL plain SQL), the Parquet files, and `expected.json`: all rows of all catalogs at all snapshots, what
else is to be seen there, what merges would do, and the parts of a distributed snapshot that waits to be
committed, as this version says it. The script uses nothing but what every version of forklake has.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

import forklake
from forklake import distributed
from forklake.localpg import LocalPostgres

HERE = Path(__file__).parent
SCHEMA = "lake_of_old"
CENTURY = timedelta(days=36_500)


def main(version: str) -> None:
    """Make the lake of one version on each backend."""
    target = HERE / "lakes" / version
    target.mkdir(parents=True, exist_ok=True)
    for backend in ("sqlite", "duckdb", "postgresql"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            if backend == "postgresql":
                with LocalPostgres() as server:
                    make(f"{server.url}?metadata_schema={SCHEMA}", folder)
                    dump(server.url, folder / "lake.sql")
            else:
                make(f"{backend}:///{folder}/lake.db", folder)
            pack(folder, target / f"{backend}.tar.xz")


def pack(folder: Path, archive: Path) -> None:
    """Put a folder into an archive, in an order and with times that do not change."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
        return entry

    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(folder.iterdir()):
            packed.add(path, path.name, filter=plain)


# ---- The story of the lake -------------------------------------------------------------------------------


def make(url: str, folder: Path) -> None:
    """Make a lake in a folder, and write down what is in it."""
    data_path = folder / "files"
    with forklake.connect(url, data_path=data_path, create=True) as lake:
        tell(lake, data_path)
        waiting = reserve(lake)
        expected = describe(lake) | {"data_path": str(data_path), "waiting": waiting}
        (folder / "expected.json").write_text(json.dumps(expected, default=str, indent=0))


def tell(lake: forklake.Lake, data_path: Path) -> None:
    """All that a lake may hold."""
    main = lake.create_catalog("main", author="ann", message="begin", extra={"ticket": 1})
    lake.set_option("parquet_compression", "zstd")
    make_tables(main)
    import_files(main, data_path)
    delete_rows(main)
    evolve(main)
    early = main.snapshot
    main.table("orders").append(orders(200, 230))

    dev = lake.fork("main", "dev", ttl=CENTURY)
    lake.fork("main", "past", at=early)
    dev.table("orders").append(orders(300, 330))
    dev.table("orders").delete("id BETWEEN 5 AND 8")
    dev.table("notes").append([{"id": 100, "note": "of dev"}])
    deep = lake.fork("dev", "deep")
    deep.table("orders").append(orders(400, 410))
    deep.table("orders").update({"amount": "amount + 1000"}, "id = 21")
    deep.create_table("of_deep", "id BIGINT").append([{"id": 1}])
    lake.merge("deep", "dev")
    dev.table("notes").update({"note": "'changed in dev'"}, "id = 2")
    lake.merge("dev", "main")

    merge_by_third(lake)
    drop_catalogs(lake)
    copy_catalogs(lake)
    leave_work(lake)


def orders(start: int, end: int) -> list[dict[str, Any]]:
    """Rows of a table that is partitioned by region."""
    return [{"id": n, "region": ("eu", "us", None)[n % 3], "amount": n / 4} for n in range(start, end)]


def make_tables(main: forklake.Catalog) -> None:
    """Files, inlined rows, nested columns, views, macros, tags, options."""
    table = main.create_table(
        "orders", "id BIGINT, region VARCHAR, amount DOUBLE", partition_by=["region"], sorted_by=["id"]
    )
    # Deletes of up to five rows of a file are inlined, and no write of rows is.
    table.set_option("data_inlining_row_limit", 5)
    table.append(orders(0, 60))
    table.comment("what was sold")
    table.set_tag("owner", "ann", column="amount")
    notes = main.create_table("notes", "id BIGINT NOT NULL, note VARCHAR DEFAULT 'none'", comment="small")
    notes.append([{"id": n, "note": f"note {n}"} for n in range(1, 6)])
    notes.append([{"id": 6, "note": ""}, {"id": 7, "note": "a" * 60}, {"id": 8, "note": "a" * 59 + "b"}])
    main.create_schema("deep")
    nested = main.create_table(
        "deep.nested", "id BIGINT, who STRUCT(name VARCHAR, tags VARCHAR[]), sizes MAP(VARCHAR, INTEGER)"
    )
    nested.append([{"id": 1, "who": {"name": "x", "tags": ["a", None]}, "sizes": [("s", 1)]}])
    main.create_view("cheap", "SELECT * FROM orders WHERE amount < 3")
    main.create_macro("twice", ["x"], "x * 2")
    main.set_tag("view", "cheap", "kind", "report")
    with main.transaction(once="load of monday") as tx:
        tx.table("notes").append([{"id": 9, "note": "once"}])
    main.table("notes").merge(
        [{"id": 9, "note": "merged"}, {"id": 10, "note": "new"}, {"id": 11, "note": "new"}], on="id"
    )


def import_files(main: forklake.Catalog, data_path: Path) -> None:
    """Files that others wrote, found by names: nested fields, and values in folders."""
    folder = data_path / "imported"
    for region in ("eu", "us"):
        (folder / f"region={region}").mkdir(parents=True)
        content = pa.table(
            {
                "number": pa.array(range(10), pa.int64()),
                "place": pa.array([{"city": f"c{n}", "zip": n} for n in range(10)]),
            }
        )
        pq.write_table(content, folder / f"region={region}" / "part.parquet")
    table = main.create_table("imports", "id BIGINT, place STRUCT(zip BIGINT, city VARCHAR), region VARCHAR")
    names = {"number": "id", "place": "place", "region": "region"}
    table.add_files(
        f"{folder}/region=eu/part.parquet", mapping="by_name", allow_missing=True, ignore_extra=True
    )
    table.add_files(f"{folder}/region=us/part.parquet", mapping=names)
    table.rename_column("id", "number")


def delete_rows(main: forklake.Catalog) -> None:
    """Inline first, then by a delete file of the same data file, then inline again."""
    table = main.table("orders")
    table.delete("id IN (3, 6)")
    table.delete("id % 3 = 0 AND id BETWEEN 24 AND 50")
    table.delete("id = 57")
    table.update({"amount": "-1.0"}, "id = 1")
    main.table("notes").delete("id = 4")
    main.table("imports").delete("number = 3")


def evolve(main: forklake.Catalog) -> None:
    """Columns that come, go and change; rows that move."""
    table = main.table("orders")
    table.add_column("status", "VARCHAR", default="'open'")
    table.append([{"id": 100 + n, "region": "eu", "amount": float(n), "status": "new"} for n in range(10)])
    table.alter_type("amount", "DOUBLE")
    table.rename_column("status", "state")
    main.table("notes").add_column("extra", "INTEGER")
    main.table("notes").drop_column("extra")
    floats = main.create_table("floats", "f DOUBLE")
    floats.append([{"f": float("nan")}, {"f": 1.5}])
    floats.append([{"f": None}, {"f": float("-inf")}])
    main.flush_inlined("deep.nested")
    small = main.create_table("small_files", "id BIGINT")
    small.set_option("data_inlining_row_limit", 0)
    for number in range(3):
        small.append([{"id": number}])
    main.compact("small_files")
    main.create_table("gone", "id BIGINT").append([{"id": 1}])
    main.drop_table("gone")


def merge_by_third(lake: forklake.Lake) -> None:
    """What came to a catalog by way of others, back and forth."""
    main = lake.catalog("main")
    one, two, three = lake.fork_many("main", ["one", "two", "three"])
    for number, fork in enumerate((one, two, three), 1):
        fork.table("notes").append([{"id": 1000 * number, "note": f"first of {fork.name}"}])
    one.table("orders").append(orders(500, 520))
    lake.merge("one", "two")
    two.table("notes").append([{"id": 2001, "note": "second of two"}])
    lake.merge("two", "three")
    # Main gets what one did by way of two and three.
    lake.merge("three", "main")
    main.table("notes").append([{"id": 50, "note": "main again"}])
    lake.merge("main", "one")
    one.table("notes").delete("id = 1000")
    late = lake.fork("main", "late")
    late.table("orders").append(orders(600, 615))
    lake.merge("one", "late")
    later = lake.fork("late", "later")
    later.table("notes").append([{"id": 6000, "note": "of later"}])


def drop_catalogs(lake: forklake.Lake) -> None:
    """Catalogs that are gone: one that was merged, one that others were forked from, one that was renamed."""
    merged = lake.fork("main", "merged and gone")
    merged.table("notes").append([{"id": 7000, "note": "of one that is gone"}])
    lake.merge("merged and gone", "main")
    lake.drop_catalog("merged and gone")
    parent = lake.fork("main", "parent")
    parent.table("notes").append([{"id": 7100, "note": "of a parent that is gone"}])
    orphan = lake.fork("parent", "orphan")
    orphan.table("notes").append([{"id": 7200, "note": "of the orphan"}])
    lake.drop_catalog("parent")
    lake.fork("main", "to be renamed").table("notes").append([{"id": 7300, "note": "under an old name"}])
    lake.rename_catalog("to be renamed", "renamed")


def copy_catalogs(lake: forklake.Lake) -> None:
    """Catalogs that do not depend on their parents any more, and a fork of one."""
    copied = lake.fork("main", "copied", mode="copy")
    copied.table("orders").delete("id = 100")
    alone = lake.fork("late", "alone")
    alone.table("notes").append([{"id": 8000, "note": "of alone"}])
    alone.materialize()
    lake.fork("alone", "of alone").table("notes").append([{"id": 8100, "note": "of a fork of alone"}])
    lake.merge("copied", "alone")


def leave_work(lake: forklake.Lake) -> None:
    """Changes that were not merged, on both sides."""
    lake.catalog("one").table("notes").append([{"id": 1001, "note": "one waits"}])
    lake.catalog("two").table("orders").append(orders(700, 712))
    lake.catalog("two").table("orders").delete("id BETWEEN 14 AND 17")
    lake.catalog("three").table("notes").update({"note": "'three waits'"}, "id = 3")
    lake.catalog("dev").table("notes").append([{"id": 9000, "note": "dev waits"}])
    lake.catalog("main").table("notes").append([{"id": 51, "note": "main waits"}])
    lake.catalog("main").table("orders").delete("id = 45 OR id = 20")


def reserve(lake: forklake.Lake) -> dict[str, Any]:
    """Distributed snapshots: one was committed, one was cancelled, one waits."""
    main = lake.catalog("main")
    done = main.begin_distributed(["orders"])
    main.commit_distributed(done, [distributed.write_part(done, "orders", orders(800, 810), part="a")])
    main.cancel_distributed(main.begin_distributed(["notes"]))
    waiting = main.begin_distributed(["orders", "notes"], ttl=CENTURY, properties={"job": "nightly"})
    manifests = [
        distributed.write_part(waiting, "orders", orders(900, 910), part="a"),
        distributed.write_part(waiting, "notes", [{"id": 990, "note": "waited"}], part="b"),
    ]
    return {"snapshot": waiting.to_json(), "manifests": [manifest.to_json() for manifest in manifests]}


# ---- What is to be seen ----------------------------------------------------------------------------------


def describe(lake: forklake.Lake) -> dict[str, Any]:
    """All that a reader may see, and what merges would do."""
    names = [info.name for info in lake.catalogs()]
    return {
        "catalogs": {name: describe_catalog(lake, name) for name in names},
        "merges": list(merges(lake, names)),
    }


def describe_catalog(lake: forklake.Lake, name: str) -> dict[str, Any]:
    """One catalog, with all of its past."""
    catalog = lake.catalog(name)
    timestamps = [snapshot.id for snapshot in catalog.snapshots() if snapshot.id <= catalog.snapshot]
    return {
        "snapshot": catalog.snapshot,
        "views": [[view.schema, view.name, view.sql] for view in catalog.views()],
        "macros": [[macro.schema, macro.name] for macro in catalog.macros()],
        "tags": {
            f"{info.schema}.{info.name}": catalog.table((info.schema, info.name)).tags()
            for info in catalog.tables()
        },
        "partitioning": list(catalog.table("orders").partitioning),
        "snapshots": [[s.id, s.author, s.message, s.extra] for s in catalog.snapshots()],
        "rows": {str(at): rows_at(catalog, at) for at in timestamps},
        "changes": changes_of(catalog, timestamps[0]),
    }


def rows_at(catalog: forklake.Catalog, at: int) -> dict[str, list[Any]]:
    """Every row of every table with its id, at a snapshot."""
    past = catalog.at(at)
    return {
        f"{info.schema}.{info.name}": rows_of(past.table((info.schema, info.name))) for info in past.tables()
    }


def rows_of(table: forklake.Table) -> list[Any]:
    """The rows of a table with their ids, in an order that does not depend on files."""
    return sorted_rows(table.scan(row_ids=True).to_arrow())


def changes_of(catalog: forklake.Catalog, start: int) -> dict[str, list[Any]]:
    """The change feed of two tables: one in files, one inlined."""
    return {name: sorted_rows(catalog.table(name).changes(start).to_arrow()) for name in ("orders", "notes")}


def sorted_rows(content: pa.Table) -> list[Any]:
    """Rows as JSON has them, sorted."""
    return sorted(
        json.loads(json.dumps([list(row.values()) for row in content.to_pylist()], default=str)), key=str
    )


def merges(lake: forklake.Lake, names: list[str]) -> Iterator[dict[str, Any]]:
    """What each merge would do now, or that it would be refused."""
    for source in names:
        for into in names:
            if source != into:
                found = lake.merge(source, into, dry_run=True)
                yield {
                    "source": source,
                    "into": into,
                    "base": found.base_snapshot,
                    "conflicts": len(found.conflicts),
                    "tables": sorted([t.name, t.rows_added, t.rows_removed] for t in found.tables),
                }


# ---- PostgreSQL as plain SQL -----------------------------------------------------------------------------


def dump(url: str, target: Path) -> None:
    """The tables of the lake as SQL that any client runs."""
    from forklake.store.statements import schema_script

    with psycopg.connect(url) as connection:
        connection.execute(f"SET search_path TO {SCHEMA}".encode())
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1", [SCHEMA]
        ).fetchall()
        lines = [schema_script("postgresql")]
        for (table,) in tables:
            lines.append(f"DELETE FROM {table};\n")
            lines += inserts(connection, table)
        for sequence in ("snapshot_id", "catalog_id", "file_id"):
            row = connection.execute(
                f"SELECT last_value, is_called FROM ducklake_next_{sequence}".encode()
            ).fetchone()
            lines.append(f"SELECT setval('ducklake_next_{sequence}', {row[0]}, {str(row[1]).lower()});\n")
    target.write_text("".join(lines))


def inserts(connection: psycopg.Connection[Any], table: str) -> Iterator[str]:
    """Each row of a table as a statement."""
    rows = connection.execute(f"SELECT t::text FROM {table} AS t ORDER BY 1".encode()).fetchall()
    for (row,) in rows:
        text = row.replace("'", "''")
        yield f"INSERT INTO {table} SELECT ('{text}'::{table}).*;\n"


if __name__ == "__main__":
    shutil.rmtree(HERE / "lakes" / sys.argv[1], ignore_errors=True)
    main(sys.argv[1])
