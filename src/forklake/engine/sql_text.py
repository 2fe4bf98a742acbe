"""Pieces of DuckDB's SQL: names, literals, and values of nested types put into another shape. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from forklake.model.entities import Column
from forklake.model.names import quoted
from forklake.model.types.data_types import DataType, Decimal, List, Map, Scalar, Struct, to_sql

# What Arrow shows of a type that it does not have itself.
_SHOWN: dict[str, DataType] = {
    "int128": Decimal(38, 0),
    "uint128": Decimal(38, 0),
    "timetz": Scalar("time"),
    "geometry": Scalar("blob"),
}


def text(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("'", "''") + "'"


def shown_as(type: DataType) -> DataType:
    """The type that a result has in Arrow."""
    match type:
        case Scalar(name):
            return _SHOWN.get(name, type)
        case List(element):
            return List(shown_as(element))
        case Map(key, value):
            return Map(shown_as(key), shown_as(value))
        case Struct(fields):
            return Struct(tuple((name, shown_as(field)) for name, field in fields))
        case _:
            return type


def shown(expression: str, type: DataType) -> str:
    """An expression as a result shows it."""
    target = shown_as(type)
    return expression if target == type else f"CAST({_plain(expression, type)} AS {to_sql(target)})"


def computed(expression: str, type: DataType) -> str:
    """An expression as a value of a type, in a form that Arrow has."""
    return shown(f"CAST(({expression}) AS {to_sql(type)})", type)


def default_sql(column: Column) -> str:
    """The default of a column, as an expression."""
    default = column.default
    if default is None:
        return "NULL"
    value = f"({default.value})" if default.kind == "expression" else text(default.value)
    return f"CAST({value} AS {to_sql(column.data_type)})"


def guarded(expression: str) -> str:
    """A value of an Arrow table that conditions are not left to Arrow on.

    Arrow finds NaN below everything, and fails at numbers beyond 64 bits with a sign.
    """
    return f"CASE WHEN {expression} IS NULL THEN NULL ELSE {expression} END"


def unbounded(expression: str, type: DataType) -> str:
    """An expression that DuckDB knows no bounds of, where it may be NaN.

    Parquet leaves NaN out of the bounds in footers. DuckDB takes those for the bounds of all values: it skips
    row groups whose largest number is too small, and gives that as the maximum, though NaN is larger.
    """
    if not _has_float(type):
        return expression
    match type:
        case Scalar():
            return f"CASE WHEN {expression} IS NULL THEN NULL ELSE {expression} END"
        case List():
            return f"({expression})[:]"
        case _:
            return f"([{expression}][:])[1]"


def _has_float(type: DataType) -> bool:
    match type:
        case List(element):
            return _has_float(element)
        case Map(key, value):
            return _has_float(key) or _has_float(value)
        case Struct(fields):
            return any(_has_float(field) for _, field in fields)
        case _:
            return type in (Scalar("float32"), Scalar("float64"))


def _has_special(type: DataType) -> bool:
    match type:
        case List(element):
            return _has_special(element)
        case Map(key, value):
            return _has_special(key) or _has_special(value)
        case Struct(fields):
            return any(_has_special(field) for _, field in fields)
        case _:
            return type in (Scalar("geometry"), Scalar("timetz"))


def _plain(expression: str, type: DataType, depth: int = 0) -> str:
    """An expression with bytes instead of geometries, which DuckDB does not cast, and with times in UTC."""
    if not _has_special(type):
        return expression
    variable = f"x{depth}"
    match type:
        case List(element):
            inner = _plain(variable, element, depth + 1)
            return f"list_transform({expression}, lambda {variable}: {inner})"
        case Map(key, value):
            first = _plain(f"{variable}.key", key, depth + 1)
            second = _plain(f"{variable}.value", value, depth + 1)
            return _mapped(expression, variable, first, second)
        case Struct(fields):
            return _packed(
                expression,
                (
                    (name, _plain(f"struct_extract({expression}, {text(name)})", field, depth))
                    for name, field in fields
                ),
            )
        case Scalar("timetz"):
            # A cast would keep the clock and drop the zone.
            return f"CAST(timezone(INTERVAL '0 hours', {expression}) AS TIME)"
        case _:
            return f"st_aswkb({expression})"


def _packed(expression: str, fields: Iterable[tuple[str, str]]) -> str:
    """A struct of the fields, NULL where the expression is."""
    listed = ", ".join(f"{quoted(name)} := {value}" for name, value in fields)
    return f"CASE WHEN {expression} IS NULL THEN NULL ELSE struct_pack({listed}) END"


def _mapped(expression: str, variable: str, key: str, value: str) -> str:
    """A map of the keys and values, each an expression over an entry; NULL where the expression is."""
    pair = f"struct_pack(k := {key}, v := {value})"
    pairs = f"list_transform(map_entries({expression}), lambda {variable}: {pair})"
    return f"CASE WHEN {expression} IS NULL THEN NULL ELSE map_from_entries({pairs}) END"


class FileColumn:
    """A column of a file, where fields inside structs have names of their own."""

    __slots__ = ("children", "column", "name", "spare")

    def __init__(
        self,
        column: Column,
        name: str | None,
        children: tuple[FileColumn, ...] = (),
        spare: tuple[str, DataType] | None = None,
    ) -> None:
        """A field without a name is not in the file.

        `spare` is another field of a struct in the file: where none of the table's is in it, only that tells
        which values are NULL.
        """
        self.column = column
        self.name = name
        self.children = children
        self.spare = spare

    @property
    def is_same(self) -> bool:
        """Whether names inside are those of the table."""
        inside = self.children if self.column.type == "struct" else ()
        named = all(child.name == child.column.name for child in inside)
        return named and all(child.is_same for child in self.children)

    def type(self) -> DataType:
        """The type of the column, with the names of the file, and without what is not there."""
        children = self.children
        match self.column.type:
            case "list":
                return List(children[0].type())
            case "map":
                return Map(children[0].type(), children[1].type())
            case "struct":
                named = [(c.name, c.type()) for c in children if c.name is not None]
                return Struct(tuple(named or ([] if self.spare is None else [self.spare])))
            case _:
                return self.column.data_type


def reshaped(expression: str, shape: FileColumn, depth: int = 0) -> str:
    """An expression over values as a file has them, in the shape of the table."""
    if shape.is_same:
        return expression
    column = shape.column
    variable = f"x{depth}"
    match column.type:
        case "struct":
            return _packed(
                expression,
                ((child.column.name, _field(expression, child, depth)) for child in shape.children),
            )
        case "list":
            inner = reshaped(variable, shape.children[0], depth + 1)
            return f"list_transform({expression}, lambda {variable}: {inner})"
        case "map":
            key = reshaped(f"{variable}.key", shape.children[0], depth + 1)
            value = reshaped(f"{variable}.value", shape.children[1], depth + 1)
            return _mapped(expression, variable, key, value)
        case _:
            return expression


def _field(expression: str, child: FileColumn, depth: int) -> str:
    if child.name is None:
        return f"CAST(NULL AS {to_sql(child.column.data_type)})"
    return reshaped(f"struct_extract({expression}, {text(child.name)})", child, depth)
