"""Columns of a table: built with stable ids, and changed without touching data. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from forklake.errors import ColumnExists, ColumnNotFound, InvalidArgument, InvalidName, InvalidSchemaChange
from forklake.model.alike import all_letters, instead, pick
from forklake.model.entities import Column, Default
from forklake.model.ids import ColumnId
from forklake.model.names import check_name, check_text, split_name
from forklake.model.sql.constants import NULL, Null, literal
from forklake.model.sql.ddl import ColumnSpec
from forklake.model.types.data_types import (
    DataType,
    List,
    Map,
    Scalar,
    Struct,
    can_promote,
    to_ducklake_name,
    to_sql,
)

Columns = tuple[Column, ...]
ColumnPath = str | Sequence[str]
"""`city`, `address.city`, `"odd.name"`, or the parts as a list."""


def build(specs: Iterable[ColumnSpec], last_id: int = 0, last_order: int = 0) -> Columns:
    """New columns; ids count on from the last one used, nested fields included."""
    ids = iter(range(last_id + 1, 2**62))
    built: list[Column] = []
    for spec in specs:
        default, initial = _defaults(spec)
        column = _numbered(spec.name, spec.type, ids, last_order - last_id)
        built.append(replace(column, nullable=spec.nullable, default=default, initial_default=initial))
    return tuple(built)


def _numbered(name: str, type: DataType, ids: Iterator[int], shift: int) -> Column:
    column = next(ids)
    match type:
        case List():
            nested = (("element", type.element),)
        case Map():
            nested = (("key", type.key), ("value", type.value))
        case Struct():
            nested = type.fields
        case _:
            nested = ()
    children = tuple(_numbered(child, kind, ids, shift) for child, kind in nested)
    return Column(ColumnId(column), name, to_ducklake_name(type), children=children, order=column + shift)


def _defaults(spec: ColumnSpec) -> tuple[Default | None, str | None]:
    """What inserts put in, and what files without the column read as."""
    if spec.default is None:
        return None, None
    value = literal(spec.default, spec.type)
    if value is None:
        return Default(spec.default, "expression"), None
    if isinstance(value, Null):
        return None, None
    return Default(value, "literal"), value


def split_path(path: ColumnPath) -> tuple[str, ...]:
    """The parts of a path to a column or nested field."""
    if not isinstance(path, str | list | tuple):
        raise InvalidName(f"a column is named by a string or a list of parts, not by {type(path).__name__}")
    parts = split_name(path, "column") if isinstance(path, str) else tuple(path)
    if not parts:
        raise ColumnNotFound("a column path needs at least one part")
    return tuple(check_name(part, "column") for part in parts)


def find(columns: Columns, path: ColumnPath) -> Column:
    """A column or nested field; case makes no difference if nothing matches exactly."""
    parts = split_path(path)
    level, column = columns, None
    for depth, part in enumerate(parts):
        column = _named(level, part)
        if column is None:
            inside = "" if depth == 0 else f' in "{".".join(parts[:depth])}"'
            known = [candidate.name for candidate in level]
            raise ColumnNotFound(f'there is no column "{part}"{inside}: {instead(part, known)}')
        level = column.children
    if column is None:
        raise ColumnNotFound("a column path needs at least one part")
    return column


def _named(columns: Columns, name: str) -> Column | None:
    exact = next((column for column in columns if column.name == name), None)
    return exact or pick(name, columns, "column", all_letters)


def add(columns: Columns, path: ColumnPath, spec: ColumnSpec, last_id: int) -> Columns:
    """Add a column, or a field to a struct, after the others. Its id was never used before."""
    *parents, name = split_path(path)
    siblings = find(columns, parents).children if parents else columns
    if parents and find(columns, parents).type != "struct":
        raise InvalidSchemaChange(
            f'"{".".join(parents)}" is not a struct: fields can be added to structs only'
        )
    if _named(siblings, name) is not None:
        raise ColumnExists(f'there is a column "{name}" already; case makes no difference')
    if parents and (spec.default is not None or not spec.nullable):
        raise InvalidSchemaChange("only whole columns can have a default or NOT NULL, not fields inside them")
    if not spec.nullable and (spec.default is None or literal(spec.default, spec.type) is NULL):
        raise InvalidSchemaChange(f'column "{name}" is NOT NULL, so rows that exist need a default for it')
    if spec.default is not None and literal(spec.default, spec.type) is None:
        raise InvalidSchemaChange(
            f'rows that exist get the default of "{name}", so it must be a constant: '
            "add the column with one, then use set_default for later rows"
        )
    last_order = max(column.order for top in columns for column in top.walk())
    (column,) = build([replace(spec, name=name)], last_id, last_order)
    if not parents:
        return (*columns, column)
    return _changed(columns, parents, lambda parent: replace(parent, children=(*parent.children, column)))


def drop(columns: Columns, path: ColumnPath) -> Columns:
    """Remove a column or a field of a struct."""
    parts = split_path(path)
    target = find(columns, parts)
    if len(parts) == 1:
        if len(columns) == 1:
            raise InvalidSchemaChange(f'"{target.name}" is the only column: drop the table instead')
        return tuple(column for column in columns if column is not target)
    parent = _struct_parent(columns, parts, "dropped")
    if len(parent.children) == 1:
        raise InvalidSchemaChange(f'"{target.name}" is the only field of "{parent.name}": drop that instead')
    kept = tuple(child for child in parent.children if child is not target)
    return _changed(columns, parts[:-1], lambda struct: replace(struct, children=kept))


def rename(columns: Columns, path: ColumnPath, name: str) -> Columns:
    """Give a column or field another name; files are read by id, so they need not know."""
    parts = split_path(path)
    target = find(columns, parts)
    check_name(name, "column")
    siblings = columns if len(parts) == 1 else _struct_parent(columns, parts, "renamed").children
    taken = _named(tuple(column for column in siblings if column is not target), name)
    if taken is not None:
        raise ColumnExists(f'there is a column "{taken.name}" already; case makes no difference')
    return _changed(columns, parts, lambda column: replace(column, name=name))


def alter_type(columns: Columns, path: ColumnPath, type: DataType) -> Columns:
    """Widen a type; what is stored reads as the wider one."""
    target = find(columns, path)
    old = target.data_type
    if old == type:
        return columns
    refusal = f'"{target.name}" is {to_sql(old)} and cannot become {to_sql(type)}'
    if target.children or isinstance(type, List | Map | Struct):
        raise InvalidSchemaChange(f"{refusal}: change the fields inside it one by one")
    if not can_promote(old, type):
        raise InvalidSchemaChange(f"{refusal} without loss: only wider types fit")
    return _changed(columns, path, lambda column: _promoted(column, type))


def _promoted(column: Column, type: DataType) -> Column:
    """The column in a wider type. Literals are kept as text, and those of timestamps with a zone have one."""
    initial, default = column.initial_default, column.default
    if type == Scalar("timestamptz"):
        initial = None if initial is None else _in_utc(initial)
        if default is not None and default.kind == "literal":
            default = replace(default, value=_in_utc(default.value))
    return replace(column, type=to_ducklake_name(type), initial_default=initial, default=default)


def _in_utc(text: str) -> str:
    clock = "" if ":" in text else " 00:00:00"
    return f"{text}{clock}+00" if text[:1].isdigit() else text


def reshape(columns: Columns, path: ColumnPath, type: DataType, last_id: int) -> Columns:
    """Give a column another type: widen it, or let a struct have other fields, by their names.

    Fields that are gone are dropped, new ones are added, and others keep their ids and values.
    """
    parts, target = split_path(path), find(columns, path)
    match target.data_type, type:
        case Struct(), Struct(fields):
            return _with_fields(columns, parts, target, fields, last_id)
        case List(), List(element):
            return reshape(columns, [*parts, target.children[0].name], element, last_id)
        case Map(key), Map(other, value) if key == other:
            return reshape(columns, [*parts, target.children[1].name], value, last_id)
        case _:
            return alter_type(columns, path, type)


def _with_fields(
    columns: Columns,
    parts: Sequence[str],
    target: Column,
    fields: Sequence[tuple[str, DataType]],
    last_id: int,
) -> Columns:
    for name, type in fields:
        used = max(last_id, *(column.id for top in columns for column in top.walk()))
        if _named(target.children, name) is None:
            columns = add(columns, [*parts, name], ColumnSpec(name, type), used)
        else:
            columns = reshape(columns, [*parts, name], type, used)
    wanted = [name.lower() for name, _ in fields]
    for child in target.children:
        if child.name.lower() not in wanted:
            columns = drop(columns, [*parts, child.name])

    def ordered(struct: Column) -> Column:
        children = sorted(struct.children, key=lambda child: wanted.index(child.name.lower()))
        places = sorted(child.order for child in struct.children)
        return replace(
            struct,
            children=tuple(replace(child, order=at) for child, at in zip(children, places, strict=True)),
        )

    return _changed(columns, parts, ordered)


def set_default(columns: Columns, path: ColumnPath, expression: str | None) -> Columns:
    """Change what later inserts put in; rows that exist keep their values."""
    target = _top_level(columns, path, "a default")
    if expression is not None:
        check_text(expression, "default")
    default, _ = _defaults(ColumnSpec(target.name, target.data_type, default=expression))
    return _changed(columns, path, lambda column: replace(column, default=default))


def set_nullable(columns: Columns, path: ColumnPath, nullable: bool) -> Columns:
    """Allow or refuse NULL from now on."""
    _top_level(columns, path, "NOT NULL")
    if nullable not in (True, False):
        raise InvalidArgument(f"whether NULL is allowed is True or False, not {nullable!r}")
    return _changed(columns, path, lambda column: replace(column, nullable=nullable))


def reorder(columns: Columns, names: Sequence[str]) -> Columns:
    """Put columns in another order; those not named follow in the order they had."""
    if not isinstance(names, list | tuple):
        raise InvalidArgument(f"the new order is a list of names, not {type(names).__name__}")
    first = [find(columns, [name]) for name in names]
    if len({column.id for column in first}) != len(first):
        raise InvalidSchemaChange("a column is named twice in the new order")
    rest = [column for column in columns if column not in first]
    places = sorted(column.order for column in columns)
    return tuple(replace(column, order=order) for column, order in zip((*first, *rest), places, strict=True))


def _top_level(columns: Columns, path: ColumnPath, what: str) -> Column:
    if len(split_path(path)) > 1:
        raise InvalidSchemaChange(f"only whole columns can have {what}, not fields inside them")
    return find(columns, path)


def _struct_parent(columns: Columns, parts: Sequence[str], done: str) -> Column:
    parent = find(columns, parts[:-1])
    if parent.type != "struct":
        raise InvalidSchemaChange(f'the {parts[-1]} of {parent.type} "{parent.name}" cannot be {done}')
    return parent


def _changed(columns: Columns, path: ColumnPath, change: Callable[[Column], Column]) -> Columns:
    """The columns with one of them, or one nested field, changed."""
    first, *rest = split_path(path)
    target = find(columns, [first])
    new = replace(target, children=_changed(target.children, rest, change)) if rest else change(target)
    return tuple(new if column is target else column for column in columns)
