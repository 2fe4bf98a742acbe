"""Arrow arrays cast to what a column takes, if every value fits: texts to dates, doubles to decimals.

All of it is done by Arrow's kernels. A value that does not fit raises `pa.ArrowInvalid`, and the caller finds
out which one it is.
"""

from __future__ import annotations

from collections.abc import Callable

from forklake.data.parquet.schema import file_type
from forklake.lazy.arrow import kind, pa, pc
from forklake.model.entities import Column

_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_INFINITE = r"(?i)inf"
_WHOLE = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_LOCAL = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"})
_CLOCKS = frozenset({"time", "time_ns"})


def recast(array: pa.Array, column: Column) -> pa.Array | None:
    """The array in a type that the column takes; None if there is no such cast."""
    name = "decimal" if column.type.startswith("decimal(") else column.type
    if kind.is_string(array.type) or kind.is_large_string(array.type):
        return _from_text(array, column, name)
    if kind.is_floating(array.type) and name in ("decimal", "int128", "uint128"):
        # Its shortest spelling is what somebody meant by a double: 0.1, and not what lies nearest to it.
        return _to_decimal(array.cast(pa.string()), column)
    if kind.is_boolean(array.type) and name in _WHOLE:
        return array.cast(pa.int8())
    if kind.is_decimal(array.type) and name in ("float32", "float64"):
        return array.cast(pa.float64())
    if kind.is_integer(array.type) and name == "boolean":
        _check(pc.or_(pc.equal(array, 0), pc.equal(array, 1)), array)
        return array.cast(pa.bool_())
    if kind.is_timestamp(array.type):
        return _from_timestamp(array, name)
    return array.cast(pa.string()) if name == "varchar" and _is_plain(array.type) else None


def rounded(array: pa.Array, column: Column) -> pa.Array:
    """Doubles as the floats that are nearest, for a column of floats; anything else as it is."""
    if column.type != "float32" or not kind.is_float64(array.type):
        return array
    result = array.cast(pa.float32(), safe=False)
    _check(pc.or_(pc.is_finite(result), pc.invert(pc.is_finite(array))), array)
    return result


def _is_plain(type: pa.DataType) -> bool:
    return (
        kind.is_integer(type)
        or kind.is_floating(type)
        or kind.is_decimal(type)
        or kind.is_boolean(type)
        or kind.is_temporal(type)
    )


def _from_text(array: pa.Array, column: Column, name: str) -> pa.Array | None:
    convert = _TEXTS.get(name)
    return None if convert is None else convert(pc.utf8_trim_whitespace(array.cast(pa.string())), column)


def _to_whole(texts: pa.Array, column: Column) -> pa.Array:
    # Arrow would read 0x10 as well.
    _check(pc.match_substring_regex(texts, r"^[+-]?[0-9]+$"), texts)
    return pc.replace_substring_regex(texts, r"^\+", "").cast(file_type(column))


def _to_decimal(texts: pa.Array, column: Column) -> pa.Array:
    target = file_type(column)
    return texts.cast(target if kind.is_decimal(target) else pa.decimal128(38, 0))


def _to_float(texts: pa.Array, column: Column) -> pa.Array:
    result = texts.cast(file_type(column))
    finite = pc.or_(pc.match_substring_regex(texts, _INFINITE), pc.invert(pc.is_inf(result)))
    _check(finite, texts)
    return result


def _to_boolean(texts: pa.Array, column: Column) -> pa.Array:
    return texts.cast(pa.bool_())


def _to_date(texts: pa.Array, column: Column) -> pa.Array:
    return pc.replace_substring_regex(texts, "[ T]00:00(:00(\\.0+)?)?$", "").cast(pa.date32())


def _to_local(texts: pa.Array, column: Column) -> pa.Array:
    return texts.cast(file_type(column))


def _to_zoned(texts: pa.Array, column: Column) -> pa.Array:
    """Timestamps without a zone are in UTC, as everywhere in expressions."""
    full = pc.if_else(
        pc.match_substring_regex(texts, _DAY), pc.binary_join_element_wise(texts, "00:00:00", " "), texts
    )
    zoned = pc.match_substring_regex(full, r":[0-9.]+(Z|[+-][0-9:]+)$|[ T][0-9]{2}(Z|[+-][0-9:]+)$")
    return pc.if_else(zoned, full, pc.binary_join_element_wise(full, "Z", "")).cast(file_type(column))


def _to_clock(texts: pa.Array, column: Column) -> pa.Array:
    unit = "ns" if column.type == "time_ns" else "us"
    timestamps = pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp(unit))
    return timestamps.cast(pa.time64(unit))


def _to_bytes(texts: pa.Array, column: Column) -> pa.Array:
    return texts.cast(pa.binary())


def _from_timestamp(array: pa.Array, name: str) -> pa.Array | None:
    """A timestamp with a zone is its time in UTC where there is none, and the other way round."""
    type = array.type
    if type.tz is None and name == "timestamptz":
        return array.view(pa.timestamp(type.unit, "UTC"))
    if type.tz is not None and (name in _LOCAL or name == "date"):
        return array.view(pa.timestamp(type.unit))
    if type.tz is not None and name in _CLOCKS:
        return None
    return array.cast(pa.string()) if name == "varchar" else None


def _check(holds: pa.Array, array: pa.Array) -> None:
    at = pc.index(holds, False).as_py()
    if at >= 0:
        raise pa.ArrowInvalid(f"{array[at].as_py()!r} does not become that")


_TEXTS: dict[str, Callable[[pa.Array, Column], pa.Array]] = {
    **dict.fromkeys(_WHOLE, _to_whole),
    **dict.fromkeys(("decimal", "int128", "uint128"), _to_decimal),
    **dict.fromkeys(("float32", "float64"), _to_float),
    **dict.fromkeys(_LOCAL, _to_local),
    **dict.fromkeys(_CLOCKS, _to_clock),
    "boolean": _to_boolean,
    "date": _to_date,
    "timestamptz": _to_zoned,
    "blob": _to_bytes,
}
