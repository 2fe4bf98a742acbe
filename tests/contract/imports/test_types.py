"""Types of files that become wider ones of the table, and those that do not."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forklake.errors import InvalidData
from forklake.model.types.arrow import from_arrow, to_arrow
from forklake.model.types.data_types import can_widen, parse, to_sql

MOMENT = datetime(2024, 2, 29, 12, 30, 15)
# Every type that files commonly have, with values at its ends.
FOUND: dict[str, tuple[pa.DataType, list[object]]] = {
    "TINYINT": (pa.int8(), [-128, 127, 0, None]),
    "SMALLINT": (pa.int16(), [-(2**15), 2**15 - 1]),
    "INTEGER": (pa.int32(), [-(2**31), 2**31 - 1]),
    "BIGINT": (pa.int64(), [-(2**63), 2**63 - 1]),
    "UTINYINT": (pa.uint8(), [0, 255]),
    "USMALLINT": (pa.uint16(), [0, 65535]),
    "UINTEGER": (pa.uint32(), [0, 2**32 - 1]),
    "UBIGINT": (pa.uint64(), [0, 2**64 - 1]),
    "FLOAT": (pa.float32(), [0.1, float("inf"), -0.0]),
    "DOUBLE": (pa.float64(), [0.1, 1e300, -0.0]),
    "DECIMAL(4,1)": (pa.decimal128(4, 1), [Decimal("-999.9"), Decimal("0.1")]),
    "DECIMAL(18,0)": (pa.decimal128(18, 0), [Decimal(10**18 - 1)]),
    "DECIMAL(38,2)": (pa.decimal128(38, 2), [Decimal(10**35)]),
    "DATE": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "TIMESTAMP_MS": (pa.timestamp("ms"), [MOMENT]),
    "TIMESTAMP": (pa.timestamp("us"), [MOMENT.replace(microsecond=7)]),
    "TIMESTAMP_NS": (pa.timestamp("ns"), [MOMENT.replace(microsecond=7)]),
    "TIMESTAMPTZ": (pa.timestamp("us", "UTC"), [MOMENT]),
    "TIME": (pa.time64("us"), [time(23, 59, 59, 999_999)]),
    "BOOLEAN": (pa.bool_(), [True, False]),
    "VARCHAR": (pa.string(), ["", "ä"]),
    "BLOB": (pa.binary(), [b"", b"\0\xff"]),
}
WANTED = [
    *FOUND,
    "HUGEINT",
    "UHUGEINT",
    "DECIMAL(12,1)",
    "DECIMAL(38,10)",
    "UUID",
    "JSON",
    "TIMETZ",
    "TIMESTAMP_S",
]
# Beyond what columns may become: the values say whether they fit, and these do.
ALSO = {
    ("DECIMAL(18,0)", "HUGEINT"),
    ("DECIMAL(18,0)", "UHUGEINT"),
    ("TIME", "TIMETZ"),
    *((a, b) for a in ("TIMESTAMP", "TIMESTAMP_NS") for b in ("TIMESTAMP", "TIMESTAMP_NS")),
    ("TIMESTAMP_MS", "TIMESTAMP_NS"),
    ("TIMESTAMP_MS", "TIMESTAMP_S"),
    *(("UTINYINT", b) for b in ("SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "UHUGEINT")),
    *(("USMALLINT", b) for b in ("INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "UHUGEINT")),
    *(("UINTEGER", b) for b in ("BIGINT", "HUGEINT", "UBIGINT", "UHUGEINT")),
    *(("UBIGINT", b) for b in ("HUGEINT", "UHUGEINT")),
}
WIDENINGS = [
    (a, b)
    for a in FOUND
    for b in WANTED
    if can_widen(parse(a), parse(b)) and a not in ("VARCHAR", "BLOB") and not b.startswith("TIMESTAMP_")
]


def test_every_type_reads_as_each_wider_one_and_as_no_other(catalog, put) -> None:
    """One table for each type of column, one file for each type of values."""
    expected: dict[str, list[tuple[int, object]]] = {wanted: [] for wanted in WANTED}
    with catalog.transaction() as tx:
        for wanted, rows in expected.items():
            table = tx.create_table(("main", f"t {wanted}"), f"n INT, v {wanted}")
            shown = table.scan().schema.field("v").type
            for at, (found, (arrow, values)) in enumerate(FOUND.items()):
                array = pa.array(values, arrow)
                numbers = pa.array([at] * len(values), pa.int32())
                path = put(f"{wanted}/{at}.parquet", pa.table({"n": numbers, "v": array}))
                if (found, wanted) in ALSO or can_widen(parse(found), parse(wanted)):
                    assert table.add_files(path, mapping="by_name") == len(values)
                    rows += [(at, value) for value in array.cast(shown).to_pylist()]
                elif wanted not in ("UUID", "JSON"):
                    with pytest.raises(InvalidData, match=r"only types that fit|would lose data") as caught:
                        table.add_files(path, mapping="by_name")
                    assert str(path) in str(caught.value) and '"v"' in str(caught.value)
    for wanted, rows in expected.items():
        found = catalog.table(("main", f"t {wanted}")).scan().to_arrow().to_pylist()
        assert sorted([(row["n"], row["v"]) for row in found], key=str) == sorted(rows, key=str), wanted
        assert rows or wanted in ("UUID", "JSON"), wanted


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_values_of_the_wider_type_prune_files_of_the_narrower(catalog, put, data) -> None:
    """What the footer says is read as the column is, so that no file is skipped that has the value."""
    found, wanted = data.draw(st.sampled_from(WIDENINGS))
    arrow, values = FOUND[found]
    number = len(catalog.tables())
    table = catalog.create_table(f"p{number}", f"v {wanted}")
    kept = [value for value in values if value is not None]
    files = [pa.table({"v": pa.array([value], arrow)}) for value in kept]
    paths = [put(f"prune{number}/{at}.parquet", file) for at, file in enumerate(files)]
    table.add_files(paths, mapping="by_name")
    for value in pa.array(kept, arrow).cast(table.scan().schema.field("v").type).to_pylist():
        text = f"{value:f}" if isinstance(value, Decimal) else str(value)
        scan = table.scan(f"v = CAST('{text}' AS {wanted})")
        assert scan.count() == 1, (found, wanted, value)
        # A float of others may be NaN, which is above everything.
        if not pa.types.is_floating(arrow):
            assert len(scan.plan().files) == 1, (found, wanted, value)


def test_nanoseconds_fit_where_they_are_whole_microseconds(catalog, put, refused) -> None:
    for wanted, zone in (("TIMESTAMP", None), ("TIMESTAMPTZ", "UTC")):
        table = catalog.create_table(f"t{wanted}", f"l STRUCT(v {wanted})[]")
        type = pa.list_(pa.struct([("v", pa.timestamp("ns", zone))]))
        good = put(f"{wanted}good.parquet", pa.table({"l": pa.array([[{"v": 10**9}], [], None], type)}))
        bad = put(
            f"{wanted}bad.parquet",
            pa.table({"l": pa.array([[{"v": 10**9}, {"v": 1}]], type)}),
            row_group_size=1,
        )
        assert table.add_files(good, mapping="by_name") == 3
        message = refused(table, bad, mapping="by_name")
        assert str(bad) in message and '"l.element.v"' in message
        assert table.scan("l[1].v = '1970-01-01 00:00:01'").count() == 1


def test_text_fits_json_where_it_is_json_and_bytes_fit_uuids_where_they_are_16(
    catalog, put, rows, refused
) -> None:
    table = catalog.create_table("t", "j JSON, u UUID")
    good = UUID(int=5)
    for at, (text, content, name) in enumerate(
        [('{"a": 1}', good.bytes, None), ("{", good.bytes, '"j"'), ("1", b"short", '"u"'), (None, None, None)]
    ):
        path = put(f"{at}.parquet", pa.table({"j": [text], "u": pa.array([content], pa.binary())}))
        if name is None:
            assert table.add_files(path, mapping="by_name") == 1
        else:
            assert name in refused(table, path, mapping="by_name")
    assert rows(table) == [{"j": '{"a": 1}', "u": good}, {"j": None, "u": None}]
    fixed = put("f.parquet", pa.table({"j": ["[]"], "u": pa.array([b"x" * 12], pa.binary(12))}))
    assert '"u"' in refused(table, fixed, mapping="by_name")


NEVER = [
    (pa.array([1], pa.duration("us")), "INTERVAL"),
    (pa.array([1], pa.time64("ns")), "TIME"),
    (pa.array([1], pa.time64("ns")), "TIME_NS"),
    (pa.array([Decimal(1)], pa.decimal256(50, 0)), "DECIMAL(38,0)"),
    (pa.array([[1]]), "BIGINT"),
    (pa.array([1]), "BIGINT[]"),
    (pa.array([{"a": 1}]), "BIGINT[]"),
    (pa.array([[1]]), "STRUCT(a BIGINT)"),
    (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "STRUCT(k BIGINT)"),
    (pa.array([[None]]), "DATE[]"),
]


def test_other_types_are_refused_before_anything_is_read(catalog, put, refused) -> None:
    for at, (array, ddl) in enumerate(NEVER):
        table = catalog.create_table(f"t{at}", f"v {ddl}")
        path = put(f"{at}.parquet", pa.table({"v": array}))
        message = refused(table, path, mapping="by_name")
        assert message.startswith(f'{path}: column "v')
        assert to_sql(parse(ddl)).partition("[")[0].partition("(")[0] in message


def test_files_of_the_lake_itself_come_back_with_every_type(catalog, tmp_path, rows) -> None:
    names = [*FOUND, "HUGEINT", "UHUGEINT", "TIMESTAMP_S", "TIMETZ", "UUID", "JSON", "TIME_NS", "INTERVAL"]
    ddl = ", ".join(f'"{name}" {name}' for name in names)
    own = catalog.create_table("own", ddl)
    own.set_option("data_inlining_row_limit", 0)
    full = {name: values[0] for name, (_, values) in FOUND.items() if name != "TIMESTAMPTZ"}
    full |= {
        "HUGEINT": -(10**37),
        "UHUGEINT": 10**37,
        "TIMESTAMP_S": MOMENT,
        "TIMETZ": time(1),
        "UUID": UUID(int=1),
    }
    own.append([full | {"JSON": "[1]", "TIME_NS": time(2), "INTERVAL": timedelta(days=3)}, {}])
    other = catalog.create_table("other", ddl)
    paths = [tmp_path / "files" / file.path for file in own.files()]
    assert other.add_files(paths) == 2
    assert rows(other) == rows(own) and len(rows(own)) == 2
    # A row that was updated carries its id; elsewhere it is another row.
    own.update({"TINYINT": "1"}, '"TINYINT" IS NOT NULL')
    changed = [tmp_path / "files" / file.path for file in own.files()]
    assert other.add_files([path for path in changed if path not in paths], ignore_extra=True) == 1
    ids = other.scan(row_ids=True).to_arrow().column("row_id").to_pylist()
    assert sorted(ids) == [0, 1, 2]


def test_arrow_types_of_the_table_are_those_of_its_columns() -> None:
    for name, (arrow, _) in FOUND.items():
        assert from_arrow(arrow) == parse(name) and to_arrow(parse(name)) == arrow
