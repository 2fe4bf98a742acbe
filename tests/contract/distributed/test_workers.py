"""Processes that know nothing but the descriptor write one snapshot together (S4)."""

from __future__ import annotations

from pathlib import Path

import pytest

import forklake
from forklake.distributed import Manifest, write_part
from tests.contract.rows.shown import MANY, ids

WORKER = """
    # Whoever opens a metadata database here is found out.
    import forklake.api.connect, forklake.store.open
    def refused(*_, **__): raise AssertionError("a worker has no metadata database")
    forklake.store.open.open_database = forklake.api.connect.open_database = refused
    import pyarrow as pa
    from forklake.distributed import DistributedSnapshot, write_part
    ds = DistributedSnapshot.from_json(open(sys.argv[1]).read())
    part = int(sys.argv[2])
    say("ready")
    input()
    rows = pa.table({"id": pa.array(range(1000 * part, 1000 * part + 150), pa.int64())})
    made = write_part(ds, "t", rows, part=part, manifest=sys.argv[3])
    say(made.path or made.to_json())
    input()
"""


@pytest.fixture
def several_processes(lake_url: str) -> None:
    if lake_url.startswith("duckdb"):
        pytest.skip("DuckDB lets one process at a time open a file")


@pytest.mark.usefixtures("several_processes")
def test_plain_processes_write_one_snapshot_together(
    catalog: forklake.Catalog, table: forklake.Table, tmp_path: Path, program
) -> None:
    ds = catalog.begin_distributed()
    descriptor = tmp_path / "snapshot.json"
    descriptor.write_text(ds.to_json())
    # Part 1 is done by two at once.
    works = ((0, "value"), (1, "file"), (1, "value"))
    workers = [program(WORKER, str(descriptor), str(part), kept) for part, kept in works]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.go_on()
    told = [worker.hear() for worker in workers]
    assert all(isinstance(text, str) for text in told)
    snapshot = catalog.commit_distributed(ds, told, parts=range(2))
    assert snapshot == ds.snapshot_id
    assert ids(table) == [*range(MANY), *range(1000, 1000 + MANY)]
    values = [Manifest.from_json(told[0]), told[1], Manifest.from_json(told[2])]
    assert catalog.commit_distributed(ds, values) == snapshot


COORDINATOR = """
    from forklake.distributed import DistributedSnapshot
    lake = forklake.connect(sys.argv[1])
    catalog = lake.catalog("main_catalog")
    ds = DistributedSnapshot.from_json(open(sys.argv[2]).read())
    say("ready")
    input()
    say(outcome(lambda: catalog.commit_distributed(ds, open(sys.argv[3]).read())))
"""


@pytest.mark.usefixtures("several_processes")
def test_of_two_coordinators_in_processes_of_their_own_one_wins(
    catalog: forklake.Catalog, table: forklake.Table, tmp_path: Path, program, lake_url: str
) -> None:
    ds = catalog.begin_distributed()
    descriptor = tmp_path / "snapshot.json"
    descriptor.write_text(ds.to_json())
    coordinators = []
    for number in range(2):
        manifest = tmp_path / f"manifest_{number}"
        made = write_part(ds, "t", [{"id": n} for n in range(MANY)])
        manifest.write_text(made.to_json())
        coordinators.append(program(COORDINATOR, lake_url, str(descriptor), str(manifest)))
    for coordinator in coordinators:
        assert coordinator.hear() == "ready"
    for coordinator in coordinators:
        coordinator.go_on()
    told = sorted(coordinator.hear() for coordinator in coordinators)
    assert [kind for kind, _ in told] == ["ReservationConsumed", "returned"]
    assert told[1][1] == ds.snapshot_id
    assert table.count() == MANY


VICTIM = """
    from forklake.distributed import DistributedSnapshot, write_part
    import pyarrow as pa
    ds = DistributedSnapshot.from_json(open(sys.argv[1]).read())
    def rows():
        yield pa.record_batch({"id": pa.array(range(150), pa.int64())})
        say("writing")
        time.sleep(60)
    write_part(ds, "t", rows(), part=0, manifest="file")
"""


@pytest.mark.usefixtures("several_processes")
def test_a_worker_that_is_killed_is_replaced(
    lake: forklake.Lake,
    catalog: forklake.Catalog,
    table: forklake.Table,
    tmp_path: Path,
    program,
    stored,
    overdue,
) -> None:
    table.set_option("parquet_row_group_size", 100)
    ds = catalog.begin_distributed()
    descriptor = tmp_path / "snapshot.json"
    descriptor.write_text(ds.to_json())
    victim = program(VICTIM, str(descriptor))
    assert victim.hear() == "writing"
    victim.kill()
    (torn,) = stored()
    again = write_part(ds, "t", [{"id": n} for n in range(MANY)], part=0, manifest="file")
    catalog.commit_distributed(ds)
    assert ids(table) == list(range(MANY))
    overdue(ds)
    lake.expire_reservations()
    assert stored() == again.paths
    assert torn not in again.paths
