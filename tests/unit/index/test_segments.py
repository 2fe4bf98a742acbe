"""Segments of sorted keys: torn ones, newer ones, what is read of them, and more rows than memory holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forklake.errors import UnreadableIndex
from forklake.index import segment_parquet, sorted_entries
from forklake.index.btree import Btree
from forklake.index.hash import Hash
from forklake.index.kind import KeyedKind, Segment
from tests.unit.index.segments import Index, LocalFile, as_lists, column, condition

KEY = column(1, "a", "BIGINT")


@pytest.fixture(params=[Hash, Btree])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    segment_parquet.forget()
    yield Index(request.param(), (KEY,), tmp_path, params={"row_group_rows": 50})
    segment_parquet.forget()


def numbers(count: int, seed: int = 0) -> pa.Table:
    values = np.random.default_rng(seed).integers(-300, 300, count)
    return pa.table({"a": pa.array(values, mask=values == 7)})


def found(index: Index, segment: Segment, text: str = "a = 5") -> dict[tuple[int, int], list[int]]:
    return as_lists(index.kind.filter(index.spec, [segment], condition(text, (KEY,)).tree))


@pytest.mark.parametrize("wrong", ["end", "begin", "footer", "page", "none", "newer", "other"])
def test_a_segment_that_cannot_be_read_is_told(index: Index, wrong: str) -> None:
    segment = index.build("one", {0: numbers(500)})
    path, facts = segment.file.path, segment.file.facts
    data = bytearray(path.read_bytes())
    match wrong:
        case "end":
            data = data[:-100]
        case "begin":
            data = data[300:]
        case "footer":
            middle = len(data) - facts.footer_size // 2
            data[middle : middle + 40] = bytes(40)
        case "page":
            for at in range(10, len(data) - facts.footer_size - 8, 100):
                data[at] ^= 1
        case "none":
            data = bytearray()
        case "newer":
            facts = replace(facts, format_version=facts.format_version + 1)
        case _:
            facts = replace(facts, format="another")
    path.write_bytes(data)
    with pytest.raises(UnreadableIndex, match=r"its data files are scanned"):
        found(index, Segment(LocalFile(path, facts)))
    with pytest.raises(UnreadableIndex):
        index.merge("merged", [Segment(LocalFile(path, facts))], [{0: 0}])


@dataclass(frozen=True)
class Counted(LocalFile):
    """A segment that notes what is read of it."""

    read: list[int] = field(default_factory=list)

    def open(self) -> pa.NativeFile:
        outer = self

        class Source:
            def __init__(self) -> None:
                self.file = outer.path.open("rb")
                self.closed = False

            def read(self, count: int = -1) -> bytes:
                outer.read.append(count)
                return self.file.read(count)

            def seek(self, *where: int) -> int:
                return self.file.seek(*where)

            def tell(self) -> int:
                return self.file.tell()

            def close(self) -> None:
                self.file.close()
                self.closed = True

        return pa.PythonFile(Source(), "r")


def test_a_lookup_reads_the_footer_once_and_one_row_group(index: Index) -> None:
    segment = index.build("one", {0: numbers(20_000)})
    counted = Counted(segment.file.path, segment.file.facts)
    size = counted.file_size_bytes
    expected = found(index, segment)
    segment_parquet.forget()
    assert found(index, Segment(counted)) == expected
    footer = counted.facts.footer_size + 8
    assert counted.read[0] == footer
    # 33 rows have the value: two row groups at most, in one request for each column or less.
    assert len(counted.read) <= 7
    assert sum(counted.read) - footer < size / 20
    counted.read.clear()
    assert found(index, Segment(counted)) == expected
    assert counted.read == []


def test_more_rows_than_memory_holds_are_sorted_in_runs(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {number: numbers(700, number) for number in range(4)}
    whole = index.build("whole", files)
    monkeypatch.setattr(sorted_entries, "_RUN_BYTES", 6_000)
    monkeypatch.setattr(sorted_entries, "_MERGE_BYTES", 3_000)
    monkeypatch.setattr(sorted_entries, "GROUP_ROWS", 40)
    held: list[int] = []
    sort = sorted_entries.sort
    monkeypatch.setattr(
        sorted_entries, "sort", lambda table, keys: held.append(table.num_rows) or sort(table, keys)
    )
    runs = index.build("runs", files)
    assert len(held) > 4, held
    assert max(held) < 600
    assert pq.read_table(runs.file.path).select([0]) == pq.read_table(whole.file.path).select([0])
    assert list(index.folder.glob("*.run*")) == []

    parts = [index.build(f"part{number}", {0: table}) for number, table in files.items()]
    merged = index.merge("merged", parts, [{0: number} for number in files])
    for segment in (runs, merged):
        assert found(index, segment) == found(index, whole)
        assert segment.file.facts.entry_count == whole.file.facts.entry_count
        assert (segment.file.facts.min_key, segment.file.facts.max_key) == (
            whole.file.facts.min_key,
            whole.file.facts.max_key,
        )


def test_one_key_of_very_many_rows_is_merged_in_little_memory(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = {0: pa.table({"a": pa.array([5] * 1_000)})}
    parts = [index.build(f"part{number}", same) for number in range(3)]
    monkeypatch.setattr(sorted_entries, "_MERGE_BYTES", 3_000)
    held: list[int] = []
    cut = sorted_entries._cut
    monkeypatch.setattr(
        sorted_entries, "_cut", lambda table, *rest: held.append(table.num_rows) or cut(table, *rest)
    )
    merged = index.merge("merged", parts, [{0: number} for number in range(3)])
    assert max(held) < 500
    assert {key: len(rows) for key, rows in found(index, merged).items()} == {
        (0, at): 1_000 for at in range(3)
    }
    kind: KeyedKind = index.kind
    assert kind.estimate(index.spec, merged, condition("a = 5", (KEY,)).tree) == 3_000


def test_nothing_at_all_is_a_segment_too(index: Index) -> None:
    empty = index.build("empty", {0: numbers(0)})
    assert (empty.file.facts.entry_count, empty.file.facts.min_key) == (0, None)
    assert found(index, empty) == {}
    merged = index.merge("merged", [empty, index.build("one", {0: numbers(9)})], [{0: 0}, {}])
    assert (merged.file.facts.entry_count, found(index, merged)) == (0, {})
    none = index.kind.probe(index.spec, [merged, empty], pa.table({"1": pa.array([], pa.int64())}))
    assert as_lists(none) == {}
