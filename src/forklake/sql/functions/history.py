"""Functions about snapshots, and about what came and went between them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from forklake.api.change_feed import feed_between
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa, pc
from forklake.model.snapshots import Snapshot
from forklake.model.time_travel import to_utc
from forklake.sql.functions.answers import Columns, answer
from forklake.sql.functions.changes_made import changes_made
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.names import name_of_table
from forklake.sql.functions.values import SNAPSHOT_OR_TIME, TEXT

SNAPSHOTS: Columns = {
    "snapshot_id": "BIGINT",
    "snapshot_time": "TIMESTAMP WITH TIME ZONE",
    "schema_version": "BIGINT",
    "changes": "MAP(VARCHAR, VARCHAR[])",
    "author": "VARCHAR",
    "commit_message": "VARCHAR",
    "commit_extra_info": "VARCHAR",
}
_ID: Columns = {"id": "UBIGINT"}


def snapshot_rows(snapshots: Iterable[Snapshot]) -> pa.Table:
    """Snapshots as DuckLake lists them."""
    return answer(
        SNAPSHOTS,
        [
            (
                snapshot.id,
                snapshot.time,
                snapshot.schema_version,
                list(changes_made(snapshot.changes).items()),
                snapshot.author,
                snapshot.message,
                _extra_text(snapshot.extra),
            )
            for snapshot in snapshots
        ],
    )


def _extra_text(extra: object) -> str | None:
    if extra is None or isinstance(extra, str):
        return extra
    return json.dumps(extra, ensure_ascii=False)


def _snapshots(caller: Caller, values: Values) -> pa.Table:
    return snapshot_rows(caller.catalog.snapshots())


def _current_snapshot(caller: Caller, values: Values) -> pa.Table:
    return answer(_ID, [(caller.base,)])


def _last_committed_snapshot(caller: Caller, values: Values) -> pa.Table:
    return answer(_ID, [(caller.last_committed,)])


def _table_changes(caller: Caller, values: Values) -> pa.Table:
    found = _feed(caller, values)
    names = found.column_names[3:]
    ids = found.select(["snapshot_id", "row_id", "change_type"]).rename_columns(
        ["snapshot_id", "rowid", "change_type"]
    )
    for name in names:
        ids = ids.append_column(found.schema.field(name), found.column(name))
    return ids


def _table_insertions(caller: Caller, values: Values) -> pa.Table:
    return _rows_of(_feed(caller, values), "insert", "update_postimage")


def _table_deletions(caller: Caller, values: Values) -> pa.Table:
    return _rows_of(_feed(caller, values), "delete", "update_preimage")


def _rows_of(feed: pa.Table, *kinds: str) -> pa.Table:
    """The rows of some kinds, with what is not part of the table at the end."""
    rows = feed.filter(pc.is_in(feed.column("change_type"), pa.array(kinds, pa.string())))
    names = [*feed.column_names[3:], "snapshot_id", "row_id"]
    return rows.select(names).rename_columns([*names[:-2], "snapshot_id", "rowid"])


def _feed(caller: Caller, values: Values) -> pa.Table:
    name = name_of_table(caller, values)
    start, end = _first(caller, values["start"]), values["end"]
    return feed_between(caller.catalog, name, start, end).to_arrow()


def _first(caller: Caller, start: int | datetime) -> int:
    """The first snapshot that is asked for."""
    if isinstance(start, int):
        if start < 0:
            raise InvalidArgument(f"a snapshot has an id of at least 0, not {start}")
        return start
    since = to_utc(start)
    later = [snapshot.id for snapshot in caller.catalog.snapshots() if snapshot.time >= since]
    if not later:
        raise InvalidArgument(f'catalog "{caller.catalog.name}" has no snapshot since {since}')
    return later[0]


_CHANGES = (
    Parameter("schema", TEXT),
    Parameter("table", TEXT, is_required=True),
    Parameter("start", SNAPSHOT_OR_TIME, is_required=True),
    Parameter("end", SNAPSHOT_OR_TIME, is_required=True),
)
_FORMS = (("table", "start", "end"), ("schema", "table", "start", "end"))

FUNCTIONS = (
    SqlFunction("snapshots", "The snapshots of the catalog, oldest first.", _snapshots, columns=SNAPSHOTS),
    SqlFunction(
        "current_snapshot",
        "The snapshot that is read: in a transaction, that on which it began.",
        _current_snapshot,
        columns=_ID,
    ),
    SqlFunction(
        "last_committed_snapshot",
        "The last snapshot that was committed through this lake; NULL if there was none.",
        _last_committed_snapshot,
        columns=_ID,
    ),
    SqlFunction(
        "table_changes",
        "Rows that were inserted, deleted and updated, from one snapshot or time to another, both included.",
        _table_changes,
        _CHANGES,
        _FORMS,
    ),
    SqlFunction(
        "table_insertions",
        "Rows that were inserted, or got new values, from one snapshot or time to another, both included.",
        _table_insertions,
        _CHANGES,
        _FORMS,
        hidden=("snapshot_id", "rowid"),
    ),
    SqlFunction(
        "table_deletions",
        "Rows that were deleted, or had old values, from one snapshot or time to another, both included.",
        _table_deletions,
        _CHANGES,
        _FORMS,
        hidden=("snapshot_id", "rowid"),
    ),
)
