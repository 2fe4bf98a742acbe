"""Batches of rows, split by the partition that each row belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from urllib.parse import quote

from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Column
from forklake.model.table.layout import PartitionField
from forklake.model.table.transforms import encoded, field_names

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
Fields = tuple[PartitionField, ...]
Values = tuple[str | None, ...]

_LONGEST_NAME = 200


def partition_values(batch: pa.RecordBatch, fields: Fields, columns: tuple[Column, ...]) -> list[pa.Array]:
    """For each field, the partition value of every row as text, each distinct one once in a dictionary."""
    return [
        encoded(batch.column(at), field, column.data_type) for field, (at, column) in _placed(fields, columns)
    ]


def split(
    batch: pa.RecordBatch, fields: Fields, columns: tuple[Column, ...]
) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """The rows of each partition, in the order they had. The columns of the batch are those of the table."""
    if not batch.num_rows:
        return
    keys = partition_values(batch, fields, columns)
    codes = keys[0].indices.cast(pa.int64())
    for key in keys[1:]:
        codes = pc.add(pc.multiply(codes, len(key.dictionary)), key.indices.cast(pa.int64()))
    counts = pc.value_counts(codes)
    if len(counts) == 1:
        yield _values(counts.field("values")[0].as_py(), keys), batch
        return
    # The sort is stable: rows keep their order. Each partition gets memory of its own, so that a few rows
    # that wait to be written do not hold all the others.
    rows_in_order = pc.sort_indices(codes)
    start = 0
    for at in pc.sort_indices(counts.field("values")).to_pylist():
        rows = counts.field("counts")[at].as_py()
        yield _values(counts.field("values")[at].as_py(), keys), batch.take(rows_in_order.slice(start, rows))
        start += rows


def _values(code: int, keys: list[pa.Array]) -> Values:
    """Undo the combination of codes."""
    values: list[str | None] = []
    for key in reversed(keys):
        code, index = divmod(code, len(key.dictionary))
        values.append(key.dictionary[index].as_py())
    return tuple(reversed(values))


def _placed(fields: Fields, columns: tuple[Column, ...]) -> list[tuple[PartitionField, tuple[int, Column]]]:
    places = {column.id: (at, column) for at, column in enumerate(columns)}
    return [(field, places[field.column_id]) for field in fields]


def folder_of(values: Values, fields: Fields, columns: tuple[Column, ...]) -> str:
    """`year=2024/month=1/`. Only people and other tools read it; forklake keeps the values themselves."""
    names = field_names(fields, columns)
    return "".join(f"{_folder(name, value)}/" for name, value in zip(names, values, strict=True))


def _folder(name: str, value: str | None) -> str:
    folder = f"{quote(name, safe='')}={NULL_FOLDER if value is None else quote(value, safe='')}"
    if len(folder) <= _LONGEST_NAME:
        return folder
    # File systems take 255 bytes.
    return f"{folder[: _LONGEST_NAME - 17]}~{sha256(folder.encode()).hexdigest()[:16]}"
