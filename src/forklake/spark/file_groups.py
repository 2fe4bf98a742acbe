"""The files of a plan in groups that Spark reads by one call: their columns are found in the same way.

Spark finds columns by id, but gives a filter to Parquet under the name that the column has in the DataFrame.
If another column of the file has that name, rows are lost. So a column is read under its name only where that
is certain to be its name in the file. All others get a name that no file has: they are read rightly, and no
filter on them reaches Parquet.

Of a struct, Spark reads only the fields that are asked for, and forgets all ids of the column when it does:
it finds it by name. So where a column goes by another name, those inside of it are disguised too, and the
whole is cast to the names of the table: then Spark has to read all of it, by id.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from forklake.data.conform import id_of
from forklake.data.parquet.file_names import is_ours
from forklake.data.storage.storage import Storage
from forklake.engine.file_columns import by_mapping, footer_schema
from forklake.engine.sql_text import FileColumn
from forklake.errors import UnknownType
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.table.columns import Columns
from forklake.model.types.arrow import from_arrow_field
from forklake.model.types.data_types import DataType, List, Map, Scalar, Struct, can_widen
from forklake.scan.scan_plan import ScanFile, ScanPlan
from forklake.spark.types import NOBODYS, may_be_nan, takes_default

_THREADS = 16
_TAKEN = "_metadata"
"""Where Spark itself shows what it knows of a file."""
_POSITIONS = "_tmp_metadata_row_index"
"""Where Spark's reader puts positions: it cannot read a file that has a column of that name."""


@dataclass(slots=True)
class Group:
    """Files, and how their columns are found."""

    columns: Columns
    names: dict[ColumnId, str]
    """What each is called while it is read."""
    shapes: tuple[FileColumn, ...] | None = None
    """Given if columns are found by the names in them and not by id."""
    disguised: frozenset[ColumnId] = frozenset()
    """Columns whose fields have other names while they are read."""
    absent: frozenset[ColumnId] = frozenset()
    """Columns that the files do not have."""
    in_path: frozenset[ColumnId] = frozenset()
    """Columns whose values stand in the folders of a path."""
    files: list[ScanFile] = field(default_factory=list[ScanFile])


@dataclass(frozen=True, slots=True)
class Grouped:
    """What Spark reads itself, and what it cannot."""

    groups: list[Group]
    others: list[ScanFile]


def hidden(column: Column) -> str:
    """A name under which nothing is told to Parquet."""
    return NOBODYS.format(column.id)


def grouped(plan: ScanPlan, storage: Storage, columns: Columns) -> Grouped:
    """All files of a plan."""
    groups: dict[object, Group] = {}
    others: list[ScanFile] = []
    defaulted = [
        column for column in columns if column.initial_default is not None and not takes_default(column)
    ]
    looked_at = [
        file
        for file in plan.files
        if defaulted
        or plan.promoted
        or file.file.source < 0
        or file.file.mapping_id is not None
        or not is_ours(file.path, file.file.path_is_relative)
    ]
    schemas = _footers(storage, looked_at)
    for file in plan.files:
        key, group = _group(plan, file, schemas.get(file.file.id), columns, defaulted)
        if group is None:
            others.append(file)
        else:
            groups.setdefault(key, group).files.append(file)
    return Grouped(list(groups.values()), others)


def _footers(storage: Storage, files: list[ScanFile]) -> dict[int, pa.Schema]:
    if not files:
        return {}
    with ThreadPoolExecutor(_THREADS, "forklake-footers") as pool:
        found = pool.map(lambda file: footer_schema(storage, file.path, file.file.path_is_relative), files)
        return {file.file.id: schema for file, schema in zip(files, found, strict=True)}


def _group(
    plan: ScanPlan,
    file: ScanFile,
    schema: pa.Schema | None,
    columns: Columns,
    defaulted: list[Column],
) -> tuple[object, Group | None]:
    if any(column.name.lower() == _POSITIONS for column in plan.table.columns):
        return None, None
    mapping_id = file.file.mapping_id
    if mapping_id is not None and schema is not None:
        mapping = plan.mappings[mapping_id]
        shapes = by_mapping(mapping, columns)
        in_path = frozenset(entry.column_id for entry in mapping.names if entry.is_partition)
        inside = [shape for shape in shapes if shape.column.id not in in_path]
        if _is_hidden(file.path) or not all(_fits_by_name(schema, shape) for shape in inside):
            return None, None
        names = {shape.column.id: shape.name or hidden(shape.column) for shape in shapes}
        absent = frozenset(shape.column.id for shape in inside if shape.name is None)
        return ("mapping", mapping_id), Group(columns, names, shapes, frozenset(), absent, in_path)
    ours = is_ours(file.path, file.file.path_is_relative)
    absent = frozenset[ColumnId]()
    if schema is not None:
        found = {id_of(field): field for field in schema}
        if not ours and (_is_hidden(file.path) or not _fits_by_id(found, columns)):
            return None, None
        if ours and not _fits_by_id(found, _promoted(plan, file, columns)):
            return None, None
        absent = frozenset(column.id for column in defaulted if column.id not in found)
    # What a transaction has renamed since it wrote a file is not known yet.
    sure = ours and file.file.source >= 0
    names = {
        column.id: column.name if sure and _may_show(plan, column) else hidden(column) for column in columns
    }
    disguised = frozenset(c.id for c in columns if c.children and names[c.id] != c.name)
    return (sure, absent), Group(columns, names, None, disguised, absent)


def _promoted(plan: ScanPlan, file: ScanFile, columns: Columns) -> Columns:
    """Columns that a file of ours may have in another type; what a transaction changed is not known yet."""
    is_new = file.file.source < 0
    return tuple(
        column for column in columns if column.id in plan.promoted or (is_new and not column.children)
    )


def _may_show(plan: ScanPlan, column: Column) -> bool:
    """Whether Parquet may be told of filters on a column.

    Footers leave NaN out of their bounds, and Parquet would pass over row groups that have it.
    """
    steady = column.id in plan.steady and column.name.lower() != _TAKEN
    return steady and not may_be_nan(column.data_type)


def _is_hidden(path: str) -> bool:
    """Spark passes over some files, even if they are named, and its file system cannot open others."""
    name = path.rpartition("/")[2]
    return name.startswith(("_", ".")) or ":" in name


def _fits_by_id(found: dict[int | None, pa.Field], columns: Columns) -> bool:
    return all(_fits(found[column.id], column) for column in columns if column.id in found)


def _fits_by_name(schema: pa.Schema, shape: FileColumn) -> bool:
    if shape.name is None:
        return True
    fields = [field for field in schema if field.name.lower() == shape.name.lower()]
    return len(fields) == 1 and _fits(fields[0], shape.column)


def _fits(field: pa.Field, column: Column) -> bool:
    """Whether Spark's reader reads what somebody else wrote as the type of a column."""
    try:
        return _reads(from_arrow_field(field), column.data_type)
    except UnknownType:
        return False


def _reads(found: DataType, wanted: DataType) -> bool:
    match found, wanted:
        case List(one), List(other):
            return _reads(one, other)
        case Map(), Map():
            return _reads(found.key, wanted.key) and _reads(found.value, wanted.value)
        case Struct(), Struct():
            # Names and order inside may be others, so only the simplest case is sure.
            return found == wanted
        case Scalar("varchar" | "json"), Scalar("varchar" | "json"):
            return True
        case _:
            return can_widen(found, wanted)


def holed(files: list[ScanFile]) -> Iterator[tuple[list[ScanFile], bool]]:
    """Files that are whole, and files that lost rows: only those pay for it."""
    whole = [file for file in files if file.deleted is None and file.file.deletes is None]
    lost = [file for file in files if file.deleted is not None or file.file.deletes is not None]
    yield from ((part, False) for part in apart(whole))
    yield from ((part, True) for part in apart(lost))


def apart(files: list[ScanFile]) -> list[list[ScanFile]]:
    """Files in lists that have no path twice: what Spark reads together, it tells apart by nothing else.

    A file that was retired and restored has had two lives, and a change feed tells of both.
    """
    parts: list[list[ScanFile]] = []
    seen: dict[str, int] = {}
    for file in files:
        at = seen[file.path] = seen.get(file.path, -1) + 1
        if at == len(parts):
            parts.append([])
        parts[at].append(file)
    return parts
