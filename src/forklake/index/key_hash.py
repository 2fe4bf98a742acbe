"""Hashes of keys: Spark's `xxhash64`, signed, of each key in one canonical form.

The form of a key is the Spark type that it is cast to before it is hashed. A column whose type was widened
has segments of several forms: a key is then looked for in each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as Number
from decimal import localcontext
from typing import cast

from forklake.index import xxh64
from forklake.index.key_values import in_smaller_unit, name_of, plain, stored, unit_of
from forklake.lazy.arrow import kind, pa, pc
from forklake.lazy.numpy import np
from forklake.model.types.arrow import to_arrow
from forklake.model.types.data_types import DataType, Decimal, parse
from forklake.model.types.sort_keys import FLOATS, INTEGERS, has_key

_DAY = 86_400 * 10**9
_WIDE = {"uint64", "int128", "uint128"}
_LONG_DIGITS = 18
"""Decimals of so many digits are 64-bit integers to Spark."""


def form_of(type: DataType) -> str | None:
    """The Spark type that keys of a type are hashed as; None where equal values have no one form."""
    name = name_of(type)
    if not has_key(type):
        return None
    if isinstance(type, Decimal):
        return f"DECIMAL({_LONG_DIGITS if type.precision <= _LONG_DIGITS else 38},{type.scale})"
    if name in INTEGERS:
        return "DECIMAL(38,0)" if name in _WIDE else "BIGINT"
    if name in FLOATS:
        return "DOUBLE"
    if name.startswith("timestamp"):
        return "TIMESTAMP"
    return {"varchar": "STRING", "blob": "BINARY", "uuid": "BINARY", "time_ns": "TIME"}.get(
        name, name.upper()
    )


def spark_key(sql: str, type: DataType) -> str | None:
    """A column as Spark hashes it to the same: the argument of its `xxhash64`. None for types without a form.

    Spark keeps the nanoseconds of no timestamp, and neither does the form.
    """
    form = form_of(type)
    if name_of(type) == "uuid":
        return f"unhex(replace({sql}, '-', ''))"
    # A timestamp without a zone has the same microseconds, and a cast would move it by the session's zone.
    return sql if form in ("TIMESTAMP", "TIME", None) else f"CAST({sql} AS {form})"


def hashes(
    columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType], forms: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The hashes of keys, and which rows have one.

    Rows with a NULL have none, and neither have those that no value of the form equals.
    """
    count = len(columns[0])
    state, has = xxh64.seeds(count), np.ones(count, bool)
    for column, type, form in zip(columns, types, forms, strict=True):
        values, fits = _in_form(column, type, form)
        has &= fits
        state = _hashed(values, form, state)
    return state.view(np.int64), has


def _in_form(column: pa.Array | pa.ChunkedArray, type: DataType, form: str) -> tuple[pa.Array, np.ndarray]:
    """Values in a form, and which of them are those that were given: others may be anything."""
    if form in ("STRING", "BINARY", "BOOLEAN"):
        array = stored(column)
        return array, _present(array)
    array = plain(column, type)
    fits = _present(array)
    unit = unit_of(type)
    if unit is not None:
        return _in_time(array, unit, form, fits)
    if kind.is_floating(array.type):
        values = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False).astype(np.float64)
        if form == "DOUBLE":
            return pa.array(values), fits
        # What widened to floats are whole numbers of 32 bits at most.
        whole = (np.abs(values) < 2.0**53) & (np.floor(values) == values)
        return pa.array(np.where(whole, values, 0.0).astype(np.int64)), fits & whole
    if form == "BIGINT" and kind.is_integer(array.type):
        return array.cast(pa.int64()), fits
    target = pa.decimal128(19, 0) if form == "BIGINT" else _decimal(form)
    values, whole = _in_decimal(array, target)
    values = values.cast(pa.int64()) if form == "BIGINT" else values
    return values, fits & whole


def _in_time(array: pa.Array, unit: int, form: str, fits: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    target = {"DATE": _DAY, "TIMESTAMP": 10**3, "TIME": 1}[form]
    if unit >= target:
        return in_smaller_unit(array, unit // target, 2**31 - 1 if unit == _DAY else 2**63 - 1), fits
    values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    whole, rest = np.divmod(values, np.int64(target // unit))
    if form == "DATE":
        # A timestamp within a day is no day, but the infinities are.
        ends = np.abs(values) == 2**63 - 1
        return pa.array(np.where(ends, np.sign(values) * (2**31 - 1), whole)), fits & ((rest == 0) | ends)
    # Nanoseconds are cut: what is found is compared again.
    return pa.array(whole), fits


def _in_decimal(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, np.ndarray]:
    """Exact numbers in another decimal type, and which of them it can hold."""
    if array.type == target:
        return array, np.ones(len(array), bool)
    number = array.cast(pa.decimal128(38, 0)) if kind.is_integer(array.type) else array
    exact = number.cast(pa.decimal256(76, number.type.scale))
    cut = exact.cast(pa.decimal256(76, target.scale), safe=False)
    with localcontext(prec=80):
        most = (Number(10) ** target.precision - 1).scaleb(-target.scale)
    if target == pa.decimal128(19, 0):
        most = Number(2**63 - 1)
    inside = pc.and_(
        pc.less_equal(cut, pa.scalar(most, cut.type)), pc.greater_equal(cut, pa.scalar(-most, cut.type))
    )
    same = pc.fill_null(pc.and_(pc.equal(cut.cast(exact.type, safe=False), exact), inside), False)
    held = pc.if_else(same, cut, pa.scalar(Number(0), cut.type)).cast(target)
    return held, same.to_numpy(zero_copy_only=False)


def _decimal(form: str) -> pa.Decimal128Type:
    return cast("pa.Decimal128Type", to_arrow(parse(form)))


def _present(array: pa.Array) -> np.ndarray:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _hashed(array: pa.Array, form: str, seed: np.ndarray) -> np.ndarray:
    if form.startswith("DECIMAL(38"):
        return xxh64.of_bytes(*_shortest_bytes(_halves(array)), seed)
    if form.startswith("DECIMAL"):
        return xxh64.of_int64(_halves(array)[:, 0], seed)
    if kind.is_fixed_size_binary(array.type):
        if array.type.byte_width == 16:
            return xxh64.of_words(_bytes(array).view("<u8").reshape(-1, 2), seed)
        starts = np.arange(len(array), dtype=np.int64) * array.type.byte_width
        return xxh64.of_bytes(_bytes(array), starts, np.full(len(array), array.type.byte_width), seed)
    if form in ("STRING", "BINARY"):
        wide = array.cast(pa.large_binary())
        ends = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset : wide.offset + len(wide) + 1]
        data = np.frombuffer(wide.buffers()[2] or b"", np.uint8)
        return xxh64.of_bytes(data, ends[:-1], np.diff(ends), seed)
    if form == "DOUBLE":
        return xxh64.of_int64(array.to_numpy(zero_copy_only=False).view(np.int64), seed)
    values = pc.fill_null(array, False if form == "BOOLEAN" else 0).to_numpy(zero_copy_only=False)
    return (xxh64.of_int32 if form in ("BOOLEAN", "DATE") else xxh64.of_int64)(values, seed)


def _bytes(array: pa.Array) -> np.ndarray:
    width = array.type.byte_width
    data = np.frombuffer(array.buffers()[1], np.uint8)
    return data[array.offset * width : (array.offset + len(array)) * width]


def _halves(array: pa.Array) -> np.ndarray:
    """The lower and the upper 64 bits of decimals."""
    return _bytes(array).view("<i8").reshape(-1, 2)


def _shortest_bytes(halves: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decimals as Java has them: big-endian in two's complement, with no byte that says nothing."""
    data = np.ascontiguousarray(halves.view(np.uint8).reshape(-1, 16)[:, ::-1])
    sign = np.where(halves[:, 1] < 0, 255, 0).astype(np.uint8)[:, None]
    differs = data != sign
    lead = np.where(differs.any(axis=1), differs.argmax(axis=1), 15)
    # The first bit is the sign: where it would be another, the byte before is needed.
    top = data[np.arange(len(data)), lead]
    lead -= ((top ^ sign[:, 0]) >> 7).astype(lead.dtype)
    return data.reshape(-1), np.arange(len(data), dtype=np.int64) * 16 + lead, 16 - lead
