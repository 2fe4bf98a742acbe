"""The part of the demo that is about rows: bicycle trips come in, change, go, and stay in the past."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from forklake.api.lake import Lake
from forklake.api.table import Table
from forklake.demo.steps import Step, checked
from forklake.lazy.arrow import pa, pc

BIKES, TRIPS = "bikes", "city.trips"
ROWS = 60_000
_STATIONS = (
    "Harbour",
    "Old Market",
    "University",
    "Station Square",
    "Riverside",
    "Museum",
    "Stadium",
    "Airport",
)
_COLUMNS = """
    trip BIGINT NOT NULL,
    started TIMESTAMP NOT NULL,
    origin VARCHAR,
    minutes SMALLINT,
    fare DECIMAL(6, 2),
    rider STRUCT(member BOOLEAN, age SMALLINT)
"""


def trips(rows: int = ROWS) -> pa.Table:
    """Trips of a summer, the same in every run: more by day than by night, members ride for less."""
    dice = random.Random(20240601)  # noqa: S311 - a story, not a secret
    begin = datetime(2024, 6, 1)
    found: list[dict[str, object]] = []
    for trip in range(rows):
        hour = min(23, max(0, round(dice.gauss(14, 5))))
        started = begin + timedelta(days=92 * trip // rows, hours=hour, minutes=dice.randrange(60))
        minutes = 2 + int(dice.expovariate(1 / 14))
        member = dice.random() < 0.6
        fare = Decimal(minutes * (9 if member else 21)) / 100
        age = None if dice.random() < 0.1 else dice.randint(16, 80)
        found.append(
            {
                "trip": trip,
                "started": started,
                "origin": dice.choice(_STATIONS),
                "minutes": minutes,
                "fare": fare,
                "rider": {"member": member, "age": age},
            }
        )
    rider = pa.struct([("member", pa.bool_()), ("age", pa.int16())])
    schema = pa.schema(
        [
            ("trip", pa.int64()),
            ("started", pa.timestamp("us")),
            ("origin", pa.string()),
            ("minutes", pa.int16()),
            ("fare", pa.decimal128(6, 2)),
            ("rider", rider),
        ]
    )
    return pa.Table.from_pylist(found, schema)


def ingest(lake: Lake) -> Iterator[str]:
    """Many rows become Parquet files, few stay in the metadata database."""
    bikes = lake.create_catalog(BIKES)
    bikes.create_schema("city")
    table = bikes.create_table(TRIPS, _COLUMNS, partition_by=["month(started)"], sorted_by=["started"])
    data = trips()
    added = table.append(data)
    files = table.files()
    size = sum(file.file_size_bytes for file in files)
    yield checked(
        added == len(data) == table.count() and len(files) == 3,
        f"{added:,} trips were written to {len(files)} Parquet files, one a month, {size / 1e6:.1f} MB",
    )
    table.append([{"trip": ROWS, "started": datetime(2024, 9, 1, 8, 30), "origin": "Harbour", "minutes": 7}])
    inlined = [file for file in table.files() if file.path is None]
    last = table.scan(where=f"trip = {ROWS}").to_arrow().to_pylist()
    yield checked(
        len(inlined) == 1 and last[0]["origin"] == "Harbour" and last[0]["fare"] is None,
        "one more trip was small enough to stay in the metadata database, and is read with the others",
    )


def pruning(lake: Lake) -> Iterator[str]:
    """A plan says which files need not be read, and why."""
    table = lake.catalog(BIKES).table(TRIPS)
    scan = table.scan(where="started >= '2024-07-04' AND started < '2024-07-05' AND origin = 'Museum'")
    plan = scan.plan()
    found = scan.to_arrow()
    everything = table.scan().to_arrow()
    days = pc.strftime(everything["started"], format="%Y-%m-%d")
    wanted = [
        day == "2024-07-04" and origin == "Museum"
        for day, origin in zip(days.to_pylist(), everything["origin"].to_pylist(), strict=True)
    ]
    yield checked(
        len(found) == sum(wanted) > 0 and len(plan.files) == 1 and len(plan.pruned) == 2,
        f"{len(found)} trips began at the Museum on the 4th of July: {len(plan.files)} file was read, "
        f"{len(plan.pruned)} files were not:",
    )
    for file in plan.pruned:
        folder, _, name = file.path.rpartition("/")
        yield f"  {folder}/{name[:8]}….parquet, because {file.reason} there"
    lowest, highest = table.scan().min("started"), table.scan().max("started")
    yield checked(
        lowest == min(everything["started"].to_pylist()) and highest == datetime(2024, 9, 1, 8, 30),
        f"the first trip began {lowest}, the last {highest}: the metadata know",
    )


def evolve_rows(lake: Lake) -> Iterator[str]:
    """Old files read as the new definition has it; nothing is written again."""
    bikes = lake.catalog(BIKES)
    table = bikes.table(TRIPS)
    before = table.files()
    with bikes.transaction(message="trips evolve") as tx:
        trips = tx.table(TRIPS)
        trips.rename_column("origin", "station")
        trips.rename_column("rider.member", "subscriber")
        trips.alter_type("minutes", "integer")
        trips.add_column("city", "varchar", default="'Bremen'")
        trips.add_column("rider.country", "varchar")
    row = table.scan(where="trip = 17").to_arrow().to_pylist()[0]
    yield checked(
        {"station", "city"} <= row.keys() and row["city"] == "Bremen" and "subscriber" in row["rider"],
        "columns and a field inside a struct were renamed, one was widened, two are new: trip 17 is "
        f"{row['station']}, {row['city']}, {row['rider']}",
    )
    yield checked(table.files() == before, "and no file was touched")


def change_rows(lake: Lake) -> Iterator[str]:
    """Rows go, change and come in one transaction; each keeps its id, and the past stays."""
    bikes = lake.catalog(BIKES)
    table = bikes.table(TRIPS)
    then, count = bikes.snapshot, table.count()
    fares = _sum(table)
    with bikes.transaction(message="a free Sunday, and late news") as tx:
        trips = tx.table(TRIPS)
        gone = trips.delete("minutes > 90")
        free = trips.update({"fare": "0"}, where="started >= '2024-07-07' AND started < '2024-07-08'")
        merged = trips.merge(
            [
                {"trip": 17, "started": datetime(2024, 6, 1, 9, 0), "station": "Airport"},
                {"trip": ROWS + 1, "started": datetime(2024, 9, 1, 9, 0), "station": "Stadium"},
            ],
            on="trip",
        )
    yield checked(
        table.count() == count - gone + 1 and (merged.updated, merged.inserted) == (1, 1),
        f"one snapshot deleted {gone} long trips, made {free} free, corrected 1 and brought 1 more",
    )
    feed = bikes.table(TRIPS).changes(then).to_arrow()
    kinds = feed["change_type"].to_pylist()
    updated = len(
        {row for row, kind in zip(feed["row_id"].to_pylist(), kinds, strict=True) if "update" in kind}
    )
    yield checked(
        kinds.count("delete") == gone and updated == free + 1 and kinds.count("insert") == 1,
        f"the change feed tells of {kinds.count('delete')} deletes, {updated} updates with both sides and "
        "1 insert",
    )
    past = table.scan(at=then)
    yield checked(
        past.count() == count and _sum(table, at=then) == fares,
        f"at snapshot {then} there are still {count:,} trips, worth {fares}",
    )


def flush(lake: Lake) -> Iterator[str]:
    """Inlined rows move into a file, and nobody notices."""
    bikes = lake.catalog(BIKES)
    table = bikes.table(TRIPS)
    before = table.scan(row_ids=True).to_arrow().sort_by("row_id")
    moved = bikes.flush_inlined()
    after = table.scan(row_ids=True).to_arrow().sort_by("row_id")
    yield checked(
        before.equals(after) and all(file.path is not None for file in table.files()),
        f"{moved} rows moved from the metadata database into Parquet, with their ids",
    )


def _sum(table: Table, at: int | None = None) -> Decimal:
    return pc.sum(table.scan(columns=["fare"], at=at).to_arrow()["fare"]).as_py()


STEPS = (
    Step("Rows come in", ingest),
    Step("Files that need not be read", pruning),
    Step("A table with rows changes its shape", evolve_rows),
    Step("Rows change, and the past stays", change_rows),
    Step("Small writes become files", flush),
)
