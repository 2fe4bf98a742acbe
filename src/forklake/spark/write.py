"""Spark DataFrames as files of a table, described by their footers and ready to be committed.

Spark's own writer is used where it writes what our files hold. It has no place for the ids of what is inside
of lists and maps, does not know unsigned integers or UUIDs, and cannot count buckets: the rest goes through
Python workers, which write as the local engine does.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from forklake.data.defaults import check_optional
from forklake.data.input.arrow_streams import stream_of
from forklake.data.input.lossless import match_names
from forklake.data.parquet.file_names import SPARK_FOLDER
from forklake.data.storage.storage import Storage
from forklake.distributed import describe_files, output_folder, write_part
from forklake.distributed.work import storage_of
from forklake.errors import InvalidData
from forklake.lazy.arrow import pa
from forklake.model.distributed import DistributedSnapshot
from forklake.model.entities import Column
from forklake.model.manifest import Manifest
from forklake.model.table.columns import find
from forklake.model.table.layout import SortKey
from forklake.model.types.data_types import Decimal, Scalar
from forklake.spark import paths
from forklake.spark.jobs import each, failures, task_number, through
from forklake.spark.partitions import Key, gathered, keys_of, values_in
from forklake.spark.sessions import has_hadoop_aws
from forklake.spark.sql_text import attribute, field_of, name, text
from forklake.spark.task_results import Done
from forklake.spark.types import ALIKE, initial, numbered, read_type, takes

if TYPE_CHECKING:
    from forklake.spark.commit import Writing

_SETTINGS: Mapping[str, str] = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""What Spark's writer needs while it writes, and a session may want otherwise for files of its own."""
_CODECS = {"none": "uncompressed"}
"""Where Spark has another word for a compression."""
_FEW, _A_FEW = 64, 32
"""Up to so many footers are read here, and more of them by workers, some at a time."""


def write_dataframe(df: DataFrame, writing: Writing, *, cast: bool = False) -> list[Done]:
    """Write all rows of a DataFrame into new files of a table; `cast` as in `Table.append`."""
    columns = writing.target.columns
    fields = df.schema.fields
    given = {column: fields[at] for column, at in match_names(df.columns, columns).items()}
    for column in columns:
        if column.name not in given:
            check_optional(column)
    keys = keys_of(writing.target.partitioning, columns)
    if (
        keys is not None
        and (not keys or writing.target.options.hive_file_pattern)
        and not any(key.is_expression or find(columns, [key.name]).children for key in writing.target.sort)
        and all(_is_native(column, given.get(column.name)) for column in columns)
        and (writing.context.storage.is_local or has_hadoop_aws(df.sparkSession))
    ):
        return _natively(df, writing, given, keys)
    return _in_workers(df, writing, cast)


# ---- By Spark itself ---


def _is_native(column: Column, given: T.StructField | None) -> bool:
    """Whether Spark's writer can write a column, of values as they are or of its default."""
    if not _is_written(column):
        return False
    if given is None:
        return column.default is None or (column.default.kind == "literal" and not column.children)
    return takes(column, given.dataType)


def _is_written(column: Column) -> bool:
    match column.data_type:
        case Decimal():
            return True
        case Scalar(kind):
            return kind in ALIKE
        case _:
            return column.type == "struct" and all(_is_written(child) for child in column.children)


def _natively(
    df: DataFrame, writing: Writing, given: Mapping[str, T.StructField], keys: Sequence[Key]
) -> list[Done]:
    target, storage = writing.target, writing.context.storage
    # Rows are shuffled as they came: every projection before that would copy them once more.
    rows = gathered(df, keys, {column: field.name for column, field in given.items()})
    fitted = rows.select(
        *(
            # A cast gives what is inside of structs its ids, and an alias the column.
            F.expr(_expression(c, given.get(c.name))).cast(read_type(c)).alias(c.name, metadata=numbered(c))
            for c in target.columns
        ),
        # Of values that are not checked, as that is done already and they come several times.
        *(F.expr(key.folder(_value(key.column, given.get(key.column.name)))) for key in keys),
    )
    if target.sort:
        order = (*(F.col(key.name) for key in keys), *(_sorted_by(key) for key in target.sort))
        fitted = fitted.sortWithinPartitions(*order)
    folder = output_folder(writing.ds, writing.name, SPARK_FOLDER.removesuffix("-"))
    codec = target.options.parquet_compression
    options: dict[str, str | int] = {
        "compression": _CODECS.get(codec, codec),
        "parquet.compression.codec.zstd.level": target.options.parquet_compression_level,
        "parquet.block.size": target.options.parquet_row_group_size_bytes,
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    with _set(df.sparkSession, _SETTINGS), failures("write the rows"):
        writer = fitted.write.options(**options).partitionBy(*(key.name for key in keys))
        writer.parquet(paths.located(folder))
    return _described(df.sparkSession, writing, storage, folder)


def _expression(column: Column, given: T.StructField | None) -> str:
    return _value(column, given) if given is None else _ordered(name(given.name), column)


def _value(column: Column, given: T.StructField | None) -> str:
    if given is not None:
        return name(given.name)
    default = None if column.default is None else column.default.value
    return initial(replace(column, initial_default=default)) or "NULL"


def _ordered(expression: str, column: Column) -> str:
    """A value with the fields of structs in the order of the table."""
    if column.type == "varchar":
        # Spark takes any bytes for a text, and nobody else could read them.
        message = text(f'column "{column.name}" holds bytes that are no text in UTF8')
        return f"if(NOT is_valid_utf8({expression}), raise_error({message}), {expression})"
    if not column.children:
        return expression
    inner = [f"{text(c.name)}, {_ordered(field_of(expression, c.name), c)}" for c in column.children]
    return f"if({expression} IS NULL, NULL, named_struct({', '.join(inner)}))"


def _sorted_by(key: SortKey) -> Expression:
    found = F.col(attribute(key.name))
    match key.direction, key.nulls:
        case "ASC", "NULLS_FIRST":
            return found.asc_nulls_first()
        case "ASC", _:
            return found.asc_nulls_last()
        case _, "NULLS_FIRST":
            return found.desc_nulls_first()
        case _:
            return found.desc_nulls_last()


@dataclass(frozen=True, slots=True)
class _Files:
    """Files that Spark wrote, to be looked at."""

    ds: DistributedSnapshot
    part: int
    addresses: tuple[str, ...]
    options: Mapping[str, str]

    def described(self) -> str:
        """What their footers say. They are there to stay from now on."""
        table = self.ds.tables[0]
        storage = storage_of(self.ds.data_path, self.options)
        storage.sync(self.addresses, relative=False)
        values = None
        if table.partitioning is not None:
            values = {
                path: values_in(storage, path, table.partitioning, table.columns) for path in self.addresses
            }
        try:
            found = describe_files(
                self.ds,
                table.full_name,
                self.addresses,
                part=self.part,
                partition_values=values,
                storage_options=self.options,
            )
        except InvalidData as error:
            # The file is about to be removed: its name helps nobody.
            message = str(error)
            for address in self.addresses:
                message = message.removeprefix(f"{address}: ")
            raise InvalidData(message) from error
        return found.to_json()


def _described(spark: SparkSession, writing: Writing, storage: Storage, folder: str) -> list[Done]:
    """What Spark wrote, from the footers; everything else in the folder goes."""
    files = [storage.address(file.path, relative=False) for file in storage.files(folder, relative=False)]
    # What tasks were writing when they were killed is in a folder of its own.
    kept = sorted(p for p in files if p.endswith(".parquet") and "/_temporary/" not in p[len(folder) - 1 :])
    storage.delete(sorted(set(files) - set(kept)), relative=False)
    pieces = [
        _Files(writing.ds, number, tuple(kept[start : start + _A_FEW]), writing.options)
        for number, start in enumerate(range(0, len(kept), _A_FEW))
    ]
    texts = (
        [piece.described() for piece in pieces]
        if len(kept) <= _FEW
        else each(spark, pieces, _Files.described)
    )
    manifests = [Manifest.from_json(text) for text in texts]
    taken = {writing.ds.address(path) for manifest in manifests for path in manifest.paths}
    storage.delete([path for path in kept if path not in taken], relative=False)
    return [Done(text, added=manifest.rows) for text, manifest in zip(texts, manifests, strict=True)]


@dataclass(slots=True)
class _Changed:
    """Settings of a session, as they were before the first of several writers came."""

    before: Mapping[str, str | None]
    writers: int = 0


_changed: dict[int, _Changed] = {}
_changing = Lock()


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Generator[None]:
    """Let settings hold as long as anybody writes with the session: it has one of each for all threads."""
    with _changing:
        changed = _changed.get(id(spark))
        if changed is None:
            changed = _Changed({key: spark.conf.get(key) for key in settings})
            for key, value in settings.items():
                spark.conf.set(key, value)
            _changed[id(spark)] = changed
        changed.writers += 1
    try:
        yield
    finally:
        with _changing:
            changed.writers -= 1
            if not changed.writers:
                del _changed[id(spark)]
                for key, value in changed.before.items():
                    if value is not None:
                        spark.conf.set(key, value)


# ---- By Python workers ---


def _in_workers(df: DataFrame, writing: Writing, cast: bool) -> list[Done]:
    ds, name, options = writing.ds, writing.name, writing.options

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[Done]:
        given = stream_of(batches)
        if given is not None:
            found = write_part(ds, name, given, part=task_number(), cast=cast, storage_options=options)
            yield Done(found.to_json(), added=found.rows)

    return through(df, write)
