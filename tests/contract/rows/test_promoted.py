"""Columns that become types as which only DuckDB reads older files: FLOAT, signed integers, TIMESTAMPTZ."""

from __future__ import annotations

import duckdb
import pytest

import forklake

CHAINS = {
    "float": (("TINYINT", "FLOAT", "DOUBLE"), ("-128", "0", "127", "NULL"), "0.5"),
    "signed": (("UTINYINT", "SMALLINT", "INTEGER"), ("0", "200", "255", "NULL"), "-7"),
    "unsigned": (
        ("UINTEGER", "UBIGINT", "HUGEINT"),
        ("0", "4294967295", "5", "NULL"),
        "18446744073709551615",
    ),
    "zone": (
        ("DATE", "TIMESTAMP", "TIMESTAMPTZ"),
        ("'0001-01-01'", "'1969-12-31'", "'2025-01-15'", "NULL"),
        "'2025-01-15 12:30:45+02'",
    ),
    "seconds": (
        ("TIMESTAMP_S", "TIMESTAMPTZ"),
        ("'2025-01-15 12:30:45'", "'1960-02-29 00:00:01'", "NULL"),
        "'2025-01-15 12:30:45+02'",
    ),
}


def cast(values: list[tuple[str, ...]], type: str) -> list[tuple[object]]:
    """What DuckDB makes of texts that are cast from one type to the next."""
    with duckdb.connect() as oracle:
        oracle.execute("SET TimeZone = 'UTC'")
        texts: list[tuple[object]] = []
        for value, *types in values:
            found = value
            for each in types:
                found = f"CAST({found} AS {each})"
            texts += oracle.execute(f"SELECT CAST(CAST({found} AS {type}) AS VARCHAR)").fetchall()
        return sorted(texts, key=repr)


@pytest.mark.parametrize("limit", [0, 100], ids=("files", "inlined"))
@pytest.mark.parametrize("chain", CHAINS)
def test_rows_of_all_types_that_a_column_had_are_read_as_the_last(
    lake: forklake.Lake, catalog: forklake.Catalog, chain: str, limit: int
) -> None:
    types, values, new = CHAINS[chain]
    catalog.sql(f"CREATE TABLE t (n INTEGER, v {types[0]} DEFAULT {values[0]})")
    table = catalog.table("t")
    table.set_option("data_inlining_row_limit", limit)
    written: list[tuple[str, ...]] = []
    snapshots: list[int] = []
    for place, type in enumerate(types):
        if place:
            catalog.sql(f"ALTER TABLE t ALTER v SET DATA TYPE {type}")
        for value in values if place < len(types) - 1 else (*values, new):
            catalog.sql(f"INSERT INTO t VALUES ({place}, {value})")
            written.append((value, *types[: place + 1][-1:]))
        snapshots.append(catalog.snapshot)
    shown = "SELECT CAST(v AS VARCHAR) FROM t"

    def found(at: str = "") -> list[tuple[object]]:
        return sorted(catalog.sql(shown + at).to_rows(), key=repr)

    for place, (at, type) in enumerate(zip(snapshots, types, strict=True)):
        so_far = written[: (place + 1) * len(values) + (place == len(types) - 1)]
        assert found(f" AT (VERSION => {at})") == cast(so_far, type)
    last = types[-1]
    everything = cast(written, last)
    for value in (*values[:-1], new):
        (text,) = cast([(value, last)], last)
        where = f" WHERE v = CAST({value} AS {last})"
        assert found(where) == [one for one in everything if one == text], value
        assert catalog.table("t").scan(f"v = CAST({value} AS {last})").count() == len(found(where))
    with duckdb.connect() as oracle:
        oracle.execute("SET TimeZone = 'UTC'")
        listed = ", ".join(f"(CAST(CAST({value} AS {type}) AS {last}))" for value, type in written)
        ends = oracle.execute(
            f"SELECT min(v)::VARCHAR, max(v)::VARCHAR, count(v) FROM (VALUES {listed}) x(v)"
        ).fetchall()
    assert catalog.sql("SELECT min(v)::VARCHAR, max(v)::VARCHAR, count(v) FROM t").to_rows() == ends
    # They are moved, changed and compared as any others.
    fork = catalog.fork("agent")
    assert fork.sql("UPDATE t SET n = n + 10 WHERE v IS NOT NULL").rows_affected == ends[0][2]
    catalog.table("t").compact()
    assert found() == everything
    lake.merge("agent", into=catalog.name)
    assert found() == everything
    assert catalog.sql("SELECT count(*) FROM t WHERE n >= 10").to_rows() == [(ends[0][2],)]


def test_a_fork_promotes_a_column_and_its_parent_goes_on(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    catalog.sql("CREATE TABLE t (v TINYINT)")
    catalog.table("t").set_option("data_inlining_row_limit", 0)
    catalog.sql("INSERT INTO t VALUES (1)")
    fork = catalog.fork("agent")
    fork.sql("ALTER TABLE t ALTER v SET DATA TYPE FLOAT")
    fork.sql("INSERT INTO t VALUES (2.5)")
    catalog.sql("INSERT INTO t VALUES (3)")
    lake.merge("agent", into=catalog.name)
    assert catalog.sql("SELECT v FROM t ORDER BY v").to_rows() == [(1.0,), (2.5,), (3.0,)]
    assert catalog.sql("SELECT typeof(v) FROM t LIMIT 1").to_rows() == [("FLOAT",)]


@pytest.mark.parametrize(
    ("old", "new"),
    [("FLOAT", "TINYINT"), ("INTEGER", "FLOAT"), ("UBIGINT", "UINTEGER"), ("SMALLINT", "UTINYINT"),
     ("TIMESTAMPTZ", "TIMESTAMP"), ("TIMESTAMP_NS", "TIMESTAMPTZ"), ("UINTEGER", "INTEGER")],
)  # fmt: skip
def test_what_could_lose_something_is_refused(catalog: forklake.Catalog, old: str, new: str) -> None:
    catalog.sql(f"CREATE TABLE t (v {old})")
    with pytest.raises(forklake.InvalidSchemaChange, match="only wider types fit"):
        catalog.sql(f"ALTER TABLE t ALTER v SET DATA TYPE {new}")


def test_defaults_of_timestamps_get_the_zone_that_is_meant(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER)")
    catalog.table("t").set_option("data_inlining_row_limit", 0)
    catalog.sql("INSERT INTO t VALUES (1)")
    catalog.sql("ALTER TABLE t ADD COLUMN d DATE DEFAULT '2025-01-15'")
    catalog.sql("ALTER TABLE t ADD COLUMN s TIMESTAMP DEFAULT '2025-01-15 12:30:45.5'")
    for column in "ds":
        catalog.sql(f"ALTER TABLE t ALTER {column} SET DATA TYPE TIMESTAMPTZ")
    catalog.sql("INSERT INTO t (id) VALUES (2)")
    expected = [("2025-01-15 00:00:00+00", "2025-01-15 12:30:45.5+00")] * 2
    assert catalog.sql("SELECT d::VARCHAR, s::VARCHAR FROM t").to_rows() == expected
