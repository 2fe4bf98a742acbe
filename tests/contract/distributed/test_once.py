"""A reservation is committed once, by whoever comes first, and every piece of work counts once (S4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import forklake
from forklake.distributed import Manifest, write_part
from tests.contract.rows.shown import MANY, content, ids, many, numbered


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except forklake.ForklakeError as error:
        return type(error)


def test_the_same_commit_again_gives_the_same_snapshot(
    catalog: forklake.Catalog, table: forklake.Table, reopen
) -> None:
    ds = catalog.begin_distributed()
    manifests = [write_part(ds, "t", numbered(number), part=number, manifest="file") for number in range(3)]
    snapshot = catalog.commit_distributed(ds, manifests)
    table.append(numbered(7))
    assert catalog.commit_distributed(ds, reversed(manifests)) == snapshot
    # Another process, which knows only what is stored.
    elsewhere = reopen().catalog("main_catalog")
    assert elsewhere.commit_distributed(ds, [manifest.path for manifest in manifests]) == snapshot
    assert elsewhere.commit_distributed(ds) == snapshot
    assert ids(table) == [0, 1, 2, 7]


def test_whoever_commits_something_else_comes_too_late(
    catalog: forklake.Catalog, table: forklake.Table, unchanged
) -> None:
    ds = catalog.begin_distributed()
    first, second = (write_part(ds, "t", many(start)) for start in (0, 1000))
    snapshot = catalog.commit_distributed(ds, first)
    with unchanged():
        for given in ([second], [first, second], []):
            with pytest.raises(forklake.ReservationConsumed, match=f"snapshot {snapshot}") as refused:
                catalog.commit_distributed(ds, given)
            assert refused.value.snapshot_id == snapshot


@pytest.mark.parametrize("same", [True, False], ids=["the same work", "other work"])
@pytest.mark.parametrize("moved", [False, True], ids=["on the parent", "on a newer head"])
def test_of_two_coordinators_that_race_one_wins(
    catalog: forklake.Catalog, table: forklake.Table, reopen, in_threads, same: bool, moved: bool
) -> None:
    others = [catalog, reopen().catalog("main_catalog"), reopen().catalog("main_catalog")]
    for race in range(3):
        ds = catalog.begin_distributed()
        start = 1000 * race
        shared = write_part(ds, "t", many(start))
        works = [shared if same else write_part(ds, "t", many(start)) for _ in others]
        if moved:
            catalog.create_table(f"other_{race}", "id INT")
        results = in_threads(
            *(
                lambda each=each, work=work, ds=ds: outcome(lambda: each.commit_distributed(ds, work))
                for each, work in zip(others, works, strict=True)
            )
        )
        won = {result for result in results if isinstance(result, int)}
        assert len(won) == 1
        lost = [result for result in results if not isinstance(result, int)]
        assert set(lost) <= {forklake.ReservationConsumed}
        # Whoever asks after the commit, for the same, has asked again and not against it.
        assert same or len(lost) == 2
        assert ids(table) == [
            number for done in range(race + 1) for number in range(1000 * done, 1000 * done + MANY)
        ]
        assert len({row[0] for row in content(table)}) == MANY * (race + 1)


def test_a_commit_and_a_cancellation_that_race_have_one_winner(
    catalog: forklake.Catalog, table: forklake.Table, reopen, in_threads
) -> None:
    other = reopen().catalog("main_catalog")
    rows = 0
    for _ in range(4):
        ds = catalog.begin_distributed()
        work = write_part(ds, "t", many())
        committed, cancelled = in_threads(
            lambda ds=ds, work=work: outcome(lambda: catalog.commit_distributed(ds, work)),
            lambda ds=ds: outcome(lambda: other.cancel_distributed(ds)),
        )
        if cancelled is None:
            # Its files may be gone before the other one looks.
            assert committed in (forklake.ReservationConsumed, forklake.FileMissing)
        else:
            assert (committed, cancelled) == (ds.snapshot_id, forklake.ReservationConsumed)
            rows += MANY
        assert table.count() == rows


@pytest.mark.parametrize("kept", ["value", "file"])
def test_a_part_that_was_done_twice_adds_no_row_twice(
    catalog: forklake.Catalog, table: forklake.Table, stored, kept
) -> None:
    ds = catalog.begin_distributed()
    attempts = [
        write_part(ds, "t", many(1000 * part), part=part, manifest=kept) for part in (0, 1, 1, 0, 2, 1)
    ]
    assert len({path for attempt in attempts for path in attempt.paths}) == 6
    snapshot = catalog.commit_distributed(ds, attempts, parts=range(3))
    assert ids(table) == [number for part in range(3) for number in range(1000 * part, 1000 * part + MANY)]
    assert sum(path.endswith(".parquet") for path in stored()) == 3
    assert catalog.commit_distributed(ds, attempts[::-1]) == snapshot
    assert [row[0] for row in content(table)] == list(range(3 * MANY))


def test_one_part_may_be_about_several_tables(catalog: forklake.Catalog, table: forklake.Table) -> None:
    other = catalog.create_table("u", "id BIGINT, v VARCHAR")
    ds = catalog.begin_distributed()
    joined = [
        Manifest.joined([write_part(ds, name, many(start), part="both") for name in ("t", "u")])
        for start in (0, 1000)
    ]
    assert [len(each.paths) for each in joined] == [2, 2]
    catalog.commit_distributed(ds, [Manifest.from_json(each.to_json()) for each in joined])
    # Both of one attempt, whichever it was.
    assert ids(table) == ids(other) != []
    assert len(ids(table)) == MANY
    second = catalog.begin_distributed()
    apart = [write_part(second, name, many(5000), part="both") for name in ("t", "u")]
    catalog.commit_distributed(second, apart)
    assert len(ids(table)) == len(ids(other)) == 2 * MANY
    third = catalog.begin_distributed()
    apart = [write_part(third, name, many(), part="both") for name in ("t", "u")]
    with pytest.raises(forklake.InvalidManifest, match="different tables"):
        catalog.commit_distributed(third, [Manifest.joined(apart), apart[0]])


def test_a_coordinator_that_lost_its_answer_asks_again(
    catalog: forklake.Catalog, table: forklake.Table, lake: forklake.Lake, monkeypatch
) -> None:
    """The connection breaks during COMMIT, after or before it went through."""
    from forklake.store.backend import Interrupted

    with lake._database.transaction() as session:
        kind = type(session)
    commit = kind.commit
    for went_through in (True, False):
        ds = catalog.begin_distributed()
        work = write_part(ds, "t", many())
        broken: list[bool] = []

        def breaks(session: Any, went_through: bool = went_through, broken: list[bool] = broken) -> None:
            if broken:
                return commit(session)
            broken.append(True)
            if went_through:
                commit(session)
            else:
                session.rollback()
            raise Interrupted("the connection broke")

        before = table.count()
        monkeypatch.setattr(kind, "commit", breaks)
        assert catalog.commit_distributed(ds, work) == ds.snapshot_id
        monkeypatch.undo()
        assert broken
        assert table.count() == before + MANY
        assert catalog.commit_distributed(ds, work) == ds.snapshot_id == catalog.snapshot
