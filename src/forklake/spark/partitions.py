"""Partitions of tables as Spark's own writer lays them down: a folder for each, and the values of its files.

What Spark splits rows by only has to tell apart what we tell apart. The values themselves are computed from a
row of each file, as they are wherever we write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from forklake.data.parquet.schema import arrow_schema
from forklake.data.storage.storage import Storage
from forklake.lazy.arrow import pq
from forklake.model.entities import Column
from forklake.model.table.columns import Columns
from forklake.model.table.layout import Partitioning
from forklake.model.table.transforms import encoded, transform_of
from forklake.spark.sql_text import attribute, name
from forklake.spark.types import read_type

_KEY = "forklake_p"
_LONGEST = 75
_DAY, _HOUR = 86_400_000_000, 3_600_000_000


@dataclass(frozen=True, slots=True)
class Key:
    """What Spark is to split rows by, under a name of its own."""

    name: str
    column: Column
    transform: str

    def folder(self, value: str) -> str:
        """The name of a row's folder, of the value of the column."""
        type = self.column.type if self.transform == "identity" else ""
        return f"{_folder(self.part(value), type)} AS {self.name}"

    def part(self, value: str) -> str:
        """A text that differs where partitions do."""
        return _part(self.column, self.transform, f"CAST({value} AS {read_type(self.column).simpleString()})")


def keys_of(partitioning: Partitioning | None, columns: Columns) -> list[Key] | None:
    """What Spark is to split rows by; None if its SQL cannot say it."""
    if partitioning is None:
        return []
    if any(re.fullmatch(rf"{_KEY}\d+", column.name, re.IGNORECASE) for column in columns):
        return None
    known = {column.id: column for column in columns}
    keys: list[Key] = []
    for at, field in enumerate(partitioning.fields):
        transform, _ = transform_of(field)
        if transform == "bucket":
            return None
        keys.append(Key(f"{_KEY}{at}", known[field.column_id], transform))
    return keys


def gathered(df: DataFrame, keys: Sequence[Key], given: Mapping[str, str]) -> DataFrame:
    """The rows as they came, those of a partition together; `given` has the DataFrame's names of columns.

    Each partition gets few files, and yet no task has a large one all alone.
    """
    by: list[str] = []
    for key in keys:
        # The others have the same value in all rows.
        if (named := given.get(key.column.name)) is None:
            continue
        if key.transform != "identity":
            df = df.withColumn(key.name, F.expr(key.part(name(named))))
        by.append(named if key.transform == "identity" else key.name)
    return df.hint("rebalance", *(F.col(attribute(one)) for one in by)) if by else df


def _part(column: Column, transform: str, value: str) -> str:
    if transform == "identity" and column.type == "timestamptz":
        # As text, the hour at which clocks are set back is there twice.
        return f"CAST(unix_micros({value}) AS STRING)"
    if transform == "identity":
        return f"hex({value})" if column.type == "blob" else f"CAST({value} AS STRING)"
    if column.type == "timestamptz":
        # Spark would count years and hours in the zone of the session.
        since = f"unix_micros({value})"
        day = f"date_from_unix_date(CAST(({since} - pmod({since}, {_DAY}L)) DIV {_DAY}L AS INT))"
        found = f"pmod({since}, {_DAY}L) DIV {_HOUR}L" if transform == "hour" else f"{transform}({day})"
    else:
        found = f"{transform}({value})"
    return f"CAST({found} AS STRING)"


def _folder(text: str, type: str) -> str:
    """The name of a folder: the text itself where every file system takes it and tells it from others.

    To some of them upper and lower case are the same, or signs that look alike. Spark takes an empty text for
    NULL, and writes up to three bytes for each of ours.
    """
    named = f"concat('is-', {text})"
    if type in ("varchar", "blob"):
        short = f"octet_length({text}) <= {_LONGEST}"
        alike = f" AND lower({text}) = {text} AND char_length({text}) = octet_length({text})"
        plain = short + (alike if type == "varchar" else "")
        named = f"if({plain}, {named}, concat('sha-', sha2({text}, 256)))"
    return f"if({text} IS NULL, 'null', {named})"


def values_in(
    storage: Storage, path: str, partitioning: Partitioning, columns: Columns
) -> tuple[str | None, ...]:
    """The partition values of a file that Spark wrote, from its first row."""
    schema = arrow_schema(columns)
    with storage.open_input(path, relative=False) as stream:
        # Only the pages that hold that row are read.
        file = pq.ParquetFile(stream, buffer_size=2**16, pre_buffer=False)
        places = {column.id: at for at, column in enumerate(columns)}
        wanted = [places[field.column_id] for field in partitioning.fields]
        names = list(dict.fromkeys(columns[at].name for at in wanted))
        row = next(file.iter_batches(batch_size=1, row_groups=[0], columns=names))
    values: list[str | None] = []
    for field, at in zip(partitioning.fields, wanted, strict=True):
        array = row.column(columns[at].name).cast(schema.field(at).type)
        codes = encoded(array, field, columns[at].data_type)
        values.append(codes.dictionary[codes.indices[0].as_py()].as_py())
    return tuple(values)
