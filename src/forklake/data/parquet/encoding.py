"""How the values of a column are laid down in Parquet: chosen by a look at the first rows of a file.

Arrow's writer begins a dictionary for every column, and gives up when it is full. Files are smaller, and both
written and read faster, if only columns whose values come again get one, and numbers are kept as differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forklake.data.input.lossless import flattened
from forklake.lazy.arrow import pa, pc

_SAMPLE = 8_192
"""How many rows are looked at, spread over all."""
_OFTEN = 2
"""How often a value comes on average, if a dictionary is to pay."""
_SPARSE = 4
"""How far apart integers lie on average, if a dictionary is to need fewer bits than their differences."""
_DIFFERENCES, _LENGTHS = "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"
# BYTE_STREAM_SPLIT would suit floats, but Spark's vectorised reader does not know it.


@dataclass(frozen=True, slots=True)
class Encodings:
    """Leaves with a dictionary, and what some of the others have instead of plain values, by path."""

    dictionary: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    statistics: tuple[str, ...] | None = None
    """Leaves with statistics in the footer; None for all."""


DELETE_FILE = Encodings(("file_path",), (("pos", _DIFFERENCES),), ("pos",))
"""One file, and rising positions. Statistics of one address would take a third of the time to write them."""


def encodings(table: pa.Table) -> Encodings:
    """What suits the rows of a table."""
    dictionary: set[str] = set()
    others: dict[str, str | None] = {}
    step = max(1, -(-table.num_rows // _SAMPLE))
    sample = table.take(pa.array(range(0, table.num_rows, step), pa.int64())).combine_chunks()
    for field, column in zip(sample.schema, sample.columns, strict=True):
        for path, values in _leaves(field.name, column.chunk(0)):
            if _wants_dictionary(values):
                dictionary.add(path)
            # A name may have a dot in it, and look like the path of a field of another type.
            others[path] = _plain_encoding(values.type) if path not in others else None
    chosen = [(path, encoding) for path, encoding in others.items() if encoding and path not in dictionary]
    return Encodings(tuple(sorted(dictionary)), tuple(chosen))


def _leaves(path: str, values: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pa.types.is_struct(values.type):
        for at, field in enumerate(values.type):
            yield from _leaves(f"{path}.{field.name}", values.field(at))
    elif pa.types.is_map(values.type):
        yield from _leaves(f"{path}.key_value.key", values.keys)
        yield from _leaves(f"{path}.key_value.value", values.items)
    elif pa.types.is_list(values.type):
        yield from _leaves(f"{path}.list.element", flattened(values))
    else:
        yield path, values


def _wants_dictionary(values: pa.Array) -> bool:
    """Whether values repeat, and a dictionary's numbers are smaller than what they stand for."""
    if pa.types.is_boolean(values.type):
        return False
    distinct = pc.count_distinct(values, mode="all").as_py()
    return distinct * _OFTEN <= len(values) and not (
        pa.types.is_integer(values.type) and _span(values) < distinct * _SPARSE
    )


def _span(values: pa.Array) -> int:
    bounds = pc.min_max(values).as_py()
    return 0 if bounds["min"] is None else bounds["max"] - bounds["min"]


def _plain_encoding(type: pa.DataType) -> str | None:
    if pa.types.is_integer(type) or pa.types.is_temporal(type):
        return _DIFFERENCES if type.bit_width in (8, 16, 32, 64) else None
    if pa.types.is_decimal(type):
        return _DIFFERENCES if type.precision <= 18 else None
    return _LENGTHS if pa.types.is_string(type) or pa.types.is_binary(type) else None
