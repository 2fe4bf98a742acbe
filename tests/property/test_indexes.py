"""Indexes never change an answer: two tables with one history, one of which has segments of indexes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forklake

EXAMPLES = {"sqlite": 8, "duckdb": 3, "postgresql": 3}
WORDS = ("red", "blue", "bicycle", "car", "old")
SCHEMA = "id BIGINT, k INTEGER, s VARCHAR, note VARCHAR, place BLOB, v FLOAT[]"
NAMES = ("plain", "indexed")
ANSWERED = (
    ("by_k", "hash", ["k"], {"include": ["id", "s"]}),
    ("by_s", "btree", ["s", "k"], {}),
)
SEARCHED = (
    ("by_note", "bm25", ["note"], {}),
    ("by_place", "rstar", ["place"], {}),
    ("by_v", "vector", ["v"], {"dimension": 2}),
)
CONDITIONS = st.lists(
    st.sampled_from(
        [
            *("k = 3", "k IN (1, 4, 9)", "k = 3 OR s = 's5'", "k = 2 AND s = 's2'", "k IS NULL", "k = 77"),
            *(
                "s = 's4'",
                "s LIKE 's1%'",
                "s > 's3' AND s <= 's6'",
                "s IS NULL AND k = 1",
                "k < 2",
                "NOT k = 1",
            ),
            *("(k = 1 OR k = 2) AND s IN ('s1', 's2')", "k IN (5, NULL)", "s = 's1' OR (k = 6 AND id > 10)"),
        ]
    ),
    min_size=1,
    max_size=4,
    unique=True,
)
QUERIES = (
    "s, k FROM {t} ORDER BY s, k LIMIT 7",
    "s, k FROM {t} ORDER BY s DESC NULLS FIRST, k DESC NULLS FIRST LIMIT 4 OFFSET 1",
    "s FROM {t} WHERE s > 's2' ORDER BY s DESC LIMIT 5",
    "id, s FROM {t} WHERE k = 3 ORDER BY id",
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("append", "append", "append", "delete", "update", "merge", "build", "build", "compact"),
                *("rewrite", "flush", "widen", "evolve", "fork", "join", "transaction", "overwrite", "drop"),
            ]
        ),
        st.integers(0, 9),
    ),
    min_size=4,
    max_size=9,
)


def point(x: int, y: int) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def rows(first: int, count: int, seed: int) -> pa.Table:
    at = range(first, first + count)
    return pa.table(
        {
            "id": at,
            "k": pa.array([None if (i + seed) % 11 == 0 else (i * 7 + seed) % 10 for i in at], pa.int32()),
            "s": [None if (i + seed) % 13 == 0 else f"s{(i * 3 + seed) % 12}" for i in at],
            "note": [f"{WORDS[(i + seed) % 5]} {WORDS[(i * 3 + seed) % 5]}" for i in at],
            "place": pa.array([point((i * 5 + seed) % 8, i % 8) for i in at], pa.binary()),
            "v": pa.array([[(i + seed) % 8, (i * 3) % 8] for i in at], pa.list_(pa.float32())),
        }
    )


@dataclass
class History:
    """Two tables that everything is done to, in a catalog that may be replaced by its forks."""

    lake: forklake.Lake
    catalog: forklake.Catalog
    last: int = 0
    added: int = 0
    past: list[int] = field(default_factory=list)

    def each(self, change: Callable[[forklake.Table], object]) -> None:
        told = [str(change(self.catalog.table(name))) for name in NAMES]
        assert told[0] == told[1]

    def new(self, count: int, seed: int) -> pa.Table:
        self.last += count
        return rows(self.last - count, count, seed)

    def step(self, what: str, seed: int) -> None:
        match what:
            case "append":
                data = self.new((1, 2, 40)[seed % 3], seed)
                self.each(lambda table: table.append(data))
            case "delete":
                self.each(
                    lambda table: table.delete((f"k = {seed}", f"s = 's{seed}'", "id % 3 = 1")[seed % 3])
                )
            case "update":
                where = (f"k = {seed}", f"s = 's{seed}'")[seed % 2]
                self.each(lambda table: table.update({"k": str(seed), "note": "'red car'"}, where))
            case "merge":
                source = pa.table(
                    {"id": [seed, seed + 20, self.last], "k": [1, 2, 3], "s": ["s1", "s2", "new"]}
                )
                self.last += 1
                keyed = pa.table({"k": pa.array([seed], pa.int32()), "note": ["old bicycle"]})
                self.each(lambda table: table.merge(source, on="id"))
                self.each(lambda table: table.merge(keyed, on="k", when_not_matched="ignore"))
            case "overwrite":
                data = self.new(5, seed)
                self.each(lambda table: table.overwrite(data, f"k = {seed}"))
            case "build":
                self.catalog.build_indexes("indexed")
            case "compact":
                self.each(lambda table: table.compact() and None)
            case "rewrite":
                self.each(lambda table: table.rewrite_deletes(threshold=0.1) and None)
            case "flush":
                self.catalog.flush_inlined()
            case "widen":
                kind = next(one.type for one in self.catalog.table("plain").columns if one.name == "k")
                if kind == "int32":
                    self.each(lambda table: table.alter_type("k", "BIGINT"))
            case "evolve":
                self.added += 1
                self.each(lambda table: table.add_column(f"more{self.added}", "INTEGER", default="7"))
            case "drop":
                table = self.catalog.table("indexed")
                table.drop_index("by_k")
                table.create_index(
                    "by_k", kind=("hash", "btree")[seed % 2], columns=["k"], include=["s"], maintain="later"
                )
            case "fork":
                self.catalog = self.catalog.fork(f"f{uuid4().hex}")
            case "join":
                fork = self.catalog.fork(f"f{uuid4().hex}")
                data = self.new(30, seed)
                for name in NAMES:
                    fork.table(name).append(data)
                    fork.table(name).delete(f"k = {seed}")
                self.lake.merge(fork.name, into=self.catalog.name)
            case _:
                with self.catalog.transaction() as tx:
                    data = self.new(30, seed)
                    for name in NAMES:
                        table = tx.table(name)
                        table.append(data)
                        table.delete(f"k = {seed} OR s = 's{seed}'")
                    compare(tx.table("plain"), tx.table("indexed"), [f"k = {seed + 1}"])
        self.past.append(self.catalog.snapshot)

    def check(self, conditions: list[str]) -> None:
        plain, indexed = (self.catalog.table(name) for name in NAMES)
        compare(plain, indexed, conditions)
        for where in conditions:
            counts = [self.catalog.sql(f"SELECT count(*) AS n FROM {name} WHERE {where}") for name in NAMES]
            assert counts[0].to_pylist() == counts[1].to_pylist(), where
        for query in QUERIES:
            told = [self.catalog.sql(f"SELECT {query.format(t=name)}").to_pylist() for name in NAMES]
            assert told[0] == told[1], query
        searches(plain, indexed)


def compare(plain: forklake.Table, indexed: forklake.Table, conditions: list[str]) -> None:
    for where in conditions:
        expected, found = (sorted_rows(table.scan(where)) for table in (plain, indexed))
        assert found == expected, where
        assert indexed.scan(where).count() == len(expected), where
        expected, found = (sorted_rows(table.scan(where, ["s", "id", "k"])) for table in (plain, indexed))
        assert found == expected, where


def sorted_rows(found: Any) -> list[str]:
    return sorted(map(str, found.to_pylist()))


def searches(plain: forklake.Table, indexed: forklake.Table) -> None:
    """The same rows are found; scores of words also count rows that were deleted."""
    for name, query in (
        ("by_note", "+red +car"),
        ("by_place", {"intersects": (1, 1, 4, 5)}),
        ("by_v", [3.0, 2.0]),
    ):
        for where in (None, "k > 4", "s = 's3'"):
            found = [table.search(name, query, k=1000, where=where).to_arrow() for table in (plain, indexed)]
            score = found[0].column_names[-1]
            expected, got = (sorted_rows(rows.drop_columns(["row_id", score])) for rows in found)
            assert got == expected, (name, where)
            if name == "by_v":
                assert found[0].column(score).to_pylist() == found[1].column(score).to_pylist()
            best = indexed.search(name, query, k=3, where=where).to_arrow()
            assert best.column("row_id").to_pylist() == found[1].column("row_id").to_pylist()[:3], (
                name,
                where,
            )


def test_an_index_never_changes_an_answer(lake: forklake.Lake, lake_url: str) -> None:
    lake.set_option("data_inlining_row_limit", 2)
    lake.set_option("parquet_row_group_size", 16)

    @settings(
        max_examples=max(1, EXAMPLES[lake_url.partition(":")[0]] * settings.default.max_examples // 100),
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(STEPS, CONDITIONS)
    def run(steps: list[tuple[str, int]], conditions: list[str]) -> None:
        history = History(lake, lake.create_catalog(f"c{uuid4().hex}"))
        for name in NAMES:
            history.catalog.create_table(name, SCHEMA)
        for index, kind, columns, params in SEARCHED:
            for name in NAMES:
                history.catalog.table(name).create_index(
                    index, kind=kind, columns=columns, maintain="later", **params
                )
        history.step("append", 2)
        for index, kind, columns, params in ANSWERED:
            history.catalog.table("indexed").create_index(index, kind=kind, columns=columns, **params)
        history.step("append", 5)
        for what, seed in steps:
            history.step(what, seed)
        history.check(conditions)
        for at in history.past[-4::2]:
            plain, indexed = (history.catalog.table(name, at=at) for name in NAMES)
            compare(plain, indexed, conditions)
        history.step("build", 0)
        history.check(conditions)

    run()
