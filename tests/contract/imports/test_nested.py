"""Lists, structs and maps of files whose names, order and types inside are not those of the table."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

DDL = "n INT, s STRUCT(a BIGINT, b STRUCT(c VARCHAR)), l STRUCT(x INT)[], m MAP(VARCHAR, STRUCT(y BIGINT))"


def given(names: dict[str, str], *, extra: bool = False, reverse: bool = False) -> pa.Table:
    """Two rows, with names of our choice at every level; narrower types than those of the table."""

    def struct(**fields: pa.DataType) -> pa.StructType:
        listed = [pa.field(names.get(name, name), type) for name, type in fields.items()]
        listed += [pa.field("more", pa.int8())] if extra else []
        return pa.struct(reversed(listed) if reverse else listed)

    def value(type: pa.StructType, *values: object) -> dict[str, object]:
        ordered = list(reversed(list(type))) if reverse else list(type)
        return dict(zip([field.name for field in ordered], [*values, 9], strict=False))

    b = struct(c=pa.string())
    s, x, y = struct(a=pa.int32(), b=b), struct(x=pa.int8()), struct(y=pa.int16())
    columns = {
        "n": pa.array([1, 2], pa.int32()),
        "s": pa.array([value(s, 1, value(b, "c")), None], s),
        "l": pa.array([[value(x, 5), None], []], pa.list_(x)),
        "m": pa.array([[("k", value(y, 7))], None], pa.map_(pa.string(), y)),
    }
    return pa.table({names.get(name, name): column for name, column in columns.items()})


ROWS = [
    {"n": 1, "s": {"a": 1, "b": {"c": "c"}}, "l": [{"x": 5}, None], "m": [("k", {"y": 7})]},
    {"n": 2, "s": None, "l": [], "m": None},
]


def test_names_find_fields_in_any_order_and_case(catalog, put, rows) -> None:
    table = catalog.create_table("t", DDL)
    folded = {"a": "A", "c": "C", "x": "X", "s": "S"}
    table.add_files(put("1.parquet", given({}, reverse=True)), mapping="by_name")
    table.add_files(put("2.parquet", given(folded, reverse=True)), mapping="by_name")
    table.add_files(put("3.parquet", given(folded, extra=True)), mapping="by_name", ignore_extra=True)
    assert rows(table) == [ROWS[0]] * 3 + [ROWS[1]] * 3
    assert rows(table, "s.a = 1 AND s.b.c = 'c'", columns=["n"]) == [{"n": 1}] * 3
    assert table.scan("s.a > 100").plan().files == ()


def test_positions_find_fields_whatever_their_names(catalog, put, rows) -> None:
    table = catalog.create_table("t", DDL)
    names = {"n": "l", "s": "n", "a": "c", "b": "a", "c": "b", "x": "y", "y": "x", "l": "m", "m": "s"}
    table.add_files(put("p.parquet", given(names)), mapping="by_position")
    table.add_files(put("q.parquet", given(names, extra=True)), mapping="by_position", ignore_extra=True)
    assert rows(table) == [ROWS[0]] * 2 + [ROWS[1]] * 2


def test_a_dict_names_columns_and_fields_inside_go_by_their_names(catalog, put, rows) -> None:
    table = catalog.create_table("t", DDL)
    names = {"n": "one", "s": "two", "l": "three", "m": "four"}
    mapping = {source: target for target, source in names.items()}
    table.add_files(put("d.parquet", given(names)), mapping=mapping)
    assert rows(table) == ROWS


def test_field_ids_find_fields_at_every_level(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", "n INT, s STRUCT(a BIGINT, b VARCHAR)[]")
    ids = {column.name: column.id for column in catalog.table("t")._definition().walk()}

    def field(name: str, column: str | None, type: pa.DataType) -> pa.Field:
        known = None if column is None else {"PARQUET:field_id": str(ids[column])}
        return pa.field(name, type, metadata=known)

    def file(swapped: tuple[str | None, str | None]) -> pa.Table:
        inside = pa.struct([field("p", swapped[0], pa.string()), field("q", swapped[1], pa.int32())])
        listed = pa.list_(field("item", "element", inside))
        schema = pa.schema([field("z", "s", listed), field("n", "n", pa.int32())])
        return pa.Table.from_pylist([{"z": [{"p": "text", "q": 3}], "n": 1}], schema)

    table.add_files(put("f.parquet", file(("b", "a"))))
    assert rows(table) == [{"n": 1, "s": [{"a": 3, "b": "text"}]}]
    unnamed = put("g.parquet", file(("b", None)))
    assert 'no field "a"' in refused(table, unnamed)
    assert '"q"' in refused(table, unnamed, allow_missing=True)
    table.add_files(unnamed, allow_missing=True, ignore_extra=True)
    assert rows(table, "s[1].a IS NULL") == [{"n": 1, "s": [{"a": None, "b": "text"}]}]


def test_missing_and_extra_fields_are_refused_unless_allowed(catalog, put, rows, refused) -> None:
    table = catalog.create_table("t", DDL)
    extra = put("e.parquet", given({}, extra=True))
    message = refused(table, extra, mapping="by_name")
    assert str(extra) in message and '"more"' in message and '"s"' in message
    missing = put("m.parquet", given({"a": "other", "x": "other"}))
    assert 'no field "a" in "s"' in refused(table, missing, mapping="by_name", ignore_extra=True)
    table.add_files(missing, mapping="by_name", ignore_extra=True, allow_missing=True)
    first, second = rows(table)
    assert first == ROWS[0] | {"s": {"a": None, "b": {"c": "c"}}, "l": [{"x": None}, None]}
    assert second == ROWS[1]
    assert table.scan("s.a IS NULL").count() == 2
    assert table.scan("s.a = 1").count() == 0


def test_wrong_types_inside_are_refused_by_their_path(catalog, put, refused) -> None:
    table = catalog.create_table("t", "s STRUCT(a STRUCT(b INT)[])")
    path = put("w.parquet", pa.table({"s": [{"a": [{"b": "text"}]}]}))
    message = refused(table, path, mapping="by_name")
    assert str(path) in message and '"s.a.element.b" is VARCHAR there and INTEGER' in message
    twice = pa.struct([("b", pa.int32()), ("B", pa.int32())])
    given = pa.array([{"a": [{"b": 1, "B": 2}]}], pa.struct([("a", pa.list_(twice))]))
    path = put("twice.parquet", pa.table({"s": given}))
    assert "two fields" in refused(table, path, mapping="by_name", ignore_extra=True)


def test_fields_change_after_the_import(catalog, put, rows) -> None:
    table = catalog.create_table("t", "n INT, s STRUCT(a INT, b VARCHAR), l STRUCT(x INT, at TIMESTAMP)[]")
    timestamp = datetime(2024, 1, 1)
    inside = pa.struct([("x", pa.int32()), ("at", pa.timestamp("us"))])
    file = pa.table(
        {
            "n": pa.array([1], pa.int32()),
            "s": pa.array([{"a": 1, "b": "x"}], pa.struct([("a", pa.int32()), ("b", pa.string())])),
            "l": pa.array([[{"x": 2, "at": timestamp}]], pa.list_(inside)),
        }
    )
    table.add_files(put("a.parquet", file), mapping="by_name")
    before = catalog.snapshot, rows(table)
    table.rename_column("s.a", "z")
    table.rename_column("s.b", "a")
    table.add_column("s.b", "DOUBLE")
    table.alter_type("s.z", "BIGINT")
    table.add_column("l.element.extra", "VARCHAR")
    table.drop_column("l.element.x")
    table.rename_column("s", "r")
    assert rows(table) == [
        {"n": 1, "r": {"z": 1, "a": "x", "b": None}, "l": [{"at": timestamp, "extra": None}]}
    ]
    assert rows(catalog.table("t", at=before[0])) == before[1]
    table.append([{"n": 2, "r": {"z": 2**40, "a": "y", "b": 1.5}}])
    assert table.update({"r": "{'z': r.z + 1, 'a': r.a, 'b': 0.5}"}, "r.z < 10") == 1
    assert [row["r"] for row in rows(table)] == [
        {"z": 2, "a": "x", "b": 0.5},
        {"z": 2**40, "a": "y", "b": 1.5},
    ]
