"""Which column of a file is which of the table: by field id, name, position, or as the caller says."""

from __future__ import annotations

import pyarrow as pa
import pytest

from forklake.errors import ColumnNotFound, InvalidArgument, InvalidData


def numbered(names: dict[str, int | None], values: list[list[object]]) -> pa.Table:
    fields = [
        pa.field(name, pa.int32(), metadata=None if number is None else {"PARQUET:field_id": str(number)})
        for name, number in names.items()
    ]
    return pa.table([pa.array(column, pa.int32()) for column in values], schema=pa.schema(fields))


def test_field_ids_find_columns_whatever_files_call_them(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "a INT, b INT")
    path = put("ids.parquet", numbered({"b": 1, "x": 2}, [[10], [20]]))
    table.add_files(path)
    assert rows(table) == [{"a": 10, "b": 20}]
    plain = put("plain.parquet", pa.table({"a": pa.array([1], pa.int32())}))
    message = refused(table, plain)
    assert str(plain) in message and "mapping='by_name'" in message
    some = put("some.parquet", numbered({"a": 1, "b": None}, [[1], [2]]))
    assert '"b"' in refused(table, some)
    assert table.add_files(some, ignore_extra=True, allow_missing=True) == 1
    assert rows(table, "a = 1") == [{"a": 1, "b": None}]


def test_names_find_columns_in_any_order_and_case(catalog, put, rows) -> None:
    table = catalog.create_table("t", 'a INT, "Größe" INT')
    table.add_files(
        put("x.parquet", numbered({"GRÖSSE": None, "größe": None, "A": None}, [[0], [1], [2]])),
        mapping="by_name",
        ignore_extra=True,
    )
    assert rows(table) == [{"a": 2, "Größe": 1}]


def test_positions_find_columns_whatever_their_names(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "a INT, b INT")
    table.add_files(put("p.parquet", numbered({"b": None, "a": None}, [[1], [2]])), mapping="by_position")
    assert rows(table) == [{"a": 1, "b": 2}]
    short = put("short.parquet", numbered({"z": None}, [[5]]))
    assert '"b"' in refused(table, short, mapping="by_position")
    assert table.add_files(short, mapping="by_position", allow_missing=True) == 1
    long = put("long.parquet", numbered({"x": None, "y": None, "z": None}, [[7], [8], [9]]))
    assert '"z"' in refused(table, long, mapping="by_position")
    assert table.add_files(long, mapping="by_position", ignore_extra=True) == 1
    assert rows(table) == [{"a": 1, "b": 2}, {"a": 5, "b": None}, {"a": 7, "b": 8}]


def test_a_dict_says_which_column_is_which(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "a INT, b INT")
    path = put("d.parquet", numbered({"one": None, "two": None}, [[1], [2]]))
    table.add_files(path, mapping={"one": "B", "two": "a"})
    assert rows(table) == [{"a": 2, "b": 1}]
    other = put("e.parquet", numbered({"one": None, "two": None}, [[1], [2]]))
    assert 'no column "nine"' in refused(table, other, mapping={"nine": "a"})
    assert '"c"' in refused(table, other, InvalidArgument, mapping={"one": "c"})
    assert '"two"' in refused(table, other, mapping={"one": "a"}, allow_missing=True)
    assert '"b"' in refused(table, other, mapping={"one": "a"}, ignore_extra=True)


def test_what_is_no_mapping_is_refused(catalog, put, refused) -> None:
    table = catalog.create_table("t", "a INT")
    path = put("m.parquet", numbered({"a": None}, [[1]]))
    for mapping in ("by_magic", None, 7, {"a": 1}, {1: "a"}, ["a"], {"x": "a", "y": "A"}):
        assert "mapping" in refused(table, path, InvalidArgument, mapping=mapping)


def test_missing_columns_are_refused_or_read_as_their_default(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "a INT, b INT DEFAULT 7, c UUID, d INT[]")
    path = put("a.parquet", pa.table({"a": pa.array([1], pa.int32())}))
    message = refused(table, path, mapping="by_name")
    assert str(path) in message and '"b"' in message and "allow_missing=True" in message
    assert table.add_files(path, mapping="by_name", allow_missing=True) == 1
    assert rows(table) == [{"a": 1, "b": 7, "c": None, "d": None}]
    assert table.scan("b = 7").count() == table.scan("c IS NULL").count() == 1
    assert table.scan("b <> 7").count() == table.scan("b IS NULL").count() == 0
    strict = catalog.create_table("strict", "a INT, b INT NOT NULL")
    assert '"b" is NOT NULL' in refused(strict, path, mapping="by_name", allow_missing=True)


def test_extra_columns_are_refused_or_left_out(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "a INT")
    path = put("e.parquet", numbered({"a": None, "x": None, "y": None}, [[1], [2], [3]]))
    message = refused(table, path, mapping="by_name")
    assert str(path) in message and '"x", "y"' in message and "ignore_extra=True" in message
    assert table.add_files(path, mapping="by_name", ignore_extra=True) == 1
    assert rows(table) == [{"a": 1}]


def test_two_columns_that_differ_in_case_only_are_not_mixed_up(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "x INT")
    path = put("c.parquet", numbered({"a": None, "A": None}, [[1], [2]]))
    assert table.add_files(path, mapping={"a": "x"}, ignore_extra=True) == 1
    assert rows(table) == [{"x": 1}]
    other = put("d.parquet", numbered({"a": None, "A": None}, [[1], [2]]))
    assert '"A"' in refused(table, other, mapping={"A": "x"}, ignore_extra=True)


@pytest.mark.parametrize("name", ["file_row_number", "File_Index"])
def test_names_that_the_reader_uses_itself_are_refused(catalog, put, refused, name) -> None:
    table = catalog.create_table("t", f"{name} INT, v INT")
    path = put("r.parquet", numbered({name: None, "v": None}, [[7, 7], [1, 2]]))
    assert name.lower() in refused(table, path, mapping="by_name")
    # By id nobody reads the name.
    assert table.add_files(put("i.parquet", numbered({name: 1, "v": 2}, [[7, 7], [1, 2]]))) == 2
    assert table.delete("v = 1") == 1
    assert table.scan(row_ids=True).to_arrow().to_pylist() == [{name: 7, "v": 2, "row_id": 1}]


def test_files_with_different_columns_and_types_come_in_one_call(catalog, put, rows) -> None:
    table = catalog.create_table("t", "a BIGINT, b VARCHAR, c DOUBLE")
    paths = [
        put("1.parquet", pa.table({"a": pa.array([1], pa.int8()), "b": ["x"], "c": [1.5]})),
        put(
            "2.parquet",
            pa.table({"a": pa.array([2**62], pa.int64()), "b": ["y"], "c": pa.array([2], pa.int32())}),
        ),
        put(
            "3.parquet",
            pa.table({"c": pa.array([0.5], pa.float32()), "B": ["z"], "a": pa.array([3], pa.int32())}),
        ),
        put("4.parquet", pa.table({"extra": [None], "b": pa.array(["w"]).dictionary_encode()})),
    ]
    assert table.add_files(paths, mapping="by_name", allow_missing=True, ignore_extra=True) == 4
    assert rows(table) == [
        {"a": 1, "b": "x", "c": 1.5},
        {"a": 3, "b": "z", "c": 0.5},
        {"a": 2**62, "b": "y", "c": 2.0},
        {"a": None, "b": "w", "c": None},
    ]
    assert rows(table, "a > 2", columns=["b"]) == [{"b": "y"}, {"b": "z"}]


def test_one_file_that_does_not_fit_refuses_all(catalog, put, refused) -> None:
    table = catalog.create_table("t", "a INT")
    good = [put(f"{at}.parquet", numbered({"a": None}, [[at]])) for at in range(5)]
    bad = put("bad.parquet", pa.table({"a": ["x"]}))
    message = refused(table, [*good, bad], mapping="by_name")
    assert str(bad) in message and '"a" is VARCHAR there and INTEGER' in message


def test_null_is_refused_where_the_table_has_none(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "a INT NOT NULL, l INT[] NOT NULL")
    schema = pa.schema([pa.field("a", pa.int32()), pa.field("l", pa.list_(pa.int32()))])
    for form in ({}, {"write_statistics": False}):
        for row in ({"a": None, "l": []}, {"a": 1, "l": None}):
            path = put("null.parquet", pa.Table.from_pylist([{"a": 1, "l": []}, row], schema), **form)
            name = next(name for name, value in row.items() if value is None)
            message = refused(table, path, mapping="by_name")
            assert str(path) in message and f'"{name}" is NOT NULL' in message
        good = put(f"good{len(form)}.parquet", pa.Table.from_pylist([{"a": 1, "l": [None]}], schema), **form)
        assert table.add_files(good, mapping="by_name") == 1
    required = pa.schema([pa.field("a", pa.int32(), False), pa.field("l", pa.list_(pa.int32()), False)])
    path = put("required.parquet", pa.Table.from_pylist([{"a": 1, "l": []}], required))
    assert table.add_files(path, mapping="by_name") == 1
    assert rows(table) == [{"a": 1, "l": [None]}] * 2 + [{"a": 1, "l": []}]


def test_columns_that_the_file_has_no_name_for_are_no_secret(catalog, put) -> None:
    table = catalog.create_table("t", "a INT")
    table.add_files(put("a.parquet", numbered({"z": None}, [[1]])), mapping={"z": "a"})
    with pytest.raises(ColumnNotFound, match='"z"'):
        table.scan(columns=["z"])
    with pytest.raises(InvalidData, match="part of the table already"):
        table.add_files(put("a.parquet", numbered({"z": None}, [[1]])), mapping={"z": "a"})
