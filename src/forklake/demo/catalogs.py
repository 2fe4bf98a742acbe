"""The story that `forklake demo` tells: small steps, each of which says only what it has checked."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from forklake.api.lake import Lake
from forklake.api.table import Table
from forklake.demo import forks as story_forks
from forklake.demo import rows as story_rows
from forklake.demo.steps import Step, checked
from forklake.errors import CommitConflict, InvalidArgument
from forklake.model.snapshots import Snapshot
from forklake.model.types.data_types import to_sql

SHOP, LAB = "shop", "lab"
FIRST_TABLES = "the first tables"
WRITERS = 8

_ORDERS = """
    id BIGINT NOT NULL,
    placed TIMESTAMPTZ DEFAULT now(),
    status VARCHAR DEFAULT 'new',
    quantity INTEGER DEFAULT 1,
    customer STRUCT(name VARCHAR, address STRUCT(city VARCHAR)) COMMENT 'who ordered',
    items STRUCT(sku VARCHAR, price DECIMAL(10, 2))[],
    labels MAP(VARCHAR, VARCHAR)
"""


def two_catalogs(lake: Lake) -> Iterator[str]:
    """Catalogs share a database and see nothing of each other."""
    for name in (SHOP, LAB):
        lake.create_catalog(name)
    found = [catalog.name for catalog in lake.catalogs()]
    yield checked(sorted(found) == [LAB, SHOP], f"the lake holds the catalogs {' and '.join(found)}")


def first_tables(lake: Lake) -> Iterator[str]:
    """Everything inside one transaction is one snapshot."""
    shop, lab = lake.catalog(SHOP), lake.catalog(LAB)
    with shop.transaction(author="demo", message=FIRST_TABLES, extra={"by": "forklake demo"}) as tx:
        tx.create_schema("sales")
        orders = tx.create_table("sales.orders", _ORDERS, comment="one row for each order")
        orders.set_tag("owner", "sales team")
        tx.create_table("sales.customers", "id BIGINT NOT NULL, name VARCHAR")
    names = [f"{table.schema}.{table.name}" for table in shop.tables()]
    last = shop.snapshots()[-1]
    yield checked(
        names == ["sales.customers", "sales.orders"] and last.id == tx.snapshot,
        f"{SHOP} got {' and '.join(names)} in one snapshot, number {last.id}",
    )
    orders = shop.table("sales.orders")
    nested = sum(1 for column in orders.columns for _ in column.walk()) - len(orders.columns)
    yield checked(
        nested == 8 and orders.tags() == {"comment": "one row for each order", "owner": "sales team"},
        f"sales.orders has {len(orders.columns)} columns, {nested} fields inside them, a comment and a tag",
    )
    lab.create_schema("runs")
    lab.create_table("runs.results", "run BIGINT, score DOUBLE DEFAULT 0.5")
    yield checked(
        [table.name for table in lab.tables()] == ["results"] and len(shop.tables()) == 2,
        f"{LAB} has a table of its own, and sees none of {SHOP}'s",
    )


def evolution(lake: Lake) -> Iterator[str]:
    """A column is known by its id, so no data has to be rewritten."""
    orders = lake.catalog(SHOP).table("sales.orders")
    before = {column.name: column.id for column in orders.columns}
    with lake.catalog(SHOP).transaction(message="evolve the orders") as tx:
        table = tx.table("sales.orders")
        table.rename_column("placed", "placed_at")
        table.alter_type("quantity", "bigint")
        table.add_column("customer.address.zip", "varchar")
        table.add_column("currency", "varchar", default="'EUR'")
        table.set_default("status", "'open'")
    after = {column.name: column.id for column in orders.columns}
    yield checked(
        after["placed_at"] == before["placed"] and "placed" not in after,
        f"placed is called placed_at now, and is still column {before['placed']}",
    )
    yield checked(_type(orders, "quantity") == "BIGINT", "quantity was widened from INTEGER to BIGINT")
    yield checked(
        '"zip" VARCHAR' in _type(orders, "customer") and after["currency"] not in before.values(),
        f"customer.address got a field zip, and column {after['currency']} is new: currency",
    )


def parallel_commits(lake: Lake) -> Iterator[str]:
    """Transactions that touch different tables do not get into each other's way."""
    catalogs = [lake.catalog(SHOP), lake.catalog(LAB)]
    for catalog in catalogs:
        with catalog.transaction(message="a table for each writer") as tx:
            tx.create_schema("parallel")
            for writer in range(WRITERS):
                tx.create_table(f"parallel.t{writer}", "id BIGINT")
    transactions = [
        (catalog, catalog.transaction(author=f"writer {writer}", message="commit in parallel"))
        for writer in range(WRITERS)
        for catalog in catalogs
    ]
    for number, (_, tx) in enumerate(transactions):
        tx.table(f"parallel.t{number // len(catalogs)}").add_column("note", "varchar")
    begun = time.perf_counter()
    with ThreadPoolExecutor(len(transactions)) as pool:
        committed = list(pool.map(lambda pair: pair[1].commit(), transactions))
    seconds = time.perf_counter() - begun
    yield checked(
        len({snapshot for snapshot in committed if snapshot is not None}) == len(transactions),
        f"{len(transactions)} threads committed {len(transactions)} snapshots to two catalogs "
        f"in {1000 * seconds:.0f} ms",
    )
    for catalog in catalogs:
        ours = [tx for owner, tx in transactions if owner is catalog]
        late = [
            tx for tx in ours if any(other.snapshot in range(tx.base + 1, tx.snapshot or 0) for other in ours)
        ]
        altered = [
            writer for writer in range(WRITERS) if "note" in _names(catalog.table(f"parallel.t{writer}"))
        ]
        yield checked(
            len({tx.base for tx in ours}) == 1 and len(late) == WRITERS - 1 and len(altered) == WRITERS,
            f"in {catalog.name} all began at snapshot {ours[0].base}; {len(late)} were rebased, none lost",
        )


def refused_conflict(lake: Lake) -> Iterator[str]:
    """Two transactions that change the same thing cannot both stand."""
    shop = lake.catalog(SHOP)
    first, second = shop.transaction(message="first"), shop.transaction(message="second")
    first.table("sales.orders").add_column("note", "varchar")
    second.table("sales.orders").rename_column("status", "state")
    first.commit()
    before = len(lake.snapshots())
    refusal: CommitConflict | None = None
    try:
        second.commit()
    except CommitConflict as conflict:
        refusal = conflict
    yield checked(refusal is not None, "two transactions changed sales.orders, and the second was refused:")
    yield f"  {refusal}"
    names = _names(shop.table("sales.orders"))
    yield checked(
        len(lake.snapshots()) == before and "note" in names and "state" not in names,
        "the first stands, and of the second nothing was written",
    )
    with shop.transaction(message="second, again") as tx:
        tx.table("sales.orders").rename_column("status", "state")
    names = _names(shop.table("sales.orders"))
    yield checked({"note", "state"} <= set(names), "run again, the second stands too")


def rollback(lake: Lake) -> Iterator[str]:
    """An exception inside the block undoes everything."""
    shop = lake.catalog(SHOP)
    before = shop.snapshot, shop.tables()
    seen = 0
    try:
        with shop.transaction() as tx:
            tx.create_table("sales.mistake", "id BIGINT")
            tx.drop_table("sales.orders")
            seen = len(tx.tables())
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    yield checked(
        seen == len(before[1]) and (shop.snapshot, shop.tables()) == before,
        f"a transaction created a table, dropped another and failed: {SHOP} is still at snapshot {before[0]}",
    )


def time_travel(lake: Lake) -> Iterator[str]:
    """The past stays as it was."""
    shop = lake.catalog(SHOP)
    shop.drop_table("sales.customers")
    then = next(snapshot for snapshot in shop.snapshots() if snapshot.message == FIRST_TABLES)
    past = shop.at(then.id)
    names = [f"{table.schema}.{table.name}" for table in past.tables()]
    yield checked(
        names == ["sales.customers", "sales.orders"] and "customers" not in [t.name for t in shop.tables()],
        f"sales.customers was dropped, and snapshot {then.id} still shows {' and '.join(names)}",
    )
    old, new = past.table("sales.orders"), shop.table("sales.orders")
    yield checked(
        (_names(old)[1], _type(old, "quantity")) == ("placed", "INTEGER") and old.id == new.id,
        f"there, orders had the columns {', '.join(_names(old))}",
    )
    yield checked(
        shop.at(then.time).snapshot == then.id, f"the time {then.time.isoformat()} leads to the same snapshot"
    )
    refused = False
    try:
        past.create_schema("late")
    except InvalidArgument:
        refused = True
    yield checked(refused, "the past can be read and not changed")


def history(lake: Lake) -> Iterator[str]:
    """Every commit is on record."""
    everything = lake.snapshots()
    parts = {name: lake.snapshots(name) for name in (SHOP, LAB)}
    rising = all(_rises(part) for part in parts.values())
    counts = " and ".join(f"{len(part)} of {name}" for name, part in parts.items())
    # The first snapshot of a lake belongs to no catalog.
    own = [snapshot for snapshot in everything if snapshot.catalog is not None]
    yield checked(
        rising and sum(map(len, parts.values())) == len(own),
        f"{len(own)} snapshots, {counts}; numbers and times rise in each",
    )
    yield checked(
        [snapshot.id for snapshot in everything if snapshot.catalog is None] == [0],
        "and snapshot 0 of no catalog: the empty lake, before anything was in it",
    )


STEPS = (
    Step("Two catalogs", two_catalogs),
    Step("Tables with nested columns, defaults and comments", first_tables),
    Step("A table changes its shape", evolution),
    Step("Many commits at once", parallel_commits),
    Step("A conflict is refused", refused_conflict),
    Step("A failed transaction leaves nothing behind", rollback),
    Step("Time travel", time_travel),
    Step("The history", history),
    *story_rows.STEPS,
    *story_forks.STEPS,
)


def _names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def _type(table: Table, name: str) -> str:
    return next(to_sql(column.data_type) for column in table.columns if column.name == name)


def _rises(part: list[Snapshot]) -> bool:
    return all(a.id < b.id and a.time < b.time for a, b in itertools.pairwise(part))
