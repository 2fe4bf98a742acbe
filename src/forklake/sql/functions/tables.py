"""Functions about tables and their files."""

from __future__ import annotations

from uuid import UUID

from forklake.api.scoped import scope_of
from forklake.api.table_statistics import sizes_of
from forklake.commit.draft import Draft
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.scan.scan_plan import plan_scan
from forklake.sql.functions.answers import Columns, answer
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.names import name_of_table, table_of
from forklake.sql.functions.values import FLAG, TEXT, TEXTS, TIME, WHOLE
from forklake.store.files import TableSize

_TABLE_INFO: Columns = {
    "table_name": "VARCHAR",
    "schema_id": "BIGINT",
    "table_id": "BIGINT",
    "table_uuid": "UUID",
    "file_count": "BIGINT",
    "file_size_bytes": "BIGINT",
    "delete_file_count": "BIGINT",
    "delete_file_size_bytes": "BIGINT",
}
_FILES: Columns = {
    "data_file": "VARCHAR",
    "data_file_size_bytes": "UBIGINT",
    "data_file_footer_size": "UBIGINT",
    "data_file_encryption_key": "BLOB",
    "delete_file": "VARCHAR",
    "delete_file_size_bytes": "UBIGINT",
    "delete_file_footer_size": "UBIGINT",
    "delete_file_encryption_key": "BLOB",
}
_ADDED: Columns = {"filename": "VARCHAR"}


def _table_info(caller: Caller, values: Values) -> pa.Table:
    draft = scope_of(caller.work).read()
    sizes = sizes_of(draft)
    rows: list[tuple[object, ...]] = []
    schemas = {schema.name: schema.id for schema in draft.schemas()}
    for info in sorted(draft.tables(), key=lambda info: info.id):
        size = sizes.get(info.id, TableSize())
        rows.append(
            (
                info.name,
                schemas[info.schema],
                info.id,
                UUID(info.uuid).bytes,
                size.files,
                size.bytes,
                size.delete_files,
                size.delete_bytes,
            )
        )
    return answer(_TABLE_INFO, rows)


def _list_files(caller: Caller, values: Values) -> pa.Table:
    draft = _draft(caller, values)
    storage = scope_of(caller.work).context.storage
    plan = plan_scan(draft.source(draft.table_named(name_of_table(caller, values))))
    rows: list[tuple[object, ...]] = []
    for place in plan.files:
        file, deletes = place.file, place.file.deletes
        path = storage.address(file.path, file.path_is_relative)
        row: tuple[object, ...] = (path, file.file_size_bytes, file.footer_size, None)
        if deletes is None:
            rows.append((*row, None, None, None, None))
        else:
            path = storage.address(deletes.path, deletes.path_is_relative)
            rows.append((*row, path, deletes.file_size_bytes, deletes.footer_size, None))
    return answer(_FILES, rows)


def _draft(caller: Caller, values: Values) -> Draft:
    """What is listed: as the session sees it, or as it was."""
    if "snapshot_version" in values and "snapshot_time" in values:
        raise InvalidArgument("list_files takes snapshot_version or snapshot_time, not both")
    at = values.get("snapshot_version", values.get("snapshot_time"))
    scope = scope_of(caller.work)
    return scope.read() if at is None else scope.at(at).read()


def _add_data_files(caller: Caller, values: Values) -> pa.Table:
    table = table_of(caller, values)
    table.add_files(
        values["path"],
        mapping="by_name",
        allow_missing=values.get("allow_missing", False),
        ignore_extra=values.get("ignore_extra_columns", False),
        hive=values.get("hive_partitioning", True),
    )
    return answer(_ADDED, [])


_SCHEMA = Parameter("schema", TEXT)
_TABLE = Parameter("table", TEXT, is_required=True)

FUNCTIONS = (
    SqlFunction(
        "table_info",
        "The tables of the catalog with their files and sizes.",
        _table_info,
        columns=_TABLE_INFO,
    ),
    SqlFunction(
        "list_files",
        "The data files of a table, each with its delete file.",
        _list_files,
        (_TABLE, _SCHEMA, Parameter("snapshot_version", WHOLE), Parameter("snapshot_time", TIME)),
        (("table",),),
        columns=_FILES,
    ),
    SqlFunction(
        "add_data_files",
        "Adds Parquet files to a table without copying them.",
        _add_data_files,
        (
            _TABLE,
            Parameter("path", TEXTS, is_required=True, means="file"),
            _SCHEMA,
            Parameter("hive_partitioning", FLAG),
            Parameter("ignore_extra_columns", FLAG),
            Parameter("allow_missing", FLAG),
        ),
        (("table", "path"),),
        columns=_ADDED,
        is_change=True,
    ),
)
