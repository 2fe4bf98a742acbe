"""Frames of Spark as files of a table, described by their footers and ready to be committed.

Spark's own writer is used where it writes what our files hold. It has no place for the ids of what is inside
of lists and maps, does not know unsigned integers or UUIDs, and tells nothing of partitions: the rest goes
through Python workers, which write as the local engine does.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from uuid import uuid4

import pyarrow as pa
from pyarrow.fs import FileSelector, FileType
from pyspark.errors import PySparkException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from forklake.commit.output import TableOutput
from forklake.data.existing import Inspection
from forklake.data.fit import match_names
from forklake.data.intake import rows_of
from forklake.data.naming import SPARK_FOLDER
from forklake.data.storage import Storage
from forklake.engine.local import Engine
from forklake.errors import ForklakeError, InvalidData, StorageError
from forklake.importing import inspect
from forklake.model.entities import Column
from forklake.model.files import WrittenFile
from forklake.model.layout import SortKey
from forklake.model.names import is_absolute
from forklake.model.types import Decimal, Scalar
from forklake.spark import paths
from forklake.spark.session import has_hadoop_aws
from forklake.spark.types import initial, name, numbered, read_type, takes, text

_SETTINGS: Mapping[str, str] = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""What Spark's writer needs while it writes, and a session may want otherwise for files of its own."""
_WRITTEN = frozenset(
    {"boolean", "int8", "int16", "int32", "int64", "float32", "float64", "date", "time", "timestamp"}
    | {"timestamptz", "varchar", "blob"}
)
"""The types that Spark's writer lays down as we do."""
_CODECS = {"none": "uncompressed"}
_LONGEST = 2_000
"""How much of Spark's own words an error keeps."""


def write_frame(frame: DataFrame, output: TableOutput) -> list[WrittenFile]:
    """Write all rows of a frame into new files of a table. If it fails, no file stays."""
    columns = output.table.columns
    fields = frame.schema.fields
    given = {column: fields[at] for column, at in match_names(frame.columns, columns).items()}
    for column in columns:
        if column.name not in given and column.default is None and not column.nullable:
            raise InvalidData(f'column "{column.name}" is NOT NULL and has no default: give it a value')
    native = (
        output.partitioning is None
        and (output.storage.is_local or has_hadoop_aws(frame.sparkSession))
        and all(_is_native(column, given.get(column.name)) for column in columns)
    )
    try:
        return _natively(frame, output, given) if native else _in_workers(frame, output)
    except PySparkException as error:
        raise InvalidData(f"Spark could not write the rows: {str(error)[:_LONGEST]}") from error


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
            return kind in _WRITTEN
        case _:
            return column.type == "struct" and all(_is_written(child) for child in column.children)


def _natively(frame: DataFrame, output: TableOutput, given: Mapping[str, T.StructField]) -> list[WrittenFile]:
    columns = output.table.columns
    fitted = frame.select(
        *(
            # A cast gives what is inside of structs its ids, and an alias the column.
            F.expr(_expression(c, given.get(c.name))).cast(read_type(c)).alias(c.name, metadata=numbered(c))
            for c in columns
        )
    )
    if output.sort:
        fitted = fitted.sortWithinPartitions(*(_sorted_by(key) for key in output.sort))
    folder = f"{output.folder}{SPARK_FOLDER}{uuid4().hex}"
    relative = not is_absolute(output.folder)
    codec = output.options.parquet_compression
    options: dict[str, str | int] = {
        "compression": _CODECS.get(codec, codec),
        "parquet.compression.codec.zstd.level": output.options.parquet_compression_level,
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    try:
        with _set(frame.sparkSession, _SETTINGS):
            fitted.write.options(**options).parquet(paths.located(output.storage.address(folder, relative)))
        return _described(output, folder, relative)
    except BaseException:
        _discard(output.storage, folder, relative)
        raise


def _expression(column: Column, given: T.StructField | None) -> str:
    if given is not None:
        return _ordered(name(given.name), column)
    default = None if column.default is None else column.default.value
    return initial(replace(column, initial_default=default)) or "NULL"


def _ordered(expression: str, column: Column) -> str:
    """A value with the fields of structs in the order of the table."""
    if not column.children:
        return expression
    inner = [f"{text(c.name)}, {_ordered(f'{expression}.{name(c.name)}', c)}" for c in column.children]
    return f"if({expression} IS NULL, NULL, named_struct({', '.join(inner)}))"


def _sorted_by(key: SortKey) -> Expression:
    found = F.expr(name(key.name))
    match key.direction, key.nulls:
        case "ASC", "NULLS_FIRST":
            return found.asc_nulls_first()
        case "ASC", _:
            return found.asc_nulls_last()
        case _, "NULLS_FIRST":
            return found.desc_nulls_first()
        case _:
            return found.desc_nulls_last()


def _described(output: TableOutput, folder: str, relative: bool) -> list[WrittenFile]:
    """What Spark wrote, from the footers; everything else in the folder goes."""
    files = _listed(output.storage, folder, relative)
    kept = sorted(path for path in files if path.endswith(".parquet"))
    output.storage.delete([path for path in files if not path.endswith(".parquet")], relative)
    inspection = Inspection(output.storage, output.table.columns, "field_id")
    found = [existing.written for existing in inspect(inspection, [(path, relative) for path in kept])]
    output.storage.delete([file.path for file in found if not file.record_count], relative)
    written = [file for file in found if file.record_count]
    output.storage.sync([file.path for file in written], relative)
    output.written.extend(file.path for file in written)
    return written


def _listed(storage: Storage, folder: str, relative: bool) -> list[str]:
    filesystem, inner = storage.resolve(folder, relative)
    listed = filesystem.get_file_info(FileSelector(inner, recursive=True, allow_not_found=True))
    return [f"{folder}{file.path[len(inner) :]}" for file in listed if file.type == FileType.File]


def _discard(storage: Storage, folder: str, relative: bool) -> None:
    # The error that led here says more than one of cleaning up.
    with suppress(StorageError, OSError):
        storage.delete(_listed(storage, folder, relative), relative)


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Generator[None]:
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is not None:
                spark.conf.set(key, value)


# ---- By Python workers ---


def _in_workers(frame: DataFrame, output: TableOutput) -> list[WrittenFile]:
    storage = output.storage
    work = pickle.dumps(
        (
            storage.data_path,
            storage.s3.options,
            output.table,
            output.folder,
            output.options,
            output.partitioning,
            output.sort,
        )
    )

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            found: list[WrittenFile | ForklakeError] = [*_written(work, batches)]
        except ForklakeError as error:
            # Told instead of raised: Spark would try again what cannot be, and hide it in a text of its own.
            found = [error]
        yield pa.record_batch({"found": pa.array([pickle.dumps(one) for one in found], pa.binary())})

    told = frame.mapInArrow(write, "found BINARY").toArrow().column("found").to_pylist()
    found: list[WrittenFile | ForklakeError] = [pickle.loads(one) for one in told]  # noqa: S301
    files = [one for one in found if isinstance(one, WrittenFile)]
    for one in found:
        if isinstance(one, ForklakeError):
            with suppress(StorageError):
                storage.delete([file.path for file in files], not is_absolute(output.folder))
            raise one
    output.written.extend(file.path for file in files)
    return files


def _written(work: bytes, batches: Iterator[pa.RecordBatch]) -> list[WrittenFile]:
    data_path, options, table, folder, settings, partitioning, sort = pickle.loads(work)  # noqa: S301
    first = next(batches, None)
    if first is None:
        return []
    storage = Storage(data_path, options)
    output = TableOutput(storage, table, folder, settings, partitioning, sort, [])
    given = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
    engine = Engine(storage)
    try:
        return output.write(rows_of(given, table.columns, evaluate=engine.evaluate))
    finally:
        engine.close()
