"""A scan plan as a DuckDB query: files by field id, without what was deleted, and rows that came along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from forklake.data.defaults import initial_text
from forklake.data.parquet.delete_files import lost_positions
from forklake.data.parquet.hive import hive_values
from forklake.data.parquet.schema import ROW_ID_NAME, SNAPSHOT_ID_NAME
from forklake.data.storage.storage import Storage
from forklake.engine.empty_file import spare_entries
from forklake.engine.file_columns import by_field_id, by_mapping
from forklake.engine.remote_files import literal
from forklake.engine.sql_text import FileColumn, guarded, reshaped, text, unbounded
from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Column
from forklake.model.ids import ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN, ColumnId, DataFileId
from forklake.model.names import quoted
from forklake.model.table.columns import Columns
from forklake.model.types.data_types import to_sql
from forklake.scan.inlined_rows import AMONG, BEGIN, WITHIN, gather
from forklake.scan.scan_plan import Positions, ScanFile, ScanPlan, ScanRows

ROW_ID, SNAPSHOT, PLACE, POSITION, FILE_NAME = (
    "forklake_row_id",
    "forklake_snapshot",
    "forklake_place",
    "forklake_position",
    "forklake_file_name",
)
"""Columns that a relation may have beside those of the table; no user's column begins like this in them."""
PREFIX = "forklake"
"""What the names of Arrow tables in a query begin with, unless it needs others."""
"""What DuckDB numbers files with; another type would be compared as 128 bits."""
_FEW_DELETES, _MANY_DELETES = 4_096, 250_000
"""Between these, a larger hash table pays."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A query, the Arrow tables that it names, and the files and rows that it numbers as places."""

    sql: str
    tables: Mapping[str, pa.Table]
    places: tuple[ScanFile | ScanRows, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a relation shall show of each row."""

    columns: Columns
    row_id: bool = False
    snapshot: bool = False
    """The snapshot that inserted the row."""
    begin: bool = False
    """Or the one at which its file begins, whatever rows carry."""
    place: bool = False
    file_name: bool = False
    """The path of the file that a row is in; NULL for inlined rows."""
    prefix: str = PREFIX
    """Arrow tables are named so, to tell those of several relations in one query apart."""


@dataclass(slots=True)
class _Group:
    """Files that are read by one call: their columns have the same shape."""

    key: object
    shapes: tuple[FileColumn, ...]
    files: list[ScanFile] = field(default_factory=list[ScanFile])
    by_name: bool = False
    partition_columns: tuple[ColumnId, ...] = ()


def relation(plan: ScanPlan, storage: Storage, wanted: Wanted) -> Relation:
    """The rows of a plan, not filtered by its predicate yet."""
    parts: list[str] = []
    tables: dict[str, pa.Table] = {}
    places: list[ScanFile | ScanRows] = []
    held = _held(plan, wanted)
    if held:
        name = f"{wanted.prefix}_held"
        tables[name] = _rows_held(plan, held, storage, wanted)
        places += held
        parts.append(_from_arrow(name, wanted))
        known = {file.file.id for file in held}
        plan = replace(plan, files=tuple(file for file in plan.files if file.file.id not in known))
    for group in _groups(plan, storage, wanted.columns):
        for files, deleted in _by_deletes(group.files, plan.wanted, storage):
            first = len(places)
            places += files
            sql = _read(group, files, deleted, first, storage, wanted, tables)
            parts.append(sql + _at_positions(plan.wanted.get(files[0].file.id)))
    if plan.rows:
        name = f"{wanted.prefix}_rows"
        tables[name] = _rows(plan.rows, len(places), wanted)
        places += plan.rows
        parts.append(_from_arrow(name, wanted))
    if not parts:
        parts.append(_nothing(wanted))
    return Relation("\nUNION ALL\n".join(parts), tables, tuple(places))


def _groups(plan: ScanPlan, storage: Storage, columns: Columns) -> list[_Group]:
    groups: dict[object, _Group] = {}
    for file in plan.files:
        mapping_id = file.file.mapping_id
        if mapping_id is not None:
            key: object = ("mapping", mapping_id)
            if key not in groups:
                mapping = plan.mappings[mapping_id]
                outside = tuple(name.column_id for name in mapping.names if name.is_partition)
                groups[key] = _Group(key, by_mapping(mapping, columns), [], True, outside)
        elif plan.has_old_names and any(column.children for column in columns):
            shapes = by_field_id(storage, file.file, columns)
            key = tuple(_names(shapes))
            groups.setdefault(key, _Group(key, shapes))
        else:
            key = None
            groups.setdefault(key, _Group(key, tuple(_plain(column) for column in columns)))
        groups[key].files.append(file)
    return list(groups.values())


def _names(shapes: Sequence[FileColumn]) -> Iterator[object]:
    for shape in shapes:
        yield (shape.column.id, shape.name, *_names(shape.children))


def _plain(column: Column) -> FileColumn:
    return FileColumn(column, column.name, tuple(_plain(child) for child in column.children))


def _by_deletes(
    files: Sequence[ScanFile], wanted: Mapping[DataFileId, Positions], storage: Storage
) -> Iterator[tuple[list[ScanFile], list[Positions] | None]]:
    """Only files that lost rows pay for it; of which few rows are wanted, each is read by itself."""
    some = [file for file in files if file.file.id in wanted]
    others = [file for file in files if file.file.id not in wanted] if some else files
    whole = [file for file in others if file.deleted is None and file.file.deletes is None]
    if whole:
        yield whole, None
    holed = [file for file in others if file.deleted is not None or file.file.deletes is not None]
    if holed:
        yield holed, [lost_positions(storage, file.file.deletes, file.deleted) for file in holed]
    for file in some:
        has_lost = file.deleted is not None or file.file.deletes is not None
        yield [file], [lost_positions(storage, file.file.deletes, file.deleted)] if has_lost else None


def _at_positions(wanted: Positions | None) -> str:
    """The rows at some positions: DuckDB skips all row groups, and all vectors, without them."""
    if wanted is None:
        return ""
    return f" WHERE f.file_row_number IN ({', '.join(map(str, wanted.to_pylist()))})"


def _read(
    group: _Group,
    files: Sequence[ScanFile],
    deleted: Sequence[Positions] | None,
    first: int,
    storage: Storage,
    wanted: Wanted,
    tables: dict[str, pa.Table],
) -> str:
    addresses = [literal(storage.address(file.file.path, file.file.path_is_relative)) for file in files]
    # Given a schema, DuckDB opens no file before it plans, and would take the deletes for the larger side.
    rows = sum(file.file.record_count for file in files)
    if not group.by_name:
        addresses += spare_entries(len(files), rows)
    listed = "[" + ", ".join(map(text, addresses)) + "]"
    options = f"hive_partitioning = false, explicit_cardinality = {max(rows, 1)}{_schema(group, wanted)}"
    source = f"read_parquet({listed}, {options})"
    about = _about(files, group, wanted)
    selected = [_column(shape, group) for shape in group.shapes]
    selected += _extras(group, first, wanted)
    joins = ""
    if about is not None:
        name = f"{wanted.prefix}_files_{first}"
        tables[name] = about
        joins = f" JOIN {name} AS a ON a.place = f.file_index"
    where = ""
    if deleted is not None:
        where = _not_deleted(deleted, f"{wanted.prefix}_deleted_{first}", tables)
    return f"SELECT {', '.join(selected)} FROM {source} AS f{joins}{where}"


def _not_deleted(deleted: Sequence[Positions], name: str, tables: dict[str, pa.Table]) -> str:
    places = pa.concat_arrays([pa.repeat(pa.scalar(at, pa.uint64()), len(d)) for at, d in enumerate(deleted)])
    positions = pa.concat_arrays(list(deleted))
    padding = _padding(len(positions))
    if padding:
        places = pa.concat_arrays([places, pa.repeat(pa.scalar(0, pa.uint64()), padding)])
        positions = pa.concat_arrays([positions, pa.repeat(pa.scalar(-1, pa.int64()), padding)])
    tables[name] = pa.table({"place": places, "position": positions})
    return f" ANTI JOIN {name} AS d ON d.place = f.file_index AND d.position = f.file_row_number"


def _padding(deleted: int) -> int:
    """How often a position that no row has is added, so that DuckDB makes a hash table twice as large.

    Most rows are not deleted, and a lookup that meets an empty slot costs a third less.
    """
    if not _FEW_DELETES < deleted <= _MANY_DELETES:
        return 0
    slots = 1 << 14
    while slots < 4 * deleted:
        slots *= 2
    return max(0, slots // 4 + 1 - deleted)


def _schema(group: _Group, wanted: Wanted) -> str:
    """Columns are named by their ids here, so that none can meet a name that the reader itself uses."""
    if group.by_name:
        return ""
    entries = [
        _entry(shape.column.id, to_sql(shape.type()), initial_text(shape.column)) for shape in group.shapes
    ]
    # Some column has to be named, even if only the places of rows are asked for.
    if wanted.row_id or not entries:
        entries.append(_entry(ROW_ID_COLUMN, "BIGINT", None))
    if wanted.snapshot:
        entries.append(_entry(SNAPSHOT_ID_COLUMN, "BIGINT", None))
    return f", schema = MAP {{{', '.join(entries)}}}"


def _entry(column: int, type: str, default: str | None) -> str:
    value = "NULL" if default is None else text(default)
    return f"{column}: {{name: 'c{column}', type: {text(type)}, default_value: {value}}}"


def _column(shape: FileColumn, group: _Group) -> str:
    column = shape.column
    type = to_sql(column.data_type)
    if not group.by_name:
        found = reshaped(f"f.c{column.id}", shape)
        return f"{unbounded(found, column.data_type)} AS {quoted(column.name)}"
    if column.id in group.partition_columns:
        return f"CAST(a.c{column.id} AS {type}) AS {quoted(column.name)}"
    if shape.name is None:
        initial = initial_text(column)
        value = "NULL" if initial is None else text(initial)
        return f"CAST({value} AS {type}) AS {quoted(column.name)}"
    found = f"CAST({reshaped(f'f.{quoted(shape.name)}', shape)} AS {type})"
    return f"{unbounded(found, column.data_type)} AS {quoted(column.name)}"


def _extras(group: _Group, first: int, wanted: Wanted) -> Iterator[str]:
    # Files without field ids carry neither.
    if wanted.row_id:
        embedded = "NULL" if group.by_name else f"f.c{ROW_ID_COLUMN}"
        yield f"COALESCE({embedded}, a.row_id_start + f.file_row_number) AS {ROW_ID}"
    if wanted.begin:
        yield f"a.begin AS {SNAPSHOT}"
    if wanted.snapshot:
        embedded = "NULL" if group.by_name else f"f.c{SNAPSHOT_ID_COLUMN}"
        yield f"COALESCE({embedded}, a.begin) AS {SNAPSHOT}"
    if wanted.place:
        yield f"CAST(f.file_index + {first} AS BIGINT) AS {PLACE}"
        yield f"f.file_row_number AS {POSITION}"
    if wanted.file_name:
        yield f"f.filename AS {FILE_NAME}"


def _about(files: Sequence[ScanFile], group: _Group, wanted: Wanted) -> pa.Table | None:
    """What has to be known of each file, as a table to join with."""
    if not (wanted.row_id or wanted.snapshot or wanted.begin or group.partition_columns):
        return None
    columns: dict[str, pa.Array] = {
        "place": pa.array(range(len(files)), pa.uint64()),
        "row_id_start": pa.array([file.file.row_id_start for file in files], pa.int64()),
        "begin": pa.array([file.file.begin for file in files], pa.int64()),
    }
    names = {shape.column.id: shape.name or "" for shape in group.shapes}
    values = [hive_values(file.file.path) for file in files]
    for column in group.partition_columns:
        if column in names:
            columns[f"c{column}"] = pa.array([found.get(names[column]) for found in values], pa.string())
    return pa.table(columns)


def _rows(parts: Sequence[ScanRows], first: int, wanted: Wanted) -> pa.Table:
    """Rows that are at hand, with the columns that a relation has."""
    rows = gather(parts, wanted.columns)
    columns = {f"c{column.id}": rows.column(f"c{column.id}") for column in wanted.columns}
    return pa.table(
        {
            **columns,
            ROW_ID: rows.column(ROW_ID_NAME),
            SNAPSHOT: rows.column(BEGIN if wanted.begin else SNAPSHOT_ID_NAME),
            PLACE: pc.add(rows.column(AMONG), first),
            POSITION: rows.column(WITHIN),
            FILE_NAME: pa.nulls(rows.num_rows, pa.string()),
        }
    )


def _held(plan: ScanPlan, wanted: Wanted) -> list[ScanFile]:
    """The files of which an index holds all that is wanted of their rows, but what files alone know."""
    if not plan.held or wanted.snapshot or wanted.begin or wanted.file_name:
        return []
    names = {str(column.id) for column in wanted.columns}
    names |= {ROW_ID_NAME} if wanted.row_id else set()
    return [
        file
        for file in plan.files
        if file.file.id in plan.held and names.issubset(plan.held[file.file.id].column_names)
    ]


def _rows_held(plan: ScanPlan, files: Sequence[ScanFile], storage: Storage, wanted: Wanted) -> pa.Table:
    """The rows of files as an index holds them, without those that are deleted."""
    found: list[pa.Table] = []
    for at, file in enumerate(files):
        rows = plan.held[file.file.id]
        if file.deleted is not None or file.file.deletes is not None:
            lost = lost_positions(storage, file.file.deletes, file.deleted)
            rows = rows.filter(pc.invert(pc.is_in(rows.column("position"), lost)))
        columns = {f"c{column.id}": rows.column(str(column.id)) for column in wanted.columns}
        place = pa.repeat(pa.scalar(at, pa.int64()), rows.num_rows)
        columns |= {ROW_ID: rows.column(ROW_ID_NAME)} if wanted.row_id else {}
        found.append(pa.table({**columns, PLACE: place, POSITION: rows.column("position")}))
    return pa.concat_tables(found)


def _from_arrow(name: str, wanted: Wanted) -> str:
    selected = [
        f"{guarded(f'CAST(c{column.id} AS {to_sql(column.data_type)})')} AS {quoted(column.name)}"
        for column in wanted.columns
    ]
    return f"SELECT {', '.join((*selected, *_extra_names(wanted)))} FROM {name}"


def _nothing(wanted: Wanted) -> str:
    selected = [
        f"CAST(NULL AS {to_sql(column.data_type)}) AS {quoted(column.name)}" for column in wanted.columns
    ]
    selected += [
        f"CAST(NULL AS {'VARCHAR' if name == FILE_NAME else 'BIGINT'}) AS {name}"
        for name in _extra_names(wanted)
    ]
    return f"SELECT {', '.join(selected)} WHERE false"


def _extra_names(wanted: Wanted) -> list[str]:
    names = [ROW_ID] if wanted.row_id else []
    names += [SNAPSHOT] if wanted.snapshot or wanted.begin else []
    names += [PLACE, POSITION] if wanted.place else []
    return names + ([FILE_NAME] if wanted.file_name else [])
