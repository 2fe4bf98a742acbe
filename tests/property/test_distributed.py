"""Any number of parts and attempts, in any order, on any head: each part counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forklake
from forklake.commit.manifests import assemble
from forklake.distributed import DistributedSnapshot, Manifest, TableTarget, write_part
from forklake.model.ids import TableId

TABLES = ("t", "u")
PART = st.one_of(st.integers(0, 4), st.sampled_from(["", "a", "a b", "a/b", "ä", "x" * 60]).filter(bool))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[forklake.Lake]:
    folder = tmp_path_factory.mktemp("distributed")
    with forklake.connect(f"sqlite:///{folder}/lake.db", data_path=folder / "files", create=True) as lake:
        yield lake


_names = count()


@settings(max_examples=20)
@given(
    works=st.dictionaries(st.tuples(PART.map(str), st.sampled_from(TABLES)), st.integers(1, 3), max_size=6),
    data=st.data(),
)
def test_every_part_counts_once(lake: forklake.Lake, works: dict[tuple[str, str], int], data) -> None:
    catalog = lake.create_catalog(f"c{next(_names)}")
    tables = {name: catalog.create_table(name, "part VARCHAR, n INT") for name in TABLES}
    ds = catalog.begin_distributed()
    attempts: list[Manifest | str | None] = []
    expected: dict[str, Counter[str]] = {name: Counter() for name in TABLES}
    for (part, name), tries in works.items():
        # An attempt that finds nothing to do is one as well.
        size = data.draw(st.integers(0, 2), label=f"rows of {part!r}")
        rows = [{"part": part, "n": n} for n in range(size)]
        for _ in range(tries):
            made = write_part(
                ds, name, rows, part=part, manifest=data.draw(st.sampled_from(["value", "file"]))
            )
            attempts.append(data.draw(st.sampled_from([made, made.to_json(), made.path or made])))
        expected[name] += Counter({part: size})
    moved = data.draw(st.booleans(), label="somebody else commits")
    if moved:
        tables["t"].append([{"part": "other", "n": 0}])
        expected["t"]["other"] += 1
    given = data.draw(st.permutations(attempts))
    snapshot = catalog.commit_distributed(ds, given, parts={part for part, _ in works})
    for name, table in tables.items():
        rows = table.scan(row_ids=True).to_pylist()
        assert Counter(row["part"] for row in rows) == +expected[name]
        assert len({row["row_id"] for row in rows}) == len(rows) == table.stats().record_count
    assert catalog.commit_distributed(ds, data.draw(st.permutations(attempts))) == snapshot
    adds = any(part != "other" and rows for found in expected.values() for part, rows in found.items())
    assert snapshot == (catalog.snapshot if adds else ds.parent_snapshot_id)
    assert adds is False or (snapshot == ds.snapshot_id) is not moved


TARGETS = tuple(
    TableTarget(f"t{number}/", (), id=TableId(number), schema="main", name=f"t{number}")
    for number in range(3)
)


def manifest(ds: DistributedSnapshot, part: str, attempt: str, tables: tuple[int, ...]) -> Manifest:
    return Manifest(ds.reservation_id, ds.commit_uuid, part, attempt, tuple(map(TableId, tables)))


@given(
    pieces=st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from(["1", "2", "3"]), st.sampled_from([(0,), (1,), (2,)])
        ),
        max_size=12,
    ),
    data=st.data(),
)
def test_the_choice_of_attempts_does_not_depend_on_their_order(pieces, data) -> None:
    timestamp = datetime(2026, 1, 1, tzinfo=UTC)
    ds = DistributedSnapshot("r", "c", 0, "c", 2, 1, timestamp, "/", "c/", TARGETS)  # type: ignore[arg-type]
    manifests = [manifest(ds, *piece) for piece in pieces]
    chosen = assemble(ds, manifests)
    again = assemble(ds, data.draw(st.permutations(manifests)))
    assert (chosen.digest, chosen.taken, chosen.lost) == (again.digest, again.taken, again.lost)
    assert {(one.part, one.tables) for one in chosen.taken} == {(part, tables) for part, _, tables in pieces}
    assert len(chosen.taken) == len({(one.part, one.tables) for one in chosen.taken})
    assert set(chosen.taken) | set(chosen.lost) == set(manifests)
    assert not set(chosen.taken) & set(chosen.lost)


@given(cut=st.integers(0, 10_000), flip=st.integers(0, 10_000))
def test_a_text_that_is_not_whole_is_no_manifest(cut: int, flip: int) -> None:
    whole = Manifest("r", "c", "part\n✓", "1", (TableId(3),)).to_json()
    assert Manifest.from_json(whole).part == "part\n✓"
    place = cut % (len(whole) - 1)
    with pytest.raises(forklake.InvalidManifest):
        Manifest.from_json(whole[:place])
    at = flip % (len(whole) - 1)
    other = "x" if whole[at] != "x" else "y"
    with pytest.raises(forklake.InvalidManifest):
        Manifest.from_json(whole[:at] + other + whole[at + 1 :])
