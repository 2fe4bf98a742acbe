"""Functions that do all at once that keeps a catalog or a lake small and sound, and say what was done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from forklake.api.scoped import scope_of
from forklake.lazy.arrow import pa
from forklake.maintenance.checkpoint import CheckpointResult, RewrittenTable
from forklake.maintenance.collect import KeptFile, collect_folder
from forklake.maintenance.orphans import orphans_in
from forklake.sql.functions.answers import Columns, answer
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.values import AGE, FLAG

_STEPS: Columns = {
    "step": "VARCHAR",
    "catalog": "VARCHAR",
    "table": "VARCHAR",
    "rows": "BIGINT",
    "files_processed": "BIGINT",
    "files_created": "BIGINT",
    "snapshots": "BIGINT",
    "error": "VARCHAR",
}
_FREED: Columns = {"files": "BIGINT", "bytes": "BIGINT", "kept": "VARCHAR[]"}
_DIFFERENCES: Columns = {
    "kind": "VARCHAR",
    "catalog": "VARCHAR",
    "table": "VARCHAR",
    "path": "VARCHAR",
    "message": "VARCHAR",
    "repaired": "BOOLEAN",
}


def _checkpoint(caller: Caller, values: Values) -> pa.Table:
    dry_run = values.get("dry_run", False)
    found = caller.catalog.checkpoint(dry_run=dry_run)
    rows = list(_steps(found))
    scope = scope_of(caller.catalog)
    context, folder = scope.context, scope.read().head.data_path
    place = (context.database, context.storage, folder)
    options = context.options
    gone = collect_folder(*place, older_than=options.delete_older_than, dry_run=dry_run)
    rows += [{"step": "collect", "files_processed": len(gone)}] if gone else []
    gone = orphans_in(*place, older_than=options.orphans_older_than, unknown=False, dry_run=dry_run)
    rows += [{"step": "orphans", "files_processed": len(gone)}] if gone else []
    for row in rows:
        row.setdefault("catalog", caller.catalog.name)
    return answer(_STEPS, [[row.get(column) for column in _STEPS] for row in rows])


def _steps(found: CheckpointResult) -> Iterator[dict[str, Any]]:
    for one in found.flush:
        yield {"step": "flush", "catalog": one.catalog, "table": one.table, "rows": one.rows}
    expired = getattr(found.expire, "snapshots", ())
    if expired:
        yield {"step": "expire", "snapshots": len(expired)}
    yield from _rewritten("compact", found.compact)
    yield from _rewritten("rewrite", found.rewrite)
    for one in found.index:
        yield {
            "step": "index",
            "catalog": one.catalog,
            "table": one.built.table,
            "rows": one.built.rows,
            "files_processed": one.built.files,
            "files_created": one.built.segments,
        }
    for failure in found.failures:
        yield {
            "step": failure.step,
            "catalog": failure.catalog,
            "table": failure.table,
            "error": failure.error,
        }


def _rewritten(step: str, tables: Iterable[RewrittenTable]) -> Iterator[dict[str, Any]]:
    for one in tables:
        yield {
            "step": step,
            "catalog": one.catalog,
            "table": one.rewritten.table,
            "rows": one.rewritten.rows,
            "files_processed": one.rewritten.files_in,
            "files_created": one.rewritten.files_out,
        }


def _collect_garbage(caller: Caller, values: Values) -> pa.Table:
    found = caller.lake.collect_garbage(**_given(caller, values, "delete_older_than"))
    return answer(_FREED, [(found.removed, found.removed_bytes, _kept(found.kept))])


def _remove_orphans(caller: Caller, values: Values) -> pa.Table:
    given = _given(caller, values, "orphans_older_than")
    found = caller.lake.remove_orphans(**given, unknown=values.get("unknown", False))
    return answer(_FREED, [(found.files, found.bytes, _kept(found.kept))])


def _given(caller: Caller, values: Values, option: str) -> dict[str, Any]:
    age: timedelta = values.get("older_than", getattr(caller.lake.options(), option))
    return {"older_than": age, "dry_run": values.get("dry_run", False)}


def _kept(files: Iterable[KeptFile]) -> list[str]:
    return [f"{file.path}: {file.why}" for file in files]


def _check(caller: Caller, values: Values) -> pa.Table:
    found = caller.lake.check(repair=values.get("repair", False), data=values.get("data", False))
    return answer(
        _DIFFERENCES,
        [
            (one.kind, one.catalog, one.table, one.path, one.message, one.repaired)
            for one in found.differences
        ],
    )


_DRY_RUN = Parameter("dry_run", FLAG)
_OF_LAKE: dict[str, Any] = {"is_change": True, "of_lake": True, "in_transaction": False}

FUNCTIONS = (
    SqlFunction(
        "checkpoint",
        "Flushes, expires, compacts and cleans the catalog, as its options say.",
        _checkpoint,
        (_DRY_RUN,),
        columns=_STEPS,
        is_change=True,
        in_transaction=False,
    ),
    SqlFunction(
        "collect_garbage",
        "Removes what no catalog of the lake can reach, and its files after a while.",
        _collect_garbage,
        (Parameter("older_than", AGE), _DRY_RUN),
        columns=_FREED,
        **_OF_LAKE,
    ),
    SqlFunction(
        "remove_orphans",
        "Removes files in the data paths of the lake that no metadata names.",
        _remove_orphans,
        (Parameter("older_than", AGE), Parameter("unknown", FLAG), _DRY_RUN),
        columns=_FREED,
        **_OF_LAKE,
    ),
    SqlFunction(
        "check",
        "Lists what is not as it should be in the lake.",
        _check,
        (Parameter("data", FLAG), Parameter("repair", FLAG)),
        columns=_DIFFERENCES,
        **_OF_LAKE,
    ),
)
