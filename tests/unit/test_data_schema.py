"""The Arrow schema of files: types, nullability and field ids at every level."""

from __future__ import annotations

import io

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forklake.data.parquet.footer import leaf_places
from forklake.data.parquet.schema import arrow_schema, file_type
from forklake.errors import UnknownType
from forklake.model.ids import ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN
from forklake.model.sql.ddl import columns_of
from forklake.model.table.columns import build

NESTED = build(
    columns_of(
        'a INTEGER NOT NULL, "b c" STRUCT(x VARCHAR, "y z" JSON[]), m MAP(VARCHAR, STRUCT(q UUID)), '
        "l DECIMAL(9,2)[][]"
    )
)


def parquet_of(schema: pa.Schema) -> pq.ParquetFile:
    content = io.BytesIO()
    pq.ParquetWriter(content, schema, store_schema=False).close()
    return pq.ParquetFile(content)


def ids_of(field: pa.Field) -> list[int]:
    inner = (
        [field.type.field(at) for at in range(field.type.num_fields)]
        if pa.types.is_nested(field.type)
        else []
    )
    if pa.types.is_map(field.type):
        inner = [field.type.key_field, field.type.item_field]
    return [
        int(field.metadata[b"PARQUET:field_id"]),
        *(number for child in inner for number in ids_of(child)),
    ]


def test_field_ids_stand_at_every_level_of_the_file() -> None:
    schema = parquet_of(arrow_schema(NESTED)).schema_arrow
    found = [number for field in schema for number in ids_of(field)]
    assert found == [column.id for top in NESTED for column in top.walk()]


def test_leaves_are_found_by_their_field_ids() -> None:
    file = parquet_of(arrow_schema(NESTED, row_ids=True))
    places = leaf_places(file.metadata)
    leaves = [column.id for top in NESTED for column in top.walk() if not column.children]
    assert list(places.items()) == [(number, at) for at, number in enumerate([*leaves, ROW_ID_COLUMN])]


def test_names_and_nullability_are_those_of_the_table() -> None:
    schema = arrow_schema(NESTED)
    assert [(field.name, field.nullable) for field in schema] == [
        ("a", False), ("b c", True), ("m", True), ("l", True)
    ]  # fmt: skip
    assert [field.name for field in schema.field("b c").type] == ["x", "y z"]
    entries = schema.field("m").type
    assert not entries.key_field.nullable
    assert entries.item_field.nullable
    assert schema.field("l").type.value_field.name == "element"


def test_ids_of_rows_and_snapshots_come_last() -> None:
    schema = arrow_schema(NESTED, row_ids=True, snapshot_ids=True)
    assert schema.names[-2:] == ["_ducklake_internal_row_id", "_ducklake_internal_snapshot_id"]
    assert [ids_of(field) for field in list(schema)[-2:]] == [[ROW_ID_COLUMN], [SNAPSHOT_ID_COLUMN]]
    assert schema.types[-2:] == [pa.int64(), pa.int64()]


@pytest.mark.parametrize(
    ("type", "logical"),
    [
        ("JSON", "JSON"),
        ("UUID", "UUID"),
        ("GEOMETRY", "GEOMETRY"),
        ("HUGEINT", "DECIMAL"),
        ("VARCHAR", "STRING"),
    ],
)
def test_types_land_in_parquet_under_their_own_names(type: str, logical: str) -> None:
    leaf = parquet_of(arrow_schema(build(columns_of(f"c {type}")))).schema.column(0)
    # Before 26, Arrow has no name for the type of geometries that it writes.
    assert leaf.logical_type.type == logical or str(leaf.logical_type).upper().startswith(f"{logical}(")


@pytest.mark.parametrize("type", ["VARIANT", "STRUCT(a VARIANT)[]"])
def test_what_parquet_cannot_hold_is_refused_by_name(type: str) -> None:
    columns = build(columns_of(f"odd {type}"))
    with pytest.raises(UnknownType, match="VARIANT"):
        arrow_schema(columns)


@pytest.mark.parametrize(
    ("type", "value", "shown"),
    [
        ("TIME WITH TIME ZONE", 3_723_000_001, "01:02:03.000001+00"),
        ("TIME_NS", "01:02:03.000000001", "01:02:03.000000001"),
        ("UHUGEINT", 10**38 - 1, "9" * 38),
        ("TIMESTAMP_S", 5, "1970-01-01 00:00:05"),
    ],
)
def test_duckdb_reads_types_that_files_hold_in_another_way(tmp_path, type: str, value, shown: str) -> None:
    columns = build(columns_of(f"c {type}"))
    array = pa.array([value], file_type(columns[0]))
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table([array], schema=arrow_schema(columns)), path, store_schema=False)
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT c::VARCHAR, typeof(c) FROM read_parquet('{path}', "
            f"schema = MAP {{1: {{name: 'c', type: '{type}', default_value: NULL}}}})"
        ).fetchone()
    assert found == (shown, type)
