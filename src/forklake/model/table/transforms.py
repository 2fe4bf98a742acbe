"""Partition transforms: what they are called, which columns take them, and the values they give. Pure.

Years, months, days and hours are parts of the calendar, in UTC, as DuckLake stores them: a month is 1 to 12,
of any year. Buckets are those of Iceberg.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal as Number
from typing import Any

from forklake.errors import ColumnNotFound, CorruptMetadata, InvalidArgument
from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Column
from forklake.model.table.columns import Columns, find, split_path
from forklake.model.table.layout import PartitionField
from forklake.model.types.arrow import to_arrow
from forklake.model.types.data_types import DataType, Decimal, Scalar, to_sql
from forklake.model.types.text import PER_SECOND, is_storable, stored, text_of

_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*\Z", re.DOTALL | re.ASCII)
_BUCKET = re.compile(r"\s*(\d{1,10})\s*,(.*)\Z", re.DOTALL | re.ASCII)
_STORED = re.compile(r"(identity|year|month|day|hour|bucket\((\d{1,10})\))\Z", re.ASCII)
_MOST_BUCKETS = 2**31 - 1

_TIMESTAMPS = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"})
_INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_NO_PARTITIONS = frozenset({"json", "geometry", "variant", "interval"})
_PARTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "year": lambda array: pc.year(array),
    "month": lambda array: pc.month(array),
    "day": lambda array: pc.day(array),
    "hour": lambda array: pc.hour(array),
}
_TAKES: dict[str, frozenset[str]] = {
    "year": _TIMESTAMPS | {"date"},
    "month": _TIMESTAMPS | {"date"},
    "day": _TIMESTAMPS | {"date"},
    "hour": _TIMESTAMPS,
    "bucket": _TIMESTAMPS | _INTEGERS | {"date", "time", "varchar", "blob", "uuid"},
}


def transform_of(field: PartitionField) -> tuple[str, int]:
    """The name of a stored transform, and its number of buckets or 0."""
    match = _STORED.match(field.transform)
    if match is None:
        shown = field.transform[:80]
        raise CorruptMetadata(f"a table is partitioned by {shown!r}, which this version does not know")
    return match[1].partition("(")[0], int(match[2] or 0)


def parse_transform(text: str, columns: Columns) -> PartitionField:
    """Read `region`, `year(ts)` or `bucket(16, id)`, and refuse what the column does not take."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(f"a partition field is a string such as 'year(ts)', not {type(text).__name__}")
    call = _CALL.match(text)
    if call is None:
        return _checked(_column(text, columns), "identity")
    name, inside = call[1].lower(), call[2]
    if name not in ("identity", *_TAKES):
        raise InvalidArgument(
            f"unknown transform {call[1]!r}: there are identity, year, month, day, hour and bucket"
        )
    if name != "bucket":
        return _checked(_column(inside, columns), name)
    bucket = _BUCKET.match(inside)
    if bucket is None or not 1 <= int(bucket[1]) <= _MOST_BUCKETS:
        raise InvalidArgument(f"{text[:80]!r} is no number of buckets and a column, as in bucket(16, id)")
    return _checked(_column(bucket[2], columns), name, f"bucket({int(bucket[1])})")


def _column(text: str, columns: Columns) -> Column:
    path = split_path(text.strip())
    column = find(columns, path)
    if len(path) > 1:
        raise InvalidArgument(f'"{".".join(path)}" is inside a column: only whole columns make partitions')
    return column


def _checked(column: Column, name: str, stored: str | None = None) -> PartitionField:
    data_type = column.data_type
    match data_type:
        case Decimal():
            fits = name in ("identity", "bucket")
        case Scalar(scalar):
            fits = scalar in _TAKES[name] if name in _TAKES else scalar not in _NO_PARTITIONS
        case _:
            fits = False
    if not fits:
        raise InvalidArgument(f'column "{column.name}" is {to_sql(data_type)}, which {name} does not take')
    return PartitionField(column.id, stored or name)


def field_names(fields: tuple[PartitionField, ...], columns: Columns) -> tuple[str, ...]:
    """What folders call each field, as in DuckLake: `region`, `year`, and `year_b` for a second year."""
    names: list[str] = []
    for field in fields:
        column = next((column.name for column in columns if column.id == field.column_id), None)
        if column is None:
            raise ColumnNotFound(f"there is no column {field.column_id} to partition by")
        transform, _ = transform_of(field)
        name = column if transform == "identity" else transform
        names.append(f"{name}_{column}" if name in names else name)
    return tuple(names)


def value_of(field: PartitionField, value: object, type: DataType) -> str | None:
    """The partition value of a single value of the column."""
    if value is None:
        return None
    arrow = pa.time64("us") if type == Scalar("timetz") else to_arrow(type)
    plain = arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow
    array = pa.array([stored(value, type)], plain)
    codes = encoded(array, field, type)
    return codes.dictionary[codes.indices[0].as_py()].as_py()


def encoded(array: pa.Array, field: PartitionField, type: DataType) -> pa.DictionaryArray:
    """The partition values of a column as texts, each distinct one once; NULL is one of them."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    transform, buckets = transform_of(field)
    match transform:
        case "identity":
            return _texts(array, type)
        case "bucket":
            return _texts(_buckets(array, buckets, type), Scalar("int64"))
        case _:
            return _texts(_PARTS[transform](array), Scalar("int64"))


def _texts(array: pa.Array, type: DataType) -> pa.DictionaryArray:
    codes = _dictionary(array)
    texts = [None if value is None else _partition_text(value, type) for value in _values(codes.dictionary)]
    # Different values may be written alike: zeros and NaNs of both signs.
    distinct = pa.array(texts, pa.string()).dictionary_encode(null_encoding="encode")
    if len(distinct.dictionary) == len(texts):
        return pa.DictionaryArray.from_arrays(codes.indices, distinct.dictionary)
    return pa.DictionaryArray.from_arrays(distinct.indices.take(codes.indices), distinct.dictionary)


def _dictionary(array: pa.Array) -> pa.DictionaryArray:
    """Encode with NULL in the dictionary, so that indices are never NULL."""
    return array.dictionary_encode(null_encoding="encode")


def _values(array: pa.Array) -> list[object]:
    """Values as files store them."""
    if pa.types.is_date32(array.type) or pa.types.is_time32(array.type):
        array = array.view(pa.int32())
    elif pa.types.is_time64(array.type) or pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    return array.to_pylist()


def _partition_text(value: object, type: DataType) -> str:
    plain = stored(value, type)
    text = text_of(0.0 if plain == 0 and isinstance(plain, float) else plain, type)
    if text is None:
        # Beyond the years that have a text: the number itself, which only has to be the same every time.
        return str(plain)
    if not is_storable(text):
        raise InvalidArgument(f"{text[:80]!r} holds characters that no partition can be named by")
    return text


def _buckets(array: pa.Array, count: int, type: DataType) -> pa.Array:
    match type:
        case Decimal(_, scale):
            hashes = _hashed_each(array, lambda value: _unscaled(value, scale))
        case Scalar("varchar"):
            hashes = _hashed_each(array, str.encode)
        case Scalar("blob") | Scalar("uuid"):
            hashes = _hashed_each(array, bytes)
        case _:
            hashes = _hashed_longs(_as_longs(array, type))
    positive = pc.bit_wise_and(hashes.cast(pa.int64()), 2**31 - 1)
    return pc.subtract(positive, pc.multiply(pc.divide(positive, count), count))


def _as_longs(array: pa.Array, type: DataType) -> pa.Array:
    """Iceberg hashes every integer as eight bytes, and every timestamp in microseconds."""
    name = type.name if isinstance(type, Scalar) else ""
    if name == "uint64":
        return array
    if name == "date":
        return array.view(pa.int32()).cast(pa.int64())
    if name not in PER_SECOND:
        return array.cast(pa.int64())
    ticks = array.view(pa.int64())
    if PER_SECOND[name] <= 10**6:
        return pc.multiply(ticks, 10**6 // PER_SECOND[name])
    # Division rounds towards zero, and a timestamp before 1970 has to go down.
    down = pc.subtract(ticks, pc.if_else(pc.less(ticks, 0), 999, 0))
    return pc.divide(down, 1000)


_C1, _C2, _MIX, _F1, _F2 = 0xCC9E2D51, 0x1B873593, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35
_MASK = 0xFFFFFFFF


def _hashed_longs(longs: pa.Array) -> pa.Array:
    """Murmur3 (x86, 32 bits, seed 0) of many eight-byte integers; unsigned arithmetic wraps around."""
    bits = longs.view(pa.uint64())
    low = pc.bit_wise_and(bits, pa.scalar(_MASK, pa.uint64())).cast(pa.uint32())
    high = pc.shift_right(bits, pa.scalar(32, pa.uint64())).cast(pa.uint32())
    hashes = pa.scalar(0, pa.uint32())
    for part in (low, high):
        mixed = pc.multiply(_rotated(pc.multiply(part, _u32(_C1)), 15), _u32(_C2))
        turned = _rotated(pc.bit_wise_xor(mixed, hashes), 13)
        hashes = pc.add(pc.multiply(turned, _u32(5)), _u32(_MIX))
    hashes = pc.bit_wise_xor(hashes, _u32(8))
    hashes = pc.multiply(_shifted(hashes, 16), _u32(_F1))
    hashes = pc.multiply(_shifted(hashes, 13), _u32(_F2))
    return _shifted(hashes, 16)


def _u32(number: int) -> pa.Scalar:
    return pa.scalar(number, pa.uint32())


def _rotated(array: pa.Array, bits: int) -> pa.Array:
    return pc.bit_wise_or(pc.shift_left(array, _u32(bits)), pc.shift_right(array, _u32(32 - bits)))


def _shifted(array: pa.Array, bits: int) -> pa.Array:
    return pc.bit_wise_xor(array, pc.shift_right(array, _u32(bits)))


def _hashed_each(array: pa.Array, to_bytes: Callable[[Any], bytes]) -> pa.Array:
    """Hash each distinct value once."""
    codes = _dictionary(array)
    hashes = [None if value is None else murmur3(to_bytes(value)) for value in codes.dictionary.to_pylist()]
    return pa.array(hashes, pa.uint32()).take(codes.indices)


def _unscaled(value: Number, scale: int) -> bytes:
    number = int(value.scaleb(scale))
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


def murmur3(data: bytes) -> int:
    """Murmur3 (x86, 32 bits, seed 0) as an unsigned number."""
    hashed = 0
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        hashed ^= _scrambled(int.from_bytes(data[at : at + 4], "little"))
        hashed = (hashed << 13 | hashed >> 19) & _MASK
        hashed = (hashed * 5 + _MIX) & _MASK
    hashed ^= _scrambled(int.from_bytes(data[whole:], "little"))
    hashed ^= len(data)
    hashed = ((hashed ^ hashed >> 16) * _F1) & _MASK
    hashed = ((hashed ^ hashed >> 13) * _F2) & _MASK
    return hashed ^ hashed >> 16


def _scrambled(part: int) -> int:
    part = part * _C1 & _MASK
    part = (part << 15 | part >> 17) & _MASK
    return part * _C2 & _MASK
