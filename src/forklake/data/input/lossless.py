"""An Arrow array into the type of a column: every value is kept as it is, or the array is refused."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context
from decimal import Decimal as Number
from typing import TypeAlias

from forklake.data.input import wkb
from forklake.data.input.casts import recast, rounded
from forklake.data.input.json_strings import first_invalid
from forklake.data.parquet.schema import file_type, geometry
from forklake.errors import InvalidData
from forklake.lazy.arrow import kind, pa, pc
from forklake.model.alike import instead
from forklake.model.entities import Column
from forklake.model.types.arrow import is_any_list
from forklake.model.types.data_types import Decimal, to_sql

_Convert: TypeAlias = "Callable[[pa.Array, Column, str], pa.Array]"
_Accept: TypeAlias = "Callable[[pa.DataType], bool]"

_ENOUGH = Context(prec=10_000)
_UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


def fit(array: pa.Array, column: Column, where: str | None = None, *, cast: bool = False) -> pa.Array:
    """The array as files hold the column, or `InvalidData`; no copy is made of what fits already.

    `cast` lets values become what the column holds that are not of its kind, if each of them survives it.
    """
    where = where or column.name
    array = _unwrapped(array)
    if kind.is_null(array.type):
        return pa.nulls(len(array), file_type(column))
    is_nested = column.type in _NESTED
    accepts = _NESTED[column.type][0] if is_nested else _scalar(column)[0]
    if not accepts(array.type) and array.null_count == len(array):
        return pa.nulls(len(array), file_type(column))
    try:
        if is_nested:
            convert = _NESTED[column.type][1]
            return convert(_accepted(array, column, where, accepts, cast), column, where, cast)
        if cast:
            array = rounded(array, column) if accepts(array.type) else _recast(array, column, where)
        return _scalar(column)[1](_accepted(array, column, where, accepts, cast), column, where)
    except pa.ArrowException as problem:
        raise misfit(where, column, str(problem)) from problem


def _most_digits() -> pa.DataType:
    return pa.decimal128(38, 0)


def _scalar(column: Column) -> tuple[_Accept, _Convert]:
    return _SCALARS["decimal" if column.type.startswith("decimal(") else column.type]


def cast_rows(array: pa.Array, column: Column, first_row: int) -> pa.Array:
    """The array as files hold the column, cast where it has to be; an error names the first row at fault."""
    try:
        return fit(array, column, cast=True)
    except InvalidData:
        at = _first_bad(array, lambda part: fit(part, column, cast=True))
        try:
            fit(array.slice(at, 1), column, cast=True)
        except InvalidData as problem:
            raise InvalidData(f"row {first_row + at}: {problem}") from problem
        raise


def _first_bad(array: pa.Array, convert: Callable[[pa.Array], object]) -> int:
    """The place of the first value that cannot be converted, found by trying halves."""
    start, length = 0, len(array)
    while length > 1:
        half = length // 2
        try:
            convert(array.slice(start, half))
        except (InvalidData, pa.ArrowException):
            length = half
        else:
            start, length = start + half, length - half
    return start


def _accepted(array: pa.Array, column: Column, where: str, accepts: _Accept, cast: bool) -> pa.Array:
    if not accepts(array.type):
        how = "by a cast" if cast else "without a cast: pass cast=True if each value fits"
        raise misfit(where, column, f"Arrow's {str(array.type)[:80]} does not become that {how}")
    return array


def _recast(array: pa.Array, column: Column, where: str) -> pa.Array:
    """The array in a type that the column takes, or as it is; errors name the first value at fault."""
    try:
        found = recast(array, column)
    except pa.ArrowException as problem:
        at = _first_bad(array, lambda part: recast(part, column))
        value = str(array[at].as_py())[:80]
        raise misfit(where, column, f"{value!r} does not become that") from problem
    return array if found is None else found


def misfit(where: str, column: Column, reason: str) -> InvalidData:
    """The error to raise, with the name and type of the column or nested field."""
    return InvalidData(f'column "{where}" is {to_sql(column.data_type)}: {reason}')


def _unwrapped(array: pa.Array) -> pa.Array:
    """The values without an encoding, and without a name that means nothing here."""
    while True:
        if kind.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif kind.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        elif isinstance(array.type, pa.BaseExtensionType) and not _is_named(array.type):
            array = array.cast(pa.bool_()) if array.type.extension_name == "arrow.bool8" else array.storage
        elif kind.is_string_view(array.type) or kind.is_binary_view(array.type):
            # Kernels do not know views; a batch is never too large for what they know.
            array = array.cast(pa.string() if kind.is_string_view(array.type) else pa.binary())
        else:
            return array


def _is_named(type: pa.DataType) -> bool:
    return type.extension_name in ("arrow.uuid", "arrow.json", "arrow.opaque")


def _is_uuid(type: pa.DataType) -> bool:
    return isinstance(type, pa.UuidType)


def _is_json(type: pa.DataType) -> bool:
    return isinstance(type, pa.JsonType)


def _is_text(type: pa.DataType) -> bool:
    return kind.is_string(type) or kind.is_large_string(type) or kind.is_string_view(type)


def _is_bytes(type: pa.DataType) -> bool:
    return (
        kind.is_binary(type)
        or kind.is_large_binary(type)
        or kind.is_binary_view(type)
        or kind.is_fixed_size_binary(type)
    )


def _is_number(type: pa.DataType) -> bool:
    return kind.is_integer(type) or kind.is_floating(type) or kind.is_decimal(type)


def _is_local(type: pa.DataType) -> bool:
    return kind.is_timestamp(type) and type.tz is None


def _is_map(type: pa.DataType) -> bool:
    """Maps, and what systems without maps make of them."""
    return kind.is_map(type) or (
        is_any_list(type)
        and kind.is_struct(type.value_type)
        and [field.name.lower() for field in type.value_type] == ["key", "value"]
    )


def _safely(array: pa.Array, column: Column, where: str) -> pa.Array:
    target = file_type(column)
    return array if array.type == target else array.cast(target)


def _to_decimal(array: pa.Array, column: Column, where: str) -> pa.Array:
    if kind.is_integer(array.type):
        array = array.cast(_most_digits())
    if column.type == "uint128" and len(array) and (pc.min(array).as_py() or 0) < 0:
        raise misfit(where, column, "a value is negative")
    type = column.data_type
    try:
        return _safely(array, column, where)
    except pa.ArrowInvalid:
        # Arrow says what is wrong, and not with which value.
        for value in array.to_pylist():
            excess = excess_digits(value, type) if value is not None and isinstance(type, Decimal) else None
            if excess is not None:
                raise misfit(where, column, f"{value} {excess}") from None
        raise


def excess_digits(number: Number, type: Decimal) -> str | None:
    """What a number has too much of for a type; None if it fits."""
    if not number.is_finite():
        return "is no number that a decimal holds"
    whole = type.precision - type.scale
    if number and number.adjusted() >= whole:
        limit = ("9" * whole or "0") + ("." + "9" * type.scale if type.scale else "")
        return f"has more than {whole} digits before the point: it must lie within ±{limit}"
    if number != number.quantize(Number(1).scaleb(-type.scale), context=_ENOUGH):
        return f"has more than {type.scale} digits after the point"
    return None


def _to_float(array: pa.Array, column: Column, where: str) -> pa.Array:
    target = file_type(column)
    if array.type == target:
        return array
    # A half has no casts of its own to everything else.
    exact = array.cast(pa.float32()) if kind.is_float16(array.type) else array
    result = exact.cast(target, safe=False)
    if kind.is_integer(exact.type):
        back, exact = result.cast(pa.float64()).cast(_most_digits()), exact.cast(_most_digits())
        same = pc.equal(back, exact)
    elif target == pa.float32() and exact.type != target:
        same = pc.or_(pc.equal(result.cast(exact.type), exact), pc.is_nan(exact))
    else:
        return result
    _check(same, exact, column, where, "would be rounded")
    return result


def _to_date(array: pa.Array, column: Column, where: str) -> pa.Array:
    result = array.cast(pa.date32())
    if kind.is_timestamp(array.type):
        _check(pc.equal(result.cast(array.type), array), array, column, where, "has a time of day")
    return result


def _check(holds: pa.Array, array: pa.Array, column: Column, where: str, problem: str) -> None:
    """Refuse the first value for which something does not hold."""
    at = pc.index(holds, False).as_py()
    if at >= 0:
        raise misfit(where, column, f"{str(array[at])[:80]} {problem}")


def _to_nanosecond_text(array: pa.Array, column: Column, where: str) -> pa.Array:
    return array if _is_text(array.type) else array.cast(pa.time64("ns")).cast(pa.string())


def _to_interval_text(array: pa.Array, column: Column, where: str) -> pa.Array:
    """As DuckDB reads it: Arrow has no intervals in Parquet."""
    if kind.is_duration(array.type):
        micros = array.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
        return pa.array([None if one is None else f"{one} microseconds" for one in micros], pa.string())
    return pa.array([_interval_text(one, column, where) for one in array.to_pylist()], pa.string())


def _interval_text(value: pa.MonthDayNano | None, column: Column, where: str) -> str | None:
    if value is None:
        return None
    micros, rest = divmod(value.nanoseconds, 1000)
    if rest:
        raise misfit(where, column, f"{value} counts nanoseconds, and an interval ends with microseconds")
    return f"{value.months} months {value.days} days {micros} microseconds"


def _to_text(array: pa.Array, column: Column, where: str) -> pa.Array:
    array = array.storage if _is_json(array.type) else array
    result = array if kind.is_string(array.type) else array.cast(pa.string())
    result.validate(full=True)
    return result


def _to_json(array: pa.Array, column: Column, where: str) -> pa.Array:
    texts = _to_text(array, column, where)
    bad = first_invalid(texts)
    if bad is not None:
        raise misfit(where, column, f"{texts[bad].as_py()[:80]!r} is not JSON")
    return array if array.type == pa.json_() else pa.ExtensionArray.from_storage(pa.json_(), texts)


def _to_uuid(array: pa.Array, column: Column, where: str) -> pa.Array:
    if _is_uuid(array.type):
        return array
    if _is_text(array.type):
        _check(pc.match_substring_regex(array, _UUID), array, column, where, "is not a UUID")
        array = _from_hex(pc.replace_substring(array.cast(pa.string()), "-", ""))
    elif not kind.is_fixed_size_binary(array.type):
        _check(pc.equal(pc.binary_length(array), 16), array, column, where, "does not have 16 bytes")
    return pa.ExtensionArray.from_storage(pa.uuid(), array.cast(pa.binary(16)))


def _from_hex(digits: pa.Array) -> pa.Array:
    """32 digits each; where NULL is, any will do."""
    filled = pc.fill_null(digits, "0" * 32)
    content = pa.py_buffer(bytes.fromhex("".join(filled.to_pylist())))
    result = pa.Array.from_buffers(pa.binary(16), len(digits), [None, content])
    return pc.if_else(digits.is_valid(), result, None) if digits.null_count else result


def _to_geometry(array: pa.Array, column: Column, where: str) -> pa.Array:
    plain = array.cast(pa.binary())
    bad = wkb.first_invalid(plain)
    if bad is not None:
        shown = plain[bad[0]].as_py()[:40].hex()
        raise misfit(where, column, f"0x{shown} is not WKB that DuckDB reads: {bad[1]}")
    return pa.ExtensionArray.from_storage(geometry(), plain)


def _to_list(array: pa.Array, column: Column, where: str, cast: bool) -> pa.Array:
    values = flattened(array)
    fitted = fit(values, column.children[0], f"{where}[]", cast=cast)
    target = file_type(column)
    if fitted is values and kind.is_list(array.type) and _is_tight(array, values):
        return array if array.type.value_field.name == "element" else array.cast(target)
    return pa.ListArray.from_arrays(_offsets(array), fitted, type=target, mask=_nulls(array))


def _to_map(array: pa.Array, column: Column, where: str, cast: bool) -> pa.Array:
    key, value = column.children
    if kind.is_map(array.type):
        pair = pa.struct([array.type.key_field, array.type.item_field])
        lists = array.view(pa.list_(pa.field("entries", pair, nullable=False)))
    else:
        # Not a cast: Arrow makes broken lists of views.
        lists = pa.ListArray.from_arrays(_offsets(array), flattened(array), mask=_nulls(array))
    entries = flattened(lists)
    keys, values = entries.flatten()
    if keys.null_count:
        raise misfit(where, column, "a key is NULL")
    fitted_keys = fit(keys, key, f"{where} key", cast=cast)
    fitted_values = fit(values, value, f"{where} value", cast=cast)
    _check_unique(lists, fitted_keys, column, where)
    if (
        fitted_keys is keys
        and fitted_values is values
        and kind.is_map(array.type)
        and _is_tight(lists, entries)
    ):
        return array.cast(file_type(column))
    return pa.MapArray.from_arrays(
        _offsets(lists), fitted_keys, fitted_values, type=file_type(column), mask=_nulls(array)
    )


def _check_unique(lists: pa.Array, keys: pa.Array, column: Column, where: str) -> None:
    if (pc.max(pc.list_value_length(lists)).as_py() or 0) < 2:
        return
    rows = pc.list_parent_indices(lists)
    plain = keys.storage if isinstance(keys.type, pa.BaseExtensionType) else keys
    if kind.is_nested(plain.type):
        distinct = len(set(zip(rows.to_pylist(), map(str, plain.to_pylist()), strict=True)))
    else:
        pairs = pa.table([rows, plain], names=["row", "key"])
        distinct = pairs.group_by(["row", "key"], use_threads=False).aggregate([]).num_rows
    if distinct < len(keys):
        raise misfit(where, column, "a key is there twice")


def _to_struct(array: pa.Array, column: Column, where: str, cast: bool) -> pa.Array:
    target = file_type(column)
    children = (
        array.flatten() if array.null_count else [array.field(at) for at in range(array.type.num_fields)]
    )
    places = match_names([field.name for field in array.type], column.children, f'in column "{where}" ')
    fitted: list[pa.Array] = []
    for child in column.children:
        at = places.get(child.name)
        values = pa.nulls(len(array), file_type(child)) if at is None else children[at]
        fitted.append(values if at is None else fit(values, child, f"{where}.{child.name}", cast=cast))
    names = [field.name for field in array.type]
    unchanged = len(fitted) == len(children) and all(a is b for a, b in zip(fitted, children, strict=True))
    if unchanged and names == [child.name for child in column.children]:
        return array
    return pa.StructArray.from_arrays(fitted, fields=list(target), mask=_nulls(array))


def match_names(names: list[str], columns: tuple[Column, ...], inside: str = "") -> dict[str, int]:
    """Where each column is among the names; case makes no difference if nothing matches exactly."""
    exact = {column.name: column.name for column in columns}
    folded = {column.name.lower(): column.name for column in columns}
    places: dict[str, int] = {}
    for at, name in enumerate(names):
        column = exact.get(name) or folded.get(name.lower())
        if column is None:
            meant = instead(name, [column.name for column in columns])
            raise InvalidData(f'{inside}there is no "{name}" to write to: {meant}')
        if column in places:
            raise InvalidData(f'{inside}"{column}" is given twice: case makes no difference')
        places[column] = at
    return places


def flattened(lists: pa.Array) -> pa.Array:
    """What is in the lists, without what hides behind NULL."""
    # Arrow makes no empty array of a struct that holds an extension type.
    return lists.flatten() if pc.sum(pc.list_value_length(lists)).as_py() else lists.values.slice(0, 0)


def _offsets(lists: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum_checked(lengths)])


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _is_tight(lists: pa.Array, values: pa.Array) -> bool:
    """Whether nothing is hidden behind NULL, which the Parquet writer does not like."""
    offsets = lists.offsets
    return offsets[len(offsets) - 1].as_py() - offsets[0].as_py() == len(values)


_LOCAL = (lambda type: _is_local(type) or kind.is_date(type), _safely)
_TIME = (lambda type: kind.is_time(type), _safely)
_WHOLE = (_is_number, _safely)
_EXACT = (lambda type: kind.is_integer(type) or kind.is_decimal(type), _to_decimal)
_FLOAT = (lambda type: kind.is_integer(type) or kind.is_floating(type), _to_float)

# What each type takes, and how. A timestamp with a zone and one without never become each other: nobody knows
# which zone was meant.
_SCALARS: dict[str, tuple[_Accept, _Convert]] = {
    "boolean": (lambda type: kind.is_boolean(type), _safely),
    **{f"{sign}int{bits}": _WHOLE for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "int128": _EXACT,
    "uint128": _EXACT,
    "decimal": _EXACT,
    "float32": _FLOAT,
    "float64": _FLOAT,
    "date": (lambda type: kind.is_date(type) or _is_local(type), _to_date),
    "time": _TIME,
    "timetz": _TIME,
    "time_ns": (lambda type: kind.is_time(type), _to_nanosecond_text),
    "timestamp": _LOCAL,
    "timestamp_s": _LOCAL,
    "timestamp_ms": _LOCAL,
    "timestamp_ns": _LOCAL,
    "timestamptz": (lambda type: kind.is_timestamp(type) and not _is_local(type), _safely),
    "varchar": (lambda type: _is_text(type) or _is_json(type), _to_text),
    "blob": (_is_bytes, _safely),
    "json": (lambda type: _is_text(type) or _is_json(type), _to_json),
    "uuid": (
        lambda type: (
            _is_uuid(type)
            or _is_text(type)
            or (_is_bytes(type) and (not kind.is_fixed_size_binary(type) or type.byte_width == 16))
        ),
        _to_uuid,
    ),
    "geometry": (_is_bytes, _to_geometry),
    "interval": (lambda type: kind.is_interval(type) or kind.is_duration(type), _to_interval_text),
}
_NESTED: dict[str, tuple[_Accept, Callable[[pa.Array, Column, str, bool], pa.Array]]] = {
    "list": (is_any_list, _to_list),
    "map": (_is_map, _to_map),
    "struct": (lambda type: kind.is_struct(type), _to_struct),
}
