"""What crosses to other processes: values and errors do; handles say how to get at a lake from there."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.pool import Pool
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake import errors
from forklake.distributed import DistributedSnapshot, write_part
from forklake.store import backend

MANY = 40


def sent(value: Any) -> Any:
    """What arrives of it in another process."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


@pytest.fixture
def table(lake: forklake.Lake, catalog: forklake.Catalog) -> forklake.Table:
    lake.set_option("data_inlining_row_limit", 2)
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.append(pa.table({"id": range(MANY)}))
    table.append(pa.table({"id": range(MANY, 2 * MANY)}))
    table.append([{"id": 2 * MANY}])
    return table


@pytest.fixture
def processes() -> Iterator[ProcessPoolExecutor]:
    """Started afresh, so that nothing is inherited."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


Thing = Callable[[forklake.Lake, forklake.Catalog, forklake.Table], Any]

HANDLES: dict[str, Thing] = {
    "Lake": lambda lake, catalog, table: lake,
    "Catalog": lambda lake, catalog, table: catalog,
    "Catalog at": lambda lake, catalog, table: catalog.at(catalog.snapshot),
    "Table": lambda lake, catalog, table: table,
    "Table of a transaction": lambda lake, catalog, table: catalog.transaction().table("t"),
    "Transaction": lambda lake, catalog, table: catalog.transaction(),
    "Scan": lambda lake, catalog, table: table.scan("id = 1"),
    "ChangeFeed": lambda lake, catalog, table: table.changes(catalog.snapshots()[0].id),
    "CatalogDiff": lambda lake, catalog, table: forked(lake, catalog),
    "TableDiff": lambda lake, catalog, table: forked(lake, catalog).tables[0],
    "RowDiff": lambda lake, catalog, table: forked(lake, catalog).tables[0].rows(),
}


def forked(lake: forklake.Lake, catalog: forklake.Catalog) -> forklake.CatalogDiff:
    fork = lake.fork(catalog, "fork", if_not_exists=True)
    fork.table("t").append([{"id": 1000}])
    return fork.diff()


@pytest.mark.parametrize("name", HANDLES)
def test_handles_are_not_pickled_and_say_what_to_do(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, name: str
) -> None:
    handle = HANDLES[name](lake, catalog, table)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(forklake.NotPicklable, match=r"Catalog\.begin_distributed") as caught:
            pickle.dumps([handle], protocol)
        if name == "Transaction":
            assert "the process that began it" in str(caught.value)
        else:
            assert "forklake.connect(url) in each process" in str(caught.value)
        # Those who ask whether something can be pickled ask for this.
        assert isinstance(caught.value, TypeError)
    assert copy.copy(handle) is handle or name == "CatalogDiff"
    assert copy.deepcopy({"kept": handle})["kept"] == handle


def test_a_handle_in_the_work_of_a_pool_is_refused_and_the_pool_goes_on(
    catalog: forklake.Catalog, table: forklake.Table, processes: ProcessPoolExecutor
) -> None:
    context = multiprocessing.get_context("spawn")
    with pytest.raises(forklake.NotPicklable, match=r"a Table .* forklake.connect\(url\) in each process"):
        processes.submit(len, table).result(60)
    assert processes.submit(len, "abc").result(60) == 3
    pool: Pool
    with context.Pool(1) as pool:
        with pytest.raises(forklake.NotPicklable, match="a Transaction lives in the process that began it"):
            pool.apply_async(len, [catalog.transaction()]).get(60)
        assert pool.apply_async(len, ["abc"]).get(60) == 3


def written(text: str, part: int) -> str:
    """A part of a snapshot, as another process writes it."""
    rows = [{"id": 10_000 + 100 * part + at, "v": f"part {part}"} for at in range(MANY)]
    return write_part(DistributedSnapshot.from_json(text), "t", rows, part=part).to_json()


def counted(url: str, catalog: str, where: str | None) -> int:
    with forklake.connect(url) as lake:
        return lake.catalog(catalog).table("t").scan(where).count()


def test_processes_do_what_the_refusal_says(
    lake: forklake.Lake, lake_url: str, catalog: forklake.Catalog, table: forklake.Table, processes
) -> None:
    ds = catalog.begin_distributed(["t"])
    manifests = list(processes.map(written, [ds.to_json()] * 3, range(3)))
    catalog.commit_distributed(ds, manifests)
    assert table.scan("id >= 10000").count() == 3 * MANY
    # DuckDB lets one process at a time open a file.
    lake.close()
    for part in range(3):
        found = processes.submit(counted, lake_url, catalog.name, f"v = 'part {part}'")
        assert found.result(60) == MANY


VALUES: dict[str, Thing] = {
    "ScanPlan": lambda lake, catalog, table: table.scan("id < 3").plan(),
    "ChangePlan": lambda lake, catalog, table: table.changes(catalog.snapshots()[0].id).plan(),
    "TableStats": lambda lake, catalog, table: table.stats(),
    "files": lambda lake, catalog, table: table.files(),
    "history": lambda lake, catalog, table: table.history(),
    "columns": lambda lake, catalog, table: table.columns,
    "snapshots": lambda lake, catalog, table: catalog.snapshots(),
    "tables": lambda lake, catalog, table: catalog.tables(),
    "catalogs": lambda lake, catalog, table: lake.catalogs(),
    "options": lambda lake, catalog, table: lake.options(),
    "DistributedSnapshot": lambda lake, catalog, table: catalog.begin_distributed(["t"]),
    "Rewrite": lambda lake, catalog, table: catalog.plan_compaction("t"),
    "MergeResult": lambda lake, catalog, table: lake.merge(lake.fork(catalog, "f"), catalog, dry_run=True),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_pickled(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, name: str
) -> None:
    value = VALUES[name](lake, catalog, table)
    assert sent(value) == value


def test_a_plan_takes_along_what_it_would_look_up(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    found = sent(table.scan("id < 3").plan())
    expected = table.scan("id < 3").plan().pruned
    lake.close()
    assert found.pruned == expected
    assert [file.record_count for file in expected] == [MANY]


def errors_below(kind: type[errors.ForklakeError]) -> Iterator[type[errors.ForklakeError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from errors_below(below)


def raised(name: str) -> None:
    raise ERRORS[name]


ERRORS: dict[str, errors.ForklakeError] = {
    "CommittedBefore": errors.CommittedBefore("it was", 7),
    "ReservationConsumed": errors.ReservationConsumed("it was", 8),
    "CommitConflict": errors.CommitConflict("no", ()),
}


def test_every_error_reaches_another_process_with_what_it_carries(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    assert backend.UniqueViolation in set(errors_below(errors.ForklakeError))
    for kind in errors_below(errors.ForklakeError):
        more = (7,) if kind is errors.CommittedBefore else ()
        error = kind("what happened", *more)
        error.add_note("a note")
        found = sent(error)
        assert (type(found), str(found), found.args) == (kind, "what happened", ("what happened",))
        assert vars(found) == vars(error)
    with pytest.raises(forklake.CommitConflict) as caught, catalog.transaction() as tx:
        tx.table("t").append([{"id": -1}])
        table.drop()
    found = sent(caught.value)
    assert found.conflicts == caught.value.conflicts != ()


def test_errors_come_out_of_pools(processes: ProcessPoolExecutor) -> None:
    for name, error in ERRORS.items():
        with pytest.raises(type(error)) as caught:
            processes.submit(raised, name).result(60)
        # The pool adds where the error was raised, as its cause.
        assert vars(caught.value) == vars(error)
