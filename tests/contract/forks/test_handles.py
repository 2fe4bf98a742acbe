"""Where the name of a catalog is asked for, its handle will do (F1)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

import forklake
from forklake import CatalogNotFound, InvalidArgument
from tests.contract.rows.shown import numbered

USES: dict[str, Callable[[forklake.Lake, forklake.Catalog], object]] = {
    "fork": lambda lake, found: lake.fork(found, "made").id,
    "fork many": lambda lake, found: [fork.id for fork in lake.fork_many(found, ["m1", "m2"])],
    "merge": lambda lake, found: lake.merge(found, into="main_catalog").snapshot,
    "merge into": lambda lake, found: lake.merge("main_catalog", into=found).source_snapshot,
    "snapshots": lambda lake, found: lake.snapshots(found),
    "time to live": lambda lake, found: lake.set_ttl(found, timedelta(hours=1)),
    "diff": lambda lake, found: lake.catalog("main_catalog").diff(found),
    "rename": lambda lake, found: lake.rename_catalog(found, "other"),
    "drop": lambda lake, found: lake.drop_catalog(found),
    "drop many": lambda lake, found: lake.drop_catalogs([found]),
}


@pytest.fixture
def child(lake: forklake.Lake, catalog: forklake.Catalog) -> forklake.Catalog:
    catalog.create_table("t", "id BIGINT, v VARCHAR").append(numbered(1))
    return lake.fork(catalog, "child")


def test_a_handle_stands_for_its_catalog(lake: forklake.Lake, child: forklake.Catalog) -> None:
    child.table("t").append(numbered(2))
    assert [info.parent for info in lake.catalogs()] == ["main_catalog", None]
    # By its present name, if it was renamed since the handle was made, and whoever has the old one now.
    renamed = lake.rename_catalog(child, "renamed")
    lake.create_catalog("child")
    assert {fork.id for fork in lake.fork_many(child, ["a", "b"])} == {
        info.id for info in lake.catalogs() if info.parent == "renamed"
    }
    assert lake.merge(child, into=lake.catalog("main_catalog")).source == "renamed"
    assert lake.snapshots(child) == child.snapshots()
    lake.set_ttl(child, timedelta(hours=1))
    assert [info.id for info in lake.catalogs() if info.expires_at] == [child.id]
    lake.drop_catalogs([child, "a"])
    assert [info.name for info in lake.catalogs()] == ["b", "child", "main_catalog"]
    for gone in (child, renamed):
        with pytest.raises(CatalogNotFound, match='"renamed" was dropped'):
            lake.drop_catalog(gone)


@pytest.mark.parametrize("use", USES)
def test_a_handle_on_the_past_or_on_another_lake_is_refused(
    lake: forklake.Lake, child: forklake.Catalog, reopen, unchanged, use: str
) -> None:
    past, elsewhere = child.at(child.snapshot), reopen().catalog("child")
    with unchanged():
        with pytest.raises(InvalidArgument, match="as it is now"):
            USES[use](lake, past)
        with pytest.raises(InvalidArgument, match="pass its name"):
            USES[use](lake, elsewhere)
    lake.drop_catalog("child")
    with unchanged(), pytest.raises(CatalogNotFound, match='"child" was dropped'):
        USES[use](lake, child)


@pytest.mark.parametrize("names", ["child", None, 7, b"child"])
def test_names_are_given_as_a_list(
    lake: forklake.Lake, child: forklake.Catalog, unchanged, names: object
) -> None:
    for given in (names, child):
        for call in (lake.drop_catalogs, lambda given: lake.fork_many("main_catalog", given)):
            with unchanged(), pytest.raises((InvalidArgument, forklake.InvalidName)):
                call(given)


def test_a_catalog_is_dropped_once(lake: forklake.Lake, child: forklake.Catalog, unchanged) -> None:
    for names in (["child", "child"], [child, "child"], [child, child]):
        with unchanged(), pytest.raises(InvalidArgument, match="twice"):
            lake.drop_catalogs(names)


def test_whoever_changes_a_catalog_as_a_whole_may_say_why(
    lake: forklake.Lake, child: forklake.Catalog
) -> None:
    said = {"author": "me", "message": "tidy up", "extra": {"run": 7}}
    lake.fork_many("main_catalog", ["a", "b", "c"])
    lake.set_ttl("c", timedelta(microseconds=1))
    child.materialize(**said)
    lake.rename_catalog("child", "other", **said)
    lake.drop_catalog("other", **said)
    lake.drop_catalogs(["a", "b"], **said)
    assert lake.drop_expired(**said) == ["c"]
    told = lake.snapshots()[-5:]
    assert {(each.author, each.message, each.extra and each.extra["run"]) for each in told} == {
        ("me", "tidy up", 7)
    }
    assert [each.changes.partition(":")[0] for each in told] == [
        "materialized", "altered_catalog", "dropped_catalog", "dropped_catalog", "dropped_catalog",
    ]  # fmt: skip
