"""Words: segments find what one single index of tantivy over all rows finds, with its scores."""

from __future__ import annotations

import json
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
import tantivy
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from forklake.errors import InvalidIndex, InvalidQuery, MissingDependency, UnreadableIndex
from forklake.index.archive import Format, open_archive, write_archive
from forklake.index.bm25 import Bm25, searchers
from forklake.index.bm25.analysis import TANTIVY, analyzer_of
from forklake.index.bm25.unpacked import Unpacked
from forklake.index.kind import Alive, Segment
from forklake.index.registry import kind_of
from forklake.lazy import LazyModule
from forklake.model.index import IndexSpec, Parameter, SegmentSummary
from tests.unit.index.indexing import LocalFile, column, everything, only, part, places, segment

KIND = Bm25()
WORDS = ("red", "Bicycle", "bicycles", "café", "the", "old", "oldest", "e-mail", "zebra")
QUERIES = (
    "red", "red bicycle", "+red -old cafe", "red AND (bicycle OR zebra)", '"red bicycle"', '"red bicycle"~3',
    "old*", '"red ol"*', "title:red body:old^3", "*", "e-mail", "cafe NOT title:zebra", "nothing",
)  # fmt: skip

Row = tuple[str | None, str | None]


def spec_of(**params: Parameter) -> IndexSpec:
    keys = (column(3, "title"), column(7, "body"))
    found = IndexSpec("bm25", keys, (), params)
    return replace(found, params=KIND.check(found))


def rows(found: Sequence[Row]) -> pa.Table:
    title, body = zip(*found, strict=True) if found else ((), ())
    return pa.table({"3": pa.array(title, pa.string()), "7": pa.array(body, pa.string())})


def loose_of(found: Sequence[Row]) -> pa.Table:
    # Their positions are not those in the table: some were deleted before.
    return rows(found).append_column(
        "position", pa.array([10 + 2 * n for n in range(len(found))], pa.int64())
    )


@dataclass(frozen=True)
class Single:
    """An index that tantivy wrote at once, with an order of rows."""

    index: tantivy.Index
    rows: list[tuple[int, int, int]]

    def scores(self, query: str) -> list[tuple[float, tuple[int, int, int]]]:
        self.index.reload()
        searcher = self.index.searcher()
        made = self.index.parse_query(query, ["title", "body"])
        found = searcher.search(made, limit=max(1, len(self.rows))).hits
        numbers = searcher.fast_field_values("number", [address for _, address in found])
        return [
            (score, self.rows[int(str(number))]) for (score, _), number in zip(found, numbers, strict=True)
        ]


def single(spec: IndexSpec, parts: Sequence[tuple[int, int, Sequence[Row]]], loose: Sequence[Row]) -> Single:
    builder = tantivy.SchemaBuilder()
    for name in ("title", "body"):
        builder.add_text_field(name, tokenizer_name="own")
    builder.add_unsigned_field("number", fast=True)
    index = tantivy.Index(builder.build())
    index.register_tokenizer("own", analyzer_of(spec.params))
    writer = index.writer(heap_size=15_000_000, num_threads=1)
    order: list[tuple[int, int, int]] = []
    numbered = [(s, o, p, row) for s, o, given_rows in parts for p, row in enumerate(given_rows)]
    numbered += [(-1, 0, 10 + 2 * p, row) for p, row in enumerate(loose)]
    for s, o, p, row in numbered:
        if row == (None, None):
            continue
        named = {name: text for name, text in zip(("title", "body"), row, strict=True) if text is not None}
        document = tantivy.Document(**named)
        document.add_unsigned("number", len(order))
        writer.add_document(document)
        order.append((s, o, p))
    writer.commit()
    writer.wait_merging_threads()
    return Single(index, order)


def built(folder: Path, name: str, spec: IndexSpec, parts: dict[int, Sequence[Row]]) -> Segment:
    facts = KIND.build(spec, [part(ordinal, rows(each)) for ordinal, each in parts.items()], folder / name)
    return segment(folder / name, facts)


def search(
    spec: IndexSpec,
    segments: Sequence[Segment],
    query: object,
    k: int = 10,
    *,
    loose: pa.Table | None = None,
    alive: Alive = everything,
    share: float = 1.0,
    **params: Parameter,
) -> list[tuple[float, tuple[int, int, int]]]:
    found = KIND.search(spec, segments, loose, query, k, alive, params, share)
    table = found.table
    assert table.schema.names == ["segment", "ordinal", "position", "score"]
    more = KIND.search(spec, segments, loose, query, k + 1, alive, params, share).table
    assert more.slice(0, k) == table
    # That there are no others is known where all rows count.
    assert found.is_all <= (more == table)
    assert found.is_all == (more == table) or alive is not everything
    return list(zip(table.column("score").to_pylist(), places(table), strict=True))


def texts() -> st.SearchStrategy[str | None]:
    return st.none() | st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


def some_rows(most: int) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(texts(), texts()), max_size=most)


# In plain queries, what we make of a text is what tantivy makes of it.
EXACT = ("title:red", 'title:"red bicycle"', "body:bicycle^2")
PLAIN = [*EXACT, *(query for query in QUERIES if "*" not in query and "nothing" not in query)]


@settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(st.dictionaries(st.integers(0, 3), some_rows(12), max_size=3), max_size=3),
    some_rows(8),
    st.data(),
)
def test_segments_and_loose_rows_are_searched_as_one_index(
    tmp_path_factory: pytest.TempPathFactory,
    given_segments: list[dict[int, list[Row]]],
    loose: list[Row],
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("segments")
    spec = spec_of(language=data.draw(st.sampled_from([None, "english"])))
    parts = [
        (number, ordinal, each)
        for number, found in enumerate(given_segments)
        for ordinal, each in found.items()
    ]
    expected = single(spec, parts, loose)
    segments = [built(folder, f"{n}", spec, dict(found)) for n, found in enumerate(given_segments)]
    assert [each.file.facts.entry_count for each in segments] == [
        sum(row != (None, None) for each in found.values() for row in each) for found in given_segments
    ]
    outside = loose_of(loose) if loose else None
    for query in PLAIN:
        everyone = search(spec, segments, query, 1000, loose=outside)
        one = expected.scores(query)
        assert {place for _, place in everyone} == {place for _, place in one}, query
        if query not in EXACT:
            # Sums of several words, which tantivy adds in the order of what is rare in each segment.
            scores = {place: score for score, place in one}
            assert all(score == pytest.approx(scores[place], rel=1e-6) for score, place in everyone), query
            assert everyone == sorted(everyone, key=lambda each: -each[0])
        else:
            # To the last bit, and in the same order.
            assert everyone == one, query
        # A page is the beginning of a longer one, and rows that do not count leave no gap.
        assert search(spec, segments, query, 3, loose=outside) == everyone[:3]
        kept = set(data.draw(st.lists(st.sampled_from(everyone), unique=True))) if everyone else set()
        alive = only({place for _, place in kept})
        share = data.draw(st.sampled_from([1.0, 0.5, 0.01]))
        assert (
            search(spec, segments, query, 2, loose=outside, alive=alive, share=share)
            == [each for each in everyone if each in kept][:2]
        )

    # Merged with other ordinals: the same rows with the same scores.
    ordinals = [
        {ordinal: 10 * number + ordinal for ordinal in found} for number, found in enumerate(given_segments)
    ]
    facts = KIND.merge(spec, segments, ordinals, folder / "merged")
    merged = segment(folder / "merged", facts)
    assert facts.entry_count == sum(each.file.facts.entry_count for each in segments)
    moved = {
        (n, o, p): (0, 10 * n + o, p)
        for n, found in enumerate(given_segments)
        for o in found
        for p in range(12)
    }
    for query in QUERIES:
        before = search(spec, segments, query, 1000)
        after = search(spec, [merged], query, 1000)
        assert sorted((score, moved[place]) for score, place in before) == sorted(after), query

    # Without some ordinals: as if their rows had never been there, but for the mean length of texts.
    kept_ordinals = [{o: to for o, to in each.items() if data.draw(st.booleans())} for each in ordinals]
    facts = KIND.merge(
        spec, [merged], [{to: to for each in kept_ordinals for to in each.values()}], folder / "less"
    )
    left = {place for (n, o, _), place in moved.items() if o in kept_ordinals[n]}
    everyone = [place for _, place in search(spec, [merged], "*", 1000)]
    assert [place for _, place in search(spec, [segment(folder / "less", facts)], "*", 1000)] == [
        place for place in everyone if place in left
    ]
    assert facts.entry_count == sum(place in left for place in everyone)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> tuple[IndexSpec, list[Segment]]:
    folder = tmp_path_factory.mktemp("few")
    spec = spec_of(language="english", stop_words=True)
    one: list[Row] = [
        ("Red bicycles", "An old bicycle, hardly used"),
        ("Café for bicyclists", None),
        (None, None),
        (None, "the zebra's oldest e-mail"),
    ]
    two: list[Row] = [("happiness", "general store"), ("l'été", "Größe 12:30 C++")]
    return spec, [built(folder, "one", spec, {0: one}), built(folder, "two", spec, {5: two})]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("bicycle", {(0, 0, 0)}),
        ("bicycl*", {(0, 0, 0), (0, 0, 1)}),
        ("BICYCLES*", {(0, 0, 0)}),
        ("cafe", {(0, 0, 1)}),
        ("caf*", {(0, 0, 1)}),
        ('"old bic"*', {(0, 0, 0)}),
        ('"old bicycles"', {(0, 0, 0)}),
        ('"old used"', set()),
        ('"old used"~2', {(0, 0, 0)}),
        ("the", set()),
        ("the AND zebra", {(0, 0, 3)}),
        ('"the zebra"', {(0, 0, 3)}),
        ("zebra -the", {(0, 0, 3)}),
        ("zebra's", {(0, 0, 3)}),
        ('"oldest e-m"*', {(0, 0, 3)}),
        ('"the oldest the m"*', {(0, 0, 3)}),
        ("title:old", set()),
        ("BODY:(old OR general)", {(0, 0, 0), (1, 5, 0)}),
        ("ete größe 12\\:30", {(1, 5, 1)}),
        ('"Größe 12:3"*', {(1, 5, 1)}),
        ("c++", {(1, 5, 1)}),
        ("?*", set()),
        ("*", {(0, 0, 0), (0, 0, 1), (0, 0, 3), (1, 5, 0), (1, 5, 1)}),
        ("+bicycle zebra", {(0, 0, 0)}),
    ],
)
def test_queries_find_rows(
    few: tuple[IndexSpec, list[Segment]], query: str, found: set[tuple[int, int, int]]
) -> None:
    assert {place for _, place in search(*few, query)} == found


def test_words_side_by_side_may_all_be_needed(few: tuple[IndexSpec, list[Segment]]) -> None:
    assert [place for _, place in search(*few, "old zebra", operator="and")] == []
    assert [place for _, place in search(*few, "old used", operator="and")] == [(0, 0, 0)]
    with pytest.raises(InvalidQuery, match="operator of a search for words is 'or' or 'and'"):
        search(*few, "old", operator="xor")
    with pytest.raises(InvalidQuery, match='no parameter "nprobe"'):
        search(*few, "old", nprobe=3)


@pytest.mark.parametrize(
    ("params", "text", "query", "is_found"),
    [
        ({"tokenizer": "ngram"}, "forklake", "rkl", True),
        ({"tokenizer": "ngram"}, "forklake", "ORKLA", True),
        ({"tokenizer": "ngram"}, "forklake", "lakes", False),
        ({"tokenizer": "ngram", "min_gram": 2, "max_gram": 3}, "東京都", "東京", True),
        ({"tokenizer": "raw"}, "A b", "A\\ b", True),
        ({"tokenizer": "raw"}, "A b", "a", False),
        ({"tokenizer": "whitespace"}, "x.y z", "x.y", True),
        ({"tokenizer": "whitespace"}, "x.y z", "x", False),
        ({"tokenizer": "whitespace"}, "x.y z", "x.*", True),
        ({"fold_accents": False}, "é", "e", False),
        ({"language": "german"}, "Häuser", "haus", True),
    ],
)  # fmt: skip
def test_parameters_say_what_a_word_is(
    tmp_path: Path, params: dict[str, Parameter], text: str, query: str, is_found: bool
) -> None:
    spec = spec_of(**params)
    assert bool(search(spec, [built(tmp_path, "one", spec, {0: [(text, None)]})], query)) == is_found


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"tokeniser": "raw"}, 'did you mean "tokenizer"'),
        ({"tokenizer": "klingon"}, "one of simple, whitespace"),
        ({"language": "klingon"}, "one of arabic"),
        ({"stop_words": True}, "needs a language"),
        ({"stop_words": True, "language": "arabic"}, "stop words of arabic"),
        ({"stop_words": 1, "language": "english"}, "true to leave out"),
        ({"tokenizer": "raw", "language": "english"}, "makes no words"),
        ({"min_gram": 4}, "not above max_gram"),
        ({"max_gram": True}, "how many letters"),
        ({"k1": 1.2}, "cannot be chosen"),
    ],
)
def test_parameters_that_cannot_be_are_refused(params: dict[str, Parameter], why: str) -> None:
    with pytest.raises(InvalidIndex, match=why):
        spec_of(**params)


def test_columns_are_of_text() -> None:
    with pytest.raises(InvalidIndex, match='VARCHAR columns, and "n" is none'):
        KIND.check(IndexSpec("bm25", (column(3, "title"), column(4, "n", "int64"))))
    with pytest.raises(InvalidIndex, match="leave out include"):
        KIND.check(IndexSpec("bm25", (column(3, "title"),), (column(4, "n", "int64"),)))
    assert KIND.measures(spec_of()) == "score"
    assert type(kind_of("bm25")) is Bm25


def test_a_query_is_text(few: tuple[IndexSpec, list[Segment]]) -> None:
    with pytest.raises(InvalidQuery, match="is a string, not list"):
        search(*few, ["red"])
    with pytest.raises(InvalidQuery, match='character 5: the index has no column "titel"'):
        search(*few, "red titel:old")


def test_columns_are_found_by_their_present_names(few: tuple[IndexSpec, list[Segment]]) -> None:
    spec, segments = few
    renamed = replace(spec, keys=(replace(spec.keys[0], name="heading"), spec.keys[1]))
    assert [place for _, place in search(renamed, segments, "heading:cafe")] == [(0, 0, 1)]


def test_segments_of_rows_that_are_many_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As little memory as tantivy takes: what does not fit is flushed, and merged in the end.
    monkeypatch.setattr("forklake.index.bm25.segments._HEAP", 15_000_000)
    spec = spec_of()
    many: list[Row] = [(f"word{n % 997} unique{n:x}{'x' * 200}", f"{n} " * 20) for n in range(9_000)]
    facts = KIND.build(spec, [part(0, rows(many), 1000)], tmp_path / "many")
    found = segment(tmp_path / "many", facts)
    assert facts.entry_count == len(many)
    assert [place for _, place in search(spec, [found], f"unique{8_888:x}{'x' * 200}")] == [(0, 0, 8_888)]
    assert {place for _, place in search(spec, [found], "word5", 100)} == {
        (0, 0, n) for n in range(5, 9_000, 997)
    }


def test_a_folder_of_the_cache_makes_room(tmp_path: Path, few: tuple[IndexSpec, list[Segment]]) -> None:
    archives = [open_archive(each.file, searchers.FORMAT) for each in few[1]]
    cache = Unpacked(tmp_path / "cache", 1)
    first = cache.get(archives[0])
    assert {file.name for file in first.iterdir()} == set(archives[0].members)
    second = cache.get(archives[1])
    assert [first.exists(), second.exists()] == [False, True]
    assert list((tmp_path / "cache").iterdir()) == [second]
    assert first.stat if cache.get(archives[0]) == first else False


def test_searches_of_many_threads_share_searchers(few: tuple[IndexSpec, list[Segment]]) -> None:
    searchers.forget()
    queries = ["bicycle", "zebra", "old*", "*"] * 8
    expected = [search(*few, query) for query in queries]
    searchers.forget()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: search(*few, query), queries)) == expected


def torn_in_the_middle(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def no_tar(path: Path) -> None:
    path.write_bytes(b"PAR1" * 1000)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def another_format(path: Path) -> None:
    write_archive(path, Format("vector", 1), {}, {})


def newer(path: Path) -> None:
    write_archive(path, Format("bm25", 2), {}, {})


def newer_tantivy(path: Path) -> None:
    write_archive(path, Format("bm25", 1), {"tantivy": "1.0.0", "index_format": "v9"}, {})


def without_description(path: Path) -> None:
    write_archive(path, Format("bm25", 1), {"index_format": "v7"}, {})


def damaged_words(path: Path) -> None:
    with tarfile.open(path) as tar:
        info = next(info for info in tar if info.name.endswith(".term"))
    content = bytearray(path.read_bytes())
    content[info.offset_data : info.offset_data + info.size] = b"\xff" * info.size
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        torn_in_the_middle,
        no_tar,
        empty,
        another_format,
        newer,
        newer_tantivy,
        without_description,
        damaged_words,
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_damaged_segment_is_told(tmp_path: Path, damage: object) -> None:
    spec = spec_of()
    found = built(tmp_path, "one", spec, {0: [("red bicycle", None)] * 100})
    assert callable(damage)
    damage(tmp_path / "one")
    with pytest.raises(UnreadableIndex, match="one"):
        search(spec, [found], "red")


def test_a_newer_segment_is_told_before_its_bytes_are_fetched() -> None:
    newer_facts = SegmentSummary(1, "bm25", 2)
    with pytest.raises(UnreadableIndex, match=r"version 2 .* install the newer forklake"):
        search(spec_of(), [Segment(LocalFile(Path("/nowhere"), newer_facts))], "red")


def test_without_its_library_the_command_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch, few: tuple[IndexSpec, list[Segment]]
) -> None:
    monkeypatch.setattr("forklake.index.bm25.analysis.version", lambda _: "9.9")
    with pytest.raises(
        MissingDependency, match=r"needs? tantivy 0.27.0, and 9.9 is installed: run pip install"
    ):
        search(*few, "red")
    monkeypatch.setitem(sys.modules, "tantivy", None)
    monkeypatch.setattr("forklake.index.bm25.analysis.tantivy", LazyModule("tantivy"))
    with pytest.raises(
        MissingDependency, match=r"tantivy, which is not installed: run pip install .*\[text\]"
    ):
        KIND.check(few[0])


def test_the_version_of_tantivy_is_the_one_that_is_required() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["text"] == [f"tantivy=={TANTIVY}"]


def test_a_segment_says_what_it_has(few: tuple[IndexSpec, list[Segment]]) -> None:
    with tarfile.open(few[1][1].file.local()) as tar:
        names = tar.getnames()
        first = tar.extractfile("manifest.json")
        assert first is not None
        manifest = json.load(first)
    assert names[0] == "manifest.json"
    assert {Path(name).suffix for name in names[1:]} == {
        ".fast",
        ".fieldnorm",
        ".idx",
        ".pos",
        ".store",
        ".term",
    }
    assert [ordinal for _, ordinal in manifest["parts"]] == [5]
