"""Functions that keep a catalog small and quick: flush, compact, expire, clean up."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from forklake.compact.compaction import CompactResult
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.names import QualifiedName
from forklake.model.time_travel import to_utc
from forklake.sql.functions.answers import Columns, answer
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.history import SNAPSHOTS, snapshot_rows
from forklake.sql.functions.names import name_of_table
from forklake.sql.functions.values import FLAG, SHARE, TEXT, TIME_OR_AGE, WHOLES, at_least

_FLUSHED: Columns = {"schema_name": "VARCHAR", "table_name": "VARCHAR", "rows_flushed": "BIGINT"}
_REWRITTEN: Columns = {
    "schema_name": "VARCHAR",
    "table_name": "VARCHAR",
    "files_processed": "BIGINT",
    "files_created": "BIGINT",
}
_PATHS: Columns = {"path": "VARCHAR"}


def _flush_inlined_data(caller: Caller, values: Values) -> pa.Table:
    schema, table = values.get("schema_name"), values.get("table_name")
    if table is not None:
        names = [name_of_table(caller, {"table": table} | ({"schema": schema} if schema else {}))]
    else:
        names = [QualifiedName(info.schema, info.name) for info in caller.work.tables(schema=schema)]
    rows = [(name.schema, name.name, caller.work.flush_inlined(name)) for name in names]
    return answer(_FLUSHED, [row for row in rows if row[2]])


def _merge_adjacent_files(caller: Caller, values: Values) -> pa.Table:
    name = name_of_table(caller, values) if "table" in values else None
    return _rewritten(caller.work.compact(name))


def _rewrite_data_files(caller: Caller, values: Values) -> pa.Table:
    name = name_of_table(caller, values) if "table" in values else None
    threshold = values.get("delete_threshold", caller.lake.options().rewrite_delete_threshold)
    return _rewritten(caller.work.rewrite_deletes(name, threshold))


def _rewritten(result: CompactResult) -> pa.Table:
    names = [QualifiedName.parse(table.table) for table in result.tables]
    return answer(
        _REWRITTEN,
        [
            (name.schema, name.name, table.files_in, table.files_out)
            for name, table in zip(names, result.tables, strict=True)
        ],
    )


def _expire_snapshots(caller: Caller, values: Values) -> pa.Table:
    if "versions" in values and "older_than" in values:
        raise InvalidArgument("expire_snapshots takes versions or older_than, not both")
    criteria: dict[str, Any] = {name: values[name] for name in ("versions", "older_than") if name in values}
    if not criteria:
        age = caller.lake.options().expire_older_than
        if age is None:
            return snapshot_rows([])
        criteria = {"older_than": age}
    known = caller.catalog.snapshots()
    gone = caller.catalog.expire(dry_run=values.get("dry_run", False), **criteria).snapshots
    return snapshot_rows(snapshot for snapshot in known if snapshot.id in set(gone))


def _age(caller: Caller, values: Values, function: str, default: timedelta) -> timedelta:
    """For how long a file has not been needed that is removed."""
    if values.get("cleanup_all", False):
        if "older_than" in values:
            raise InvalidArgument(f"{function} takes cleanup_all or older_than, not both")
        return timedelta(0)
    match values.get("older_than"):
        case datetime() as before:
            return max(caller.lake.now() - to_utc(before), timedelta(0))
        case timedelta() as age:
            return age
        case _:
            return default


def _cleanup_old_files(caller: Caller, values: Values) -> pa.Table:
    age = _age(caller, values, "cleanup_old_files", caller.lake.options().delete_older_than)
    caller.lake.collect_garbage(older_than=age, dry_run=values.get("dry_run", False))
    return answer(_PATHS, [])


def _delete_orphaned_files(caller: Caller, values: Values) -> pa.Table:
    age = _age(caller, values, "delete_orphaned_files", caller.lake.options().orphans_older_than)
    caller.lake.remove_orphans(older_than=age, dry_run=values.get("dry_run", False))
    return answer(_PATHS, [])


_TABLE = (Parameter("table", TEXT), Parameter("schema", TEXT))
_DRY_RUN = Parameter("dry_run", FLAG)
_CLEANUP = (Parameter("cleanup_all", FLAG), Parameter("older_than", TIME_OR_AGE), _DRY_RUN)
_ONE_OR_ALL = (("table",),)

FUNCTIONS = (
    SqlFunction(
        "flush_inlined_data",
        "Writes inlined rows to Parquet files, of one table, of a schema or of all.",
        _flush_inlined_data,
        (Parameter("schema_name", TEXT), Parameter("table_name", TEXT)),
        columns=_FLUSHED,
        is_change=True,
    ),
    SqlFunction(
        "merge_adjacent_files",
        "Merges small files, of one table or of all.",
        _merge_adjacent_files,
        (
            *_TABLE,
            Parameter("max_compacted_files", at_least(1)),
            Parameter("min_file_size", at_least(0)),
            Parameter("max_file_size", at_least(1)),
        ),
        _ONE_OR_ALL,
        columns=_REWRITTEN,
        is_change=True,
    ),
    SqlFunction(
        "rewrite_data_files",
        "Rewrites files of which many rows are deleted, of one table or of all.",
        _rewrite_data_files,
        (*_TABLE, Parameter("delete_threshold", SHARE)),
        _ONE_OR_ALL,
        columns=_REWRITTEN,
        is_change=True,
    ),
    SqlFunction(
        "expire_snapshots",
        "Expires snapshots of the catalog: they can no longer be read.",
        _expire_snapshots,
        (Parameter("versions", WHOLES), Parameter("older_than", TIME_OR_AGE), _DRY_RUN),
        columns=SNAPSHOTS,
        is_change=True,
        in_transaction=False,
    ),
    SqlFunction(
        "cleanup_old_files",
        "Removes files of the catalog that nobody needs any more.",
        _cleanup_old_files,
        _CLEANUP,
        columns=_PATHS,
        is_change=True,
        in_transaction=False,
    ),
    SqlFunction(
        "delete_orphaned_files",
        "Removes files of the catalog that no metadata names.",
        _delete_orphaned_files,
        _CLEANUP,
        columns=_PATHS,
        is_change=True,
        in_transaction=False,
    ),
)
