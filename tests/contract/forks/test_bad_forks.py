"""What cannot be forked is refused with one clear error, and nothing is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import forklake
from tests.contract.rows.shown import content, many, numbered

Attempt = Callable[[forklake.Lake], object]


def fork(parent: Any = "main_catalog", name: Any = "new", **options: Any) -> Attempt:
    return lambda lake: lake.fork(parent, name, **options)


REFUSED: dict[str, tuple[Attempt, type[forklake.ForklakeError], str]] = {
    "a missing parent": (fork("nobody"), forklake.CatalogNotFound, "nobody"),
    "a dropped parent": (fork("dropped"), forklake.CatalogNotFound, "dropped"),
    "an old name of the parent": (fork("before"), forklake.CatalogNotFound, "before"),
    "a parent by another spelling": (fork("main-catalog"), forklake.CatalogNotFound, "main-catalog"),
    "no parent": (fork(None), forklake.InvalidName, "string"),
    "a table as a parent": (
        lambda lake: lake.fork(lake.catalog("taken").table("t"), "n"),
        forklake.InvalidName,
        "string",
    ),
    "a taken name": (fork(name="taken"), forklake.CatalogExists, "taken"),
    "the name of the parent": (fork(name="main_catalog"), forklake.CatalogExists, "main_catalog"),
    "itself if it does not exist": (
        fork(name="main_catalog", if_not_exists=True),
        forklake.CatalogExists,
        "no fork of this one",
    ),
    "another's fork if it does not exist": (
        fork("taken", "other_fork", if_not_exists=True),
        forklake.CatalogExists,
        "no fork of this one",
    ),
    "a dropped parent's fork if it does not exist": (
        fork("again", "orphan", if_not_exists=True),
        forklake.CatalogExists,
        "perhaps of a dropped one of its name",
    ),
    "an empty name": (fork(name=""), forklake.InvalidName, "empty"),
    "no name": (fork(name=None), forklake.InvalidName, "string"),
    "a number as a name": (fork(name=7), forklake.InvalidName, "string"),
    "a long name": (fork(name="n" * 300), forklake.InvalidName, "300"),
    "an unprintable name": (fork(name="a\nb"), forklake.InvalidName, "control"),
    "a snapshot to come": (fork(at=10**6), forklake.SnapshotNotFound, "1000000"),
    "a huge snapshot": (fork(at=2**63), forklake.SnapshotNotFound, str(2**63)),
    "a snapshot beyond all numbers": (fork(at=10**30), forklake.SnapshotNotFound, str(10**30)),
    "a snapshot below all numbers": (fork(at=-(10**30)), forklake.SnapshotNotFound, str(10**30)),
    "a negative snapshot": (fork(at=-1), forklake.SnapshotNotFound, "-1"),
    "the empty lake": (fork(at=0), forklake.SnapshotNotFound, "0"),
    "another catalog's snapshot": (
        lambda lake: lake.fork("main_catalog", "new", at=lake.catalog("taken").snapshot),
        forklake.SnapshotNotFound,
        "main_catalog",
    ),
    "a truth as a snapshot": (fork(at=True), forklake.InvalidArgument, "point in time"),
    "a text as a snapshot": (fork(at="3"), forklake.InvalidArgument, "id of a snapshot as a number"),
    "a fraction as a snapshot": (fork(at=3.0), forklake.InvalidArgument, "point in time"),
    "a time before all": (
        fork(at=datetime(1999, 1, 1, tzinfo=UTC)),
        forklake.SnapshotNotFound,
        "not exist yet at 1999",
    ),
    "the first of all times": (fork(at=datetime.min), forklake.SnapshotNotFound, "0001"),
    "an unknown mode": (fork(mode="shallow"), forklake.InvalidArgument, "shallow"),
    "no mode": (fork(mode=None), forklake.InvalidArgument, "None"),
    "a mode that is a list": (fork(mode=[]), forklake.InvalidArgument, "copy"),
    "no time to live": (fork(ttl=timedelta(0)), forklake.InvalidArgument, "not 0:00:00"),
    "a number as a time to live": (fork(ttl=3600), forklake.InvalidArgument, "time to live"),
    "a copy with no time to live": (
        fork(mode="copy", ttl=timedelta(-1)),
        forklake.InvalidArgument,
        "time to live",
    ),
    "a copy from nowhere": (fork(mode="copy", at=10**6), forklake.SnapshotNotFound, "1000000"),
    "a copy to a taken name": (fork(name="taken", mode="copy"), forklake.CatalogExists, "taken"),
    "the place of the lake": (
        lambda lake: lake.fork("main_catalog", "new", data_path=lake.data_path),
        forklake.DataPathOverlap,
        "apart",
    ),
    "a place in the lake": (
        lambda lake: lake.fork("main_catalog", "new", data_path=Path(lake.data_path) / "new"),
        forklake.DataPathOverlap,
        "apart",
    ),
    "a place in a dropped fork's": (
        lambda lake: lake.fork("main_catalog", "new", data_path=lake.data_path.rstrip("/") + "-own/x"),
        forklake.DataPathOverlap,
        "dropped fork stays taken",
    ),
    "a number as a place": (fork(data_path=5), forklake.InvalidUrl, "not as int"),
    "bytes as a place": (fork(data_path=b"x"), forklake.InvalidUrl, "not as bytes"),
    "a file as a place": (fork(data_path=__file__), forklake.InvalidUrl, "not a folder"),
    "a place below a file": (fork(data_path=f"{__file__}/a/b"), forklake.InvalidUrl, "not a folder"),
    "a link to nowhere as a place": (
        lambda lake: lake.fork("main_catalog", "new", data_path=Path(lake.data_path).with_name("nowhere")),
        forklake.InvalidUrl,
        "not a folder",
    ),
    "many with an unknown mode": (
        lambda lake: lake.fork_many("main_catalog", ["n"], mode="shallow"),
        forklake.InvalidArgument,
        "shallow",
    ),
    "an unreadable message": (fork(message="\0"), forklake.InvalidArgument, ""),
    "extra that is no JSON": (fork(extra={"a": object()}), forklake.InvalidArgument, ""),
}


@pytest.fixture
def source(lake: forklake.Lake) -> forklake.Catalog:
    lake.create_catalog("before").create_table("t", "id BIGINT, v VARCHAR").append(many())
    source = lake.rename_catalog("before", "main_catalog")
    lake.fork("main_catalog", "taken").table("t").append(numbered(1))
    lake.fork("main_catalog", "dropped", data_path=lake.data_path.rstrip("/") + "-own")
    lake.drop_catalog("dropped")
    lake.fork("main_catalog", "other_fork")
    lake.create_catalog("again")
    lake.fork("again", "orphan")
    lake.drop_catalog("again")
    lake.create_catalog("again")
    Path(lake.data_path).with_name("nowhere").symlink_to("/no/such/folder")
    return source


def test_what_cannot_be_forked_is_refused(lake: forklake.Lake, source: forklake.Catalog, unchanged) -> None:
    wrong: list[str] = []
    with unchanged():
        for name, (attempt, error, text) in REFUSED.items():
            try:
                attempt(lake)
            except error as refusal:
                if text not in str(refusal) or "\n" in str(refusal):
                    wrong.append(f"{name}: says {refusal}")
            except Exception as other:  # noqa: BLE001 - whatever it is, it is reported with the others
                wrong.append(f"{name}: {other!r}")
            else:
                wrong.append(f"{name}: is taken")
    assert wrong == []


def test_handles_on_dropped_catalogs_refuse_to_be_materialized(
    lake: forklake.Lake, source: forklake.Catalog, unchanged
) -> None:
    child = lake.fork("main_catalog", "child")
    past = child.at(child.snapshot)
    with unchanged(), pytest.raises(forklake.InvalidArgument, match="past"):
        past.materialize()
    lake.drop_catalog("child")
    with unchanged(), pytest.raises(forklake.CatalogNotFound, match="dropped"):
        child.materialize()


@pytest.mark.parametrize("mode", ["reference", "copy"])
def test_a_catalog_that_is_dropped_meanwhile_is_forked_whole_or_not_at_all(
    lake: forklake.Lake, reopen, in_threads, mode: Any
) -> None:
    for turn in range(5):
        name = f"parent {turn}"
        table = lake.create_catalog(name).create_table("t", "id BIGINT, v VARCHAR")
        table.append(many())
        table.delete("id = 3")
        expected = content(table)
        gone = threading.Event()

        def drop(name: str = name, gone: threading.Event = gone) -> None:
            reopen().drop_catalog(name)
            gone.set()

        def make(number: int, name: str = name, gone: threading.Event = gone) -> list[str]:
            mine, made = reopen(), []
            while True:
                late = gone.is_set()
                try:
                    made.append(mine.fork(name, f"{name} {number} {len(made)}", mode=mode).name)
                except forklake.CatalogNotFound:
                    return made
                # Whoever begins after the drop finds nothing.
                assert not late

        _, *made = in_threads(drop, lambda: make(1), lambda: make(2))
        names = [name for each in made for name in each]
        assert {info.name for info in lake.catalogs() if info.name.startswith(name)} == {*names}
        for each in names[-2:]:
            assert content(lake.catalog(each).table("t")) == expected


def test_one_of_many_gets_a_name(lake: forklake.Lake, source: forklake.Catalog, reopen, in_threads) -> None:
    def make() -> int | None:
        try:
            return reopen().fork("main_catalog", "new").id
        except forklake.CatalogExists:
            return None

    made = in_threads(make, make, make, make)
    assert [each for each in made if each is not None] == [lake.catalog("new").id]
