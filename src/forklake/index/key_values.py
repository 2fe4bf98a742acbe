"""Values of keys as kinds of indexes compare them: one plain Arrow type for each type of a column.

Dates, times and timestamps are integers in their unit, -0.0 is 0.0, and there is one NaN. Everything else is
what it is. A literal may lie between two values that its column can have, or beyond all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as Number
from decimal import localcontext
from math import inf, isfinite
from typing import Any
from uuid import UUID

from forklake.lazy.arrow import kind, pa, pc
from forklake.lazy.numpy import np
from forklake.model.types.arrow import one_array, to_arrow
from forklake.model.types.data_types import DataType, Decimal, Scalar
from forklake.model.types.sort_keys import FLOATS, INTEGERS, Value

_UNITS = {  # Nanoseconds.
    "date": 86_400 * 10**9,
    "timestamp_s": 10**9,
    "timestamp_ms": 10**6,
    "timestamp": 10**3,
    "timestamptz": 10**3,
    "timestamp_ns": 1,
    "time": 10**3,
    "time_ns": 1,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def name_of(type: DataType) -> str:
    """The name of a type without its parameters."""
    return type.name if isinstance(type, Scalar) else "decimal" if isinstance(type, Decimal) else ""


def unit_of(type: DataType) -> int | None:
    """How many nanoseconds the unit of a date, time or timestamp has; None for other types."""
    return _UNITS.get(name_of(type))


def plain_type(type: DataType) -> pa.DataType:
    """The Arrow type that values are compared in."""
    if unit_of(type) is not None:
        return pa.int64()
    if type == Scalar("uuid"):
        return pa.binary(16)
    return to_arrow(type)


def stored(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values of a column without an extension type around them."""
    array = one_array(column)
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def plain(column: pa.Array | pa.ChunkedArray, type: DataType) -> pa.Array:
    """The values of a column as they are compared, whichever type that widens to its own they were in."""
    array = stored(column)
    if unit_of(type) is not None:
        return _in_unit(array, type)
    array = array.cast(plain_type(type))
    return _one_zero(array) if name_of(type) in FLOATS else array


def _in_unit(array: pa.Array, type: DataType) -> pa.Array:
    name = name_of(type)
    if name == "time_ns" and not kind.is_time(array.type):
        array = array.cast(pa.time64("ns"))
    held, end = 1, 2**63 - 1
    if kind.is_date(array.type):
        array, held, end = array.cast(pa.int32()), _UNITS["date"], 2**31 - 1
    elif not kind.is_int64(array.type):
        held = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[array.type.unit]
        array = array.cast(pa.time64("us")) if kind.is_time32(array.type) else array
        held = 10**3 if kind.is_time(array.type) and held > 1 else held
    else:
        held = _UNITS[name]
    values, unit = array.cast(pa.int64()), _UNITS[name]
    # Parquet has no seconds: those of a TIMESTAMP_S come back in milliseconds.
    return (
        _in_larger_unit(values, unit // held) if held < unit else in_smaller_unit(values, held // unit, end)
    )


def in_smaller_unit(values: pa.Array, factor: int, end: int = 2**63 - 1) -> pa.Array:
    """Numbers of a unit in one that is smaller by a factor. The outermost two stand for the infinities."""
    if factor == 1:
        return values
    forever = pa.scalar(2**63 - 1, pa.int64())
    larger = pc.if_else(pc.equal(values, end), forever, pc.multiply(values, factor))
    return pc.if_else(pc.equal(values, -end), pc.negate(forever), larger)


def _in_larger_unit(values: pa.Array, factor: int) -> pa.Array:
    """Whole numbers of a larger unit in one that is smaller by a factor, the other way around."""
    ends = pc.equal(pc.abs(values), 2**63 - 1)
    return pc.if_else(ends, values, pc.divide(values, factor))


def _one_zero(array: pa.Array) -> pa.Array:
    width = np.float32 if array.type == pa.float32() else np.float64
    values = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False) + width(0)
    values[np.isnan(values)] = np.nan
    return pa.array(values, array.type, mask=array.is_null().to_numpy(zero_copy_only=False))


def storage_type(type: DataType) -> pa.DataType:
    """The Arrow type of a column in segments: its own, without an extension type around it."""
    target = to_arrow(type)
    return target.storage_type if isinstance(target, pa.BaseExtensionType) else target


def widened(column: pa.Array | pa.ChunkedArray, type: DataType) -> pa.Array:
    """The values of a column, as segments hold them, in a type that theirs widens to."""
    array, target = stored(column), storage_type(type)
    if array.type == target:
        return array
    if unit_of(type) is None:
        return array.cast(target)
    values = _in_unit(array, type)
    return values.cast(pa.int32()).cast(target) if kind.is_date(target) else values.cast(target)


def shown(array: pa.Array, type: DataType) -> pa.Array:
    """Values of a segment as a column of the table has them."""
    target, values = to_arrow(type), widened(array, type)
    is_extension = isinstance(target, pa.BaseExtensionType)
    return pa.ExtensionArray.from_storage(target, values) if is_extension else values


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a literal lies among the values that a column can have."""

    value: Any
    """The literal itself, or the next lower value; None if there is no lower one."""
    is_exact: bool


def placed(value: Value, type: DataType) -> Placed:
    """Where a literal lies, which a column of this type is compared with."""
    name = name_of(type)
    if name in _UNITS:
        return _bounded(*_in_units(value, name), -(2**63), 2**63 - 1)
    if name in INTEGERS and name not in ("int128", "uint128"):
        bits, low = int(name.lstrip("uint")), 0 if name.startswith("u") else None
        low = -(2 ** (bits - 1)) if low is None else low
        return _bounded(*_floor(value, 0), low, low + 2**bits - 1)
    if isinstance(type, Decimal) or name in INTEGERS:
        precision, scale = (type.precision, type.scale) if isinstance(type, Decimal) else (38, 0)
        found = _bounded(*_floor(value, scale), 1 - 10**precision, 10**precision - 1)
        if found.value is None:
            return found
        with localcontext(prec=80):
            return Placed(Number(found.value).scaleb(-scale), found.is_exact)
    if name in FLOATS:
        return _among_floats(value, name)
    if isinstance(value, UUID):
        return Placed(value.bytes, True)
    if name == "blob" and isinstance(value, str):
        return Placed(value.encode(), True)
    return Placed(value, True)


def _bounded(floor: int | float, is_exact: bool, low: int, high: int) -> Placed:
    if floor < low:
        return Placed(None, False)
    return Placed(high, False) if floor > high else Placed(int(floor), is_exact)


def _floor(value: Any, scale: int) -> tuple[int | float, bool]:
    """The whole number of units of a scale, and whether nothing was left. NaN lies above all numbers."""
    if isinstance(value, float) and not isfinite(value):
        return (-inf if value == -inf else inf), False
    with localcontext(prec=400):
        exact = Number(value).scaleb(scale)
        floor = exact.to_integral_value("ROUND_FLOOR")
        return int(floor), floor == exact


def _in_units(value: Any, name: str) -> tuple[int, bool]:
    if isinstance(value, int):
        return value, True
    if isinstance(value, time):
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        nanoseconds = (seconds * 10**6 + value.microsecond) * 1000
    else:
        nanoseconds = _since_epoch(value) * 1000
    floor, rest = divmod(nanoseconds, _UNITS[name])
    return floor, rest == 0


def _since_epoch(value: date) -> int:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _among_floats(value: Any, name: str) -> Placed:
    wide = float(value)
    if name == "float64" or wide != wide:
        return Placed(wide + 0.0, True)
    with np.errstate(over="ignore"):
        near = np.float32(wide)
    if float(near) > wide:
        near = np.nextafter(near, np.float32(-np.inf))
    return Placed(float(near) + 0.0, float(near) == wide)
