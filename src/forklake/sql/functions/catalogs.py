"""Functions about catalogs: forks, merges, what differs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from forklake.api.scoped import scope_of
from forklake.errors import InvalidArgument, MergeConflict
from forklake.lazy.arrow import pa
from forklake.model.changes import Conflict
from forklake.model.entities import CatalogInfo
from forklake.model.names import QualifiedName
from forklake.sql.functions.answers import SUCCESS, Columns, answer, done
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.values import AGE, FLAG, SNAPSHOT_OR_TIME, TEXT, TEXTS, one_of, or_null
from forklake.store.lineages import fork_point

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
_FORKED: Columns = {
    "catalog_name": "VARCHAR",
    "catalog_id": "BIGINT",
    "parent": "VARCHAR",
    "fork_snapshot": "BIGINT",
}
_NAMED: Columns = {"catalog_name": "VARCHAR", "catalog_id": "BIGINT"}
_REPLAYED: Columns = {
    "fork": "VARCHAR",
    "onto": "VARCHAR",
    "snapshot_id": "BIGINT",
    "refused": "VARCHAR",
    "theirs": "VARCHAR",
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
    listed = list(caller.lake.catalogs(at=values.get("at")))
    return answer(_CATALOGS, map(_row, listed if caller.reach is None else caller.reach.sees(listed)))


def _fork(caller: Caller, values: Values) -> pa.Table:
    options: dict[str, Any] = {
        name: values[name] for name in ("at", "ttl", "data_path", "mode", "if_not_exists") if name in values
    }
    parent = values.get("parent", caller.catalog.name)
    made = caller.lake.fork(parent, values["child"], **options)
    point = fork_point(scope_of(made).context.database, made.id)
    return answer(_FORKED, [(made.name, made.id, parent, point)])


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


def _diff_rows(caller: Caller, values: Values) -> pa.Table:
    name = QualifiedName.parse(values["table"], schema=caller.schema)
    found = caller.catalog.diff(values.get("other")).table(name)
    if found is None:
        since = values.get("other", "it was forked")
        raise InvalidArgument(f'table "{name}" is not different from {since}: diff lists what is')
    return found.rows().to_arrow()


def _replay(caller: Caller, values: Values) -> pa.Table:
    fork = caller.lake.catalog(values["fork"]) if "fork" in values else caller.catalog
    found = fork.replay(values.get("onto"), dry_run=values.get("dry_run", False))
    place = (found.fork, found.onto, found.snapshot)
    rows = [(*place, str(one.ours), str(one.theirs)) for one in found.refused]
    return answer(_REPLAYED, rows or [(*place, None, None)])


def _create_catalog(caller: Caller, values: Values) -> pa.Table:
    made = caller.lake.create_catalog(values["name"], if_not_exists=values.get("if_not_exists", False))
    return answer(_NAMED, [(made.name, made.id)])


def _drop_catalog(caller: Caller, values: Values) -> pa.Table:
    name = values["name"]
    if values.get("if_exists", False) and name not in caller.lake:
        return answer(_NAMED, [])
    found = caller.lake.catalog(name)
    caller.lake.drop_catalog(name)
    return answer(_NAMED, [(found.name, found.id)])


def _drop_expired(caller: Caller, values: Values) -> pa.Table:
    return answer(_GONE, [(name,) for name in caller.lake.drop_expired()])


def _undrop_catalog(caller: Caller, values: Values) -> pa.Table:
    made = caller.lake.undrop_catalog(values["name"], as_name=values.get("as_name"), ttl=values.get("ttl"))
    return answer(_NAMED, [(made.name, made.id)])


def _rename_catalog(caller: Caller, values: Values) -> pa.Table:
    made = caller.lake.rename_catalog(values["name"], values["new_name"])
    return answer(_NAMED, [(made.name, made.id)])


def _set_ttl(caller: Caller, values: Values) -> pa.Table:
    caller.lake.set_ttl(values["name"], values["ttl"])
    return done()


def _materialize(caller: Caller, values: Values) -> pa.Table:
    caller.catalog.materialize()
    return done()


_TABLES = Parameter("tables", TEXTS)
_PREFER = Parameter("prefer", one_of("source", "target"))
_GONE: Columns = {"catalog_name": "VARCHAR"}
_NAME = Parameter("name", TEXT, is_required=True)
_OWN = Parameter("name", TEXT, is_required=True, means="fork")
_CHILD = Parameter("child", TEXT, is_required=True)
_CHANGES: dict[str, Any] = {"is_change": True, "of_lake": True, "in_transaction": False}

FUNCTIONS = (
    SqlFunction(
        "catalogs",
        "The catalogs of the lake.",
        _catalogs,
        (Parameter("at", SNAPSHOT_OR_TIME),),
        columns=_CATALOGS,
        of_lake=True,
    ),
    SqlFunction(
        "fork",
        "Forks a catalog.",
        _fork,
        (
            Parameter("parent", TEXT, means="fork"),
            _CHILD,
            Parameter("at", SNAPSHOT_OR_TIME),
            Parameter("ttl", or_null(AGE)),
            Parameter("data_path", TEXT, means="folder"),
            Parameter("mode", one_of("reference", "copy")),
            Parameter("if_not_exists", FLAG),
        ),
        (("child",), ("parent", "child")),
        columns=_FORKED,
        **_CHANGES,
    ),
    SqlFunction(
        "fork_catalog",
        "Forks a catalog, with a folder or bucket of its own for new files.",
        _fork,
        (
            Parameter("parent", TEXT, is_required=True, means="fork"),
            _CHILD,
            Parameter("data_path", TEXT, means="folder"),
        ),
        (("parent", "child", "data_path"),),
        columns=_FORKED,
        **_CHANGES,
    ),
    SqlFunction(
        "merge",
        "Merges what a catalog did into another one.",
        _merge,
        (
            Parameter("source", TEXT, means="fork"),
            Parameter("into", TEXT, means="relative"),
            _PREFER,
            _TABLES,
            Parameter("dry_run", FLAG),
        ),
        (("source", "into"),),
        columns=_MERGED,
        **_CHANGES,
    ),
    SqlFunction(
        "conflicts",
        "What a merge would be refused for.",
        _conflicts,
        (
            Parameter("source", TEXT, means="fork"),
            Parameter("into", TEXT, means="relative"),
            _PREFER,
            _TABLES,
        ),
        (("source", "into"),),
        columns=_CONFLICTS,
        of_lake=True,
    ),
    SqlFunction(
        "diff",
        "What a fork changed since it was forked, or what a catalog did that another has not seen.",
        _diff,
        (Parameter("catalog", TEXT, means="fork"), Parameter("other", TEXT, means="relative")),
        (("catalog", "other"),),
        columns=_DIFF,
        of_lake=True,
    ),
    SqlFunction(
        "diff_rows",
        "The rows of a table that a fork changed since it was forked, or that another has not seen.",
        _diff_rows,
        (Parameter("table", TEXT, is_required=True), Parameter("other", TEXT, means="relative")),
        (("table", "other"),),
    ),
    SqlFunction(
        "replay",
        "Replays the changes of a fork on top of its parent or of another catalog.",
        _replay,
        (
            Parameter("fork", TEXT, means="fork"),
            Parameter("onto", TEXT, means="relative"),
            Parameter("dry_run", FLAG),
        ),
        (("fork", "onto"),),
        columns=_REPLAYED,
        **_CHANGES,
    ),
    SqlFunction(
        "create_catalog",
        "Creates an empty catalog.",
        _create_catalog,
        (_NAME, Parameter("if_not_exists", FLAG)),
        (("name",),),
        columns=_NAMED,
        **_CHANGES,
    ),
    SqlFunction(
        "drop_catalog",
        "Drops a catalog. No other catalog loses anything.",
        _drop_catalog,
        (_OWN, Parameter("if_exists", FLAG)),
        (("name",),),
        columns=_NAMED,
        **_CHANGES,
    ),
    SqlFunction(
        "drop_expired",
        "Drops every catalog whose time to live is over.",
        _drop_expired,
        columns=_GONE,
        **_CHANGES,
    ),
    SqlFunction(
        "undrop_catalog",
        "Brings back the catalog of a name that was dropped last.",
        _undrop_catalog,
        (_NAME, Parameter("as_name", TEXT), Parameter("ttl", AGE)),
        (("name",),),
        columns=_NAMED,
        **_CHANGES,
    ),
    SqlFunction(
        "rename_catalog",
        "Gives a catalog another name.",
        _rename_catalog,
        (_OWN, Parameter("new_name", TEXT, is_required=True)),
        (("name", "new_name"),),
        columns=_NAMED,
        **_CHANGES,
    ),
    SqlFunction(
        "set_ttl",
        "Sets the time to live of a catalog, counted from now; NULL removes it.",
        _set_ttl,
        (_OWN, Parameter("ttl", or_null(AGE), is_required=True)),
        (("name", "ttl"),),
        columns=SUCCESS,
        **_CHANGES,
    ),
    SqlFunction(
        "materialize",
        "Copies what the catalog inherits, so that it no longer depends on others.",
        _materialize,
        columns=SUCCESS,
        is_change=True,
        in_transaction=False,
    ),
)
