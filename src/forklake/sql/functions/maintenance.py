"""Functions that keep a catalog small and quick: flush, compact, expire, clean up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from forklake.api.scoped import scope_of
from forklake.commit.draft import Draft
from forklake.commit.write_target import options_of
from forklake.compact.compaction import Planner, delete_planner, merge_planner, rewrite_one
from forklake.compact.flush import flush_each
from forklake.compact.plan import Choice
from forklake.errors import InvalidArgument, TableNotFound
from forklake.lazy.arrow import pa
from forklake.maintenance.collect import collect_folder, schedule
from forklake.maintenance.orphans import orphans_in
from forklake.model.entities import Table
from forklake.model.names import QualifiedName
from forklake.model.options import Options
from forklake.model.time_travel import to_utc
from forklake.sql.functions.answers import Columns, answer
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.history import SNAPSHOTS, snapshot_rows
from forklake.sql.functions.names import name_of_table
from forklake.sql.functions.values import FLAG, SHARE, TEXT, TIME_OR_AGE, VERSIONS, at_least

_FLUSHED: Columns = {"schema_name": "VARCHAR", "table_name": "VARCHAR", "rows_flushed": "BIGINT"}
_REWRITTEN: Columns = {
    "schema_name": "VARCHAR",
    "table_name": "VARCHAR",
    "files_processed": "BIGINT",
    "files_created": "BIGINT",
}
_PATHS: Columns = {"path": "VARCHAR"}


def _flush_inlined_data(caller: Caller, values: Values) -> pa.Table:
    scope = scope_of(caller.work)
    lake = scope.context.options
    schema, table = values.get("schema_name"), values.get("table_name")

    def tables(draft: Draft) -> list[Table]:
        if table is not None:
            given = {"table": table} if schema is None else {"table": table, "schema": schema}
            found = [draft.table_named(name_of_table(caller, given))]
        else:
            inside = None if schema is None else draft.schema_named(schema).id
            found = [draft.table(number) for number in draft.inlined_tables()]
            found = [one for one in found if inside in (None, one.schema_id)]
        return [one for one in found if options_of(draft, one, lake).auto_compact]

    flushed = flush_each(scope, tables)
    return answer(_FLUSHED, [(name.schema, name.name, count) for name, count in flushed if count])


def _merge_adjacent_files(caller: Caller, values: Values) -> pa.Table:
    low, high = values.get("min_file_size", 0), values.get("max_file_size")
    if high is not None and low >= high:
        raise InvalidArgument("merge_adjacent_files: min_file_size must be less than max_file_size")
    choice = Choice(low, high, values.get("max_compacted_files"), inlined=False)
    return _rewritten(caller, values, lambda options: merge_planner(2, choice))


def _rewrite_data_files(caller: Caller, values: Values) -> pa.Table:
    def planner(options: Options) -> Planner:
        return delete_planner(values.get("delete_threshold", options.rewrite_delete_threshold))

    return _rewritten(caller, values, planner)


def _rewritten(caller: Caller, values: Values, planner: Callable[[Options], Planner]) -> pa.Table:
    """Rewrite files of one table or of all, but for those that are not to be touched by themselves."""
    scope = scope_of(caller.work)
    draft = scope.read()
    if "table" in values:
        tables = [draft.table_named(name_of_table(caller, values)).id]
    else:
        tables = draft.tables_with_files()
    rows: list[tuple[object, ...]] = []
    for number in tables:
        table = draft.table(number)
        options = options_of(draft, table, scope.context.options)
        if not options.auto_compact:
            continue
        try:
            name, done, _ = rewrite_one(scope, number, planner(options))
        except TableNotFound:
            # Somebody has dropped it since the tables were listed.
            continue
        place = QualifiedName.parse(name) if done else draft.name_of(table)
        rows += [(place.schema, place.name, len(one.rewrite.inputs), len(one.files)) for one in done]
    return answer(_REWRITTEN, rows)


def _expire_snapshots(caller: Caller, values: Values) -> pa.Table:
    if "versions" in values and "older_than" in values:
        raise InvalidArgument("expire_snapshots takes versions or older_than, not both")
    context = scope_of(caller.catalog).context
    known = caller.catalog.snapshots()
    criteria: dict[str, Any] = {}
    if "versions" in values:
        # The latest always stays, and one that is gone is expired already.
        wanted = set(values["versions"] or ()) & {snapshot.id for snapshot in known[:-1]}
        criteria = {"versions": sorted(wanted)} if wanted else {}
    else:
        age = values.get("older_than", context.options.expire_older_than)
        criteria = {} if age is None else {"older_than": age}
    if not criteria:
        return snapshot_rows([])
    dry_run = values.get("dry_run", False)
    gone = set(caller.catalog.expire(dry_run=dry_run, **criteria).snapshots)
    if gone and not dry_run:
        # From now on it counts how long its files have not been needed.
        schedule(context.database, context.storage)
    return snapshot_rows(snapshot for snapshot in known if snapshot.id in gone)


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
    return _cleaned(caller, values, "cleanup_old_files", collect_folder)


def _delete_orphaned_files(caller: Caller, values: Values) -> pa.Table:
    return _cleaned(caller, values, "delete_orphaned_files", orphans_in)


def _cleaned(caller: Caller, values: Values, function: str, clean: Callable[..., list[str]]) -> pa.Table:
    """Clean the folder of the catalog."""
    scope = scope_of(caller.catalog)
    context = scope.context
    default = context.options.delete_older_than
    if clean is orphans_in:
        default = context.options.orphans_older_than
    age = _age(caller, values, function, default)
    folder = scope.read().head.data_path
    dry_run = values.get("dry_run", False)
    paths = clean(context.database, context.storage, folder, older_than=age, dry_run=dry_run)
    return answer(_PATHS, [(path,) for path in paths])


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
        (Parameter("versions", VERSIONS), Parameter("older_than", TIME_OR_AGE), _DRY_RUN),
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
