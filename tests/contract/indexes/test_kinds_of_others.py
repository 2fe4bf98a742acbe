"""A kind of index that another package offers: found by its entry point, and used like our own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import forklake
from forklake.errors import InvalidIndex
from forklake.index import coverage, registry
from tests.index_checks import segments_of

PACKAGE = dedent(
    '''
    """Lists of rows by value, as JSON, for columns of few values."""

    import json

    import pyarrow as pa

    from forklake.errors import InvalidIndex, InvalidQuery
    from forklake.index.kind import Found
    from forklake.model.index import SegmentSummary, Support
    from forklake.model.sql.predicate_tree import Compare


    def lists(segment):
        with segment.file.open() as source:
            return json.loads(source.read())


    def write(found, out):
        out.write_text(json.dumps(found))
        return SegmentSummary(sum(map(len, found.values())), "bitmap", 1)


    class Bitmap:
        name = "bitmap"
        maintain = "later"
        most_rows = 64_000_000

        def check(self, spec):
            if len(spec.keys) != 1 or spec.keys[0].type != "varchar":
                raise InvalidIndex("a bitmap is of one column of text")
            return {"most": 100, **spec.params}

        def train(self, spec, sample, out):
            return None

        def build(self, spec, parts, out, model=None):
            found = {}
            for part in parts:
                first = 0
                for batch in part.rows:
                    for at, value in enumerate(batch.column(0).to_pylist(), first):
                        if value is not None:
                            found.setdefault(value, []).append([part.ordinal, at])
                    first += batch.num_rows
            return write(found, out)

        def merge(self, spec, segments, ordinals, out):
            found = {}
            for segment, becomes in zip(segments, ordinals):
                for value, rows in lists(segment).items():
                    kept = [[becomes[part], at] for part, at in rows if part in becomes]
                    found.setdefault(value, []).extend(kept)
            return write(found, out)

        def supports(self, spec, node):
            return Support.EXACT if isinstance(node, Compare) and self.is_ours(spec, node) else Support.NO

        def is_ours(self, spec, node):
            return node.op == "=" and node.operand.column_id == spec.keys[0].id

        def filter(self, spec, segments, node, *, with_rows=False):
            found = {}
            for number, segment in enumerate(segments):
                for part, at in sorted(lists(segment).get(node.value, ())):
                    found.setdefault((number, part), []).append(at)
            return Found({place: pa.array(rows, pa.int64()) for place, rows in found.items()})

        def search(self, spec, segments, loose, query, k, alive, params, share=1.0):
            raise InvalidQuery("a bitmap has nothing to search")
    '''
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path as `pip install` leaves it."""
    folder = tmp_path / "site-packages"
    about = folder / "bitmaps-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "bitmaps.py").write_text(PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bitmaps\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[forklake.index_kinds]\nbitmap = bitmaps:Bitmap\n")
    monkeypatch.setattr(registry, "_loaded", dict(registry._loaded))
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, "bitmaps", raising=False)
    return folder


def test_a_kind_of_another_package_is_used_like_our_own(
    catalog: forklake.Catalog,
    table: forklake.Table,
    installed: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "bitmap" in registry.kind_names()
    catalog.sql("CREATE INDEX by_name ON t USING bitmap (name)")
    (index,) = table.indexes()
    assert (index.kind, index.maintain, index.params) == ("bitmap", "later", {"most": 100})
    with pytest.raises(InvalidIndex, match="one column of text"):
        table.create_index("by_id", kind="bitmap", columns=["id"])
    monkeypatch.setattr(coverage, "FAN_IN", 3)
    for number in range(3):
        table.append([{"id": number + at * 10, "name": f"n{at}", "place": None} for at in range(4)])
        catalog.build_indexes()
    assert [(segment.level, len(segment.covers)) for segment in segments_of(table, "by_name")] == [(1, 6)]
    table.delete("id = 11")
    assert sorted(table.scan("name = 'n1'").to_arrow().column("id").to_pylist()) == [1, 10, 12]
    plan = table.scan("name = 'n15' AND id >= 0").plan()
    assert (len(plan.files), [use.pruned for use in plan.indexes]) == (0, [3])
    fork = catalog.fork("fork").table("t")
    fork.merge([{"id": 1, "name": "n2", "place": None}], on="name", when_not_matched="ignore")
    assert fork.scan("name = 'n2' AND id = 1").count() == 4
    with pytest.raises(InvalidIndex, match="answers conditions"):
        table.search("by_name", "n2")


def test_without_the_package_files_are_scanned(
    catalog: forklake.Catalog, table: forklake.Table, installed: Path
) -> None:
    table.create_index("by_name", kind="bitmap", columns=["name"])
    catalog.build_indexes()
    (installed / "bitmaps.py").unlink()
    registry._loaded.clear()
    sys.modules.pop("bitmaps")
    importlib.invalidate_caches()
    (use,) = table.scan("name = 'n1'").plan().indexes
    assert (use.files, "bitmaps" in str(use.problem)) == (0, True)
    assert table.scan("name = 'n1'").to_arrow().column("id").to_pylist() == [1]
    table.append([{"id": 7, "name": "n1", "place": None}])
    assert table.scan("name = 'n1'").count() == 2
    with pytest.raises(forklake.ForklakeError, match="no kind of index is called"):
        table.create_index("other", kind="bitmaps", columns=["name"])
