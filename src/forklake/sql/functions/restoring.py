"""Functions that go back: a catalog or a table as it was, and commits that are undone."""

from __future__ import annotations

from forklake.lazy.arrow import pa
from forklake.model.names import QualifiedName
from forklake.sql.functions.answers import SUCCESS, done
from forklake.sql.functions.function import Caller, Parameter, SqlFunction, Values
from forklake.sql.functions.names import name_of_table
from forklake.sql.functions.values import SNAPSHOT_OR_TIME, TEXT, WHOLE


def _restore(caller: Caller, values: Values) -> pa.Table:
    caller.work.restore(values["at"])
    return done()


def _restore_table(caller: Caller, values: Values) -> pa.Table:
    caller.work.restore_table(name_of_table(caller, values), values["at"], as_name=_other(caller, values))
    return done()


def _undrop_table(caller: Caller, values: Values) -> pa.Table:
    caller.work.undrop_table(name_of_table(caller, values), as_name=_other(caller, values))
    return done()


def _other(caller: Caller, values: Values) -> QualifiedName | None:
    given = values.get("as_name")
    return None if given is None else QualifiedName.parse(given, schema=caller.schema)


def _undo(caller: Caller, values: Values) -> pa.Table:
    caller.work.undo(values["snapshot"])
    return done()


_AT = Parameter("at", SNAPSHOT_OR_TIME, is_required=True)
_TABLE = (Parameter("table", TEXT, is_required=True), Parameter("schema", TEXT))

FUNCTIONS = (
    SqlFunction(
        "restore",
        "Makes the whole catalog what it was at a snapshot or timestamp, as one more commit.",
        _restore,
        (_AT,),
        (("at",),),
        columns=SUCCESS,
        is_change=True,
    ),
    SqlFunction(
        "restore_table",
        "Makes a table what it was at a snapshot or timestamp, also if it was dropped since.",
        _restore_table,
        (*_TABLE, _AT, Parameter("as_name", TEXT)),
        (("table", "at"),),
        columns=SUCCESS,
        is_change=True,
    ),
    SqlFunction(
        "undrop_table",
        "Brings back the table of a name that was dropped last.",
        _undrop_table,
        (*_TABLE, Parameter("as_name", TEXT)),
        (("table",),),
        columns=SUCCESS,
        is_change=True,
    ),
    SqlFunction(
        "undo",
        "Reverts one earlier commit, as one more commit.",
        _undo,
        (Parameter("snapshot", WHOLE, is_required=True),),
        (("snapshot",),),
        columns=SUCCESS,
        is_change=True,
    ),
)
