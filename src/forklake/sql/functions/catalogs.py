"""Functions about catalogs: forks, merges, what differs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from forklake.errors import InvalidArgument, MergeConflict
from forklake.lazy.arrow import pa
from forklake.model.changes import Conflict
from forklake.model.entities import CatalogInfo
from forklake.sql.functions.answers import Columns, answer
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.values import AGE, FLAG, MOMENT, TEXT, TEXTS, one_of, or_null

_CATALOGS: Columns = {
    "catalog_name": "VARCHAR",
    "catalog_id": "BIGINT",
    "catalog_uuid": "UUID",
    "parent": "VARCHAR",
    "fork_snapshot": "BIGINT",
    "depth": "BIGINT",
    "created_at": "TIMESTAMP WITH TIME ZONE",
    "expires_at": "TIMESTAMP WITH TIME ZONE",
}
_MERGED: Columns = {
    "source": "VARCHAR",
    "target": "VARCHAR",
    "snapshot_id": "BIGINT",
    "table_name": "VARCHAR",
    "files_added": "BIGINT",
    "files_retired": "BIGINT",
    "rows_added": "BIGINT",
    "rows_removed": "BIGINT",
}
_DIFF: Columns = {
    "kind": "VARCHAR",
    "name": "VARCHAR",
    "change": "VARCHAR",
    "details": "VARCHAR[]",
    "rows_added": "BIGINT",
    "rows_removed": "BIGINT",
}
_CONFLICTS: Columns = {
    "rule": "VARCHAR",
    "ours": "VARCHAR",
    "theirs": "VARCHAR",
    "snapshot_id": "BIGINT",
    "row_count": "BIGINT",
    "files": "VARCHAR[]",
}
_DROPPED: Columns = {"catalog_name": "VARCHAR"}


def _row(info: CatalogInfo) -> tuple[object, ...]:
    return (
        info.name,
        info.id,
        UUID(info.uuid).bytes,
        info.parent,
        info.fork_snapshot,
        info.depth,
        info.created_at,
        info.expires_at,
    )


def _catalogs(caller: Caller, values: Values) -> pa.Table:
    return answer(_CATALOGS, map(_row, caller.lake.catalogs(at=values.get("at"))))


def _fork(caller: Caller, values: Values) -> pa.Table:
    options: dict[str, Any] = {
        name: values[name] for name in ("at", "ttl", "data_path", "mode", "if_not_exists") if name in values
    }
    made = caller.lake.fork(values.get("parent", caller.catalog.name), values["child"], **options)
    return answer(_CATALOGS, [_row(info) for info in caller.lake.catalogs() if info.id == made.id])


def _merge(caller: Caller, values: Values) -> pa.Table:
    options: dict[str, Any] = {name: values[name] for name in ("prefer", "tables") if name in values}
    source, target = _sides(caller, values)
    result = caller.lake.merge(source, target, dry_run=values.get("dry_run", False), **options)
    rows = [
        (
            source,
            target,
            result.snapshot,
            one.name,
            one.files_added,
            one.files_retired,
            one.rows_added,
            one.rows_removed,
        )
        for one in result.tables
    ]
    nothing = (source, target, result.snapshot, None, 0, 0, 0, 0)
    return answer(_MERGED, rows or [nothing])


def _sides(caller: Caller, values: Values) -> tuple[str, str]:
    """What is merged, and into what: the catalog of the session, or the parent of what it is itself."""
    source = values.get("source", caller.catalog.name)
    target = values.get("into", caller.catalog.name)
    if target == source and "into" not in values:
        parent = caller.catalog.parent
        if parent is None:
            raise InvalidArgument(
                f'"{source}" was not forked from another catalog: say what to merge it into, into => …'
            )
        target = parent.name
    return source, target


def _conflicts(caller: Caller, values: Values) -> pa.Table:
    source, target = _sides(caller, values)
    options: dict[str, Any] = {name: values[name] for name in ("prefer", "tables") if name in values}
    try:
        found = caller.lake.merge(source, target, dry_run=True, **options).conflicts
    except MergeConflict as error:
        found = error.conflicts
    return answer(_CONFLICTS, map(_conflict, found))


def _conflict(one: Conflict) -> tuple[object, ...]:
    return one.rule, str(one.ours), str(one.theirs), one.snapshot, one.row_count, list(one.files)


def _diff(caller: Caller, values: Values) -> pa.Table:
    catalog = caller.lake.catalog(values["catalog"]) if "catalog" in values else caller.catalog
    found = catalog.diff(values.get("other"))
    rows: list[tuple[object, ...]] = [
        (one.kind, one.name, one.change, [], None, None) for one in found.objects
    ]
    rows += [
        ("table", one.name, one.change, list(one.schema_changes), one.rows_added, one.rows_removed)
        for one in found.tables
    ]
    return answer(_DIFF, rows)


def _drop_catalog(caller: Caller, values: Values) -> pa.Table:
    name = values["name"]
    if values.get("if_exists", False) and name not in caller.lake:
        return answer(_DROPPED, [])
    caller.lake.drop_catalog(name)
    return answer(_DROPPED, [(name,)])


_TABLES = Parameter("tables", TEXTS)
_PREFER = Parameter("prefer", one_of("source", "target"))
_CHILD = Parameter("child", TEXT, is_required=True)

FUNCTIONS = (
    SqlFunction(
        "catalogs",
        "The catalogs of the lake.",
        _catalogs,
        (Parameter("at", MOMENT),),
        columns=_CATALOGS,
        of_lake=True,
    ),
    SqlFunction(
        "fork",
        "Forks a catalog.",
        _fork,
        (
            Parameter("parent", TEXT),
            _CHILD,
            Parameter("at", MOMENT),
            Parameter("ttl", or_null(AGE)),
            Parameter("data_path", TEXT),
            Parameter("mode", one_of("reference", "copy")),
            Parameter("if_not_exists", FLAG),
        ),
        (("child",), ("parent", "child")),
        columns=_CATALOGS,
        is_change=True,
        of_lake=True,
        in_transaction=False,
    ),
    SqlFunction(
        "fork_catalog",
        "Forks a catalog, with a folder or bucket of its own for new files.",
        _fork,
        (Parameter("parent", TEXT, is_required=True), _CHILD, Parameter("data_path", TEXT)),
        (("parent", "child", "data_path"),),
        columns=_CATALOGS,
        is_change=True,
        of_lake=True,
        in_transaction=False,
    ),
    SqlFunction(
        "merge",
        "Merges what a catalog did into another one.",
        _merge,
        (
            Parameter("source", TEXT),
            Parameter("into", TEXT),
            _PREFER,
            _TABLES,
            Parameter("dry_run", FLAG),
        ),
        (("source", "into"),),
        columns=_MERGED,
        is_change=True,
        of_lake=True,
        in_transaction=False,
    ),
    SqlFunction(
        "conflicts",
        "What a merge would be refused for.",
        _conflicts,
        (Parameter("source", TEXT), Parameter("into", TEXT), _PREFER, _TABLES),
        (("source", "into"),),
        columns=_CONFLICTS,
        of_lake=True,
    ),
    SqlFunction(
        "diff",
        "What a fork changed since it was forked, or what a catalog did that another has not seen.",
        _diff,
        (Parameter("catalog", TEXT), Parameter("other", TEXT)),
        (("catalog", "other"),),
        columns=_DIFF,
        of_lake=True,
    ),
    SqlFunction(
        "drop_catalog",
        "Drops a catalog. No other catalog loses anything.",
        _drop_catalog,
        (Parameter("name", TEXT, is_required=True), Parameter("if_exists", FLAG)),
        (("name",),),
        columns=_DROPPED,
        is_change=True,
        of_lake=True,
        in_transaction=False,
    ),
)
