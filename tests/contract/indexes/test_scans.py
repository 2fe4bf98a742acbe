"""Scans with indexes: files without hits are not read, of others a few rows, and answers stay the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import forklake
from forklake.scan.scan_plan import plan_scan
from tests.index_kinds import data_files
from tests.index_segments import build_segment, stage_segment

FILES, ROWS = 4, 100


@pytest.fixture
def people(catalog: forklake.Catalog) -> forklake.Table:
    """Four files whose ids and mails no statistics tell apart, a hash index of ids and a B-tree of mails."""
    table = catalog.create_table("people", "id BIGINT, mail VARCHAR, n INTEGER")
    table.set_option("data_inlining_row_limit", 2)
    for number in range(FILES):
        ids = range(number, FILES * ROWS, FILES)
        table.append(pa.table({"id": ids, "mail": [f"u{at}@x" for at in ids], "n": [at % 10 for at in ids]}))
    table.create_index("by_id", kind="hash", columns=["id"], maintain="later")
    table.create_index("by_mail", kind="btree", columns=["mail"], maintain="later")
    files = data_files(table)
    build_segment(table, "by_id", files[:2])
    build_segment(table, "by_id", files[2:])
    build_segment(table, "by_mail", files)
    return table


def found(table: forklake.Table, where: str) -> list[int]:
    ids = table.scan(where).to_arrow().column("id").to_pylist()
    assert table.scan(where).count() == len(ids)
    return sorted(ids)


def rows_of(scan: forklake.Scan) -> list[str]:
    return sorted(map(str, scan.to_pylist()))


def used(table: forklake.Table, where: str) -> dict[str, tuple[int, int, int]]:
    """By index: of how many files it pruned how many, and how many rows it saved."""
    return {use.index: (use.files, use.pruned, use.rows) for use in table.scan(where).plan().indexes}


def test_files_without_hits_are_pruned_and_few_rows_of_others_read(
    catalog: forklake.Catalog, people: forklake.Table
) -> None:
    both = {"by_id", "by_mail"}
    for where, ids, names, files in (
        ("id = 101", [101], {"by_id"}, 1),
        ("id IN (101, 105, 7000)", [101, 105], {"by_id"}, 1),
        ("mail = 'u101@x' AND n < 5", [101], {"by_mail"}, 1),
        ("mail = 'u101@x' AND n > 5", [], {"by_mail"}, 1),
        ("id = 101 AND n IS NOT NULL AND mail <> 'x'", [101], {"by_id"}, 1),
        ("id = 101 OR mail = 'u102@x'", [101, 102], both, 2),
        ("(id = 101 OR mail = 'u101@x') AND n = 1", [101], both, 1),
        ("mail = 'u20z'", [], {"by_mail"}, 0),
        ("mail LIKE 'u10%'", [10, *range(100, 110)], {"by_mail"}, 4),
        ("n = 3", list(range(3, 400, 10)), set(), 4),
        ("id % 200 = 3", [3, 203], set(), 4),
    ):
        assert found(people, where) == ids, where
        plan = people.scan(where).plan()
        read = sum(len(plan.wanted.get(file.file.id, range(ROWS))) for file in plan.files)
        assert len(plan.files) == files, where
        assert read == (max(len(ids), files) if names else files * ROWS), where
        assert {use.index for use in plan.indexes if use.files} == names, where
        assert all(use.problem is None for use in plan.indexes)
    plan = people.scan("id = 101").plan()
    assert [file.path for file in plan.files] == [people.files()[1].path]
    assert {pruned.reason for pruned in plan.pruned} == {"no row is in index by_id"}
    assert "by_id pruned 3 of 4 files" in plan._repr_html_()
    shown = catalog.sql("SELECT n FROM people WHERE id = $1 AND mail LIKE 'u%'", [101]).to_pylist()
    assert shown == [{"n": 1}]
    told = dict(catalog.sql("EXPLAIN SELECT n FROM people WHERE id = 101").to_rows())
    assert "reads 1 of 4 files and 0 inlined rows; index by_id pruned 3 of 4 files, 399 rows" in told.values()
    assert (people.scan("id = 101").min("n"), people.scan("id = 7000").max("n")) == (1, None)


def test_files_without_segments_inlined_rows_and_deleted_ones(
    lake: forklake.Lake, catalog: forklake.Catalog, people: forklake.Table
) -> None:
    before = catalog.snapshot
    people.append(pa.table({"id": [101, 1000, 1001], "mail": ["u5@x", "a", "b"], "n": [1, 2, 3]}))
    people.append([{"id": 101, "mail": "u101@x", "n": 99}])
    assert found(people, "id = 101") == [101] * 3
    assert used(people, "id = 101")["by_id"] == (4, 3, 399)
    assert people.delete("id = 101 AND n = 1") == 2
    assert people.update({"n": "-1"}, "mail = 'u6@x'") == 1
    assert found(people, "id = 101") == [101]
    assert people.scan("id = 6").to_pylist() == [{"id": 6, "mail": "u6@x", "n": -1}]
    past = catalog.table("people", at=before)
    assert (found(past, "id = 101"), used(past, "id = 101")) == ([101], {"by_id": (4, 3, 399)})
    # What was built later finds rows of then.
    first = catalog.table("people", at=before - 5)
    assert (first.indexes(), found(first, "id = 5")) == ([], [5])
    assert used(first, "id = 5") == {"by_id": (4, 3, 399)}
    fork = lake.fork("main_catalog", "fork").table("people")
    assert found(fork, "id = 5") == [5]
    assert used(fork, "id = 5") == {"by_id": (4, 3, 399)}
    assert fork.delete("id = 5") == 1
    assert (found(fork, "id = 5"), found(people, "id = 5")) == ([], [5])
    with catalog.transaction() as tx:
        table = tx.table("people")
        table.append(pa.table({"id": [7, 8, 2000], "mail": ["a", "b", "c"], "n": [0, 0, 0]}))
        draft = tx._scope.read()
        (file,) = draft.staged(draft.table(people.id)).added
        stage_segment(table, draft, "by_id", [file])
        assert used(table, "id = 7")["by_id"][:2] == (5, 3)
        assert (found(table, "id = 2000"), found(table, "id = 7")) == ([2000], [7, 7])
    assert found(people, "id = 2000") == [2000]


def test_merges_touch_only_files_that_have_the_keys(people: forklake.Table) -> None:
    people.append(pa.table({"id": [5, 6000, 6001], "mail": ["a", "b", "c"], "n": [1, 2, 3]}))
    source = pa.table({"id": [6, 9, 9000], "mail": ["six", "nine", "new"], "n": [0, 0, 0]})
    merged = people.merge(source, on="id")
    assert (merged.updated, merged.deleted, merged.inserted) == (2, 0, 1)
    assert {row["mail"] for row in people.scan("id IN (6, 9, 9000)").to_pylist()} == {"six", "nine", "new"}
    both = pa.table({"id": [10, 11], "mail": ["u10@x", "no"], "n": [5, 5]})
    merged = people.merge(both, on=["id", "mail"], when_not_matched="ignore")
    assert (merged.updated, merged.inserted) == (1, 0)
    clauses = people.merge(both, on="id", when_matched=("source.n = 5", "delete"), when_not_matched="ignore")
    assert clauses.deleted == 2
    assert found(people, "id < 12") == sorted([*range(10), 5])


def test_what_cannot_be_read_is_scanned(people: forklake.Table, tmp_path: Path) -> None:
    torn = sorted(tmp_path.rglob("index-*.hash"))[0]
    torn.write_bytes(b"nothing of use" * 20)
    for at in range(100, 100 + FILES):
        (use,) = people.scan(f"id = {at}").plan().indexes
        assert use.files == 2
        assert torn.name in str(use.problem)
        assert found(people, f"id = {at}") == [at]
    for path in tmp_path.rglob("index-*"):
        path.unlink()
    assert found(people, "id = 101 OR mail = 'u3@x'") == [3, 101]


def test_segments_of_other_keys_are_not_opened(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "n BIGINT, word VARCHAR, x DOUBLE, u UUID, at TIMESTAMP")
    table.set_option("data_inlining_row_limit", 0)
    for first in (10, 20, 30):
        rows = [
            f"({n}, 'w{n}', {n} / 2, 'ffffffff-0000-4000-8000-0000000000{n}', "
            f"TIMESTAMP '2026-01-01 00:00:00.5' + INTERVAL {n} DAY)"
            for n in range(first, first + 10)
        ]
        catalog.sql(f"INSERT INTO t VALUES {', '.join(rows)}, (NULL, NULL, NULL, NULL, NULL)")
    files = data_files(table)
    for column in table.columns:
        table.create_index(f"by_{column.name}", kind="btree", columns=[column.name], maintain="later")
        made = [build_segment(table, f"by_{column.name}", [file]) for file in files]
        for path in (made[0], made[2]):
            Path(table._scope.context.storage.address(path)).unlink()
    (row,) = table.scan("n = 25").to_pylist()
    for key, value in row.items():
        for where, is_known in (
            (f"{key} = '{value}'", True),
            (f"{key} >= '{value}' AND {key} <= '{value}'", True),
            (f"{key} = '{value}' OR {key} IS NULL", False),
        ):
            plan = table.scan(where).plan()
            (use,) = (use for use in plan.indexes if use.index == f"by_{key}")
            assert (use.problem is None) == is_known, where
            assert len(plan.files) == (1 if is_known else 3), where
            assert table.scan(where).count() == (1 if is_known else 4), where
        draft = table._scope.read()
        definition = draft.table(table.id)
        (number,) = (column.id for column in definition.columns if column.name == key)
        keys = table.scan("n = 25", [key]).to_arrow().rename_columns([str(number)])
        plan = plan_scan(draft.source(definition), None, table._scope.context.storage, keys)
        (use,) = (use for use in plan.indexes if use.index == f"by_{key}")
        assert (use.problem, len(plan.files)) == (None, 1)


def test_columns_that_were_altered(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INTEGER, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    table.append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    table.append([{"id": 3, "v": "c"}])
    table.create_index("i", kind="hash", columns=["id"], maintain="later")
    files = data_files(table)
    build_segment(table, "i", files[:1])
    before = catalog.snapshot
    table.alter_type("id", "DOUBLE")
    table.rename_column("id", "key")
    build_segment(table, "i", files[1:])
    table.append([{"key": 2.5, "v": "d"}])
    for where, hits in (("key = 2", ["b"]), ("key = 2.5", ["d"]), ("key IN (1, 3)", ["a", "c"])):
        assert sorted(table.scan(where).to_arrow().column("v").to_pylist()) == hits
    assert used(table, "key IN (1, 3)")["i"][0] == 2
    past = catalog.table("t", at=before)
    assert (found(past, "id = 2"), found(past, "id = 3"), past.scan("id = 3").plan().indexes) == (
        [2],
        [3],
        (),
    )


COVERED = {
    "BIGINT": ("7", "-1", "NULL"),
    "UBIGINT": ("18446744073709551615", "0", "NULL"),
    "HUGEINT": ("-99999999999999999999", "5", "NULL"),
    "DOUBLE": ("'nan'::DOUBLE", "-0.0::DOUBLE", "0.1", "NULL"),
    "FLOAT": ("0.1", "'-inf'::FLOAT", "NULL"),
    "DECIMAL(20, 3)": ("1.250", "-3", "NULL"),
    "BOOLEAN": ("true", "false", "NULL"),
    "VARCHAR": ("'a'", "'Ünï'", "''", "NULL"),
    "BLOB": ("'\\xFF\\x00'::BLOB", "NULL"),
    "UUID": ("'ffffffff-0000-4000-8000-000000000001'", "NULL"),
    "DATE": ("'1969-07-20'", "NULL"),
    "TIMESTAMP": ("'2026-05-04 03:02:01.000009'", "NULL"),
    "TIMESTAMPTZ": ("'2026-05-04 03:02:01.000009+02'", "NULL"),
    "TIMESTAMP_NS": ("'2026-05-04 03:02:01.000000009'", "NULL"),
    "TIMESTAMP_S": ("'2026-05-04 03:02:01'", "NULL"),
    "TIME": ("'03:02:01.000009'", "NULL"),
    "INTEGER[]": ("[1, NULL, 3]", "NULL"),
    "STRUCT(x INTEGER)": ("{'x': 5}", "NULL"),
}


def test_rows_that_an_index_holds_are_read_from_it(catalog: forklake.Catalog, tmp_path: Path) -> None:
    named = [f"c{at} {type}" for at, type in enumerate(COVERED)]
    table = catalog.create_table("t", ", ".join(("id BIGINT", *named, "other INTEGER")))
    table.set_option("data_inlining_row_limit", 0)
    names = [f"c{at}" for at in range(len(COVERED))]
    table.create_index("held", kind="hash", columns=["id"], include=names)
    table.create_index("ordered", kind="btree", columns=["c0"], include=["id", *names[1:]])
    for first in (0, 10):
        rows = [
            (str(first + at), *(values[(first + at) % len(values)] for values in COVERED.values()), "1")
            for at in range(6)
        ]
        shown = ", ".join(f"({', '.join(row)})" for row in rows)
        catalog.sql(f"INSERT INTO t VALUES {shown}")
    table.delete("id IN (2, 11)")
    conditions = (
        "id IN (1, 2, 3, 10, 11, 12, 77)",
        "id = 2",
        "c0 = 7",
        "id = 1 AND c0 = -1",
        "id = 3 OR c0 = 7",
    )
    choices = (["id"], ["c3", "id"], *([name] for name in names), names, ["id", "other"], None)
    expected = {
        (where, at): rows_of(table.scan(f"({where}) AND other IS NOT NULL", columns))
        for where in conditions
        for at, columns in enumerate(choices)
    }
    counts = {where: table.scan(f"({where}) AND other = 1").count() for where in conditions}
    before = catalog.snapshot
    table.add_column("more", "INTEGER", default="9")
    table.rename_column("c0", "renamed")
    past = catalog.table("t", at=before)
    for where in conditions:
        for at, columns in enumerate(choices):
            assert rows_of(past.scan(where, columns)) == expected[where, at]
        assert past.scan(where).count() == counts[where]
    # Without data files, what the index holds is what is left.
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    plain = [name for at, name in enumerate(names) if at < 13 and at]
    rows = table.scan("id IN (1, 2, 12)", ["id", *plain]).to_arrow()
    assert rows.column("id").to_pylist() == [1, 12]
    assert [len(batch) for batch in table.scan("renamed = -1 AND id < 9", ["id"]).to_batches()] == [2]
    assert table.scan("id = 12").count() == 1
    for columns in (["id", "other"], ["id", "more"], ["id", names[-1]]):
        with pytest.raises(forklake.ForklakeError):
            table.scan("id = 1", columns).to_arrow()
