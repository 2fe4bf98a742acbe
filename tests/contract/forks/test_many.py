"""Many forks in one commit (F3)."""

from __future__ import annotations

from datetime import timedelta

import pytest

import forklake
from tests.contract.rows.shown import content, ids, many, numbered


@pytest.fixture
def source(catalog: forklake.Catalog) -> forklake.Catalog:
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.append(many())
    table.append(numbered(1000))
    return catalog


def test_many_forks_are_one_snapshot(lake: forklake.Lake, source: forklake.Catalog, row_counts) -> None:
    point, before, told = source.snapshot, row_counts(), source.snapshots()
    names = [f"fork {number}" for number in range(30)]
    forks = lake.fork_many("main_catalog", iter(names), author="me", message="thirty", extra={"n": 30})
    after = row_counts()
    assert after["ducklake_snapshot"] - before["ducklake_snapshot"] == 1
    assert [fork.name for fork in forks] == names
    assert len({fork.id for fork in forks}) == 30
    assert {fork.snapshot for fork in forks} == {point + 1}
    for fork in forks:
        *inherited, made = fork.snapshots()
        assert inherited == told
        assert (made.id, made.catalog, made.changes) == (point + 1, fork.name, f"forked_from:{source.id}")
        assert (made.author, made.message, made.extra) == ("me", "thirty", {"n": 30})
    listed = [info for info in lake.catalogs() if info.parent]
    assert {(info.parent, info.fork_snapshot, info.depth) for info in listed} == {("main_catalog", point, 1)}
    assert len({info.uuid for info in listed}) == 30
    assert source.snapshots() == told


def test_making_more_forks_takes_as_many_statements(
    lake: forklake.Lake, source: forklake.Catalog, counted
) -> None:
    with counted() as few:
        lake.fork_many("main_catalog", ["a", "b"])
    with counted() as lots:
        lake.fork_many("main_catalog", [f"c{number}" for number in range(200)])
    assert few == lots
    assert len(lots) < 15


def test_forks_made_together_are_apart(lake: forklake.Lake, source: forklake.Catalog, stored) -> None:
    forks = lake.fork_many("main_catalog", ["a", "b", "c/d", "ä"])
    files = set(stored())
    for number, fork in enumerate(forks):
        fork.table("t").append(many(2000 * (number + 1)))
        fork.table("t").delete(f"id = {number}")
    folders = {path.split("/")[0] for path in set(stored()) - files}
    assert len(folders) == 4
    assert "main_catalog" not in folders
    rows = [row[0] for fork in forks for row in content(fork.table("t")) if row[1] >= 2000]
    assert len(rows) == len(set(rows)) == 4 * 150
    for number, fork in enumerate(forks):
        assert not {*ids(fork.table("t"))} & {number, *(2000 * (n + 1) for n in range(4) if n != number)}
    assert ids(source.table("t")) == [*range(150), 1000]


def test_only_those_that_are_missing_are_made(
    lake: forklake.Lake, source: forklake.Catalog, unchanged
) -> None:
    first, second = lake.fork_many("main_catalog", ["a", "b"])
    first.table("t").delete("id = 1")
    again = lake.fork_many("main_catalog", ["c", "b", "a"], if_not_exists=True)
    assert [(fork.name, fork.id) for fork in again[1:]] == [("b", second.id), ("a", first.id)]
    assert again[0].snapshot > first.snapshot
    assert again[2].table("t").count() == 150
    assert [info.name for info in lake.catalogs()] == ["a", "b", "c", "main_catalog"]
    with unchanged():
        assert [fork.id for fork in lake.fork_many("main_catalog", ["a", "c"], if_not_exists=True)] == [
            first.id,
            again[0].id,
        ]
        assert lake.fork_many("main_catalog", []) == []


def test_nothing_is_made_when_one_cannot_be(lake: forklake.Lake, source: forklake.Catalog, unchanged) -> None:
    lake.create_catalog("stranger")
    lake.fork("main_catalog", "a")
    refused: list[tuple[list[object], bool, type[forklake.ForklakeError], str]] = [
        (["x", "y", "x"], False, forklake.InvalidArgument, "twice"),
        (["x", "y", "x"], True, forklake.InvalidArgument, "twice"),
        (["x", "a"], False, forklake.CatalogExists, "a"),
        (["x", "main_catalog"], False, forklake.CatalogExists, "main_catalog"),
        (["x", "stranger"], True, forklake.CatalogExists, "stranger"),
        (["x", ""], False, forklake.InvalidName, "empty"),
        (["x", None], False, forklake.InvalidName, "string"),
        (["x", "\0"], False, forklake.InvalidName, "control"),
        (["x", "n" * 256], False, forklake.InvalidName, "256"),
    ]
    for names, if_not_exists, error, text in refused:
        with unchanged(), pytest.raises(error, match=text):
            lake.fork_many("main_catalog", names, if_not_exists=if_not_exists)
    with unchanged(), pytest.raises(forklake.CatalogNotFound, match="nobody"):
        lake.fork_many("nobody", ["x"])
    with unchanged(), pytest.raises(forklake.CatalogNotFound, match="nobody"):
        lake.fork_many("nobody", [])
    with unchanged(), pytest.raises(forklake.SnapshotNotFound):
        lake.fork_many("main_catalog", ["x"], at=10**6)


def test_a_name_is_no_list_of_names(lake: forklake.Lake, source: forklake.Catalog, unchanged) -> None:
    with unchanged(), pytest.raises(forklake.InvalidArgument, match="list"):
        lake.fork_many("main_catalog", "abc")


def test_many_forks_take_the_same_options(lake: forklake.Lake, source: forklake.Catalog) -> None:
    past = source.table("t").history()[1].id
    forks = lake.fork_many("main_catalog", ["a", "b"], at=past, ttl=timedelta(hours=1))
    assert [ids(fork.table("t")) for fork in forks] == [list(range(150))] * 2
    expiries = {info.expires_at for info in lake.catalogs() if info.parent}
    created = {info.created_at for info in lake.catalogs() if info.parent}
    assert {timestamp + timedelta(hours=1) for timestamp in created} == expiries
    assert len(expiries) == 1


def test_many_copies_do_without_their_parent(lake: forklake.Lake, source: forklake.Catalog, raw) -> None:
    expected = content(source.table("t"))
    forks = lake.fork_many("main_catalog", ["a", "b"], mode="copy")
    raw(f"DELETE FROM ducklake_data_file WHERE catalog_id = {source.id}")
    assert [content(fork.table("t")) for fork in forks] == [expected] * 2


def test_many_make_the_same_forks_at_once(lake: forklake.Lake, source: forklake.Catalog, reopen, in_threads):
    def make() -> list[int]:
        found = reopen().fork_many("main_catalog", ["a", "b", "c"], if_not_exists=True)
        return [fork.id for fork in found]

    first, *others = in_threads(make, make, make, make)
    assert all(each == first for each in others)
    assert len(lake.catalogs()) == 4
