"""A catalog that was dropped lives again: the same one, with its history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import forklake
from forklake.errors import CatalogExists, CatalogNotFound, CommitConflict, ForklakeError


def filled(catalog: forklake.Catalog) -> forklake.Table:
    table = catalog.create_table("t", "id BIGINT")
    table.append([{"id": 1}, {"id": 2}])
    return table


def test_it_is_the_same_catalog_again(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    filled(catalog)
    (before,) = lake.catalogs()
    last = catalog.snapshot
    lake.drop_catalog("main_catalog")
    dropped = lake.snapshots()[-1].id
    back = lake.undrop_catalog("main_catalog", author="me", message="oops", extra={"n": 1})
    (after,) = lake.catalogs()
    assert (after.id, after.uuid, after.created_at) == (before.id, before.uuid, before.created_at)
    assert back.table("t").count() == 2 == catalog.table("t").count()
    back.table("t").append([{"id": 3}])
    assert catalog.table("t").count() == 3
    said = lake.snapshots()[-2]
    assert (said.author, said.message, said.extra) == ("me", "oops", {"n": 1})
    assert said.changes == f"undropped_catalog:{back.id}"
    # The past is what it was.
    assert lake.catalog("main_catalog", at=last).table("t").count() == 2
    with pytest.raises(CatalogNotFound):
        lake.catalog("main_catalog", at=dropped)
    assert lake.catalogs(at=dropped) == []
    assert [info.name for info in lake.catalogs(at=said.id)] == ["main_catalog"]


def test_it_can_be_dropped_and_brought_back_again(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    filled(catalog)
    for _ in range(3):
        lake.drop_catalog("main_catalog")
        assert lake.undrop_catalog("main_catalog").table("t").count() == 2


def test_the_name_may_be_taken(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    filled(catalog)
    lake.drop_catalog("main_catalog")
    lake.create_catalog("main_catalog")
    with pytest.raises(CatalogExists):
        lake.undrop_catalog("main_catalog")
    with pytest.raises(CatalogExists):
        lake.undrop_catalog("main_catalog", as_name="main_catalog")
    assert lake.undrop_catalog("main_catalog", as_name="old").table("t").count() == 2
    assert catalog.table("t").count() == 2
    with pytest.raises(CatalogNotFound, match="was dropped"):
        lake.undrop_catalog("main_catalog")
    lake.drop_catalog("main_catalog")
    assert lake.undrop_catalog("main_catalog").tables() == []


def test_the_last_one_of_a_name_comes_back(lake: forklake.Lake) -> None:
    for count in (1, 2):
        lake.create_catalog("c").create_table("t", "id BIGINT").append([{"id": n} for n in range(count)])
        lake.drop_catalog("c")
    assert lake.undrop_catalog("c").table("t").count() == 2
    assert lake.undrop_catalog("c", as_name="d").table("t").count() == 1
    # A name that was given up is not one that was dropped.
    lake.rename_catalog("d", "e")
    with pytest.raises(CatalogNotFound):
        lake.undrop_catalog("d")


def test_none_was_dropped(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    with pytest.raises(CatalogNotFound, match="was dropped"):
        lake.undrop_catalog("nobody")
    with pytest.raises(CatalogNotFound, match="was dropped"):
        lake.undrop_catalog("main_catalog")
    with pytest.raises(ForklakeError):
        lake.undrop_catalog("")


def test_its_time_to_live_begins_anew(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    lake.fork(catalog, "f", ttl=timedelta(microseconds=1))
    assert lake.drop_expired() == ["f"]
    lake.undrop_catalog("f")
    assert lake.drop_expired() == []
    assert {info.name: info.expires_at for info in lake.catalogs()}["f"] is None
    lake.drop_catalog("f")
    lake.undrop_catalog("f", ttl=timedelta(days=1))
    assert {info.name: info.expires_at for info in lake.catalogs()}["f"] is not None
    assert lake.drop_expired() == []


def test_forks_stay_as_they_are(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    filled(catalog)
    fork = lake.fork(catalog, "f")
    fork.table("t").append([{"id": 9}])
    catalog.table("t").delete("id = 1")
    lake.drop_catalogs(["main_catalog", "f"])
    lake.undrop_catalog("f")
    assert fork.table("t").count() == 3
    assert {info.name: info.parent_dropped for info in lake.catalogs()} == {"f": True}
    lake.undrop_catalog("main_catalog")
    assert {info.name: info.parent_dropped for info in lake.catalogs()} == {"f": False, "main_catalog": None}
    assert catalog.table("t").count() == 1
    lake.merge("f", "main_catalog")
    assert sorted(row["id"] for row in catalog.table("t").scan().to_arrow().to_pylist()) == [2, 9]
    lake.merge("main_catalog", "f")
    assert fork.table("t").count() == 2


def test_what_was_open_fails(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    table = filled(catalog)
    tx = catalog.transaction()
    tx.table("t").append([{"id": 3}])
    work = catalog.begin_distributed(["t"])
    lake.drop_catalog("main_catalog")
    lake.undrop_catalog("main_catalog")
    with pytest.raises(CommitConflict, match="was dropped"):
        tx.commit()
    with pytest.raises(ForklakeError):
        catalog.commit_distributed(work, [])
    assert table.count() == 2
    table.append([{"id": 4}])
    assert table.count() == 3


def test_two_who_bring_it_back_at_once(
    lake: forklake.Lake, catalog: forklake.Catalog, in_threads: Callable[..., Any]
) -> None:
    filled(catalog)
    lake.drop_catalog("main_catalog")

    def undrop() -> str:
        try:
            return lake.undrop_catalog("main_catalog").name
        except (CatalogExists, CatalogNotFound):
            return "late"

    assert sorted(in_threads(undrop, undrop)) == ["late", "main_catalog"]
    assert catalog.table("t").count() == 2
